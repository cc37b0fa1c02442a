"""Word alignment of a parallel text in both directions, in this process or by several workers.

Links of other tools are read by nmt/formats/pharaoh.py.
"""

import importlib.util
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np

from nmt import plugins
from nmt.errors import ConfigError, DataError, UserError
from nmt.formats import pharaoh
from nmt.formats.pharaoh import Links
from nmt.io import files, manifest, signals
from nmt.io.progress import Progress
from nmt.lazy import LazyPart
from nmt.work import executors, stages
from nmt.work.executors import ExecutorConfig
from nmt.work.stages import Part, SharedFolder, task_file
from smt_bridge.extraction.packed_corpus import (
    Int64s,
    PackedLinks,
    PackedText,
    Packer,
    load_links,
    pack_links,
    pack_text,
)

log = logging.getLogger(__name__)

# ---- aligners ----------------------------------------------------------------------------------------------


LONGEST = 1024  # words: sil-thot reads no longer sentences
KEPT = ".kept"  # ending of the name of the folder with a model that aligns new text
Texts = Sequence[list[str]]


def thot() -> Any:
    """Import the package sil-thot and return its module `thot.alignment`. ConfigError if it is not installed.

    sil-thot runs with one thread: several threads add floating-point numbers in varying order, so that a link
    occasionally differs from run to run. Its OpenMP reads OMP_NUM_THREADS when it is loaded, so the variable
    is set during the import and restored afterwards.
    """
    previous = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        import thot.alignment
    except ImportError as error:
        raise ConfigError(
            "no alignment tool: the package sil-thot is not installed; install it with: pip install "
            "'nmt-smt[smt]', or give alignments of another tool"
        ) from error
    finally:
        if previous is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = previous
    return thot.alignment


class Aligner(ABC):
    """Aligns the words of a parallel text.

    With several workers, one worker trains the model of a direction by `train`; then each worker aligns
    shards of the text with the files that `train` wrote. By default these files have the links of the whole
    text. An aligner can write its model instead by overriding `train`, `load` and `align_part`. One whose
    model can align new text overrides `align_and_keep`.
    """

    def check(self) -> None:
        """ConfigError if the aligner cannot run on this machine."""
        return

    @abstractmethod
    def align(self, sources: Texts, targets: Texts) -> Sequence[Links]:
        """Align one direction. Returns the links of each sentence pair; none if a side is empty or longer
        than LONGEST words. UserError if the tool fails, ConfigError if it is not installed."""

    def align_and_keep(self, sources: Texts, targets: Texts, folder: Path) -> Sequence[Links]:
        """Align one direction like `align`. If the aligner's model can align new text, it is also written to
        `folder`, which must not exist yet; UserError or OSError if that fails."""
        return self.align(sources, targets)

    def train(self, sources: Texts, targets: Texts, prefix: str) -> None:
        """Train on a text, and write the model into files whose paths begin with `prefix`. UserError or
        OSError if they cannot be written."""
        pack_links(self.align_and_keep(sources, targets, Path(f"{prefix}{KEPT}"))).save(prefix)

    def load(self, prefix: str) -> Any:
        """Load a model from the files that `train` wrote with this `prefix`; they may be removed afterwards.
        UserError, OSError or ValueError if they are missing or damaged."""
        return load_links(prefix)

    def align_part(self, model: Any, first: int, sources: Texts, targets: Texts) -> Sequence[Links]:
        """Align consecutive pairs of the text that the model was trained on, with the same links as `align`.
        `first`: index of their first pair in that text, from 0."""
        links: PackedLinks = model[first : first + len(sources)]
        return links


