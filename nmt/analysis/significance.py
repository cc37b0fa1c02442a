"""Are two systems different? Paired bootstrap resampling (Koehn 2004) by sacreBLEU, which draws the same
sentences for all systems."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from nmt.analysis.table import Table, fields_of
from nmt.errors import DataError
from nmt.lines import check_texts
from nmt.metrics import check_tokenizer

SAMPLES = 1000


@dataclass
class BootstrapScores:
    """One system's scores, 0 to 100, and how they compare with the baseline's."""

    name: str
    bleu: float
    mean: float  # BLEU, averaged over the samples
    interval: float  # half the width of BLEU's 95% confidence interval around `mean`
    p: float | None  # chance of such a difference in BLEU if there were none; None for the baseline
    chrf: float
    chrf_p: float | None  # the same for chrF


def paired_bootstrap(
    names: Sequence[str],
    systems: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    tokenize: str = "13a",
    samples: int = SAMPLES,
    lowercase: bool = False,
) -> tuple[list[BootstrapScores], list[str]]:
    """Compare systems with the first one, the baseline; also returns the signatures of BLEU and chrF.

    `systems` and `references` are lists of lines; `lowercase` compares without regard to case. Every call
    draws the same samples (sacreBLEU's seed).
    ConfigError for an unknown tokenizer; DataError for a system whose output equals the baseline's, which
    sacreBLEU cannot test; TypeError for a str instead of a list.
    """
    check_texts(systems, "systems")
    check_texts(references, "references")
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # it logs each step of its work
    for name, system in zip(names[1:], systems[1:], strict=True):
        if list(system) == list(systems[0]):
            raise DataError(f"{name}: the same output as {names[0]}; there is nothing to compare")
    check_tokenizer(tokenize)
    metrics = {
        "BLEU": BLEU(tokenize=tokenize, lowercase=lowercase),
        "chrF2": CHRF(lowercase=lowercase),
    }
    test = PairedTest(list(zip(names, systems, strict=True)), metrics, list(references), "bs", samples)
    signatures, scores = test()
    bleu, chrf = (
        [result for result in scores[name] if not isinstance(result, str)] for name in ("BLEU", "chrF2")
    )
    found = [
        BootstrapScores(
            name=name,
            bleu=b.score,
            mean=b.mean or 0.0,
            interval=b.ci or 0.0,
            p=b.p_value,
            chrf=c.score,
            chrf_p=c.p_value,
        )
        for name, b, c in zip(names, bleu, chrf, strict=True)
    ]
    return found, [f"{name}: {signatures[name].format()}" for name in ("BLEU", "chrF2")]


def table(found: Iterable[BootstrapScores]) -> Table:
    columns = {"system": "", "bleu": ".2f", "mean": ".2f", "interval": ".2f", "p": ".4f"}
    return Table(columns | {"chrf": ".2f", "chrf_p": ".4f"}, fields_of(found))
