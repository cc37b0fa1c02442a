"""The files of a run: their names stand here and nowhere else, and how they come, are checked and go.

    version                  `nmt-run 1`
    config.yaml              the resolved configuration
    source.vocab target.vocab, source.codes target.codes, source.truecase target.truecase    the text pipeline
    dictionary               of a multi-scale language model
    inputs.json              what the training and development files were when the run was started
    checkpoints.json         which weights are `best` and `last`
    step-N.pt                weights of step N (torch, loadable with weights_only=True)
    training.pt              optimizer, random state and counters of the last save
    manifest.json            sizes and checksums of all files above
    train.tsv dev.tsv        logs
    matmul.tsv               the matrix back end, by processor
    data/ tensorboard/       the binarized corpus, with a manifest of its own; curves
    .lock                    who trains here

New files are written in `new.part/` and get their names together: training.pt is the last word, what it names
is there, whole.
"""

import json
import logging
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from nmt import files, locks, manifest, numbers
from nmt.errors import CheckpointError, DataError, UserError

log = logging.getLogger(__name__)

VERSION = "nmt-run 1"
VERSION_FILE, CONFIG, DICTIONARY, INPUTS, INDEX, STATE = (
    "version",
    "config.yaml",
    "dictionary",
    "inputs.json",
    "checkpoints.json",
    "training.pt",
)
TRAIN_LOG, DEV_LOG, BACK_ENDS, DATA, CURVES, UNFINISHED = (
    "train.tsv",
    "dev.tsv",
    "matmul.tsv",
    "data",
    "tensorboard",
    "new.part",
)
TEXTS = (
    CONFIG,
    *(f"{side}.{kind}" for side in ("source", "target") for kind in ("vocab", "codes", "truecase")),
    DICTIONARY,
)  # what a model needs to run
LAST = (INPUTS, STATE, INDEX, VERSION_FILE)  # these get their names after all others, in this order
WEIGHTS = re.compile(r"step-([0-9]{1,18})\.pt")
CORPUS = re.compile(
    r"(?:(?:source|target)\.(?:ids|offsets)|stamp\.json|manifest\.json|\.lock)(?:\.part[0-9-]*)?"
)
CURVE = re.compile(r"events\.out\.tfevents\..*")

Result = TypeVar("Result")


def weights_path(directory: Path, step: int) -> Path:
    return directory / f"step-{step}.pt"


def steps(directory: Path) -> list[int]:
    """The updates whose weights are there, in order."""
    return sorted(
        int(match[1]) for path in directory.glob("step-*.pt") if (match := WEIGHTS.fullmatch(path.name))
    )


def check_version(directory: Path) -> None:
    path = directory / VERSION_FILE
    if not directory.is_dir():
        raise CheckpointError(f"{directory}: no such run directory; nmt-train makes one")
    try:
        found = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(
            f"{directory}: not a run directory (it has no readable file 'version')"
        ) from error
    if found != VERSION:
        raise CheckpointError(
            f"{path}: format {found[:40]!r}, expected {VERSION!r}; "
            "use the version of the toolkit that made it"
        )


# ---- reading -----------------------------------------------------------------------------------------------


def settled(directory: Path, read: Callable[[], Result]) -> Result:
    """What `read` makes of a run. A training may save meanwhile and take away what was about to be read: then
    it is read again."""
    while True:
        before = state_of(directory)
        try:
            return read()
        except UserError:
            if state_of(directory) == before:
                raise


def state_of(directory: Path) -> bytes:
    try:
        return (directory / manifest.FILE).read_bytes()
    except OSError:
        return b""


def verify(directory: Path, *names: str) -> None:
    """CheckpointError names the first file that is damaged: of these, or of all that a model needs besides
    its weights.

    A run of version 0.5 has no manifest, which one line of the log says.
    """
    try:
        entries = manifest.read(directory)
        if entries is None:
            log.info(
                "%s: no %s, as version 0.5 left it: its files are taken as they are", directory, manifest.FILE
            )
            return
        manifest.verify(
            directory, names or [name for name in TEXTS if name in entries or (directory / name).exists()]
        )
    except DataError as error:
        raise CheckpointError(str(error)) from error


def find_step(directory: Path, which: str) -> int:
    """`best`, `last` or a number of updates -> the step whose weights exist."""
    with suppress(ValueError):
        return numbers.count(which)
    return settled(directory, lambda: step_of(directory, which))


def step_of(directory: Path, which: str) -> int:
    """What the index says."""
    path = directory / INDEX
    if not path.exists():
        raise CheckpointError(f"{directory}: no checkpoint yet; train it further")
    try:
        with manifest.opened(directory, INDEX, manifest.read(directory)) as stream:
            return int(json.load(stream)[which])
    except DataError as error:
        raise CheckpointError(str(error)) from error
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise CheckpointError(
            f"{path}: cannot find checkpoint {numbers.shown(which)}; expected best, last or a step"
        ) from error


# ---- writing -----------------------------------------------------------------------------------------------


