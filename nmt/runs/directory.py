"""The files of a run: their names, and how they are written, checked and removed.

    version                  `nmt-run 2`; other formats are refused
    config.yaml              the resolved configuration
    source.vocab target.vocab, source.codes or source.spm, source.truecase ...    the text pipeline
    lexicon                  translations of words by which unknown ones are replaced, if there is one
    origin.json              of a run that nmt-import has made: whose model it is
    ...                      other files that some kinds of models need: RUN_FILES
    inputs.json              stamps of the training and development files when the run was started
    checkpoints.json         which weights are `best` and `last`
    step-N.pt                weights of step N (torch, loadable with weights_only=True)
    training.pt              optimizer, random state and counters of the last save
    manifest.json            sizes and checksums of all files above
    train.tsv dev.tsv        logs
    matmul.tsv               the matrix back end, by processor
    data/ tensorboard/       the binarized corpus, with a manifest of its own (data/links: links); curves
    .lock                    who is training here

New files are written in `new.part/` and renamed together, so that the weights that training.pt names are
always complete.
"""

import json
import logging
import os
import re
import shutil
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from nmt.errors import CheckpointError, DataError, UserError
from nmt.io import files, locks, manifest, numbers
from nmt.plugins import Registry

# ---- directory ---------------------------------------------------------------------------------------------


log = logging.getLogger(__name__)

VERSION = "nmt-run 2"  # the content of the file `version`
EXPORTED = "nmt-ctranslate2"  # how it begins in a folder of nmt-export, see nmt/runs/exported.py
VERSION_FILE, CONFIG = "version", "config.yaml"
INPUTS, INDEX, STATE = "inputs.json", "checkpoints.json", "training.pt"
TRAIN_LOG, DEV_LOG, BACK_ENDS = "train.tsv", "dev.tsv", "matmul.tsv"
DATA, CURVES, UNFINISHED = "data", "tensorboard", "new.part"
LINKS = "links"  # the folder below DATA with the links of guided alignment
SIDES = [f"{side}.{kind}" for side in ("source", "target") for kind in ("vocab", "codes", "spm", "truecase")]
RUN_FILES: Registry[object] = Registry("run file", {})  # files that some kinds of models have besides weights
ORIGIN, LEXICON = "origin.json", "lexicon"
TEXTS = (CONFIG, *SIDES, LEXICON, ORIGIN, *RUN_FILES)  # files that a model needs besides its weights
LAST = (INPUTS, STATE, INDEX, VERSION_FILE)  # these are renamed after all others, in this order
WEIGHTS = re.compile(r"step-([0-9]{1,18})\.pt")
CORPUS = re.compile(
    r"(?:(?:source|target|affiliation)\.(?:ids|offsets)|stamp\.json|manifest\.json|\.lock)(?:\.part[0-9-]*)?"
)
CURVE = re.compile(r"events\.out\.tfevents\..*")

Result = TypeVar("Result")


def weights_path(directory: Path, step: int) -> Path:
    """Path of the weights after `step` updates."""
    return directory / f"step-{step}.pt"


def result_files(directory: Path, step: int) -> list[Path]:
    """Paths of the files that results depend on: the configuration, those of the text pipelines and others
    that the model needs, and the weights after `step` updates."""
    texts = sorted(directory / name for name in TEXTS if name != CONFIG and (directory / name).exists())
    return [directory / CONFIG, *texts, weights_path(directory, step)]


def model_files(path: Path) -> list[Path]:
    """Paths of the files of a model: the path itself if it is a file; of a folder, its manifest and the files
    listed there, or else all files but locks and records of back ends. DataError for a damaged manifest."""
    if path.is_file():
        return [path]
    listed = manifest.read(path)
    changing = (locks.FILE, BACK_ENDS)
    if listed is None:  # no run
        return [part for part in path.iterdir() if part.is_file() and part.name not in changing]
    return [path / name for name in (*listed, manifest.FILE)]


def steps(directory: Path) -> list[int]:
    """The updates with saved weights, in increasing order."""
    return sorted(
        int(match[1]) for path in directory.glob("step-*.pt") if (match := WEIGHTS.fullmatch(path.name))
    )


def exists(directory: Path) -> bool:
    """Whether the directory holds a run, of any format version."""
    return (directory / VERSION_FILE).exists()


def is_exported(path: str | Path) -> bool:
    """Whether a path is a folder written by nmt-export, of any format version."""
    return (first_line(resolve(path) / VERSION_FILE) or "").startswith(EXPORTED)


def is_trained(path: str | Path) -> bool:
    """Whether a path is a run of nmt-train that has not been exported, so that torch computes it."""
    return exists(Path(path)) and not is_exported(path)


def resolve(path: str | Path) -> Path:
    """Replace the folder of nmt-init, which holds a configuration, by the run in it, if there is exactly one.
    Other paths are returned unchanged."""
    path = Path(path)
    runs = runs_beside_config(path)
    return runs[0] if len(runs) == 1 else path


