"""Word alignments of given pairs, from the attention of a translator."""

from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.data.batches import Ids, make_batch
from nmt.errors import ConfigError
from nmt.formats.pharaoh import Links
from nmt.layers.batch_scores import BATCH, batches
from nmt.models.protocols import Attending
from nmt.runs.run import SCORED, Run
from nmt.text.long_lines import Limit


def check(run: Run) -> None:
    """ConfigError for a run whose (first) model has no attention over the source."""
    model = run.members[0].model
    if not (model.attends and isinstance(model, Attending)):
        raise ConfigError(f"{run.members[0].directory}: has no attention to align by")


def align(
    run: Run, pairs: Sequence[tuple[str, ...]], tokenized: bool = False, limit: Limit | None = None
) -> list[Links]:
    """The alignment of each (source, target): each word of the target, or each of its units, is linked to
    the source word with the most attention at the step that predicts it. Of an ensemble the first run
    aligns. ConfigError for a run without attention, DataError for a pair that is too long."""
    check(run)
    member = run.members[0]
    limit = limit or run.source_lengths.limit()
    for side, lengths in enumerate((run.source_lengths, run.target_lengths)):
        lengths.refuse((pair[side] for pair in pairs), tokenized, limit, SCORED)
    sources = [member.source.units(pair[0], tokenized) for pair in pairs]
    targets = [member.target.units(pair[1], tokenized) for pair in pairs]
    ids: list[tuple[Ids, Ids]] = [
        (member.source_words.encode(source), member.target_words.encode(target))
        for source, target in zip(sources, targets, strict=True)
    ]
    found: list[Links] = [frozenset()] * len(pairs)
    for rows in batches(ids, BATCH):
        for row, looks in zip(rows, looked_at(run, [ids[row] for row in rows]), strict=True):
            source_of = member.source.word_numbers(sources[row])
            target_of = member.target.word_numbers(targets[row])
            if source_of:
                found[row] = frozenset(
                    (source_of[look], word) for look, word in zip(looks.tolist(), target_of, strict=True)
                )
    return found


@torch.no_grad()
def looked_at(run: Run, pairs: Sequence[tuple[Ids, Ids]]) -> list[Tensor]:
    """For each unit of each target, its end symbol left out, the source unit with the most attention; never
    the source's end symbol."""
    model = run.members[0].model
    assert isinstance(model, Attending)
    batch = make_batch([source for source, _ in pairs], [target for _, target in pairs]).to(model.device)
    weights = model.attended(batch)[1]
    return [
        rows[:-1, : len(source)].argmax(1) if len(source) else rows[:0, 0].long()
        for (source, _), rows in zip(pairs, batch.target.split(weights), strict=True)
    ]
