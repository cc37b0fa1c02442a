"""Word alignment by several workers, in processes or on the hosts of a cluster: the models of both directions
are trained once, each by one worker, then pairs are aligned in shards. The links are those of one machine."""

import json
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

from nmt import files, manifest
from nmt.jobs import executors, parts, shards, stages
from nmt.jobs.config import ExecutorConfig
from nmt.jobs.stages import Place, place
from smt_bridge.extraction import align_tasks
from smt_bridge.extraction.alignment import nothing

WORDS = 100_000  # of both sides in a shard: seconds of work


@dataclass
class Outputs:
    """Where links are written, symmetrized and of both directions; None: not at all."""

    both: str
    forward: str | None = None
    reverse: str | None = None


@dataclass
class Counts:
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
    where: Place,
    words: int = WORDS,
) -> Counts:
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
    with stages.held(where, made_from):
        names = shards.cut(folder, (source, target), words)
        if not any(all(map(files.split_words, row)) for row in shards.read_all(folder)):
            raise nothing(source)
        worker = align_tasks.Worker(folder, method, heuristic)
        with executors.make(worker, partial(stages.begin, worker), executor) as running:
            ways = [f"word alignment, {way}" for way in align_tasks.WAYS]
            for stage, what in ((align_tasks.TRAIN, ways), (align_tasks.ALIGN, names)):
                list(stages.run(running, stage, what))
        paths = [place(folder, align_tasks.ALIGN, number) for number in range(len(names))]
        for part, path in enumerate((outputs.both, outputs.forward, outputs.reverse)):
            if path:
                files.write_text(path, chain.from_iterable(map(partial(lines, part), paths)))
        numbers = [json.loads(parts.read(path, 3)) for path in paths]
        pairs = sum(len(lines(0, path)) for path in paths)
    return Counts(pairs, *(sum(one[name] for one in numbers) for name in ("links", "skipped")))


def lines(part: int, path: Path) -> list[str]:
    """The lines of links in a file."""
    return parts.read(path, part).decode().split("\n")
