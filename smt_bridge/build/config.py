"""Settings of a build, and its folders."""

import json
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from nmt.config.settings import choice, number, setting
from nmt.errors import DataError
from nmt.io import files
from nmt.work.store import Store

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from smt_bridge.build.plan import Plan

WORK = "build"  # subfolder of the system's folder, for all files that decoding does not need
Record = TypeVar("Record")
Item = TypeVar("Item")


@dataclass
class BuildConfig:
    """Options of smt-build: its input texts, its output folder, and how the system is built."""

    source: str
    target: str
    dev_source: str
    dev_target: str
    output: str
    monolingual: str = setting(
        "",
        help="more text of the target language, for the language models and, translated back, for the "
        "attention model",
    )
    glossary: str = setting("", help="terms with their translations, for the system to use")
    source_language: str = setting("", help="language code; default: the ending of --source, as in train.en")
    target_language: str = setting("", help="language code; default: the ending of --target")
    budget: int = number(5400, least=60, help="time limit of the build in seconds")
    phrase_features: str = choice(
        "auto", "none", "all",
        help="operation sequences, word classes and hierarchical reordering in the phrase-based system: "
        "auto: if the budget has room and the development set says so",
    )  # fmt: skip
    workers: int = number(
        2, least=1, help="networks trained and sentences decoded at a time; the result does not depend on it"
    )
    seed: int = number(1, least=0, help="seed of the networks and of the tuning")
    plan: str = setting("", help="use this plan.json, written by another build, instead of making a plan")
    keep_plan: bool = setting(
        False, help="keep to the plan even if the build falls behind; otherwise later steps are shortened"
    )
    student: bool = setting(
        False,
        help="also train a small Transformer, the student, on the system's translations of the training "
        "text, which then takes the place of the attention model in --quality fast; a finished system gets "
        "one when it is built again with this",
    )
    student_minutes: float = number(
        60.0, above=0, most=1_000_000, help="minutes for the student, besides the budget"
    )
    student_references: bool = setting(False, help="train the student on the reference translations, too")
    monolingual_source: str = setting(
        "", help="text of the source language, which the system translates for the student, too"
    )
    # What the texts were read from, if not from line files.
    parallel: list[str] = field(default_factory=list)
    dev_parallel: list[str] = field(default_factory=list)
    languages: list[str] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)

    def texts(self) -> list[str]:
        """Paths of all input files."""
        paths = [self.source, self.target, self.dev_source, self.dev_target]
        more = (self.monolingual, self.monolingual_source, self.glossary, self.plan)
        return paths + [path for path in more if path]

    def command(self) -> str:
        """The command line with these options, without those that have their default."""
        words = ["smt-build"]
        replaced = [
            f"{prefix}{side}"
            for prefix in ("", "dev_")
            for side in ("source", "target")
            if getattr(self, f"{prefix}parallel")
        ]
        for item in fields(self):
            option, value = f"--{item.name.replace('_', '-')}", getattr(self, item.name)
            if item.name in replaced or value in (item.default, []):
                continue
            words.append(option)
            if isinstance(value, list):
                words += map(str, value)
            elif value is not True:
                words.append(f"{value}s" if item.name == "budget" else str(value))
        return shlex.join(words)


@dataclass
class Build:
    """A build in progress: its settings, its current plan, and its folders."""

    config: BuildConfig
    plan: "Plan"
    share: float = 0.0  # completed share of the current step, as far as the step reports it

    @cached_property
    def folder(self) -> Path:
        """Folder of the hybrid system."""
        return Path(self.config.output)

    @cached_property
    def work(self) -> Path:
        """Folder for all files that decoding does not need."""
        return self.folder / WORK

    @cached_property
    def store(self) -> Store:
        """Store of the work folder, which records the files that finished steps have written."""
        return Store(self.work)


def write_record(path: Path, record: "DataclassInstance") -> None:
    """Store the fields of a result as JSON, whole or not at all."""
    files.write_text(path, [json.dumps(asdict(record))])


def read_record(path: Path, kind: type[Record]) -> Record:
    """Read a result of the class `kind` that `write_record` has stored. DataError for one that is damaged, or
    that another version has stored with other fields."""
    try:
        return kind(**json.loads(path.read_text(encoding="utf-8")))
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(
            f"{path}: damaged, or written by another version of smt-build; remove it, and the same command "
            "makes it again"
        ) from error


@dataclass
class StepProgress:
    """Reports the completed share of a step to the build."""

    build: Build
    total: float  # expected work of the step, such as seconds or lines
    done: float = 0.0  # expected work of what is completed

    def add(self, work: float) -> None:
        """Advance by an expected amount of work."""
        self.done += work
        self.build.share = min(1.0, self.done / max(1e-9, self.total))

    def over(self, items: Iterable[Item], work: float) -> Iterator[Item]:
        """Yield the items, and advance after each. `work`: expected for one item."""
        for item in items:
            yield item
            self.add(work)
