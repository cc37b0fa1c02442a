"""BLEU and chrF by sacreBLEU, always with their signatures, from statistics that are kept sentence by
sentence."""

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
from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
from sacrebleu.utils import SACREBLEU_DIR

from nmt.errors import ConfigError, DataError
from nmt.io.files import check_lines, check_texts
from nmt.io.numbers import shown

# What auto stands for. BLEU counts words: where a script has no blanks between them, the tokenizer of the
# language, or characters; of several the first that is installed.
DEFAULT_TOKENIZER = "13a"
TOKENIZERS = {
    "zh": ("zh",),
    "ja": ("ja-mecab", "char"),
    "ko": ("ko-mecab", "char"),
    **dict.fromkeys(("bo", "dz", "km", "lo", "my", "th"), ("char",)),
}
Rows = NDArray[np.bool_] | NDArray[np.int64]  # a mask of all rows, or numbers of some


@dataclass
class BleuScore:
    """A BLEU score; printed with its signature."""

    score: float  # 0 to 100
    signature: str  # the exact setting, e.g. nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.4.3

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
    """ConfigError for a tokenizer that sacreBLEU lacks, or whose package or model is missing on this machine:
    nothing is downloaded."""
    if name not in BLEU.TOKENIZERS:
        raise ConfigError(
            f"BLEU tokenizer {shown(name)} is unknown, expected one of {', '.join(BLEU.TOKENIZERS)}"
        )
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # its warnings do not concern the result
    if name in SPM_MODELS and find_spec("sentencepiece"):
        url = SPM_MODELS[name]["url"]
        model = Path(SACREBLEU_DIR, "models", url.rpartition("/")[2])
        if not model.exists():
            raise ConfigError(f"BLEU tokenizer {name!r}: its model {model} is not there; fetch it from {url}")
    try:
        BLEU(tokenize=name)
    except Exception as error:  # each of the packages it may need raises its own kinds
        raise ConfigError(
            f"BLEU tokenizer {name!r} cannot be used: {' '.join(str(error).split()) or type(error).__name__}"
        ) from error


def tokenizer_for(language: str) -> str:
    """The name of sacreBLEU's tokenizer for text of a language, as far as it is installed here."""
    return next(filter(usable, TOKENIZERS.get(language, ())), DEFAULT_TOKENIZER)


def usable(name: str) -> bool:
    """Can a tokenizer be used on this machine?"""
    try:
        check_tokenizer(name)
    except ConfigError:
        return False
    return True


class ChrfMetric(CHRF):
    """sacreBLEU's chrF, with statistics of single sentences.

    sacreBLEU (2.4 to 2.6) has no public method for them; those used here are what it asks its subclasses
    to override.
    """

    def statistics(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[list[int]]:
        """Per sentence the character n-grams of hypothesis, reference and both, for n 1 to 6."""
        rows: list[list[int]] = self._extract_corpus_statistics(hypotheses, references)
        return rows

    def score_of(self, statistics: list[int]) -> float:
        """chrF2, 0 to 100, of the statistics of a sentence, or of their sum over sentences."""
        return float(self._aggregate_and_compute([statistics]).score)


class ChrfStatistics:
    """The statistics of corpus chrF, one row per sentence: character n-grams of hypothesis, of reference, and
    of both, for n 1 to 6."""

    def __init__(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], lowercase: bool = False
    ) -> None:
        """`references` holds one list of lines per reference translation; the best match counts. TypeError
        for a str instead of a list."""
        check_lines(hypotheses, "hypotheses")
        check_texts(references, "references")
        self.metric = ChrfMetric(lowercase=lowercase)
        statistics = self.metric.statistics(list(hypotheses), [list(reference) for reference in references])
        self.rows: NDArray[np.int64] = np.array(statistics, np.int64).reshape(-1, 18)
        self.signature = self.metric.get_signature().format()

    def chrf(self, mask: Rows | None = None) -> ChrfScore:
        """Corpus chrF2 of all sentences, or of those where `mask` is true, or of some rows; as
        corpus_score."""
        rows = self.rows if mask is None else self.rows[mask]
        return ChrfScore(self.metric.score_of(rows.sum(0).tolist()), self.signature)

    def by_sentence(self) -> list[float]:
        """chrF2 of each sentence alone."""
        return [self.metric.score_of(row) for row in self.rows.tolist()]


