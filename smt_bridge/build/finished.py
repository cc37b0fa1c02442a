"""`manifest.json` of a build: sizes and checksums of what its finished steps have made, and of its plan, so
that a resumed build uses nothing that was changed or damaged since."""

from collections.abc import Iterable
from fnmatch import fnmatchcase as fnmatch
from pathlib import Path

from nmt import manifest
from nmt.errors import DataError
from nmt.manifest import Entries


def files_of(work: Path, patterns: Iterable[str]) -> list[str]:
    """The files below a folder that fit the patterns, sorted; unfinished files and locks are none."""
    paths = {path for pattern in patterns for path in work.glob(pattern) if path.is_file()}
    names = (path.relative_to(work).as_posix() for path in paths if ".part" not in path.name)
    return sorted(name for name in names if not name.endswith("/.lock"))


def record(work: Path, names: Iterable[str]) -> None:
    """Note the content of files."""
    entries: Entries = manifest.read(work) or {}
    manifest.save(work, entries | {name: [manifest.entry(work / name)] for name in names})


def listed(work: Path, patterns: Iterable[str]) -> set[str]:
    """The files with checksums that fit the patterns."""
    names = manifest.read(work) or {}
    return {name for name in names for pattern in patterns if fnmatch(name, pattern.replace("**/", ""))}


def check(work: Path, fixed: Iterable[str]) -> list[str]:
    """Compare all files with what was noted; returns those that are no longer there. DataError for one with
    another content, and for one of `fixed`, which no step makes, that is gone."""
    entries, gone = manifest.read(work) or {}, []
    for name, contents in entries.items():
        path = work / name
        remedy = f"remove {work.parent} to start anew" if name in fixed else "remove it, and it is made again"
        if path.exists() and manifest.entry(path) not in contents:
            raise DataError(f"{path}: was changed since the build wrote it; restore it, or {remedy}")
        if not path.exists():
            if name in fixed:
                raise DataError(f"{path}: not there any more; restore it, or {remedy}")
            gone.append(name)
    return gone


def forget(work: Path, names: Iterable[str]) -> None:
    """Remove files, and what was noted of them."""
    removed = set(names)
    for name in removed:
        (work / name).unlink(missing_ok=True)
    entries: Entries = manifest.read(work) or {}
    manifest.save(work, {name: contents for name, contents in entries.items() if name not in removed})