def runs_beside_config(folder: Path) -> list[Path]:
    """The runs in a folder that has a configuration and is no run itself, by name; [] for any other path."""
    if not os.path.isfile(folder / CONFIG) or exists(folder):
        return []
    return sorted(path for path in folder.iterdir() if exists(path))


def check_version(directory: Path) -> None:
    """CheckpointError for a directory that is not a run, or is a run of another format version."""
    path = directory / VERSION_FILE
    if directory.is_file():
        raise CheckpointError(f"{directory}: is a file, expected a run directory")
    if not directory.is_dir():
        raise CheckpointError(f"{directory}: no such run directory; nmt-train makes one")
    if not exists(directory) and (directory / CONFIG).is_file():
        runs = ", ".join(map(str, runs_beside_config(directory)))
        raise CheckpointError(
            f"{directory}: holds several runs; name one of them: {runs}"
            if runs
            else f"{directory}: has a configuration, but no run yet; train it: nmt-train {directory}"
        )
    try:
        version = files.read_small(path).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(
            f"{directory}: not a run directory (it has no readable file 'version')"
        ) from error
    if version.startswith(EXPORTED):
        raise CheckpointError(
            f"{directory}: is a run exported to CTranslate2, which cannot be used here; name the run itself"
        )
    if version != VERSION:
        shown = version[:40] if version.startswith("nmt-run ") else "unknown"
        raise CheckpointError(
            f"{path}: format {shown!r}, this version reads {VERSION!r}: train again, or use the version that "
            "wrote it"
        )


# ---- reading -----------------------------------------------------------------------------------------------


def read_consistent(directory: Path, read: Callable[[], Result]) -> Result:
    """Call `read` to read a run, and return its result. If it fails with a UserError because training has
    just saved, which may remove the files being read, try again; otherwise raise the error."""
    while True:
        state = save_state(directory)
        try:
            return read()
        except UserError:
            if save_state(directory) == state:
                raise


def save_state(directory: Path) -> bytes:
    """The content of the manifest, which changes whenever the run is saved; empty if it cannot be read."""
    try:
        return files.read_small(directory / manifest.FILE)
    except OSError:
        return b""


def verify(directory: Path, *names: str) -> None:
    """CheckpointError for a file that a run cannot contain, and for the first damaged file among `names`, or,
    without names, among all that a model needs besides its weights."""
    try:
        entries = manifest.load(directory)
        check_files(directory, entries)
        manifest.verify(
            directory, names or [name for name in TEXTS if name in entries or (directory / name).exists()]
        )
    except DataError as error:
        raise CheckpointError(str(error)) from error


def check_files(directory: Path, listed: Container[str]) -> None:
    """DataError for a file that a run cannot have, such as a pipe. `listed`: names in the manifest, which may
    be links out of the folder since their content is verified when read; logs have no checksums."""
    for name in (*TEXTS, INPUTS, INDEX, VERSION_FILE):
        files.check_regular(directory / name, files.LARGEST_TEXT, inside=name not in listed)
    for name in (TRAIN_LOG, DEV_LOG, BACK_ENDS):
        files.check_regular(directory / name, files.LARGEST_TEXT, inside=False)
    for folder in (directory, directory / DATA, directory / DATA / LINKS):
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.name == STATE or WEIGHTS.fullmatch(path.name) or CORPUS.fullmatch(path.name):
                files.check_regular(path, inside=False)


def back_ends_file(run: str | Path) -> Path | None:
    """Path of the file in which a run records the matrix back end of each processor; None if `run` is not a
    run, or if the file is not a regular one."""
    path = Path(run) / BACK_ENDS
    try:
        files.check_regular(path, files.SMALL_FILE)
    except DataError:
        return None
    return path if exists(Path(run)) else None


def find_step(directory: Path, which: str) -> int:
    """Convert `which` (best, last or a number of updates) to the number of updates whose weights to load.
    CheckpointError if the run does not have these weights, or its index is damaged."""
    try:
        step = numbers.count(str(which))  # a Python program may give an int
    except ValueError:
        return read_consistent(directory, lambda: indexed_step(directory, which))
    if not weights_path(directory, step).exists():
        raise CheckpointError(
            f"{directory}: has no checkpoint of update {step}; it has those of "
            f"{', '.join(map(str, steps(directory))) or 'none'} (training.keep sets how many stay)"
        )
    return step


def indexed_step(directory: Path, which: str) -> int:
    """The number of updates that the index gives for `best` or `last`. CheckpointError if nothing has been
    saved yet, or the index is damaged."""
    path = directory / INDEX
    if not path.exists():
        raise CheckpointError(f"{directory}: no checkpoint yet; train it further")
    try:
        with manifest.open_verified(directory, INDEX, manifest.load(directory)) as stream:
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
    """Yield a folder for new files of a run, whose directory is created if missing. At the end of the block
    they are moved to the run together, and the files named in `drop` are removed; after an error in the block
    nothing has changed. UserError if the disk is full."""
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
    """Write the file `version` with the format of a run."""
    files.write_text(new / VERSION_FILE, [VERSION])


