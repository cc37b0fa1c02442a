"""Sentences by the size of the difference between two systems."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nmt.analysis.resampling import Floats, bleu_of
from nmt.analysis.systems import System
from nmt.analysis.table import Table, fields_of, one_field
from nmt.settings import choice, number

STEP = 10  # points of BLEU or chrF, the width of a bar of the histogram


@dataclass
class DifferenceConfig:
    """What is compared, and how much of it is listed."""

    metric: str = choice("chrf", "bleu", help="score of single sentences: chrF, or BLEU of effective order")
    count: int = number(10, least=1, help="sentences of each direction")


@dataclass
class SentenceDifference:
    """A sentence that two systems translate differently well."""

    line: int  # from 1
    difference: float  # score of the second minus score of the first
    first: float  # 0 to 100
    second: float  # 0 to 100
    source: str
    reference: str
    first_text: str
    second_text: str


def sentence_scores(system: System, metric: str) -> Floats:
    """chrF, or BLEU of effective order, of each sentence alone, 0 to 100; both equal sacreBLEU's."""
    if metric == "bleu":
        return bleu_of(system.bleu_statistics.rows, effective_order=True)
    return np.array(system.chrf_statistics.by_sentence())


def largest_differences(first: System, second: System, config: DifferenceConfig) -> list[SentenceDifference]:
    """The sentences that the second system translates best compared with the first, the largest difference
    first, then those that the first translates best; equal ones in the order of the text."""
    scores = [sentence_scores(system, config.metric) for system in (first, second)]
    gains = (scores[1] - scores[0]).round(9)
    order = np.argsort(-gains, kind="stable")
    better = order[gains[order] > 0][: config.count]
    order = np.argsort(gains, kind="stable")
    worse = order[gains[order] < 0][: config.count]
    test = first.test
    return [
        SentenceDifference(
            line=row + 1,
            difference=float(gains[row]),
            first=float(scores[0][row]),
            second=float(scores[1][row]),
            source=one_field(test.sources[row]),
            reference=one_field(test.references[0][row]),
            first_text=one_field(first.hypotheses[row]),
            second_text=one_field(second.hypotheses[row]),
        )
        for row in [*better.tolist(), *worse.tolist()]
    ]


def histogram(first: System, second: System, metric: str) -> dict[str, int]:
    """How many sentences have a difference (second minus first) of each size: groups of `STEP` points, and
    one of equal scores; from the smallest that occurs to the largest, equal ones always."""
    gains = (sentence_scores(second, metric) - sentence_scores(first, metric)).round(9)
    groups = (np.sign(gains) * np.ceil(np.abs(gains) / STEP)).astype(np.int64)
    return {
        group_name(group): int((groups == group).sum())
        for group in range(min(groups.min(initial=0), 0), max(groups.max(initial=0), 0) + 1)
    }


def group_name(group: int) -> str:
    """The differences of a group: -20 to -10, equal, 0 to 10."""
    if not group:
        return "equal"
    low, high = sorted((group * STEP, (group - (1 if group > 0 else -1)) * STEP))
    return f"{low} to {high}"


def table(found: Iterable[SentenceDifference]) -> Table:
    columns = {"line": "", "difference": ".2f", "first": ".2f", "second": ".2f"}
    texts = {"source": "", "reference": "", "first_text": "", "second_text": ""}
    return Table(columns | texts, fields_of(found))