@dataclass(frozen=True)
class Thot(Aligner):
    """Viterbi alignment by models of sil-thot; a target word has at most one source word."""

    stages: tuple[tuple[str, int], ...]  # (model, iterations); each model is initialized by the previous one

    def check(self) -> None:
        thot()

    def align(self, sources: Texts, targets: Texts) -> PackedLinks:
        return self.align_part(self.train_models(sources, targets), 0, sources, targets)

    def train(self, sources: Texts, targets: Texts, prefix: str) -> None:
        if not self.train_models(sources, targets).print(prefix):
            raise UserError(f"{prefix}: sil-thot cannot write its model there; is the disk full?")

    def load(self, prefix: str) -> Any:
        model = getattr(thot(), self.stages[-1][0])()
        if not model.load(prefix):
            raise UserError(f"{prefix}: sil-thot cannot read its model there")
        return model

    def align_part(self, model: Any, first: int, sources: Texts, targets: Texts) -> PackedLinks:
        def best_links(*texts: Texts) -> Iterable[Links]:
            for _, matrix in model.get_best_alignments(*map(list, texts)):
                yield frozenset(zip(*(axis.tolist() for axis in matrix.to_numpy().nonzero()), strict=True))

        return align_alignable(best_links, sources, targets)

    def train_models(self, sources: Texts, targets: Texts) -> Any:
        """Train the models one after the other, and return the last, an object of sil-thot."""
        package, model = thot(), None
        with Progress(sum(count for _, count in self.stages), "iterations", title="aligning") as progress:
            for name, iterations in self.stages:
                kind = getattr(package, name)
                if model is None:
                    model = kind()
                    for index in alignable_pairs(sources, targets).tolist():
                        model.add_sentence_pair(sources[index], targets[index], 1)
                else:
                    model = kind(model)
                model.start_training()
                for _ in progress.over(range(iterations)):
                    with signals.at_once():
                        model.train()
                model.end_training()
        return model


class FastAlign(Aligner):
    """fast_align's model, compiled; without numba by sil-thot: the same links, but no model for new text."""

    compiled = LazyPart("smt_bridge.extraction.fast_align:best_links")
    keeping = LazyPart("smt_bridge.extraction.kept_model:train")
    fallback = Thot((("FastAlignModel", 4),))

    def has_numba(self) -> bool:
        return importlib.util.find_spec("numba") is not None

    def check(self) -> None:
        if not self.has_numba():
            self.fallback.check()

    def align(self, sources: Texts, targets: Texts) -> PackedLinks:
        if not self.has_numba():
            return self.fallback.align(sources, targets)
        best_links = cast(Callable[[PackedText, PackedText], PackedLinks], self.compiled.load())
        return align_alignable(best_links, sources, targets)

    def align_and_keep(self, sources: Texts, targets: Texts, folder: Path) -> PackedLinks:
        if not self.has_numba():
            return self.fallback.align(sources, targets)
        train = cast(Callable[[PackedText, PackedText, Path], PackedLinks], self.keeping.load())

        def train_and_align(left: PackedText, right: PackedText) -> PackedLinks:
            folder.mkdir()
            return train(left, right, folder)

        return align_alignable(train_and_align, sources, targets)