class BleuStatistics:
    """The statistics of corpus BLEU, one row per sentence: matches of 1- to 4-grams, their totals, lengths of
    hypothesis and reference.

    Any group of sentences can be scored without reading a text again.
    """

    def __init__(
        self,
        hypotheses: Sequence[str],
        references: Sequence[Sequence[str]],
        tokenize: str = DEFAULT_TOKENIZER,
        lowercase: bool = False,
    ) -> None:
        """`references` holds one list of lines per reference translation. DataError when lengths differ,
        TypeError for a str instead of a list."""
        check_lines(hypotheses, "hypotheses")
        check_texts(references, "references")
        for number, reference in enumerate(references, 1):
            if len(reference) != len(hypotheses):
                raise DataError(
                    f"reference {number}: {len(reference)} lines, but {len(hypotheses)} hypotheses"
                )
        check_tokenizer(tokenize)
        metric = BLEU(tokenize=tokenize, lowercase=lowercase, effective_order=True)
        plain = BLEU(tokenize=tokenize, lowercase=lowercase)
        rows = []
        for hypothesis, *others in zip(hypotheses, *references, strict=True):
            score = metric.sentence_score(hypothesis, others)
            rows.append([*score.counts, *score.totals, score.sys_len, score.ref_len])
        # Only after a score does the signature know the number of references.
        plain.corpus_score(["a"], [["a"]] * len(references))
        self.rows: NDArray[np.int64] = np.array(rows, np.int64).reshape(-1, 10)
        self.signature = plain.get_signature().format()

    def bleu(self, mask: Rows | None = None) -> BleuScore:
        """Corpus BLEU of all sentences, or of those where `mask` is true, or of some rows; as
        corpus_score."""
        sums = self.sums(mask)
        score = BLEU.compute_bleu(sums[:4], sums[4:8], sums[8], sums[9], smooth_method="exp")
        return BleuScore(score.score, self.signature)

    def ratio(self, mask: NDArray[np.bool_] | None = None) -> float:
        """Words of the hypotheses over words of the references, as BLEU counts them; 0 without references."""
        hypothesis, reference = self.sums(mask)[8:]
        return hypothesis / reference if reference else 0.0

    def sums(self, mask: Rows | None) -> list[int]:
        """The statistics of all sentences, or of those where `mask` is true, added up."""
        totals: list[int] = (self.rows if mask is None else self.rows[mask]).sum(0).tolist()
        return totals


def bleu_splitter(tokenize: str = DEFAULT_TOKENIZER, lowercase: bool = False) -> Callable[[str], list[str]]:
    """A function from a line to its words as BLEU counts them with this tokenizer of sacreBLEU."""
    tokenizer = BLEU(tokenize=tokenize).tokenizer

    def words(line: str) -> list[str]:
        tokens: list[str] = tokenizer((line.lower() if lowercase else line).rstrip()).split()
        return tokens

    return words


def corpus_bleu(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], tokenize: str = DEFAULT_TOKENIZER
) -> BleuScore:
    """BLEU of a whole text; `references` holds one list of lines per reference translation."""
    return BleuStatistics(hypotheses, references, tokenize).bleu()


class References:
    """The references of a text that is translated again and again: each is split once."""

    def __init__(self, lines: Sequence[str], tokenize: str = DEFAULT_TOKENIZER) -> None:
        """ConfigError for a tokenizer that cannot be used."""
        check_tokenizer(tokenize)
        self.lines = list(lines)
        self.metric = BLEU(tokenize=tokenize, references=[self.lines])

    def bleu(self, hypotheses: Sequence[str]) -> BleuScore:
        """Corpus BLEU, as sacreBLEU's command computes it."""
        score = self.metric.corpus_score(list(hypotheses), None).score
        return BleuScore(score, self.metric.get_signature().format())

    def chrf(self, hypotheses: Sequence[str]) -> ChrfScore:
        """Corpus chrF2, as sacreBLEU's command computes it."""
        score = self.chrf_metric.corpus_score(list(hypotheses), None).score
        return ChrfScore(score, self.chrf_metric.get_signature().format())

    @cached_property
    def chrf_metric(self) -> CHRF:
        return CHRF(references=[self.lines])
