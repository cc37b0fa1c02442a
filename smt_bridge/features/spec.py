"""What `--feature` names, without loading anything: `translation:RNN0=runs/phrases` is kind : name = path."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from nmt.errors import ConfigError

# Kinds and the names they get where the user gives none (a number follows). Moses' own tools split names at
# `_` and want `=`.
KINDS = {
    "translation": "RNN",
    "inverse": "InverseRNN",
    "lm": "KenLM",
    "reverse-lm": "ReverseLM",
    "neural-lm": "NeuralLM",
    "unknown-words": "UnknownWords",
}
NETWORKS = ("translation", "inverse")  # encoder-decoders: precision and --by-phrase are theirs
PRECISIONS = ("fp32", "bf16", "int8")
NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
NOT_A_NAME = (
    "expected a letter followed by letters and digits: Moses' tuners split names at '_' and "
    "misread "
    "others without a word"
)


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
    unknown: str = (
        "plain"  # plain: p(UNK) for an unknown word | split: its share of p(UNK) by training counts
    )
    side: str = "target"  # of unknown-words
    assume_normalized: bool = False  # neural-lm: log Z is taken as 0
    backoff: str = ""  # neural-lm: an ARPA file for words outside its short-list


def parse(texts: Sequence[str], taken: Sequence[str] = ()) -> list[Spec]:
    """TYPE[:NAME]=PATH, each. ConfigError for an unknown type, a name that Moses would misread, or one that
    is there already."""
    specs: list[Spec] = []
    numbers: Counter[str] = Counter()
    names = set(taken)
    for text in texts:
        head, equals, path = text.partition("=")
        kind, colon, name = head.partition(":")
        if not equals or not path or (colon and not name):
            raise ConfigError(
                f"--feature {text}: expected TYPE[:NAME]=PATH, e.g. translation:RNN0=runs/phrases"
            )
        if kind not in KINDS:
            raise ConfigError(
                f"--feature {text}: type {kind!r} is unknown, expected one of {', '.join(KINDS)}"
            )
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