class Eflomal(Aligner):
    """Runs the program eflomal-align, which must be installed: Gibbs sampling with word order and fertility.
    It takes its seed from the system, so that some links vary from run to run."""

    name = "eflomal-align"

    def program(self) -> str:
        """Path of the program. ConfigError if it is neither on PATH nor beside the interpreter."""
        path = shutil.which(self.name) or shutil.which(self.name, path=str(Path(sys.executable).parent))
        if path is None:
            raise ConfigError(
                f"--method eflomal: the program {self.name} is not installed; install it with: pip install "
                "eflomal (this needs a C compiler), or use another --method"
            )
        return path

    def check(self) -> None:
        self.program()

    def align(self, sources: Texts, targets: Texts) -> PackedLinks:
        return align_alignable(self.run, sources, targets)

    def run(self, sources: Texts, targets: Texts) -> list[Links]:
        """Run the program on pairs without an empty side; returns the links of each. ConfigError if it is not
        installed; UserError with the last line of its error messages if it fails."""
        with tempfile.TemporaryDirectory(prefix="smt-align.") as folder:
            paths = [f"{folder}/{name}" for name in ("source", "target", "links")]
            for path, texts in zip(paths, (sources, targets), strict=False):
                files.write_text(path, numbered_lines(texts))
            options = zip(("--source", "--target", "--forward-links"), paths, strict=True)
            done = subprocess.run(
                [self.program(), *chain.from_iterable(options)],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode:
                reason = done.stderr.strip().rpartition("\n")[2] or f"exit status {done.returncode}"
                raise UserError(f"{self.name}: {reason}")
            return list(pharaoh.read(paths[2]))


def numbered_lines(texts: Texts) -> Iterable[str]:
    """Yield each sentence with numbers instead of words. As in eflomal, spellings that differ only in case
    have the same number; eflomal itself would also split words at characters other than our blanks."""
    numbers: dict[str, int] = {}
    for words in texts:
        yield " ".join(str(numbers.setdefault(word.lower(), len(numbers))) for word in words)


def alignable_pairs(sources: Texts, targets: Texts) -> Int64s:
    """Indices (K,) of the pairs that can be aligned: neither side is empty or longer than LONGEST words."""
    lengths = pack_text(sources).lengths, pack_text(targets).lengths
    return np.flatnonzero((np.minimum(*lengths) > 0) & (np.maximum(*lengths) <= LONGEST))


def align_alignable(
    align: Callable[[PackedText, PackedText], Iterable[Links]], sources: Texts, targets: Texts
) -> PackedLinks:
    """Align all pairs of a text. `align` gets only the pairs that can be aligned (see `alignable_pairs`) and
    returns their links; the other pairs get no links. `align` is not called if no pair can be aligned."""
    texts = pack_text(sources), pack_text(targets)
    indices = alignable_pairs(*texts)
    if len(indices) < len(sources):
        texts = texts[0].select(indices), texts[1].select(indices)
    links = pack_links(align(*texts) if len(indices) else [])
    return links.spread(indices, len(sources)) if len(indices) < len(sources) else links


HMM = (("Ibm1AlignmentModel", 5), ("HmmAlignmentModel", 5))
ALIGNERS: dict[str, Aligner] = {
    "fast_align": FastAlign(),
    "eflomal": Eflomal(),
    "hmm": Thot(HMM),
    "ibm4": Thot((*HMM, ("Ibm3AlignmentModel", 5), ("Ibm4AlignmentModel", 5))),
}


DIRECTIONS = "source-to-target", "target-to-source"  # also the folders of kept models


# ---- in this process ---------------------------------------------------------------------------------------


def read_texts(source: str | Path, target: str | Path) -> tuple[PackedText, PackedText]:
    """Read both sides of a parallel corpus as words. DataError for unequal numbers of lines, or if no pair
    has words on both sides."""
    sources, targets = split_sides(files.parallel(source, target))
    if not (np.minimum(sources.lengths, targets.lengths) > 0).any():
        raise no_words_error(source)
    return sources, targets


def split_sides(rows: Iterable[Sequence[str]]) -> tuple[PackedText, PackedText]:
    """Split parallel lines (source, target) into words; returns the text of each side."""
    sources, targets = Packer(), Packer()
    for source, target in rows:
        sources.add(files.split_words(source))
        targets.add(files.split_words(target))
    return sources.text(), targets.text()


def no_words_error(source: str | Path) -> DataError:
    return DataError(f"{source}: no pair has words on both sides, nothing to align")


def align_both_directions(
    sources: Texts, targets: Texts, method: str, models: Path | None = None
) -> tuple[PackedLinks, PackedLinks]:
    """Align both directions; returns the links of source to target and of target to source, both with the
    source word first.

    `method`: a name in ALIGNERS, KeyError for another one; `models`: an existing folder to which the models
    of both directions are written if they can align new text. Raises the errors of the aligner.
    """
    aligner = ALIGNERS[method]

    def links(direction: int, left: Texts, right: Texts) -> PackedLinks:
        if models is None:
            return pack_links(aligner.align(left, right))
        return pack_links(aligner.align_and_keep(left, right, models / DIRECTIONS[direction]))

    forward = links(0, sources, targets)
    log.info("source to target aligned")
    return forward, links(1, targets, sources).swap()


# ---- by several workers ------------------------------------------------------------------------------------
# Each direction's model is trained once, by one worker; then pairs are aligned in shards. The links are those
# of a single process. A task reads files and writes one file:
#
# text      (the command cuts it) shards of sentence pairs
# train     the model of one direction: names of its files, then their contents
# align     the links of a shard, in both directions and symmetrized


TRAIN, ALIGN = "train", "align"
MODEL_PREFIX = "model"  # beginning of the names of its files
SHARD_WORDS = 100_000  # of both sides in a shard: seconds of work


@dataclass
class AlignmentOutputs:
    """Paths for the symmetrized links, those of each direction, and the models; None: not written."""

    both: str  # symmetrized
    forward: str | None = None
    reverse: str | None = None
    models: Path | None = None  # existing folder for the models of both directions


@dataclass
class AlignmentCounts:
    """Numbers of pairs and links."""

    pairs: int  # of sentences
    links: int  # after symmetrization
    skipped: int  # pairs with an empty side, or one that is too long


def align_shared(
    source: str,
    target: str,
    outputs: AlignmentOutputs,
    method: str,
    heuristic: str,
    executor: ExecutorConfig,
    shared: SharedFolder,
    words: int = SHARD_WORDS,
) -> AlignmentCounts:
    """Align a parallel text by several workers and write its links; returns the numbers of pairs and links.

    `method`, `heuristic`: names in ALIGNERS and HEURISTICS; `shared`: the folder in which the workers
    exchange files; `words`: words of both sides in a shard. DataError for texts of unequal length or without
    words; UserError if a task fails or an output cannot be written; also raises the errors of the executor,
    and of `stages.lock_shared`.
    """
    folder = shared.folder
    job_settings: dict[str, object] = {
        "source": manifest.digest(source),
        "target": manifest.digest(target),
        "method": method,
        "symmetrization": heuristic,
        "words": words,
        **executor.recorded(),
    }
    with stages.lock_shared(shared, job_settings):
        names = stages.cut_shards(folder, (source, target), words)
        if not any(all(map(files.split_words, row)) for row in stages.read_shards(folder)):
            raise no_words_error(source)
        worker = AlignmentWorker(folder, method, heuristic)
        with executors.make(worker, partial(stages.begin_worker, worker), executor) as running:
            titles = [f"word alignment, {name.replace('-', ' ')}" for name in DIRECTIONS]
            for stage, tasks in ((TRAIN, titles), (ALIGN, names)):
                list(stages.run_stage(running, stage, tasks))
        for direction, name in enumerate(DIRECTIONS):
            if outputs.models:
                copy_model(task_file(folder, TRAIN, direction), outputs.models / name)
        paths = [task_file(folder, ALIGN, number) for number in range(len(names))]
        for part, path in enumerate((outputs.both, outputs.forward, outputs.reverse)):
            if path:
                files.write_text(path, chain.from_iterable(map(partial(link_lines, part), paths)))
        counts = [json.loads(stages.read_part(path, 3)) for path in paths]
        return AlignmentCounts(
            pairs=sum(len(link_lines(0, path)) for path in paths),
            links=sum(shard["links"] for shard in counts),
            skipped=sum(shard["skipped"] for shard in counts),
        )


def link_lines(part: int, path: Path) -> list[str]:
    """The lines of links in a file of `align_shard`. `part`: 0 symmetrized, 1 forward, 2 reverse."""
    return stages.read_part(path, part).decode().split("\n")


class AlignmentWorker(stages.StageWorker):
    """Worker for the stages of an alignment; the models that it loaded stay in memory."""

    def __init__(self, folder: Path, method: str, heuristic: str) -> None:
        """`method`, `heuristic`: names in ALIGNERS and HEURISTICS."""
        super().__init__(folder)
        self.method, self.heuristic = method, heuristic
        self.models: dict[int, Any] = {}

    def compute_parts(self, stage: str, number: int) -> Iterable[Part]:
        return STAGES[stage](self, number)

    def links(self, direction: int, first: int, sources: PackedText, targets: PackedText) -> PackedLinks:
        """Align consecutive pairs of the text, which begin at its pair number `first` (from 0). `direction`:
        its index in DIRECTIONS. In both directions a link has the source word first."""
        aligner = ALIGNERS[self.method]
        if direction not in self.models:
            with unpack_files(task_file(self.folder, TRAIN, direction)) as folder:
                self.models[direction] = aligner.load(f"{folder}/{MODEL_PREFIX}")
        if direction:
            return pack_links(aligner.align_part(self.models[direction], first, targets, sources)).swap()
        return pack_links(aligner.align_part(self.models[direction], first, sources, targets))


@contextmanager
def unpack_files(path: Path) -> Iterator[Path]:
    """Write the files that `train_direction` packed into the task's file `path` to a temporary folder, which
    is removed at the end; yields the folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part, file_name in enumerate(json.loads(stages.read_part(path, 0)), 1):
            (folder / file_name).parent.mkdir(exist_ok=True)
            (folder / file_name).write_bytes(stages.read_part(path, part))
        yield folder


def copy_model(path: Path, target: Path) -> None:
    """Copy the model that aligns new text to the folder `target`, which must not exist yet. `path`: the file
    of the training task. Copies nothing if the aligner has no such model."""
    with unpack_files(path) as folder:
        if (model := folder / f"{MODEL_PREFIX}{KEPT}").is_dir():
            shutil.copytree(model, target)


def train_direction(worker: AlignmentWorker, number: int) -> Iterable[Part]:
    """Train the model of a direction. `number`: its index in DIRECTIONS. Returns the names of the
    model's files as JSON, followed by the content of each. UserError if the training fails."""
    with tempfile.TemporaryDirectory() as folder:
        run_training([str(worker.folder), worker.method, str(number), f"{folder}/{MODEL_PREFIX}"])
        paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        names = [path.relative_to(folder).as_posix() for path in paths]
        return [json.dumps(names).encode(), *(path.read_bytes() for path in paths)]


SYMMETRIZE = LazyPart("smt_bridge.extraction.symmetrization:symmetrize")  # imports numba


def align_shard(worker: AlignmentWorker, number: int) -> Iterable[Part]:
    """Align shard `number`. Returns lines of symmetrized, forward and reverse links; then JSON with the
    number of symmetrized links and of pairs that cannot be aligned."""
    shard = stages.read_shard(worker.folder, number)
    sources, targets = split_sides(shard.rows)
    forward, reverse = (worker.links(direction, shard.first - 1, sources, targets) for direction in (0, 1))
    symmetrize = cast(Callable[..., PackedLinks], SYMMETRIZE.load())
    both = symmetrize(forward, reverse, worker.heuristic)
    skipped = len(sources) - len(alignable_pairs(sources, targets))
    counts = {"links": len(both.source), "skipped": skipped}
    return [
        *("\n".join(links.lines()).encode() for links in (both, forward, reverse)),
        json.dumps(counts).encode(),
    ]


STAGES: dict[str, Callable[[AlignmentWorker, int], Iterable[Part]]] = {
    TRAIN: train_direction,
    ALIGN: align_shard,
}


# ---- training in a process of its own ----------------------------------------------------------------------
# sil-thot blocks all other threads of its process for minutes, and a cluster would give up a worker that does
# not answer. The training process ends with its parent, which holds the other end of its standard input.


def run_training(arguments: list[str]) -> None:
    """Call `train_process` with these arguments in a child process, which ends if this process does.
    UserError if it fails: with the last line of its error output, or with the signal that killed it."""
    code = f"import sys; from {__name__} import train_process; sys.exit(train_process(*sys.argv[1:]))"
    call = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        output = process.stderr.read().strip()
        status = process.wait()
    if status:
        reason = output.rpartition("\n")[2]
        if status < 0:
            reason = f"it was killed by signal {-status}; is memory short?"
        raise UserError(reason if status == 2 else f"training of word alignment: {reason}")


def train_process(folder: str, method: str, direction: str, prefix: str) -> int:
    """Train one direction; arguments as in `train_on_shards`, but as strings. Returns the exit status: 0, or
    2 for a UserError, whose message is printed to stderr. Ends this process when its standard input is
    closed."""
    threading.Thread(target=follow_parent, daemon=True).start()
    try:
        plugins.load()
        train_on_shards(Path(folder), method, int(direction), prefix)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def train_on_shards(folder: Path, method: str, direction: int, prefix: str) -> None:
    """Train on the shards of a job in one direction. `direction`: 0 source to target, 1 target to source.
    Writes the model into files whose paths begin with `prefix`."""
    sources, targets = split_sides(stages.read_shards(folder))
    if direction:
        sources, targets = targets, sources
    ALIGNERS[method].train(sources, targets, prefix)


def follow_parent() -> None:
    """Exit as soon as the parent process ends."""
    while os.read(0, 1):
        pass
    os._exit(1)