def write_index(new: Path, best: int, last: int) -> None:
    """Write the index: the numbers of updates of the weights `best` and `last`."""
    files.write_text(new / INDEX, [json.dumps({"best": best, "last": last})])


def copy_texts(directory: Path, new: Path) -> None:
    """Copy every file that a model needs besides its weights from a run to the folder `new`, and write the
    format version. UserError if that fails."""
    for name in TEXTS:
        if (directory / name).exists():
            try:
                shutil.copyfile(directory / name, new / name)
            except OSError as error:
                raise files.cannot_write(new.parent, error) from error
    write_version(new)


def sweep(directory: Path) -> None:
    """Remove unfinished files of a training job that was killed. The caller holds the lock."""
    shutil.rmtree(directory / UNFINISHED, ignore_errors=True)
    for path in directory.glob("*.part*"):
        if is_unfinished(path.name):
            path.unlink(missing_ok=True)


def is_unfinished(name: str) -> bool:
    """Whether a name is that of an unfinished file of a run."""
    final_name, _, number = name.rpartition(".part")
    names = {*TEXTS, *LAST, manifest.FILE, BACK_ENDS}
    return name == UNFINISHED or bool(
        re.fullmatch("[0-9-]*", number) and (final_name in names or WEIGHTS.fullmatch(final_name))
    )


def first_line(path: Path) -> str | None:
    """The first line of a file; None if there is no such file, empty if it is not text."""
    with suppress(OSError, UnicodeDecodeError):
        return files.read_small(path).decode("utf-8").partition("\n")[0]
    return "" if path.exists() else None


# ---- removal -----------------------------------------------------------------------------------------------
# Which folders may become a run, and what --overwrite removes: only files of a folder that is provably a run.


def check_folder(directory: Path, overwrite: bool) -> None:
    """Check that a new run may be created in a folder. CheckpointError for a folder with the user's own
    files: one that is not a run, not empty, and not left by a training job that was killed before it became a
    run. With `overwrite`, which removes a run, the folder must be empty or a run."""
    if overwrite:
        if not locks.is_empty(directory):
            prove_is_run(directory)
    elif directory.exists() and not (directory / VERSION_FILE).exists() and not is_begun(directory):
        raise CheckpointError(
            f"{directory}: exists and is not a run directory; choose another name for the run"
        )


def is_begun(directory: Path) -> bool:
    """Whether a folder has only files of a run, with no `version` yet. DataError for a damaged manifest."""
    if not directory.is_dir():
        return False
    ours = {*(manifest.read(directory) or ()), manifest.FILE, locks.FILE}
    return all(path.name in ours or is_unfinished(path.name) for path in directory.iterdir())


def remove_run(directory: Path) -> None:
    """Remove the files of a run; other files in the folder stay. CheckpointError, with nothing removed, if
    the folder is neither provably a run nor empty; UserError for a file that cannot be removed.

    The proof, `version` and `config.yaml`, is removed last, so that a removal that was killed can be
    repeated.
    """
    check_folder(directory, overwrite=True)
    try:
        for folder, names in ((f"{DATA}/{LINKS}", CORPUS), (DATA, CORPUS), (CURVES, CURVE)):
            clear_folder(directory / folder, names)
        sweep(directory)
        weights = [weights_path(directory, step).name for step in steps(directory)]
        others = (STATE, INDEX, TRAIN_LOG, DEV_LOG, BACK_ENDS, INPUTS, *reversed(TEXTS[1:]), manifest.FILE)
        for name in (*weights, *others, CONFIG, VERSION_FILE):
            (directory / name).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{error.filename or directory}: cannot remove: {error.strerror}") from error


def prove_is_run(directory: Path) -> None:
    """CheckpointError unless the folder is a run: it has the version, and a configuration as nmt-train writes
    it. What an interrupted removal has left also counts."""
    config = first_line(directory / CONFIG)
    left = config is None and not any(
        (directory / name).exists() for name in (*TEXTS, *LAST[:-1], manifest.FILE)
    )
    if first_line(directory / VERSION_FILE) != VERSION or not (left or (config or "").startswith("run: ")):
        raise CheckpointError(
            f"{directory}: not a run directory, so --overwrite does not remove it; choose another"
        )


def clear_folder(folder: Path, names: "re.Pattern[str]") -> None:
    """Remove the files whose names match, then their folder if empty; nothing of a missing or linked one."""
    if not folder.is_dir() or folder.is_symlink():
        return
    for path in folder.iterdir():
        if names.fullmatch(path.name) and not path.is_dir():
            path.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
