"""Translations of phrases by a phrase table and by a model (van Merriënboer 2018, tables 4.2 and 4.3): the
best targets of each, and phrases sampled from the model."""

import argparse
import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from nmt.analysis import plots
from nmt.analysis.actions import Findings, add_output, load_run, record_table
from nmt.cli.arguments import InputPath, add_settings, parse_settings
from nmt.cli.options import Parser, add_model
from nmt.config.settings import number
from nmt.errors import DataError
from nmt.formats import phrase_table
from nmt.formats.phrase_table import PhrasePair
from nmt.io import files
from nmt.search.config import SamplingConfig

if TYPE_CHECKING:
    from nmt.runs.torch_run import TorchRun


@dataclass
class PhrasesConfig:
    """Which source phrases are shown, and how many targets of each."""

    sources: int = number(5, least=1, help="source phrases of each kind")
    # The minimum length: van Merriënboer 2018 says "more than 3", "at least 4" and "more than 4 or 5".
    min_words: int = number(4, least=1, help="minimum length of a source phrase in words")
    min_targets: int = 4  # fewest targets of a source phrase
    best: int = 3  # targets listed by the table and by the model, as in van Merriënboer 2018, table 4.2
    # The draws are those of van Merriënboer 2018, table 4.3.
    samples: int = number(50, least=1, most=100_000, help="samples drawn for each source phrase")
    shown: int = 5  # most frequent draws that are listed
    seed: int = number(1, least=0, help="random seed of the draws")


def choose_sources(table: str, config: PhrasesConfig) -> list[tuple[str, list[PhrasePair]]]:
    """Choose the most frequent and the rarest source phrases of a table that have at least `min_words` words
    and `min_targets` targets: (frequent or rare, entries of the phrase).

    `table`: path of a phrase table in Moses' order, with all entries of a source together. Of equally
    frequent phrases the first in the table is chosen. DataError for a malformed table.
    """
    heaps: dict[str, list[tuple[tuple[int, int], list[PhrasePair]]]] = {"frequent": [], "rare": []}
    sources = groupby(phrase_table.read(table), key=lambda pair: pair.source)
    for position, (source, group) in enumerate(sources):
        if len(source.split()) < config.min_words:
            continue
        pairs = list(group)
        if len(pairs) < config.min_targets:
            continue
        count = phrase_table.source_count(pairs[0])
        for kind, rank in (("frequent", (count, -position)), ("rare", (-count, -position))):
            heapq.heappush(heaps[kind], (rank, pairs))
            if len(heaps[kind]) > config.sources:
                heapq.heappop(heaps[kind])
    return [
        (kind, pairs)
        for kind, heap in heaps.items()
        for _, pairs in sorted(heap, key=lambda item: item[0], reverse=True)
    ]


@dataclass
class PhraseRow:
    """A target of a source phrase: one of the best of the table, one of the best of the model, or one of the
    most frequent samples of the model."""

    kind: str  # frequent | rare
    source: str
    count: int  # of the source phrase in the corpus
    by: str  # table | model | samples
    rank: int
    target: str
    ln_table: float | None  # ln p(target | source) of the table; None for a draw that is not in the table
    ln_model: float  # natural log p(target | source) of the model
    drawn: int | None = None  # how often it was drawn; None outside of samples


def compare_phrases(run: "TorchRun", table: str, config: PhrasesConfig) -> list[PhraseRow]:
    """List the best targets by table and by model, and the most frequent samples, of each of the source
    phrases that `choose_sources` chooses from the phrase table at `table`; empty without such phrases."""
    return [
        row
        for number, (kind, pairs) in enumerate(choose_sources(table, config))
        for row in phrase_rows(run, kind, pairs, number, config)
    ]


def phrase_rows(
    run: "TorchRun", kind: str, pairs: Sequence[PhrasePair], number: int, config: PhrasesConfig
) -> Iterator[PhraseRow]:
    """Yield the rows of one source phrase. `kind`: frequent or rare; `pairs`: its entries in the phrase
    table; `number`: its index among the sources, which seeds its draws."""
    from nmt.runs.run import TranslationRequest
    from nmt.search.sampling import count_distinct

    run = run.for_text(tokenized=True)
    source = phrase_table.words(pairs[0].source)
    text = " ".join(source)
    targets = [tuple(phrase_table.words(pair.target)) for pair in pairs]
    by_table = dict(zip(targets, map(phrase_table.direct, pairs), strict=True))
    by_model = dict(zip(targets, model_scores(run, source, targets), strict=True))

    def row(
        by: str, rank: int, target: tuple[str, ...], ln_model: float, drawn: int | None = None
    ) -> PhraseRow:
        return PhraseRow(
            kind=kind,
            source=text,
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
    request = TranslationRequest([text], limit=run.source_lengths.limit(first=number))
    distinct = count_distinct(run.sample(request, settings)[0])
    for rank, (candidate, count) in enumerate(distinct[: config.shown], 1):
        target = tuple(run.translation(text, candidate).words)
        yield row("samples", rank, target, candidate.log_prob, count)


def model_scores(run: "TorchRun", source: Sequence[str], targets: Sequence[Sequence[str]]) -> list[float]:
    """Compute natural log p of each target of one source phrase by the first model of a run."""
    from nmt.scoring import pair_scores

    member = run.members[0]
    source_ids = member.source_words.encode(member.source.cut(list(source)))
    ids = [member.target_words.encode(member.target.cut(list(target))) for target in targets]
    scores: list[float] = pair_scores(member.model, [source_ids], ids, [0] * len(ids)).tolist()
    return scores


class PhrasesAnalysis:
    help = "Best targets of long phrases by table and by model, and phrases sampled from the model."

    def add_options(self, parser: Parser) -> None:
        add_model(parser)
        parser.add_argument(
            "--table",
            type=InputPath,
            required=True,
            metavar="FILE",
            help="a Moses phrase table with counts, in its usual order",
        )
        add_settings(parser, PhrasesConfig, "sources", "min_words", "samples", "seed")
        add_output(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        files.existing([args.table])
        run = load_run(args, args.run)
        rows = compare_phrases(run, args.table, parse_settings(PhrasesConfig, args))
        if not rows:
            raise DataError(
                f"{args.table}: no source phrase of {args.min_words} words or more has at least "
                f"{PhrasesConfig.min_targets} targets; lower --min-words"
            )
        points = [(row.ln_table, row.ln_model) for row in rows if row.ln_table is not None]
        return Findings(
            table=record_table(PhraseRow, rows, ln_table=".6f", ln_model=".6f"),
            summary=[f"{run.name}: {len({row.source for row in rows})} source phrases"],
            draw=lambda paths: plots.scatter(
                paths,
                *plots.split_points(points),
                x_label="ln p(target | source) of the table",
                y_label=f"ln p of {run.name}",
                title="phrases shown",
            ),
        )
