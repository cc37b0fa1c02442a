"""The kinds of features that the option `--feature TYPE[:NAME]=PATH` accepts.

TYPE names a kind: a class that is registered in FEATURES. The built-in ones are defined in
torch_features.py, count_features.py and translation.py, and registered as `LazyKind`, which only stores the
name of the class, so that --help does not import torch.
"""

import importlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from nmt.config.settings import choice, setting
from nmt.errors import ConfigError, check_lines
from nmt.plugins import Registry
from nmt.runs import directory as run_directory

if TYPE_CHECKING:
    from smt_bridge.features.base import PairFeature


# ---- spec --------------------------------------------------------------------------------------------------
# What `--feature` names, and the settings that all features share; nothing is loaded here.


@dataclass(frozen=True)
class FeatureSpec:
    """A parsed option `--feature TYPE[:NAME]=PATH`, such as `translation:RNN0=runs/phrases`."""

    kind: str  # such as translation
    name: str  # of its column or of the feature in n-best lists, such as RNN0
    path: str


@dataclass(frozen=True)
class FeatureSettings:
    """How features compute their scores; the same for all workers, resumed jobs and reused tables."""

    checkpoint: str = "best"
    device: str = "cpu"
    threads: int = 1
    back_end: str = "mkl"  # of matrix products, see nmt.compute.matmul
    precision: str = choice(
        "fp32",
        "bf16",
        "int8",
        help="precision of a network's matrix products; the error is measured and printed",
    )
    unknown: str = choice(
        "plain", "split", help="plain: p(UNK) for each unknown word; split: its share by training counts"
    )
    side: str = choice("target", "source", help="unknown-words: side whose words are counted")
    assume_normalized: bool = setting(
        False,
        help="neural-lm, joint, inverse-joint: take log Z as 0; only for a model trained with a normalizer",
    )
    backoff: str = ""  # neural-lm: an ARPA file for the words outside its short-list

    def arithmetic(self) -> bytes:
        """Settings that change a network's scores, for identities of features."""
        normalized = " normalized" if self.assume_normalized else ""
        return f"{self.precision} {self.unknown}{normalized}".encode()


# ---- registry ----------------------------------------------------------------------------------------------


NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
NOT_A_NAME = (
    "expected a letter followed by letters and digits: Moses' tuners split names at '_' and "
    "silently misread others"
)


class FeatureKind(Protocol):
    """A kind of feature: an object, such as a class, with these attributes and a method `load`."""

    @property
    def column(self) -> str:
        """Default name of a feature's column; a number is appended to it."""

    @property
    def help(self) -> str:
        """One line for --help that says what PATH is and what is computed."""

    def load(self, spec: FeatureSpec, settings: FeatureSettings) -> "PairFeature":
        """Load a feature. ConfigError, DataError or CheckpointError, in one line, if it cannot be used."""


@dataclass(frozen=True)
class LazyKind:
    """A kind of feature whose class is imported when it is first needed; `target` is `module:Class`."""

    column: str
    help: str
    target: str
    torch: bool = True  # whether the class computes with torch
    exported: str = ""  # the class for runs of nmt-export, which computes without torch; empty: none

    def reads_export(self, spec: FeatureSpec) -> bool:
        """Whether the feature computes with a run that nmt-export wrote."""
        return bool(self.exported) and run_directory.is_exported(spec.path)

    def load(self, spec: FeatureSpec, settings: FeatureSettings) -> "PairFeature":
        module, _, name = (self.exported if self.reads_export(spec) else self.target).partition(":")
        kind: FeatureKind = getattr(importlib.import_module(module), name)
        return kind.load(spec, settings)


RUN_TRANSLATION = "smt_bridge.features.torch_features:RunTranslation"
EXPORTED_TRANSLATION = "smt_bridge.features.translation:ExportedTranslation"
COUNT_LM = "smt_bridge.features.count_features:CountLM"
JOINT = "smt_bridge.features.torch_features:Joint"
FEATURES: Registry[FeatureKind] = Registry(
    "feature",
    {
        "translation": LazyKind(
            "RNN",
            "log p(target | source) by a run directory of nmt-train or nmt-export",
            RUN_TRANSLATION,
            exported=EXPORTED_TRANSLATION,
        ),
        "inverse": LazyKind(
            "InverseRNN",
            "log p(source | target) by a run of the other direction",
            RUN_TRANSLATION,
            exported=EXPORTED_TRANSLATION,
        ),
        "lm": LazyKind("KenLM", "log p(target) by an ARPA or KenLM file", COUNT_LM, torch=False),
        "reverse-lm": LazyKind(
            "ReverseLM", "the same by a model of reversed sentences", COUNT_LM, torch=False
        ),
        "neural-lm": LazyKind(
            "NeuralLM",
            "log p(target) by a run directory of a language model, or a mixture of nmt-interpolate",
            "smt_bridge.features.torch_features:NeuralLM",
        ),
        "joint": LazyKind(
            "NNJM",
            "log p(target | source, alignment) by a run of model.type joint; for n-best lists with "
            "segmentation and alignment",
            JOINT,
        ),
        "inverse-joint": LazyKind(
            "InverseNNJM",
            "log p(source | target, alignment) by a joint model of the other direction; likewise",
            JOINT,
        ),
        "unknown-words": LazyKind(
            "UnknownWords",
            "number of words outside the vocabulary of a run directory, or of a file of nmt-vocab",
            "smt_bridge.features.count_features:UnknownWords",
            torch=False,
        ),
    },
    attributes=("column", "help", "load"),
)


def need_torch(specs: Sequence[FeatureSpec]) -> bool:
    """Whether any of these features computes with torch; those of plugins count as such."""
    kinds = ((FEATURES[spec.kind], spec) for spec in specs)
    return any(
        not isinstance(kind, LazyKind) or (kind.torch and not kind.reads_export(spec)) for kind, spec in kinds
    )


def parse_features(texts: Sequence[str], taken: Sequence[str] = ()) -> list[FeatureSpec]:
    """Parse options TYPE[:NAME]=PATH, in order. `taken`: names that other features have already. A feature
    without a name gets the first free one, such as RNN0. ConfigError for an option of another form, for an
    unknown type, for a name that Moses would misread, and for one that is taken; TypeError for a str."""
    check_lines(texts, "features")
    specs: list[FeatureSpec] = []
    numbers: Counter[str] = Counter()
    names = set(taken)
    for text in texts:
        head, equals, path = text.partition("=")
        kind, colon, name = head.partition(":")
        if not equals or not path or (colon and not name):
            raise ConfigError(
                f"--feature {text}: expected TYPE[:NAME]=PATH, e.g. translation:RNN0=runs/phrases"
            )
        if kind not in FEATURES:
            raise ConfigError(
                f"--feature {text}: type {kind!r} is unknown, expected one of {', '.join(FEATURES)}"
            )
        while not name or (not colon and name in names):
            name = f"{FEATURES[kind].column}{numbers[kind]}"
            numbers[kind] += 1
        if not NAME.fullmatch(name):
            raise ConfigError(f"--feature {text}: name {name!r}: {NOT_A_NAME}")
        if name in names:
            raise ConfigError(f"--feature {text}: the name {name} is taken; give another, TYPE:NAME=PATH")
        names.add(name)
        specs.append(FeatureSpec(kind=kind, name=name, path=str(run_directory.resolve(path))))
    return specs
