"""What training, tuning, selection and proposals may be told, with defaults and ranges; the options of their
commands are made from it.

The decoder's settings are in decoder/config.py.
"""

from dataclasses import dataclass, field

from nmt.settings import choice, number
from smt_bridge.alignment import METHODS
from smt_bridge.symmetrize import HEURISTICS

LONGEST_PHRASE = 8  # words: an alignment is a square of 8 x 8 bits
BASE = 250  # MB that Python, numpy and numba take themselves


@dataclass
class ExtractConfig:
    max_length: int = number(7, least=1, most=LONGEST_PHRASE)  # words of a phrase, both sides
    smoothing: str = choice("none", "good-turing", "kneser-ney")  # of phi
    memory: int = number(1000, least=BASE + 100)  # MB
    block: int = number(200_000, least=1)  # words of the corpus extracted at a time


@dataclass
class TrainConfig:
    """A phrase-based model from parallel text."""

    source: str
    target: str
    alignment: str = ""  # points of another tool, instead of aligning
    lm_text: str = ""  # text of the language model; the target side unless given
    method: str = choice(*METHODS)
    symmetrization: str = choice(*HEURISTICS)
    order: int = number(5, least=1, most=10)  # of the language model
    reordering: bool = True
    distortion_limit: int = number(6, least=-1)  # longest jump in words, written into moses.ini; -1: any
    extract: ExtractConfig = field(default_factory=ExtractConfig)


@dataclass
class SelectionConfig:
    order: int = number(4, least=1, most=10)  # of the n-gram models
    min_count: int = number(
        2, least=1
    )  # rarer words of the in-domain text are unknown to both models, so that neither gains by knowing more
    seed: int = number(
        1, least=0
    )  # of the sample of the general text, which has as many words as the in-domain text
    steps: int = number(6, least=1)  # sizes tried by --dev: all, a half, a quarter ...


@dataclass
class ProposeConfig:
    options: int = number(3, least=1)  # proposed for each source phrase
    beam_size: int = number(10, least=1)
    thin: int = number(1, least=0)  # propose where the table has at most so many options ...
    rare: int = number(2, least=0)  # ... or the source was extracted at most so often
    longest: int = number(4, least=1)  # words of a source phrase
    least: float = number(0.05, least=0, most=1)  # probability of a proposal given its source
