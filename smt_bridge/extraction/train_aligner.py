"""Train one direction of word alignment, in a process of its own:
python -m smt_bridge.extraction.train_aligner FOLDER METHOD WAY PREFIX

sil-thot lets no other thread of its process run for minutes, so that a worker of a cluster that trains would
be taken for dead. This process ends with the one that started it, to which its standard input belongs.
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
from smt_bridge.extraction.alignment import ALIGNERS, TrainsOnce, line_of, one_way

LINKS = ".links"  # behind the prefix: of an aligner whose model cannot be kept


def main(argv: Sequence[str]) -> int:
    """Exit status 2, with one line, for what a user can cause."""
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
    """Train on the shards of a job. `way`: 0 from source to target, 1 back. Writes the model into files whose
    paths begin with `prefix`, or the links of all pairs."""
    rows = list(stages.read_shards(folder))
    sources, targets = ([files.split_words(row[side]) for row in rows] for side in (0, 1))
    aligner = ALIGNERS[method]
    if not isinstance(aligner, TrainsOnce):
        files.write_text(f"{prefix}{LINKS}", map(line_of, one_way(aligner, sources, targets, bool(way))))
    elif way:
        aligner.train(targets, sources, prefix)
    else:
        aligner.train(sources, targets, prefix)


def follow_parent() -> None:
    """Wait for the end of the parent, and end with it."""
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
