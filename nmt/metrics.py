"""BLEU, chrF and TER by sacreBLEU, with their signatures, from statistics of each sentence."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
from sacrebleu.utils import SACREBLEU_DIR

from nmt.errors import ConfigError, DataError, check_lines, check_texts
from nmt.io.numbers import counted, shown

# The tokenizers that `auto` chooses, by language; of several, the first that is installed. BLEU counts words,
# so scripts without blanks need the tokenizer of the language, or characters.
DEFAULT_TOKENIZER = "13a"
TOKENIZERS = {
    "zh": ("zh",),
    "ja": ("ja-mecab", "char"),
    "ko": ("ko-mecab", "char"),
    **dict.fromkeys(("bo", "dz", "km", "lo", "my", "th"), ("char",)),
}
Rows = NDArray[np.bool_] | NDArray[np.int64]  # a mask over all sentences, or indices of some


@dataclass
class BleuScore:
    """A BLEU score; printed with its signature."""

    score: float  # 0 to 100
    signature: str  # the exact settings, e.g. nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.4.3

    def __str__(self) -> str:
        return f"BLEU = {self.score:.2f}  {self.signature}"


@dataclass
class ChrfScore:
    """A chrF2 score; printed with its signature."""

    score: float  # 0 to 100
    signature: str

    def __str__(self) -> str:
        return f"chrF2 = {self.score:.2f}  {self.signature}"


def check_tokenizer(name: str) -> None:
    """ConfigError for a tokenizer that sacreBLEU lacks, or whose package or model is missing on this machine.
    Downloads nothing; silences sacreBLEU's warnings in this process."""
    if name not in BLEU.TOKENIZERS:
        raise ConfigError(
            f"BLEU tokenizer {shown(name)} is unknown, expected one of {', '.join(BLEU.TOKENIZERS)}"
        )
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # its warnings do not concern the result
    if name in SPM_MODELS and find_spec("sentencepiece"):
        url = SPM_MODELS[name]["url"]
        model = Path(SACREBLEU_DIR, "models", url.rpartition("/")[2])
        if not model.exists():
            raise ConfigError(
                f"BLEU tokenizer {name!r}: its model {model} is missing; download it from {url}"
            )
    try:
        BLEU(tokenize=name)
    except Exception as error:  # each of the packages that it may need raises its own types of errors
        raise ConfigError(
            f"BLEU tokenizer {name!r} cannot be used: {' '.join(str(error).split()) or type(error).__name__}"
        ) from error


def choose_tokenizer(language: str) -> str:
    """Choose a tokenizer of sacreBLEU for a language code: the first in TOKENIZERS that can be used on this
    machine, else DEFAULT_TOKENIZER."""
    return next(filter(is_usable, TOKENIZERS.get(language, ())), DEFAULT_TOKENIZER)


def is_usable(name: str) -> bool:
    """Whether a tokenizer can be used on this machine."""
    try:
        check_tokenizer(name)
    except ConfigError:
        return False
    return True


