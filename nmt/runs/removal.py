"""Where a run may be made, and what is removed for it: nothing but the files of what is provably a run."""

import re
import shutil
from contextlib import suppress
from pathlib import Path

from nmt import locks, manifest
from nmt.errors import CheckpointError, UserError
from nmt.runs.directory import (
    BACK_ENDS,
    CONFIG,
    CORPUS,
    CURVE,
    CURVES,
    DATA,
    DEV_LOG,
    INDEX,
    INPUTS,
    LAST,
    LINKS,
    STATE,
    TEXTS,
    TRAIN_LOG,
    UNFINISHED,
    VERSION_FILE,
    first_line,
    is_unfinished,
    steps,
    sweep,
    version,
    weights_path,
)
from nmt.runs.migrations import FORMATS


def check_place(directory: Path, overwrite: bool) -> None:
    """CheckpointError for a folder of the user's own: neither a run, nor empty, nor one that was killed
    before it became a run."""
    if overwrite:
        if not locks.is_empty(directory):
            prove(directory)
    elif directory.exists() and not (directory / VERSION_FILE).exists() and not is_begun(directory):
        raise CheckpointError(
            f"{directory}: exists and is not a run directory; choose another name for the run"
        )


def is_begun(directory: Path) -> bool:
    """Are all its files those of a run whose file `version` is not written yet?"""
    if not directory.is_dir():
        return False
    ours = {*(manifest.read(directory) or ()), manifest.FILE, locks.FILE}
    return all(path.name in ours or is_unfinished(path.name) for path in directory.iterdir())


def remove(directory: Path) -> None:
    """Remove the files of a run; other files in the folder stay. CheckpointError, and nothing is removed, for
    what is not provably a run.

    The proof, `version` and `config.yaml`, is removed last, so that a removal that was killed can be
    repeated."""
    check_place(directory, overwrite=True)
    try:
        for folder, names in ((f"{DATA}/{LINKS}", CORPUS), (DATA, CORPUS), (CURVES, CURVE)):
            clear(directory / folder, names)
        shutil.rmtree(directory / UNFINISHED, ignore_errors=True)
        sweep(directory)
        weights = [weights_path(directory, step).name for step in steps(directory)]
        others = (STATE, INDEX, TRAIN_LOG, DEV_LOG, BACK_ENDS, INPUTS, *reversed(TEXTS[1:]), manifest.FILE)
        for name in (*weights, *others, CONFIG, VERSION_FILE):
            (directory / name).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{error.filename or directory}: cannot remove: {error.strerror}") from error


def prove(directory: Path) -> None:
    """CheckpointError unless it is a run: it has the version, and a configuration as nmt-train writes it; or
    it is what is left of a removal."""
    config = first_line(directory / CONFIG)
    left = config is None and not any(
        (directory / name).exists() for name in (*TEXTS, *LAST[:-1], manifest.FILE)
    )
    if version(directory) not in FORMATS or not (left or (config or "").startswith("run: ")):
        raise CheckpointError(
            f"{directory}: not a run directory, so --overwrite does not remove it; choose another"
        )


def clear(folder: Path, names: "re.Pattern[str]") -> None:
    """Remove the files of these names, and their folder where nothing else is in it."""
    if not folder.is_dir() or folder.is_symlink():
        return
    for path in folder.iterdir():
        if names.fullmatch(path.name) and not path.is_dir():
            path.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
