"""How fast the steps of a build are, and how fast this machine is.

All rates are those of one core of the reference machine (an AMD EPYC, 90 billion floating-point operations
a second in products of 64 x 512 by 512 x 1,536), measured on Multi30k: 29,000 pairs, 13 source and 15 target
words a line. Those of the networks stand beside their settings in networks.py.
"""

import time
from dataclasses import dataclass

REFERENCE = 90e9  # floating-point operations a second
SHAPE = (64, 512, 1536)  # a layer of a network on a batch
ROUNDS, SECONDS = 5, 0.2  # of the measurement; the fastest round counts, the others were disturbed
GRADES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)  # coarse, so that two measurements agree


@dataclass(frozen=True)
class Rates:
    """Units a second, and seconds a unit, of one core of the reference machine."""

    preparing: float = 3000  # pairs cleaned, tokenized and truecased
    aligning: float = 25_000  # target words, both directions
    extracting: float = 20_000  # target words, both tables
    counting: float = 60_000  # words of the count model
    filtering: float = 100_000  # target words of the training text whose table is filtered
    searching: float = (
        0.002  # seconds a source word without networks, with a list of 100: 39 sentences a second
    )
    translating: float = 0.005  # seconds a source word by the attention model alone, beam 5
    tuning: float = 0.010  # seconds of MERT a sentence and iteration
    packing: float = 100_000  # target words of the training text whose tables are copied and read
    starting: float = 5  # seconds of each process and each step that loads models
    two_threads: float = 1.6  # speed of two threads of the search


def graded(flops: float) -> float:
    """The speed of a machine as a multiple of the reference machine's, coarsely."""
    return min(GRADES, key=lambda grade: abs(flops / REFERENCE / grade - 1))


def measured() -> float:
    """Floating-point operations of one thread in a second of its own time, so that what else the machine does
    matters little; takes a second."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    rows, inner, columns = SHAPE
    left, right = torch.ones(rows, inner), torch.ones(inner, columns)
    best = 0.0
    for _ in range(ROUNDS):
        start, products = time.process_time(), 0
        while (passed := time.process_time() - start) < SECONDS:
            left @ right
            products += 1
        best = max(best, 2 * rows * inner * columns * products / passed)
    torch.set_num_threads(threads)
    return best