def check_lengths(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """DataError for a reference translation whose number of lines is not that of the hypotheses; TypeError
    for a str instead of a list. sacreBLEU would ignore the lines in excess."""
    check_lines(hypotheses, "hypotheses")
    check_texts(references, "references")
    for number, reference in enumerate(references, 1):
        if len(reference) != len(hypotheses):
            lines = counted(len(reference), "line")
            raise DataError(
                f"reference {number}: {lines}, expected {len(hypotheses):,}, one for each hypothesis"
            )


class ChrfMetric(CHRF):
    """sacreBLEU's chrF, with statistics of single sentences.

    sacreBLEU (2.4 to 2.6) has no public method for these; the methods used here are protected ones of its
    class Metric, which `corpus_score` calls.
    """

    def statistics(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[list[int]]:
        """Count, for each sentence, the character n-grams of hypothesis, reference and both, for n 1 to 6:
        rows of 18 numbers, three for each n. `references`: a list of lines for each reference translation."""
        rows: list[list[int]] = self._extract_corpus_statistics(hypotheses, references)
        return rows

    def chrf(self, statistics: list[int]) -> float:
        """chrF2, 0 to 100, from the statistics of a sentence, or from their sum over sentences."""
        return float(self._aggregate_and_compute([statistics]).score)


class ChrfStatistics:
    """The statistics of corpus chrF, one row per sentence: for n 1 to 6, the numbers of character n-grams in
    the hypothesis, in the reference and in both."""

    def __init__(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], lowercase: bool = False
    ) -> None:
        """`references`: a list of lines for each reference translation; the best match counts. `lowercase`:
        ignore case. DataError if lengths differ, TypeError for a str instead of a list."""
        check_lengths(hypotheses, references)
        self.metric = ChrfMetric(lowercase=lowercase)
        statistics = self.metric.statistics(list(hypotheses), [list(reference) for reference in references])
        self.rows: NDArray[np.int64] = np.array(statistics, np.int64).reshape(-1, 18)
        self.signature = self.metric.get_signature().format()

    def chrf(self, mask: Rows | None = None) -> ChrfScore:
        """Corpus chrF2 of all sentences, or of a subset, given as a mask or as row indices; equal to
        sacreBLEU's corpus_score."""
        rows = self.rows if mask is None else self.rows[mask]
        return ChrfScore(self.metric.chrf(rows.sum(0).tolist()), self.signature)

    def by_sentence(self) -> list[float]:
        """chrF2 of each sentence alone, 0 to 100."""
        return [self.metric.chrf(row) for row in self.rows.tolist()]


class TerMetric(TER):
    """sacreBLEU's TER, with statistics of single sentences; see `ChrfMetric`."""

    def statistics(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[list[float]]:
        """Count, for each sentence, the edits to the nearest reference, and the words of a reference on
        average. `references`: a list of lines for each reference translation."""
        rows: list[list[float]] = self._extract_corpus_statistics(hypotheses, references)
        return rows


class TerStatistics:
    """The statistics of corpus TER (Snover et al. 2006), one row per sentence: edits to the nearest
    reference, and words of a reference on average. As sacreBLEU's default, case is ignored."""

    def __init__(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        """`references`: a list of lines for each reference translation. DataError if lengths differ,
        TypeError for a str instead of a list."""
        check_lengths(hypotheses, references)
        metric = TerMetric()
        statistics = metric.statistics(list(hypotheses), [list(reference) for reference in references])
        self.rows: NDArray[np.float64] = np.array(statistics, np.float64).reshape(-1, 2)
        self.signature = metric.get_signature().format()


def ter_scores(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """TER, 0 or more, less is better, from rows of statistics or their sums: (..., 2) -> (...). Without words
    in the references it is 0 if there are no edits, else 100."""
    edits, words = sums[..., 0], sums[..., 1]
    return 100 * np.where(words > 0, edits / np.where(words > 0, words, 1), edits > 0)


class BleuStatistics:
    """The statistics of corpus BLEU, one row of 10 per sentence: matches of 1- to 4-grams, numbers of 1- to
    4-grams in the hypothesis, lengths of hypothesis and reference.

    Any subset of sentences can be scored without reading the texts again.
    """

    def __init__(
        self,
        hypotheses: Sequence[str],
        references: Sequence[Sequence[str]],
        tokenize: str = DEFAULT_TOKENIZER,
        lowercase: bool = False,
    ) -> None:
        """`references`: a list of lines for each reference translation; `tokenize`: a tokenizer of sacreBLEU;
        `lowercase`: ignore case. DataError if lengths differ, ConfigError for a tokenizer that cannot be
        used, TypeError for a str instead of a list."""
        check_lengths(hypotheses, references)
        check_tokenizer(tokenize)
        # sacreBLEU wants the effective order for single sentences; their counts do not depend on it.
        metric = BLEU(tokenize=tokenize, lowercase=lowercase, effective_order=True)
        plain = BLEU(tokenize=tokenize, lowercase=lowercase)
        rows = []
        for hypothesis, *others in zip(hypotheses, *references, strict=True):
            score = metric.sentence_score(hypothesis, others)
            rows.append([*score.counts, *score.totals, score.sys_len, score.ref_len])
        # The signature includes the number of references only after a score has been computed.
        plain.corpus_score(["a"], [["a"]] * len(references))
        self.rows: NDArray[np.int64] = np.array(rows, np.int64).reshape(-1, 10)
        self.signature = plain.get_signature().format()

    def bleu(self, mask: Rows | None = None) -> BleuScore:
        """Corpus BLEU of all sentences, or of a subset, given as a mask or as row indices; equal to
        sacreBLEU's corpus_score."""
        sums = self.sums(mask)
        score = BLEU.compute_bleu(sums[:4], sums[4:8], sums[8], sums[9], smooth_method="exp")
        return BleuScore(score.score, self.signature)

    def ratio(self, mask: NDArray[np.bool_] | None = None) -> float:
        """Ratio of hypothesis words to reference words, as BLEU counts them; 0 without reference words."""
        hypothesis, reference = self.sums(mask)[8:]
        return hypothesis / reference if reference else 0.0

    def sums(self, mask: Rows | None) -> list[int]:
        """The sums of the 10 statistics over all sentences, or over a subset."""
        totals: list[int] = (self.rows if mask is None else self.rows[mask]).sum(0).tolist()
        return totals


def bleu_splitter(tokenize: str = DEFAULT_TOKENIZER, lowercase: bool = False) -> Callable[[str], list[str]]:
    """Build a function that splits a line into words as BLEU does with this tokenizer of sacreBLEU, which
    must be usable: see `check_tokenizer`."""
    tokenizer = BLEU(tokenize=tokenize).tokenizer

    def words(line: str) -> list[str]:
        tokens: list[str] = tokenizer((line.lower() if lowercase else line).rstrip()).split()
        return tokens

    return words


def corpus_bleu(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], tokenize: str = DEFAULT_TOKENIZER
) -> BleuScore:
    """BLEU of a whole text. `references`: a list of lines for each reference translation; errors as from
    `BleuStatistics`."""
    return BleuStatistics(hypotheses, references, tokenize).bleu()


class References:
    """The single reference translation of a text that is translated repeatedly; its lines are split only
    once."""

    def __init__(self, lines: Sequence[str], tokenize: str = DEFAULT_TOKENIZER) -> None:
        """ConfigError for a tokenizer that cannot be used."""
        check_tokenizer(tokenize)
        self.lines = list(lines)
        self.metric = BLEU(tokenize=tokenize, references=[self.lines])

    def bleu(self, hypotheses: Sequence[str]) -> BleuScore:
        """Corpus BLEU of one hypothesis for each line, as computed by sacreBLEU's command."""
        score = self.metric.corpus_score(list(hypotheses), None).score
        return BleuScore(score, self.metric.get_signature().format())

    def chrf(self, hypotheses: Sequence[str]) -> ChrfScore:
        """Corpus chrF2 of one hypothesis for each line, as computed by sacreBLEU's command."""
        score = self.chrf_metric.corpus_score(list(hypotheses), None).score
        return ChrfScore(score, self.chrf_metric.get_signature().format())

    @cached_property
    def chrf_metric(self) -> CHRF:
        return CHRF(references=[self.lines])
