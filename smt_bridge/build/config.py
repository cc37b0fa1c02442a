"""Settings of a build, its working folder, and checksums of the files that its steps have written."""

import shlex
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields
from fnmatch import fnmatchcase as fnmatch
from functools import cached_property
from pathlib import Path

from nmt.config.settings import number, setting
from nmt.errors import DataError
from nmt.io import manifest
from nmt.io.manifest import Entries
from smt_bridge.build.plan import Plan

# ---- settings ----------------------------------------------------------------------------------------------


WORK = "build"  # below the system's folder: all that decoding does not need


@dataclass
class BuildConfig:
    """Options of smt-build: its input texts, its output folder, and how the system is built."""

    source: str
    target: str
    dev_source: str
    dev_target: str
    output: str
    monolingual: str = setting("", help="more text of the target language, for the language models")
    glossary: str = setting("", help="terms with their translations, for the system to use")
    source_language: str = setting("", help="language code; default: as the name of --source ends, train.en")
    target_language: str = setting("", help="language code; default: as the name of --target ends")
    budget: int = number(5400, least=60, help="seconds that the build may take")
    workers: int = number(
        2, least=1, help="networks trained and sentences decoded at a time; the result does not depend on it"
    )
    seed: int = number(1, least=0, help="seed of the networks and of the tuning")
    plan: str = setting("", help="build by this plan.json, of another build, instead of making one")
    keep_plan: bool = setting(
        False,
        help="do all that the plan says, even where the build is late; else its later steps are shortened",
    )

    def texts(self) -> list[str]:
        """Paths of all input files."""
        paths = [self.source, self.target, self.dev_source, self.dev_target]
        return paths + [path for path in (self.monolingual, self.glossary, self.plan) if path]

    def command(self) -> str:
        """The command line with these options."""
        words = ["smt-build"]
        for item in fields(self):
            value = getattr(self, item.name)
            if value is True:
                words.append(f"--{item.name.replace('_', '-')}")
            elif item.default is MISSING or value != item.default:
                shown = f"{value}s" if item.name == "budget" else str(value)
                words += [f"--{item.name.replace('_', '-')}", shown]
        return shlex.join(words)


@dataclass
class Build:
    """A build in progress: its settings, plan and folders."""

    config: BuildConfig
    plan: Plan
    share: float = 0.0  # completed share of the current step, as far as the step reports it

    @cached_property
    def folder(self) -> Path:
        """Folder of the hybrid system."""
        return Path(self.config.output)

    @cached_property
    def work(self) -> Path:
        """Folder of everything that decoding does not need."""
        return self.folder / WORK


# ---- checksums ---------------------------------------------------------------------------------------------
# `manifest.json` has sizes and checksums of the plan and of the files that finished steps have written, so
# that a resumed build uses nothing that was changed or damaged since.


def matching_files(work: Path, patterns: Iterable[str]) -> list[str]:
    """Sorted paths of finished files below a folder that match the patterns; no locks or `.part` files."""
    paths = {path for pattern in patterns for path in work.glob(pattern) if path.is_file()}
    names = (path.relative_to(work).as_posix() for path in paths if ".part" not in path.name)
    return sorted(name for name in names if not name.endswith("/.lock"))


def record_files(work: Path, names: Iterable[str]) -> None:
    """Add checksums of files to the manifest."""
    entries: Entries = manifest.read(work) or {}
    manifest.save(work, entries | {name: [manifest.entry(work / name)] for name in names})


def recorded_files(work: Path, patterns: Iterable[str]) -> set[str]:
    """Files in the manifest that match the patterns."""
    names = manifest.read(work) or {}
    return {name for name in names for pattern in patterns if fnmatch(name, pattern.replace("**/", ""))}


def check_files(work: Path, fixed: Iterable[str]) -> list[str]:
    """Compare all files with the manifest; returns the names of missing ones.

    DataError for a file with other content, and for a missing file of `fixed`, which no step can write again.
    """
    entries, missing = manifest.read(work) or {}, []
    for name, contents in entries.items():
        path = work / name
        remedy = f"remove {work.parent} to start anew" if name in fixed else "remove it, and it is made again"
        if path.exists() and manifest.entry(path) not in contents:
            raise DataError(f"{path}: was changed since the build wrote it; restore it, or {remedy}")
        if not path.exists():
            if name in fixed:
                raise DataError(f"{path}: not there any more; restore it, or {remedy}")
            missing.append(name)
    return missing


def forget_files(work: Path, names: Iterable[str]) -> None:
    """Delete files and their entries in the manifest."""
    removed = set(names)
    for name in removed:
        (work / name).unlink(missing_ok=True)
    entries: Entries = manifest.read(work) or {}
    manifest.save(work, {name: contents for name, contents in entries.items() if name not in removed})
