"""What a model says of phrases, beside the table (Tables 4.2 and 4.3): best targets by each, and phrases
drawn from the model.

Of the table's source phrases of 4 words or more with several targets, the most frequent and the rarest are
shown.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from nmt import phrase_table
from nmt.phrase_table import PhrasePair
from nmt.run import Run
from nmt.scoring import pair_scores
from nmt.search.sampling import SamplingConfig, distinct


@dataclass
class PhrasesConfig:
    sources: int = 5  # of each kind
    min_words: int = 4  # the text says 'more than 3', 'at least 4' and 'more than 4 or 5'
    min_targets: int = 4
    best: int = 3  # targets by the table and by the model, as in Table 4.2
    samples: int = 50  # draws, as in Table 4.3
    shown: int = 5  # of the different draws
    seed: int = 1


@dataclass
class Row:
    kind: str  # frequent | rare
    source: str
    count: int  # of the source phrase in the corpus
    by: str  # table | model | samples
    rank: int
    target: str
    ln_table: float | None  # ln p(target | source) of the table; None for a draw that it does not hold
    ln_model: float  # natural log p(target | source) of the model
    drawn: int = 0  # how often


def choose(table: str, config: PhrasesConfig) -> list[tuple[str, list[PhrasePair]]]:
    """The most frequent and the rarest long sources with their targets: (kind, pairs); ties go to what stands
    first."""
    heaps: dict[str, list[tuple[tuple[int, int], list[PhrasePair]]]] = {"frequent": [], "rare": []}
    for number, (source, group) in enumerate(groupby(phrase_table.read(table), key=lambda pair: pair.source)):
        if len(source.split()) < config.min_words:
            continue
        options = list(group)
        if len(options) < config.min_targets:
            continue
        count = phrase_table.source_count(options[0])
        for kind, rank in (("frequent", (count, -number)), ("rare", (-count, -number))):
            heapq.heappush(heaps[kind], (rank, options))
            if len(heaps[kind]) > config.sources:
                heapq.heappop(heaps[kind])
    return [
        (kind, options)
        for kind, heap in heaps.items()
        for _, options in sorted(heap, key=lambda item: item[0], reverse=True)
    ]


def phrases(run: Run, table: str, config: PhrasesConfig) -> list[Row]:
    """Rows by source: best targets by the table, by the model, and the likeliest of the draws."""
    rows: list[Row] = []
    for number, (kind, options) in enumerate(choose(table, config)):
        source = phrase_table.words(options[0].source)
        targets = [phrase_table.words(option.target) for option in options]
        direct = dict(zip(map(tuple, targets), map(phrase_table.direct, options), strict=True))
        scores = dict(zip(map(tuple, targets), model_scores(run, source, targets), strict=True))
        head = (kind, " ".join(source), phrase_table.source_count(options[0]))
        for by, values in (("table", direct), ("model", scores)):
            order = sorted(values, key=lambda target: (-values[target], target))
            rows += [
                Row(*head, by, rank, " ".join(target), direct[target], scores[target])
                for rank, target in enumerate(order[: config.best], 1)
            ]
        drawn = run.sample(
            [" ".join(source)], SamplingConfig(config.samples, seed=config.seed), tokenized=True, first=number
        )[0]
        for rank, (candidate, count) in enumerate(distinct(drawn)[: config.shown], 1):
            found = tuple(run.translation(" ".join(source), candidate, True).words)
            rows.append(
                Row(*head, "samples", rank, " ".join(found), direct.get(found), candidate.log_prob, count)
            )
    return rows


def model_scores(run: Run, source: Sequence[str], targets: Sequence[Sequence[str]]) -> list[float]:
    """Natural log p of each target of one source"""
    member = run.members[0]
    read = member.source_words.encode(member.source.cut(list(source)))
    ids = [member.target_words.encode(member.target.cut(list(target))) for target in targets]
    return pair_scores(member.model, [read], ids, [0] * len(ids)).tolist()  # type: ignore[no-any-return]


def to_tsv(rows: Sequence[Row]) -> Iterator[str]:
    yield "\t".join(["kind", "source", "count", "by", "rank", "target", "ln_table", "ln_model", "drawn"])
    for row in rows:
        known = "" if row.ln_table is None else f"{row.ln_table:.6f}"
        yield "\t".join(
            [
                row.kind,
                row.source,
                str(row.count),
                row.by,
                str(row.rank),
                row.target,
                known,
                f"{row.ln_model:.6f}",
                str(row.drawn or ""),
            ]
        )
