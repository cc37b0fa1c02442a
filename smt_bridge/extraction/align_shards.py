"""Align words with several workers, in processes or on the hosts of a cluster.

Each direction's model is trained once, by one worker; then pairs are aligned in shards. The links are those
of a single machine.
"""

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
from nmt.work.executors import ExecutorConfig
from nmt.work.stages import Part, SharedFolder, task_file
from smt_bridge.extraction import train_aligner
from smt_bridge.extraction.alignment import (
    ALIGNERS,
    Texts,
    TrainsOnce,
    alignable_pairs,
    format_links,
    no_words_error,
    swap_sides,
    symmetrize,
)

# ---- what a worker does ------------------------------------------------------------------------------------
# A task reads files and writes one file:
#
# text      (the command cuts it) shards of sentence pairs
# train     the model of one direction
# align     the links of a shard, in both directions and symmetrized


TRAIN, ALIGN = "train", "align"
WAYS = "source to target", "target to source"
MODEL_PREFIX = "model"  # beginning of the names of its files


class AlignmentWorker(stages.StageWorker):
    """Run the stages of an alignment; loaded models stay in memory."""

    def __init__(self, folder: Path, method: str, heuristic: str) -> None:
        """`method`, `heuristic`: names in ALIGNERS and HEURISTICS."""
        super().__init__(folder)
        self.method, self.heuristic = method, heuristic
        self.models: dict[int, Any] = {}
        self.trained_links: dict[int, list[Links]] = {}  # links of a direction whose model cannot be saved

    def compute_parts(self, stage: str, number: int) -> Iterable[Part]:
        return STAGES[stage](self, number)

    def links(self, way: int, shard: stages.Shard, sources: Texts, targets: Texts) -> list[Links]:
        """Links of a shard in one direction, with the source word first."""
        aligner = ALIGNERS[self.method]
        if not isinstance(aligner, TrainsOnce):
            if way not in self.trained_links:
                lines = stages.read_part(task_file(self.folder, TRAIN, way), 1).decode().split("\n")
                self.trained_links[way] = [pharaoh.parse(line, "") for line in lines]
            return self.trained_links[way][shard.first - 1 : shard.first - 1 + len(sources)]
        if way not in self.models:
            self.models[way] = self.load(aligner, way)
        if way:
            return swap_sides(aligner.aligned(self.models[way], targets, sources))
        return aligner.aligned(self.models[way], sources, targets)

    def load(self, aligner: TrainsOnce, way: int) -> Any:
        """Load the model of a direction."""
        path = task_file(self.folder, TRAIN, way)
        with tempfile.TemporaryDirectory() as folder:
            for part, name in enumerate(json.loads(stages.read_part(path, 0)), 1):
                (Path(folder) / name).write_bytes(stages.read_part(path, part))
            return aligner.load(f"{folder}/{MODEL_PREFIX}")


# ---- the stages --------------------------------------------------------------------------------------------


def train_direction(worker: AlignmentWorker, number: int) -> Iterable[Part]:
    """Names of files, then their contents: the model, or the links of all pairs."""
    with tempfile.TemporaryDirectory() as folder:
        run_training([str(worker.folder), worker.method, str(number), f"{folder}/{MODEL_PREFIX}"])
        paths = sorted(Path(folder).iterdir())
        return [json.dumps([path.name for path in paths]).encode(), *(path.read_bytes() for path in paths)]


def run_training(arguments: list[str]) -> None:
    """Call `train_aligner` in a process that ends with this one. UserError with its last line if it fails."""
    call = [sys.executable, "-m", train_aligner.__name__, *arguments]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        output = process.stderr.read().strip()
        status = process.wait()
    if status:
        reason = output.rpartition("\n")[2] or f"it was killed by signal {-status}; is memory short?"
        raise UserError(reason if status == 2 else f"training of word alignment: {reason}")


def align_shard(worker: AlignmentWorker, number: int) -> Iterable[Part]:
    """Lines of symmetrized, forward and reverse links; then JSON with the number of links and of pairs
    that cannot be aligned."""
    shard = stages.read_shard(worker.folder, number)
    sources, targets = ([files.split_words(row[side]) for row in shard.rows] for side in (0, 1))
    forward, reverse = (worker.links(way, shard, sources, targets) for way in (0, 1))
    both = symmetrize(forward, reverse, worker.heuristic)
    numbers = {"links": sum(map(len, both)), "skipped": len(sources) - len(alignable_pairs(sources, targets))}
    return [
        *("\n".join(map(format_links, links)).encode() for links in (both, forward, reverse)),
        json.dumps(numbers).encode(),
    ]


STAGES: dict[str, Callable[[AlignmentWorker, int], Iterable[Part]]] = {
    TRAIN: train_direction,
    ALIGN: align_shard,
}


# ---- all shards --------------------------------------------------------------------------------------------


SHARD_WORDS = 100_000  # of both sides in a shard: seconds of work


@dataclass
class AlignmentOutputs:
    """Paths for the symmetrized links and those of both directions; None: not written."""

    both: str
    forward: str | None = None
    reverse: str | None = None


@dataclass
class AlignmentCounts:
    """Numbers of pairs and links."""

    pairs: int
    links: int
    skipped: int  # pairs with an empty side, or one that is too long


def align(
    source: str,
    target: str,
    outputs: AlignmentOutputs,
    method: str,
    heuristic: str,
    executor: ExecutorConfig,
    shared: SharedFolder,
    words: int = SHARD_WORDS,
) -> AlignmentCounts:
    """Write the links of a parallel text. `method`, `heuristic`: names in ALIGNERS and HEURISTICS.

    DataError for texts of unequal length or without words; errors of the executor, and `stages.lock_shared`.
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
            ways = [f"word alignment, {way}" for way in WAYS]
            for stage, what in ((TRAIN, ways), (ALIGN, names)):
                list(stages.run_stage(running, stage, what))
        paths = [task_file(folder, ALIGN, number) for number in range(len(names))]
        for part, path in enumerate((outputs.both, outputs.forward, outputs.reverse)):
            if path:
                files.write_text(path, chain.from_iterable(map(partial(link_lines, part), paths)))
        shard_counts = [json.loads(stages.read_part(path, 3)) for path in paths]
        pairs = sum(len(link_lines(0, path)) for path in paths)
    return AlignmentCounts(
        pairs, *(sum(counts[name] for counts in shard_counts) for name in ("links", "skipped"))
    )


def link_lines(part: int, path: Path) -> list[str]:
    """Lines of links in part `part` of a task's file."""
    return stages.read_part(path, part).decode().split("\n")
