"""Settings of phrase extraction, from which the options of its commands are created."""

from dataclasses import dataclass

from nmt.config.settings import choice, number

LONGEST_PHRASE = 8  # words: an alignment is a square of 8 x 8 bits
BASE = 250  # MB of Python, numpy and numba themselves
LEAST_MEMORY = (BASE + 100) / 1000  # GB


@dataclass
class ExtractConfig:
    """Settings of phrase extraction and scoring."""

    max_length: int = number(7, least=1, most=LONGEST_PHRASE, help="maximum words of a phrase on either side")
    smoothing: str = choice(
        "none", "good-turing", "kneser-ney", help="smoothing of the phrase translation probabilities"
    )
    memory: float = number(
        1.0, least=LEAST_MEMORY, help="memory of each worker in GB; what exceeds it goes to files"
    )
    block: int = number(200_000, least=1, help="words of the corpus extracted at a time")
    buckets: int = number(
        0, least=0, help="parts in which several workers count phrase pairs; 0: as many as memory requires"
    )
