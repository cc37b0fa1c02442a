"""What trained models do: the attention of a translation, scores of phrases."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from nmt.analysis.phrase_choice import PhrasesConfig, choose
from nmt.analysis.table import Table, fields_of
from nmt.errors import ConfigError, DataError
from nmt.formats import phrase_table
from nmt.formats.phrase_table import PhrasePair
from nmt.runs.run import Run
from nmt.scoring import pair_scores
from nmt.search.config import BeamConfig, SamplingConfig
from nmt.search.sampling import distinct
from nmt.text.vocab import EOS, SPECIALS

# ---- attention map -----------------------------------------------------------------------------------------
# The source words that each word of a translation attends to (Bahdanau et al. 2015, Fig. 3).


END = SPECIALS[EOS]


@torch.no_grad()
def attention_weights(
    run: Run, line: str, target: str = "", tokenized: bool = False
) -> tuple[list[str], list[str], NDArray[np.float64]]:
    """Source units and target units, each with the end symbol, and weights (target, source) whose rows sum
    to 1.

    Without a `target` the run translates `line` itself. ConfigError for a model without attention, DataError
    for an empty line.
    """
    member = run.members[0]
    source = member.source.units(line, tokenized)
    if not source:
        raise DataError("an empty sentence has no words to attend to")
    if not member.model.attends:
        raise ConfigError(f"{member.directory}: has no attention; train with model.attention")
    ids = (
        run.target_ids(target, tokenized)
        if target
        else run.search([line], BeamConfig(), tokenized)[0][0].words
    )
    state, words, rows = member.model.start([member.source_words.encode(source)]), None, []
    for word in [*ids, EOS]:
        _, state = member.model.step(state, words)
        looked = member.model.attention(state)
        assert looked is not None
        rows.append(looked[0].double().cpu().numpy())
        words = torch.tensor([word], device=member.model.device)
    units = member.target.units(target, tokenized) if target else member.target_words.decode(ids)
    return [*source, END], [*units, END], np.stack(rows)


def attention_table(source: Sequence[str], target: Sequence[str], found: NDArray[np.floating]) -> Table:
    """One row per weight: positions from 0, units, weight."""
    return Table(
        {"target": "", "source": "", "target_word": "", "source_word": "", "weight": ".6f"},
        [[i, j, target[i], source[j], weight] for i, row in enumerate(found) for j, weight in enumerate(row)],
    )


# ---- phrases -----------------------------------------------------------------------------------------------
# What a model makes of phrases, beside the phrase table (Tables 4.2 and 4.3): the best targets by each, and
# phrases sampled from the model.
#
# Shown are the most frequent and the rarest of the table's source phrases of 4 words or more with several
# targets.


@dataclass
class PhraseRow:
    """A target of a source phrase, and why it is shown."""

    kind: str  # frequent | rare
    source: str
    count: int  # of the source phrase in the corpus
    by: str  # table | model | samples
    rank: int
    target: str
    ln_table: float | None  # ln p(target | source) of the table; None for a draw that it does not hold
    ln_model: float  # natural log p(target | source) of the model
    drawn: int | None = None  # how often


def compare_phrases(run: Run, table: str, config: PhrasesConfig) -> list[PhraseRow]:
    """For each source phrase the best targets by the table, by the model, and the likeliest of the draws."""
    return [
        row
        for number, (kind, pairs) in enumerate(choose(table, config))
        for row in phrase_rows(run, kind, pairs, number, config)
    ]


def phrase_rows(
    run: Run, kind: str, pairs: Sequence[PhrasePair], number: int, config: PhrasesConfig
) -> Iterator[PhraseRow]:
    """The rows of one source phrase. Its draws depend on `number`, its place among the sources."""
    source = phrase_table.words(pairs[0].source)
    targets = [tuple(phrase_table.words(pair.target)) for pair in pairs]
    by_table = dict(zip(targets, map(phrase_table.direct, pairs), strict=True))
    by_model = dict(zip(targets, model_scores(run, source, targets), strict=True))

    def row(
        by: str, rank: int, target: tuple[str, ...], ln_model: float, drawn: int | None = None
    ) -> PhraseRow:
        return PhraseRow(
            kind=kind,
            source=" ".join(source),
            count=phrase_table.source_count(pairs[0]),
            by=by,
            rank=rank,
            target=" ".join(target),
            ln_table=by_table.get(target),
            ln_model=ln_model,
            drawn=drawn,
        )

    for by, values in (("table", by_table), ("model", by_model)):
        best = sorted(values, key=lambda target: (-values[target], target))[: config.best]
        for rank, target in enumerate(best, 1):
            yield row(by, rank, target, by_model[target])
    settings = SamplingConfig(config.samples, seed=config.seed)
    drawn = distinct(run.sample([" ".join(source)], settings, tokenized=True, first=number)[0])
    for rank, (candidate, count) in enumerate(drawn[: config.shown], 1):
        found = tuple(run.translation(" ".join(source), candidate, True).words)
        yield row("samples", rank, found, candidate.log_prob, count)


def model_scores(run: Run, source: Sequence[str], targets: Sequence[Sequence[str]]) -> list[float]:
    """Natural log p of each target of one source phrase."""
    member = run.members[0]
    source_ids = member.source_words.encode(member.source.cut(list(source)))
    ids = [member.target_words.encode(member.target.cut(list(target))) for target in targets]
    scores: list[float] = pair_scores(member.model, [source_ids], ids, [0] * len(ids)).tolist()
    return scores


def phrases_table(rows: Iterable[PhraseRow]) -> Table:
    columns = {"kind": "", "source": "", "count": "", "by": "", "rank": "", "target": ""}
    return Table(columns | {"ln_table": ".6f", "ln_model": ".6f", "drawn": ""}, fields_of(rows))
