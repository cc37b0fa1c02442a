"""What a worker does in an alignment that is shared out: one task at a time, from files to a file.

text      (the command cuts it) shards of sentence pairs
train     the model of one direction
align     the links of a shard, in both directions and symmetrized
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from nmt import files
from nmt.errors import UserError
from nmt.formats import pharaoh
from nmt.formats.pharaoh import Links
from nmt.jobs import parts, shards, stages
from nmt.jobs.parts import Part
from nmt.jobs.stages import place
from smt_bridge.extraction import train_aligner
from smt_bridge.extraction.alignment import (
    ALIGNERS,
    Texts,
    TrainsOnce,
    line_of,
    swapped,
    symmetrized,
    usable,
)

TRAIN, ALIGN = "train", "align"
WAYS = "source to target", "target to source"
MODEL = "model"  # beginning of the names of its files


class Worker(stages.Worker):
    """The stages of an alignment; it keeps the models."""

    def __init__(self, folder: Path, method: str, heuristic: str) -> None:
        """`method`, `heuristic`: names in ALIGNERS and HEURISTICS."""
        super().__init__(folder)
        self.method, self.heuristic = method, heuristic
        self.models: dict[int, Any] = {}
        self.found: dict[int, list[Links]] = {}  # of a direction without a model

    def make(self, stage: str, number: int) -> Iterable[Part]:
        return STAGES[stage](self, number)

    def links(self, way: int, shard: shards.Shard, sources: Texts, targets: Texts) -> list[Links]:
        """The links of a shard in one direction, the source word first."""
        aligner = ALIGNERS[self.method]
        if not isinstance(aligner, TrainsOnce):
            if way not in self.found:
                lines = parts.read(place(self.folder, TRAIN, way), 1).decode().split("\n")
                self.found[way] = [pharaoh.parse(line, "") for line in lines]
            return self.found[way][shard.first - 1 : shard.first - 1 + len(sources)]
        if way not in self.models:
            self.models[way] = self.load(aligner, way)
        if way:
            return swapped(aligner.aligned(self.models[way], targets, sources))
        return aligner.aligned(self.models[way], sources, targets)

    def load(self, aligner: TrainsOnce, way: int) -> Any:
        """The model of a direction."""
        path = place(self.folder, TRAIN, way)
        with tempfile.TemporaryDirectory() as folder:
            for part, name in enumerate(json.loads(parts.read(path, 0)), 1):
                (Path(folder) / name).write_bytes(parts.read(path, part))
            return aligner.load(f"{folder}/{MODEL}")


# ---- the stages --------------------------------------------------------------------------------------------


def train(worker: Worker, number: int) -> Iterable[Part]:
    """Names of files, and the files: those of the model, or the links of all pairs."""
    with tempfile.TemporaryDirectory() as folder:
        run_training([str(worker.folder), worker.method, str(number), f"{folder}/{MODEL}"])
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


def align(worker: Worker, number: int) -> Iterable[Part]:
    """Lines of links: symmetrized, and of both directions; then how many links there are, and how many pairs
    get none since they cannot be aligned."""
    shard = shards.read(worker.folder, number)
    sources, targets = ([files.split_words(row[side]) for row in shard.rows] for side in (0, 1))
    forward, reverse = (worker.links(way, shard, sources, targets) for way in (0, 1))
    both = symmetrized(forward, reverse, worker.heuristic)
    numbers = {"links": sum(map(len, both)), "skipped": len(sources) - len(usable(sources, targets))}
    return [
        *("\n".join(map(line_of, links)).encode() for links in (both, forward, reverse)),
        json.dumps(numbers).encode(),
    ]


STAGES: dict[str, Callable[[Worker, int], Iterable[Part]]] = {TRAIN: train, ALIGN: align}
