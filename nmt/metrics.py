"""BLEU and chrF through sacreBLEU, always with their signatures, from statistics that are kept sentence by
sentence."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.errors import ConfigError, DataError
from nmt.numbers import shown


@dataclass
class BLEU:
    score: float  # 0 to 100
    signature: str  # the exact setting, e.g. nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.4.3

    def __str__(self) -> str:
        return f"BLEU = {self.score:.2f}  {self.signature}"


@dataclass
class ChrF:
    score: float  # 0 to 100
    signature: str

    def __str__(self) -> str:
        return f"chrF2 = {self.score:.2f}  {self.signature}"


def check_tokenizer(name: str) -> None:
    """ConfigError for a tokenizer that sacreBLEU lacks, or whose package or model is not on this machine:
    nothing is downloaded."""
    from sacrebleu.metrics.bleu import BLEU as Metric
    from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
    from sacrebleu.utils import SACREBLEU_DIR

    if name not in Metric.TOKENIZERS:
        raise ConfigError(
            f"BLEU tokenizer {shown(name)} is unknown, expected one of {', '.join(Metric.TOKENIZERS)}"
        )
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # what it warns of has no part in the result
    if name in SPM_MODELS and find_spec("sentencepiece"):
        url = SPM_MODELS[name]["url"]
        model = Path(SACREBLEU_DIR, "models", url.rpartition("/")[2])
        if not model.exists():
            raise ConfigError(f"BLEU tokenizer {name!r}: its model {model} is not there; fetch it from {url}")
    try:
        Metric(tokenize=name)
    except Exception as error:  # of the packages that it needs, each has kinds of its own
        raise ConfigError(
            f"BLEU tokenizer {name!r} cannot be used: {' '.join(str(error).split()) or type(error).__name__}"
        ) from error


class CharacterStatistics:
    """What corpus chrF is made of, one row a sentence: characters n-grams of hypothesis, of reference, and of
    both, for n 1 to 6."""

    def __init__(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        """`references` holds one list for each reference translation; of several the best is counted."""
        from sacrebleu.metrics.chrf import CHRF

        self.metric: Any = CHRF()
        statistics = self.metric._extract_corpus_statistics(
            list(hypotheses), [list(reference) for reference in references]
        )
        self.rows: NDArray[np.int64] = np.array(statistics, np.int64).reshape(-1, 18)
        self.signature = self.metric.get_signature().format()

    def chrf(self, which: NDArray[np.bool_] | None = None) -> ChrF:
        """Corpus chrF2 of all sentences, or of those where `which` is true: equal to sacreBLEU's
        corpus_score."""
        rows = self.rows if which is None else self.rows[which]
        return ChrF(float(self.metric._aggregate_and_compute([rows.sum(0).tolist()]).score), self.signature)

    def by_sentence(self) -> list[float]:
        """chrF2 of each sentence alone"""
        return [float(self.metric._aggregate_and_compute([row]).score) for row in self.rows.tolist()]


class SentenceStatistics:
    """What corpus BLEU is made of, one row a sentence: matches 1..4, totals 1..4, hypothesis and reference
    length.

    Any group of sentences can be scored without reading a text again.
    """

    def __init__(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], tokenize: str = "13a"
    ) -> None:
        """`references` holds one list for each reference translation. DataError when their lengths differ."""
        from sacrebleu.metrics.bleu import BLEU as Metric

        for number, reference in enumerate(references, 1):
            if len(reference) != len(hypotheses):
                raise DataError(
                    f"reference {number}: {len(reference)} lines, but {len(hypotheses)} hypotheses"
                )
        check_tokenizer(tokenize)
        metric: Any = Metric(tokenize=tokenize, effective_order=True)
        plain: Any = Metric(tokenize=tokenize)
        rows = []
        for hypothesis, *others in zip(hypotheses, *references, strict=True):
            score = metric.sentence_score(hypothesis, others)
            rows.append([*score.counts, *score.totals, score.sys_len, score.ref_len])
        plain.corpus_score(
            ["a"], [["a"]] * len(references)
        )  # the signature knows the number of references only after this
        self.rows: NDArray[np.int64] = np.array(rows, np.int64).reshape(-1, 10)
        self.signature = plain.get_signature().format()

    def bleu(self, which: NDArray[np.bool_] | None = None) -> BLEU:
        """Corpus BLEU of all sentences, or of those where `which` is true: equal to sacreBLEU's
        corpus_score."""
        from sacrebleu.metrics.bleu import BLEU as Metric

        sums = (self.rows if which is None else self.rows[which]).sum(0).tolist()
        score = Metric.compute_bleu(sums[:4], sums[4:8], sums[8], sums[9], smooth_method="exp")
        return BLEU(score.score, self.signature)


def corpus_bleu(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], tokenize: str = "13a"
) -> BLEU:
    return SentenceStatistics(hypotheses, references, tokenize).bleu()
