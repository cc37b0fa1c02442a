"""Word alignment by several workers, in processes or on the hosts of a cluster: the models of both directions
are trained once, each by one worker, then pairs are aligned in shards. The links are those of one machine."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from nmt.errors import UserError
from nmt.formats import pharaoh
from nmt.formats.pharaoh import Links
from nmt.io import files, manifest
from nmt.work import executors, stages
from nmt.work.config import ExecutorConfig
from nmt.work.stages import Part, SharedFolder, task_file
from smt_bridge.extraction import train_aligner
from smt_bridge.extraction.alignment import (
    ALIGNERS,
    Texts,
    TrainsOnce,
    line_of,
    no_words,
    swapped,
    symmetrized,
    usable,
)

# ---- what a worker does ------------------------------------------------------------------------------------
# What a worker does in an alignment that is shared out: one task at a time, from files to a file.
#
# text      (the command cuts it) shards of sentence pairs
# train     the model of one direction
# align     the links of a shard, in both directions and symmetrized


TRAIN, ALIGN = "train", "align"
WAYS = "source to target", "target to source"
MODEL_PREFIX = "model"  # beginning of the names of its files


class AlignmentWorker(stages.StageWorker):
    """The stages of an alignment; it keeps the models."""

    def __init__(self, folder: Path, method: str, heuristic: str) -> None:
        """`method`, `heuristic`: names in ALIGNERS and HEURISTICS."""
        super().__init__(folder)
        self.method, self.heuristic = method, heuristic
        self.models: dict[int, Any] = {}
        self.found: dict[int, list[Links]] = {}  # of a direction without a model

    def compute_parts(self, stage: str, number: int) -> Iterable[Part]:
        return STAGES[stage](self, number)

    def links(self, way: int, shard: stages.Shard, sources: Texts, targets: Texts) -> list[Links]:
        """The links of a shard in one direction, the source word first."""
        aligner = ALIGNERS[self.method]
        if not isinstance(aligner, TrainsOnce):
            if way not in self.found:
                lines = stages.read_part(task_file(self.folder, TRAIN, way), 1).decode().split("\n")
                self.found[way] = [pharaoh.parse(line, "") for line in lines]
            return self.found[way][shard.first - 1 : shard.first - 1 + len(sources)]
        if way not in self.models:
            self.models[way] = self.load(aligner, way)
        if way:
            return swapped(aligner.aligned(self.models[way], targets, sources))
        return aligner.aligned(self.models[way], sources, targets)

    def load(self, aligner: TrainsOnce, way: int) -> Any:
        """The model of a direction."""
        path = task_file(self.folder, TRAIN, way)
        with tempfile.TemporaryDirectory() as folder:
            for part, name in enumerate(json.loads(stages.read_part(path, 0)), 1):
                (Path(folder) / name).write_bytes(stages.read_part(path, part))
            return aligner.load(f"{folder}/{MODEL_PREFIX}")


# ---- the stages --------------------------------------------------------------------------------------------


def train_direction(worker: AlignmentWorker, number: int) -> Iterable[Part]:
    """Names of files, and the files: those of the model, or the links of all pairs."""
    with tempfile.TemporaryDirectory() as folder:
        run_training([str(worker.folder), worker.method, str(number), f"{folder}/{MODEL_PREFIX}"])
        paths = sorted(Path(folder).iterdir())
        return [json.dumps([path.name for path in paths]).encode(), *(path.read_bytes() for path in paths)]


def run_training(arguments: list[str]) -> None:
    """Call `train_aligner` in a process of its own, which ends with this one. UserError with its last line
    where it fails."""
    call = [sys.executable, "-m", train_aligner.__name__, *arguments]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        said = process.stderr.read().strip()
        status = process.wait()
    if status:
        reason = said.rpartition("\n")[2] or f"it was killed by signal {-status}; is memory short?"
        raise UserError(reason if status == 2 else f"training of word alignment: {reason}")


def align_shard(worker: AlignmentWorker, number: int) -> Iterable[Part]:
    """Lines of links: symmetrized, and of both directions; then how many links there are, and how many pairs
    get none since they cannot be aligned."""
    shard = stages.read_shard(worker.folder, number)
    sources, targets = ([files.split_words(row[side]) for row in shard.rows] for side in (0, 1))
    forward, reverse = (worker.links(way, shard, sources, targets) for way in (0, 1))
    both = symmetrized(forward, reverse, worker.heuristic)
    numbers = {"links": sum(map(len, both)), "skipped": len(sources) - len(usable(sources, targets))}
    return [
        *("\n".join(map(line_of, links)).encode() for links in (both, forward, reverse)),
        json.dumps(numbers).encode(),
    ]


STAGES: dict[str, Callable[[AlignmentWorker, int], Iterable[Part]]] = {
    TRAIN: train_direction,
    ALIGN: align_shard,
}


# ---- all shards --------------------------------------------------------------------------------------------


SHARD_WORDS = 100_000  # of both sides in a shard: seconds of work


@dataclass
class Outputs:
    """Where links are written, symmetrized and of both directions; None: not at all."""

    both: str
    forward: str | None = None
    reverse: str | None = None


@dataclass
class AlignmentCounts:
    """What was aligned."""

    pairs: int
    links: int
    skipped: int  # pairs with an empty side, or one that is too long


def align(
    source: str,
    target: str,
    outputs: Outputs,
    method: str,
    heuristic: str,
    executor: ExecutorConfig,
    where: SharedFolder,
    words: int = SHARD_WORDS,
) -> AlignmentCounts:
    """Write the links of a parallel text. `method`, `heuristic`: names in ALIGNERS and HEURISTICS. DataError
    for texts of unequal length, or without words; errors of the executor, and of `stages.held`."""
    folder = where.folder
    made_from: dict[str, object] = {
        "source": manifest.digest(source),
        "target": manifest.digest(target),
        "method": method,
        "symmetrization": heuristic,
        "words": words,
        **executor.recorded(),
    }
    with stages.lock_shared(where, made_from):
        names = stages.cut_shards(folder, (source, target), words)
        if not any(all(map(files.split_words, row)) for row in stages.read_shards(folder)):
            raise no_words(source)
        worker = AlignmentWorker(folder, method, heuristic)
        with executors.make(worker, partial(stages.begin_worker, worker), executor) as running:
            ways = [f"word alignment, {way}" for way in WAYS]
            for stage, what in ((TRAIN, ways), (ALIGN, names)):
                list(stages.run_stage(running, stage, what))
        paths = [task_file(folder, ALIGN, number) for number in range(len(names))]
        for part, path in enumerate((outputs.both, outputs.forward, outputs.reverse)):
            if path:
                files.write_text(path, chain.from_iterable(map(partial(link_lines, part), paths)))
        numbers = [json.loads(stages.read_part(path, 3)) for path in paths]
        pairs = sum(len(link_lines(0, path)) for path in paths)
    return AlignmentCounts(pairs, *(sum(one[name] for one in numbers) for name in ("links", "skipped")))


def link_lines(part: int, path: Path) -> list[str]:
    """The lines of links in a file."""
    return stages.read_part(path, part).decode().split("\n")
