"""What a feature is: named numbers for pairs of source and target words, of phrases and of whole sentences alike.

--feature translation:RNN0=runs/phrases     kind : name = path
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nmt import files
from nmt.errors import ConfigError
from nmt.phrase_table import PhrasePair

# Kinds and the names they get where the user gives none (a number follows). Moses' own tools split names at `_` and want `=`.
KINDS = {
    "translation": "RNN",
    "inverse": "InverseRNN",
    "lm": "KenLM",
    "reverse-lm": "ReverseLM",
    "neural-lm": "NeuralLM",
    "unknown-words": "UnknownWords",
}
NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
NOT_A_NAME = "expected a letter followed by letters and digits: Moses' tuners split names at '_' and misread others without a word"


@dataclass
class Pairs:
    """Target i belongs to sources[source_of[i]]. Words are as Moses has them, its escapes in place.

    `whole`: these are sentences, with a beginning and an end, not phrases out of the middle of some.
    """

    sources: list[list[str]]
    targets: list[list[str]]
    source_of: list[int]
    whole: bool = False

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, rows: Sequence[int] | NDArray[np.int64]) -> "Pairs":
        """Some of the pairs; a source without any is left out."""
        kept: dict[int, int] = {}
        source_of = [kept.setdefault(self.source_of[row], len(kept)) for row in rows]
        return Pairs([self.sources[source] for source in kept], [self.targets[row] for row in rows], source_of, self.whole)


def of_phrases(pairs: Sequence[PhrasePair]) -> Pairs:
    """Lines of a phrase table, each distinct source once."""
    sources: dict[bytes, int] = {}
    source_of = [sources.setdefault(pair.source, len(sources)) for pair in pairs]
    return Pairs([split(source) for source in sources], [split(pair.target) for pair in pairs], source_of)


def split(phrase: bytes) -> list[str]:
    return files.split_words(phrase.decode("utf-8"))


class Feature(Protocol):
    def score(self, pairs: Pairs) -> NDArray[np.float64]:
        """One value for each pair; natural logarithms where they are probabilities."""
        ...


@dataclass(frozen=True)
class Spec:
    """One `--feature`."""

    kind: str
    name: str
    path: str


@dataclass(frozen=True)
class Settings:
    """How features compute: the same in every worker, in a resumed job and in a reused table."""

    checkpoint: str = "best"
    device: str = "cpu"
    threads: int = 1
    back_end: str = "mkl"  # of matrix products, see nmt.fastmath
    precision: str = "fp32"  # fp32 | bf16 | int8
    unknown: str = "plain"  # plain: p(UNK) for an unknown word | split: its share of p(UNK) by training counts
    side: str = "target"  # of unknown-words


def parse(texts: Sequence[str], taken: Sequence[str] = ()) -> list[Spec]:
    """TYPE[:NAME]=PATH, each. ConfigError for an unknown type, a name that Moses would misread, or one that is there already."""
    specs: list[Spec] = []
    numbers: Counter[str] = Counter()
    names = set(taken)
    for text in texts:
        head, equals, path = text.partition("=")
        kind, colon, name = head.partition(":")
        if not equals or not path or (colon and not name):
            raise ConfigError(f"--feature {text}: expected TYPE[:NAME]=PATH, e.g. translation:RNN0=runs/phrases")
        if kind not in KINDS:
            raise ConfigError(f"--feature {text}: type {kind!r} is unknown, expected one of {', '.join(KINDS)}")
        while not name or (not colon and name in names):
            name = f"{KINDS[kind]}{numbers[kind]}"
            numbers[kind] += 1
        check_name(name, f"--feature {text}")
        if name in names:
            raise ConfigError(f"--feature {text}: the name {name} is taken; give another, TYPE:NAME=PATH")
        names.add(name)
        specs.append(Spec(kind, name, path))
    return specs


def check_name(name: str, where: str) -> None:
    if not NAME.fullmatch(name):
        raise ConfigError(f"{where}: name {name!r}: {NOT_A_NAME}")
