"""Entropy pruning beside count cut-offs: n-grams that are left and perplexity of a development text.

python -m tests.benchmarks.ngram_pruning TRAIN DEV

Kneser-Ney and Katz 5-grams of TRAIN; CPU seconds of pruning alone.
"""

import math
import sys
import time

import numpy as np

from nmt.io import files
from nmt.ngram import estimators
from nmt.ngram.count_models import NgramModel
from nmt.ngram.counting import CountSettings, count_lines
from nmt.ngram.estimators import SmoothingConfig
from nmt.ngram.pruning import prune_by_entropy

ORDER = 5
CUTOFFS = (0,), (0, 0, 0, 1), (0, 0, 1), (0, 0, 1, 2), (0, 0, 2), (0, 1, 1), (0, 1, 2), (0, 2, 3)
THRESHOLDS = 1e-9, 1e-8, 3e-8, 1e-7, 3e-7, 1e-6


def main(train: str, dev: str) -> None:
    lines = [files.split_words(line) for line in files.read_lines(dev)]

    def report(name: str, model: NgramModel, seconds: float | None = None) -> None:
        perplexity = math.exp(-np.concatenate(model.scores(lines)).mean())
        print(f"{name}\t{model.size:,}\t{perplexity:.2f}" + (f"\t{seconds:.2f} s" if seconds else ""))

    counts = count_lines(files.read_lines(train), CountSettings(ORDER))
    for cutoffs in CUTOFFS:
        config = SmoothingConfig(ORDER, prune=cutoffs)
        report(
            f"Kneser-Ney --prune {' '.join(map(str, cutoffs))}", estimators.kneser_ney_model(*counts, config)
        )
    kneser_ney = estimators.kneser_ney_model(*counts, SmoothingConfig(ORDER))
    katz = estimators.smoothed_model(*counts, SmoothingConfig(ORDER), "katz")
    report("Katz", katz)
    for threshold in THRESHOLDS:
        for name, model, history in (
            ("Kneser-Ney", kneser_ney, None),
            ("Kneser-Ney, --history-lm Katz", kneser_ney, katz),
            ("Katz", katz, None),
        ):
            start = time.process_time()
            pruned = prune_by_entropy(model, threshold, history)
            report(f"{name}, --threshold {threshold:g}", pruned, time.process_time() - start)


if __name__ == "__main__":
    main(*sys.argv[1:])