@contextmanager
def writing(directory: Path, drop: tuple[str, ...] = ()) -> Iterator[Path]:
    """A folder for new files of a run. At the end they get their names together, and `drop` is removed; after
    an error nothing has changed."""
    new = directory / UNFINISHED
    try:
        try:
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir(parents=True)
        except OSError as error:
            raise files.cannot_write(directory, error) from error
        yield new
        names = sorted(
            (path.name for path in new.iterdir()),
            key=lambda name: (LAST.index(name) + 1 if name in LAST else 0, name),
        )
        manifest.publish(directory, {name: new / name for name in names}, drop)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def write_version(new: Path) -> None:
    files.write_text(new / VERSION_FILE, [VERSION])


def write_index(new: Path, best: int, last: int) -> None:
    files.write_text(new / INDEX, [json.dumps({"best": best, "last": last})])


def copy_texts(directory: Path, new: Path) -> None:
    """All that a model needs besides its weights."""
    for name in TEXTS:
        if (directory / name).exists():
            try:
                shutil.copyfile(directory / name, new / name)
            except OSError as error:
                raise files.cannot_write(new.parent, error) from error


def adopt(directory: Path) -> None:
    """Give a run of version 0.5 a manifest of its files as they are now."""
    if manifest.read(directory) is None:
        names = [*TEXTS, *(weights_path(directory, step).name for step in steps(directory)), *LAST]
        manifest.write(directory, [name for name in names if (directory / name).exists()])


def sweep(directory: Path) -> None:
    """Remove what a killed training has left unfinished. Its folder is locked."""
    shutil.rmtree(directory / UNFINISHED, ignore_errors=True)
    for path in directory.glob("*.part*"):
        if is_unfinished(path.name):
            path.unlink(missing_ok=True)


def is_unfinished(name: str) -> bool:
    """Is it the name of something that we had begun to write?"""
    whole, _, number = name.rpartition(".part")
    known = {*TEXTS, *LAST, manifest.FILE, BACK_ENDS}
    return name == UNFINISHED or bool(
        re.fullmatch("[0-9-]*", number) and (whole in known or WEIGHTS.fullmatch(whole))
    )


def check_place(directory: Path, overwrite: bool) -> None:
    """CheckpointError for a folder of the user's: neither a run, nor empty, nor a start of ours that was
    killed before it was a run."""
    if overwrite:
        if not locks.is_empty(directory):
            prove(directory)
    elif directory.exists() and not (directory / VERSION_FILE).exists() and not is_begun(directory):
        raise CheckpointError(
            f"{directory}: exists and is not a run directory; choose another name for the run"
        )


def is_begun(directory: Path) -> bool:
    """Are all its files those of a run that does not have its file `version` yet?"""
    if not directory.is_dir():
        return False
    ours = {*(manifest.read(directory) or ()), manifest.FILE, locks.FILE}
    return all(path.name in ours or is_unfinished(path.name) for path in directory.iterdir())


# ---- removing ----------------------------------------------------------------------------------------------


def remove(directory: Path) -> None:
    """Take away the files of a run; what else lies there stays. CheckpointError, and nothing is removed,
    where it is not provably a run.

    The proof, `version` and `config.yaml`, goes last, so that a removal that is killed can be done again.
    """
    check_place(directory, overwrite=True)
    try:
        for folder, names in ((DATA, CORPUS), (CURVES, CURVE)):
            clear(directory / folder, names)
        shutil.rmtree(directory / UNFINISHED, ignore_errors=True)
        sweep(directory)
        weights = [weights_path(directory, step).name for step in steps(directory)]
        for name in (
            *weights,
            STATE,
            INDEX,
            TRAIN_LOG,
            DEV_LOG,
            BACK_ENDS,
            INPUTS,
            *reversed(TEXTS[1:]),
            manifest.FILE,
            CONFIG,
            VERSION_FILE,
        ):
            (directory / name).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{error.filename or directory}: cannot remove: {error.strerror}") from error


def prove(directory: Path) -> None:
    """CheckpointError unless it is a run: the version, and a configuration as nmt-train writes it; or what is
    left of a removal."""
    version, config = (first_line(directory / name) for name in (VERSION_FILE, CONFIG))
    left = config is None and not any(
        (directory / name).exists() for name in (*TEXTS, *LAST[:-1], manifest.FILE)
    )
    if version != VERSION or not (left or (config or "").startswith("run: ")):
        raise CheckpointError(
            f"{directory}: not a run directory, so --overwrite does not remove it; choose another"
        )


def first_line(path: Path) -> str | None:
    """None where there is no such file, empty where it is no text."""
    try:
        with open(path, encoding="utf-8") as lines:
            return next(lines, "").rstrip("\n")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError):
        return ""


def clear(folder: Path, names: "re.Pattern[str]") -> None:
    """Remove the files of these names, and their folder where nothing else is in it."""
    if not folder.is_dir() or folder.is_symlink():
        return
    for path in folder.iterdir():
        if names.fullmatch(path.name) and not path.is_dir():
            path.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
