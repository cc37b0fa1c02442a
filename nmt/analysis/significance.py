"""Are two systems different? Paired bootstrap resampling (Koehn 2004) by sacreBLEU: the same sentences drawn for all systems."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nmt.errors import ConfigError, DataError

SAMPLES = 1000


@dataclass
class Row:
    """One system. BLEU 0 to 100; `interval` is half the width of the 95% confidence interval around `mean`."""

    name: str
    bleu: float
    mean: float  # of the samples
    interval: float
    p: float | None  # chance of such a difference from the baseline if there were none; None for the baseline


def paired_bootstrap(
    names: Sequence[str], systems: Sequence[Sequence[str]], references: Sequence[Sequence[str]], tokenize: str = "13a", samples: int = SAMPLES
) -> tuple[list[Row], str]:
    """The first system is the baseline; also the signature. The draws are the same in each call (sacreBLEU's seed).

    ConfigError for an unknown tokenizer, DataError for a system that repeats the baseline's output: sacreBLEU needs two.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.significance import PairedTest

    logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # it logs each step of its work
    for name, system in zip(names[1:], systems[1:], strict=True):
        if list(system) == list(systems[0]):
            raise DataError(f"{name}: the same output as {names[0]}; there is nothing to compare")
    try:
        metric = BLEU(tokenize=tokenize)
        test = PairedTest(list(zip(names, systems, strict=True)), {"BLEU": metric}, list(references), "bs", samples)
    except (KeyError, ValueError, AssertionError, SystemExit, ImportError) as error:
        raise ConfigError(f"BLEU tokenizer {tokenize!r} cannot be used: {error}") from error
    signatures, scores = test()
    results = [result for result in scores["BLEU"] if not isinstance(result, str)]
    rows = [Row(name, found.score, found.mean or 0.0, found.ci or 0.0, found.p_value) for name, found in zip(names, results, strict=True)]
    return rows, signatures["BLEU"].format()


def to_tsv(rows: Sequence[Row]) -> Iterator[str]:
    yield "\t".join(["system", "bleu", "mean", "interval", "p"])
    for row in rows:
        yield "\t".join([row.name, f"{row.bleu:.2f}", f"{row.mean:.2f}", f"{row.interval:.2f}", "" if row.p is None else f"{row.p:.4f}"])
