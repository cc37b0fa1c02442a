"""Choose the best translation of each sentence of n-best lists: the one with the highest total, or the one of
minimum Bayes risk. The scales of minimum Bayes risk are options, or tuned on references.

Moses' escapes are undone before texts are compared or scored.
"""

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from nmt.errors import ConfigError
from nmt.formats import nbest
from nmt.formats.nbest import Hypothesis
from nmt.io import files
from nmt.metrics import BleuScore, BleuStatistics, ChrfScore, ChrfStatistics
from nmt.search.config import MBRConfig
from nmt.search.mbr import Evidence, Ints, choose, evidence
from smt_bridge.moses.ini import Weights, tuned_names
from smt_bridge.moses.sparse_weights import is_sparse
from smt_bridge.nbest.union import unescaped_text

log = logging.getLogger(__name__)

Score = BleuScore | ChrfScore

GRID = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)  # scales that TunedRisk tries
MOST_LISTS = 3  # most lists whose scales are tuned together; with 3 there are a thousand combinations

# ---- choice ------------------------------------------------------------------------------------------------


@dataclass
class NbestEntry:
    """An entry of the output list: its total score, its line, and the words of the translation."""

    total: float
    line: str
    text: list[str]


class Chooser(ABC):
    """Chooses the best translation of each sentence. Takes sentences one by one, and returns translations, as
    lines, in the same order, possibly later."""

    scales: Sequence[float] = ()  # those chosen on references, known after `finish`

    @abstractmethod
    def add(self, groups: Sequence[Sequence[Hypothesis]], entries: Sequence[NbestEntry]) -> list[str]:
        """Add a sentence, and return the translations that can be chosen by now. `groups`: the hypotheses of
        each list; `entries`: the entries of the output."""

    def finish(self) -> list[str]:
        """Return the translations that can be chosen only after the last sentence."""
        return []


class ByTotal(Chooser):
    """Chooses the entry with the highest total; on ties the first one."""

    def add(self, groups: Sequence[Sequence[Hypothesis]], entries: Sequence[NbestEntry]) -> list[str]:
        return [" ".join(max(entries, key=lambda entry: entry.total).text)]


@dataclass
class ByRisk(Chooser):
    """Minimum Bayes risk decoding. `of_totals`: the entries have new totals from one model and form a single
    list; otherwise each list has scores of its own and is normalized separately."""

    config: MBRConfig
    of_totals: bool

    def add(self, groups: Sequence[Sequence[Hypothesis]], entries: Sequence[NbestEntry]) -> list[str]:
        texts = self.evidence(groups, entries)
        scales = self.config.list_scales(len(texts.owners))
        return [texts_as_written(entries)[texts.texts[choose(texts, self.config.mbr, [scales])[0]]]]

    def evidence(self, groups: Sequence[Sequence[Hypothesis]], entries: Sequence[NbestEntry]) -> Evidence:
        """The distinct texts of a sentence with their totals; arguments as for `add`."""
        lists: Sequence[Sequence[Hypothesis | NbestEntry]] = [entries] if self.of_totals else groups
        return evidence([[(unescaped_text(row.text), row.total) for row in rows] for rows in lists])


@dataclass
class TunedRisk(Chooser):
    """Minimum Bayes risk decoding with those scales of GRID that score best on the references by the metric
    of `risk.config`. `finish` logs the scores and returns all translations; `add` returns none."""

    risk: ByRisk
    lists: int  # number of lists with a scale of their own
    references: Sequence[Sequence[str]]  # the lines of each reference translation
    # of each sentence: unescaped text -> as it is written; the text for each choice of scales; the text with
    # the best total
    lines: list[Mapping[str, str]] = field(default_factory=list)
    chosen: list[list[str]] = field(default_factory=list)
    best: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """ConfigError for too many lists."""
        if self.lists > MOST_LISTS:
            raise ConfigError(
                f"scales of {self.lists} lists are too many to tune, {MOST_LISTS} at most; tune weights for "
                "their union (smt-tune-nbest) and give --weights, or give --mbr-scale"
            )
        self.grid = list(product(GRID, repeat=self.lists))

    def add(self, groups: Sequence[Sequence[Hypothesis]], entries: Sequence[NbestEntry]) -> list[str]:
        texts = self.risk.evidence(groups, entries)
        self.chosen.append([texts.texts[index] for index in choose(texts, self.risk.config.mbr, self.grid)])
        self.best.append(unescaped_text(max(entries, key=lambda entry: entry.total).text))
        self.lines.append(texts_as_written(entries))
        return []

    def finish(self) -> list[str]:
        texts = [[unescaped_text(files.split_words(line)) for line in text] for text in self.references]
        choices = [[*row, best] for row, best in zip(self.chosen, self.best, strict=True)]
        *scores, total_score = METRICS[self.risk.config.mbr](choices, texts)
        top = max(range(len(scores)), key=lambda number: scores[number].score)
        self.scales = self.grid[top]
        if self.lists == 1:
            log.info("%s by the best total", total_score)
            for (scale,), score in zip(self.grid, scores, strict=True):
                log.info("%.2f with --mbr-scale %g", score.score, scale)
        log.info(
            "%s with --mbr %s --mbr-scale %s", scores[top], self.risk.config.mbr, format_scales(self.scales)
        )
        return [line[row[top]] for line, row in zip(self.lines, self.chosen, strict=True)]


def format_scales(scales: Sequence[float]) -> str:
    """Format the scales for --mbr-scale."""
    return " ".join(f"{scale:g}" for scale in scales)


