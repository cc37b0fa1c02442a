"""Word alignments of given pairs, from the attention of a translator; and log p of pairs by a joint model,
which is given their alignment."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nmt.data.affiliation import AlignedPair, affiliate_pair
from nmt.data.aligned import make_aligned_batch
from nmt.data.batches import Ids, make_batch
from nmt.errors import CheckpointError, ConfigError
from nmt.formats import pharaoh
from nmt.formats.pharaoh import Links
from nmt.layers.batch_scores import BATCH, batches_by_length
from nmt.models.config import ModelConfig
from nmt.models.protocols import AlignedModel
from nmt.models.registry import ALIGNED_MODELS
from nmt.runs import checkpoint
from nmt.runs.checkpoint import SavedPair, SavedRun
from nmt.runs.run import SCORED, Run
from nmt.text.sentences import LineLimit
from nmt.text.vocab import Vocab

# ---- alignment ---------------------------------------------------------------------------------------------


def check_attention(run: Run) -> SavedRun:
    """Return the first model of a run, whose attention aligns. ConfigError if it has no attention over the
    source, or is not computed by torch."""
    member = run.members[0]
    if not isinstance(member, SavedPair) or not run.attends:
        raise ConfigError(f"{member.directory}: has no attention to align by; give a run with attention")
    return member


def align(run: Run, pairs: Sequence[tuple[str, ...]], limit: LineLimit | None = None) -> list[Links]:
    """Align the words of each (source, target) by attention. A target word is linked to the source word that
    gets the most attention when it is predicted; a target word of several units, to that of each unit. In an
    ensemble the first model aligns. `limit`: maximum length of lines, by default that of the run. ConfigError
    for a run without attention, DataError for a pair that is too long."""
    member = check_attention(run)
    limit = limit or run.source_lengths.limit()
    for side, lengths in enumerate((run.source_lengths, run.target_lengths)):
        lengths.refuse((pair[side] for pair in pairs), limit, SCORED)
    sources = [member.source.units(pair[0]) for pair in pairs]
    targets = [member.target.units(pair[1]) for pair in pairs]
    ids: list[tuple[Ids, Ids]] = [
        (member.source_words.encode(source), member.target_words.encode(target))
        for source, target in zip(sources, targets, strict=True)
    ]
    links: list[Links] = [frozenset()] * len(pairs)
    for rows in batches_by_length(ids, BATCH):
        for row, attended in zip(rows, attended_units(member, [ids[row] for row in rows]), strict=True):
            source_of = member.source.word_numbers(sources[row])
            target_of = member.target.word_numbers(targets[row])
            if source_of:
                links[row] = frozenset(
                    (source_of[unit], word) for unit, word in zip(attended.tolist(), target_of, strict=True)
                )
    return links


@torch.no_grad()
def attended_units(member: SavedRun, pairs: Sequence[tuple[Ids, Ids]]) -> list[Tensor]:
    """Index of the source unit with the most attention, for each unit of each target: a tensor (T,) for a
    target of T units, (0,) if its source is empty. End symbols of both sides are left out."""
    model = member.model
    batch = make_batch([source for source, _ in pairs], [target for _, target in pairs]).to(model.device)
    weights = model.attended(batch)[1]
    return [
        rows[:-1, : len(source)].argmax(1) if len(source) else rows[:0, 0].long()
        for (source, _), rows in zip(pairs, batch.target.split(weights), strict=True)
    ]


# ---- joint models ------------------------------------------------------------------------------------------
# Trained joint models from their run directories, and log p of pairs with a given alignment.


PAIRS_PER_BATCH = 128
SavedAligned = SavedPair[AlignedModel]  # a trained joint model


def load_aligned(directory: str | Path, which: str = "best", device: str = "cpu") -> SavedAligned:
    """Load a joint model to score with. `which`: best, last or a number of updates; `device`: cpu, cuda:N or
    auto. CheckpointError if the directory is not such a run, or is damaged."""
    return checkpoint.read_consistent(load_aligned_once, Path(directory), which, device)


def load_aligned_once(directory: Path, which: str, device: str) -> SavedAligned:
    """Load a joint model in one attempt; the run must not change meanwhile. Arguments and errors as in
    `load_aligned`, which tries again."""
    config = checkpoint.checked_config(directory)
    kind = ALIGNED_MODELS.get(config.model.type) if isinstance(config.model, ModelConfig) else None
    if kind is None:
        raise CheckpointError(
            f"{directory}: is a model of type {config.model.type}, expected a run of model.type "
            f"{' or '.join(ALIGNED_MODELS)}"
        )

    def build(source: Vocab, target: Vocab) -> AlignedModel:
        return kind(config.model, len(source), len(target), fill=False)

    return checkpoint.load_pair(directory, which, device, config, build)


def aligned_word_scores(
    run: SavedAligned, rows: Sequence[tuple[str, ...]], name: str, first: int = 0
) -> list[list[float]]:
    """Natural log p of each target word and of the end symbol, for each row (source, target, alignment),
    three lines; from left to right even if the model reads from right to left. DataError, with `name` and
    line number, for an alignment that is malformed or does not fit; `first`: number of lines before these."""
    pairs = []
    for number, (source_line, target_line, points) in enumerate(rows, first + 1):
        source, target = run.source.units(source_line), run.target.units(target_line)
        location = f"{name}:{number}"
        links = pharaoh.parse(points, location)
        pharaoh.check_points(links, len(source), len(target), location)
        affiliation = affiliate_pair(links, len(source), len(target), run.model.within)
        pairs.append(
            AlignedPair(run.source_words.encode(source), run.target_words.encode(target), affiliation)
        )
    word_scores: list[list[float]] = []
    for start in range(0, len(pairs), PAIRS_PER_BATCH):
        batch = make_aligned_batch(pairs[start : start + PAIRS_PER_BATCH], run.model.shape)
        scores = run.model.token_log_probs(batch.to(run.model.device)).double().cpu().numpy()
        lines = [part.tolist() for part in np.split(scores, np.cumsum(batch.lengths)[:-1])]
        word_scores += [[*line[-2::-1], line[-1]] for line in lines] if run.model.shape.backward else lines
    return word_scores
