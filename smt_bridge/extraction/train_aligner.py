"""Train one direction of word alignment in a process of its own: python -m
smt_bridge.extraction.train_aligner FOLDER METHOD WAY PREFIX

sil-thot blocks all other threads of its process for minutes, so that a cluster would take a worker that
trains for dead. This process ends with its parent, which holds the other end of its standard input.
"""

import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from nmt import plugins
from nmt.errors import UserError
from nmt.io import files
from nmt.work import stages
from smt_bridge.extraction.alignment import ALIGNERS, TrainsOnce, align_direction, format_links

LINKS = ".links"  # suffix of the file with the links of an aligner whose model cannot be saved


def main(argv: Sequence[str]) -> int:
    """Train; for a UserError print one line and return exit status 2."""
    folder, method, way, prefix = argv
    threading.Thread(target=follow_parent, daemon=True).start()
    try:
        plugins.load()
        train(Path(folder), method, int(way), prefix)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def train(folder: Path, method: str, way: int, prefix: str) -> None:
    """Train on the shards of a job, in the direction `way`: 0 source to target, 1 target to source.

    Writes the model into files whose paths begin with `prefix`, or the links of all pairs.
    """
    rows = list(stages.read_shards(folder))
    sources, targets = ([files.split_words(row[side]) for row in rows] for side in (0, 1))
    aligner = ALIGNERS[method]
    if not isinstance(aligner, TrainsOnce):
        files.write_text(
            f"{prefix}{LINKS}", map(format_links, align_direction(aligner, sources, targets, bool(way)))
        )
    elif way:
        aligner.train(targets, sources, prefix)
    else:
        aligner.train(sources, targets, prefix)


def follow_parent() -> None:
    """Exit as soon as the parent process ends."""
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