def texts_as_written(entries: Sequence[NbestEntry]) -> dict[str, str]:
    """Map each unescaped text to the text of its first entry, as it is written."""
    return {unescaped_text(entry.text): " ".join(entry.text) for entry in reversed(entries)}


# ---- corpus scores -----------------------------------------------------------------------------------------


def corpus_bleu(choices: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> list[Score]:
    """BLEU of many outputs of one text, with words split at blanks: (sentences, outputs) -> (outputs,).
    `references`: the lines of each reference translation. A translation that several outputs share is
    compared with the references only once."""
    texts, indices, owners = distinct_texts(choices)
    statistics = BleuStatistics(texts, [[text[owner] for owner in owners] for text in references], "none")
    return [statistics.bleu(column) for column in indices.T]


def corpus_chrf(choices: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> list[Score]:
    """chrF2 of many outputs of one text: (sentences, outputs) -> (outputs,); as `corpus_bleu`."""
    texts, indices, owners = distinct_texts(choices)
    statistics = ChrfStatistics(texts, [[text[owner] for owner in owners] for text in references])
    return [statistics.chrf(column) for column in indices.T]


METRICS = {"bleu": corpus_bleu, "chrf": corpus_chrf}


def distinct_texts(choices: Sequence[Sequence[str]]) -> tuple[list[str], Ints, list[int]]:
    """Find the distinct texts of each sentence. Returns the texts of all sentences (N,), the index of each
    output's text among them (sentences, outputs), and the sentence of each text (N,)."""
    texts: list[str] = []
    owners: list[int] = []
    indices = []
    for number, row in enumerate(choices):
        index_of: dict[str, int] = {}
        for text in row:
            if text not in index_of:
                index_of[text] = len(texts)
                texts.append(text)
                owners.append(number)
        indices.append([index_of[text] for text in row])
    return texts, np.array(indices, np.int64), owners


# ---- totals ------------------------------------------------------------------------------------------------
# Totals of n-best entries: weights x features, and what the decoder adds for unknown words.


UNKNOWN_WORD = -100.0  # what Moses adds for each, with weight 1, and does not print (UnknownWordPenalty0)
TOTAL_TOLERANCE = 0.01, 1e-5  # absolute, and relative: printed totals have six digits


def unprinted_score(hypothesis: Hypothesis, weights: Weights | None) -> float:
    """The part of a total that the decoder added for unknown words, which no printed feature shows.

    `weights`: those that the decoder used. 0 without weights, and for an entry that lacks some of their
    features, since another decoder wrote it. ConfigError for weights that cannot be those of the decoder, and
    for features without names.
    """
    if weights and nbest.UNLABELED in hypothesis.features:
        raise ConfigError(
            f"sentence {hypothesis.sentence}: features without names, which --decoder-weights cannot check; "
            "let Moses write them (-labeled-n-best-list true)"
        )
    if weights and set(hypothesis.features) >= tuned_names(weights):
        return unknown_word_score(hypothesis, weights)
    return 0.0


def entry_total(features: dict[str, list[float]], weights: Weights) -> float:
    """Σ weight x feature over the features of an entry, so a (sparse) feature that it lacks counts as 0, as
    does a sparse one without a weight. KeyError for any other feature without weights, ValueError for a wrong
    number of them: see `check_weights`. ConfigError for a total that is too large for a number."""
    products = [
        weight * value
        for name, values in features.items()
        if name in weights or not is_sparse(name)
        for weight, value in zip(weights[name], values, strict=True)
    ]
    if not math.isfinite(sum(products)):
        raise ConfigError("weights x features are too large for a number; give smaller weights")
    return math.fsum(products)


def unknown_word_score(hypothesis: Hypothesis, weights: Weights) -> float:
    """The part of the decoder's total that no printed feature accounts for: -100 for each unknown word.
    `weights`: those that the decoder used. ConfigError if they are wrong: the rest of the total is not -100
    times a number of words, or a feature has another number of values than of weights."""
    try:
        rest = hypothesis.total - entry_total(
            {name: values for name, values in hypothesis.features.items() if name in weights}, weights
        )
    except ValueError as error:
        raise ConfigError(
            "--decoder-weights: the weights of a feature and its values in the list differ in number; give "
            "the weights that the decoder used"
        ) from error
    count = round(rest / UNKNOWN_WORD)
    absolute, relative = TOTAL_TOLERANCE
    if abs(rest - count * UNKNOWN_WORD) > absolute + relative * abs(hypothesis.total) or count < 0:
        raise ConfigError(
            f"sentence {hypothesis.sentence}: weights x features give {hypothesis.total - rest:.6g}, but the "
            f"list says {hypothesis.total:.6g}; "
            "these are not the weights that its decoder used; give those to --decoder-weights"
        )
    return count * UNKNOWN_WORD


def check_weights(features: dict[str, list[float]], weights: Weights) -> None:
    """ConfigError if a feature that is not sparse has no weights, if one has too many or too few, and if
    there are weights of a tuned feature that is not in `features`."""
    for name, values in features.items():
        if name not in weights and is_sparse(name):
            continue
        if name not in weights:
            raise ConfigError(
                f"no weight for feature {name}; tune with it (smt-tune-nbest), or write '{name}= "
                f"{' '.join('0' * len(values))}'"
            )
        if len(weights[name]) != len(values):
            raise ConfigError(
                f"feature {name} has {len(values)} values, but {len(weights[name])} weights; give as many"
            )
    for name in sorted(tuned_names(weights)):
        if name not in features:
            raise ConfigError(
                f"a weight for {name}, which no list has and no --feature computes; remove it, or add that "
                "feature"
            )
