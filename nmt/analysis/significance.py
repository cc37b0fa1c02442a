"""Are two systems different? Paired bootstrap resampling (Koehn 2004) by sacreBLEU: the same sentences drawn
for all systems."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nmt.errors import DataError
from nmt.metrics import check_tokenizer

SAMPLES = 1000


@dataclass
class Row:
    """One system. Scores 0 to 100; `interval` is half the width of BLEU's 95% confidence interval around
    `mean`."""

    name: str
    bleu: float
    mean: float  # of the samples
    interval: float
    p: (
        float | None
    )  # chance of such a difference in BLEU from the baseline if there were none; None for the baseline
    chrf: float
    chrf_p: float | None  # the same for chrF


def paired_bootstrap(
    names: Sequence[str],
    systems: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    tokenize: str = "13a",
    samples: int = SAMPLES,
) -> tuple[list[Row], list[str]]:
    """The first system is the baseline; also the signatures of BLEU and chrF. The draws are the same in each
    call (sacreBLEU's seed).

    ConfigError for an unknown tokenizer, DataError for a system that repeats the baseline's output: sacreBLEU
    needs two.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.significance import PairedTest

    logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # it logs each step of its work
    for name, system in zip(names[1:], systems[1:], strict=True):
        if list(system) == list(systems[0]):
            raise DataError(f"{name}: the same output as {names[0]}; there is nothing to compare")
    check_tokenizer(tokenize)
    metrics = {"BLEU": BLEU(tokenize=tokenize), "chrF2": CHRF()}
    test = PairedTest(list(zip(names, systems, strict=True)), metrics, list(references), "bs", samples)
    signatures, scores = test()
    bleu, chrf = (
        [result for result in scores[name] if not isinstance(result, str)] for name in ("BLEU", "chrF2")
    )
    rows = [
        Row(name, b.score, b.mean or 0.0, b.ci or 0.0, b.p_value, c.score, c.p_value)
        for name, b, c in zip(names, bleu, chrf, strict=True)
    ]
    return rows, [f"{name}: {signatures[name].format()}" for name in ("BLEU", "chrF2")]


def to_tsv(rows: Sequence[Row]) -> Iterator[str]:
    yield "\t".join(["system", "bleu", "mean", "interval", "p", "chrf", "chrf_p"])
    for row in rows:
        chances = ["" if p is None else f"{p:.4f}" for p in (row.p, row.chrf_p)]
        yield "\t".join(
            [
                row.name,
                f"{row.bleu:.2f}",
                f"{row.mean:.2f}",
                f"{row.interval:.2f}",
                chances[0],
                f"{row.chrf:.2f}",
                chances[1],
            ]
        )
