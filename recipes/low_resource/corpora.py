"""Write training texts of several sizes, each a part of the next larger one, with the same dev and test:
train-N.en, train-N.fr, dev.*, test.* in the folder OUT.

    python recipes/low_resource/corpora.py multi30k|tatoeba|generated|DIR OUT SIZE ...

A folder DIR has the files train.en, train.fr, dev.* and test.*. Pairs are drawn at random with a fixed seed,
since some corpora are sorted by length. A size that is larger than the corpus is left out, with a message on
stderr.
"""

import os
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.errors import UserError
from nmt.io import files

SEED = 1
LANGUAGES = ("en", "fr")


def main(data: str, out: Path, sizes: Sequence[int]) -> None:
    """Write the texts. `data`: name or folder of the corpus; `out`: folder to write to. UserError for texts
    that cannot be read or written."""
    parts = text_paths(data, out)
    pairs = list(files.parallel(*parts["train"]))
    random.Random(SEED).shuffle(pairs)
    for size in sizes:
        if size > len(pairs):
            print(f"corpora.py: {data} has {len(pairs):,} pairs; {size:,} is left out", file=sys.stderr)
            continue
        for language, lines in zip(LANGUAGES, zip(*pairs[:size], strict=True), strict=True):
            files.write_text(out / f"train-{size}.{language}", lines)
    for part in ("dev", "test"):
        for language, path in zip(LANGUAGES, parts[part], strict=True):
            files.write_text(out / f"{part}.{language}", files.read_lines(path))


def text_paths(data: str, out: Path) -> dict[str, list[str]]:
    """Paths of the raw text files of each part, train, dev and test, in the order of LANGUAGES. The corpus
    `generated` is written to `out` if it does not exist."""
    data_root = Path(os.environ.get("NMT_DATA", ""))
    names = {"train": "train", "dev": "dev", "test": "test"}
    folder, ending = Path(data), ""  # `ending`: of the files of the training text
    if data == "multi30k":
        folder, names = data_root / "multi30k", {"train": "train", "dev": "val", "test": "test_2016_flickr"}
    elif data == "tatoeba":
        folder, ending = data_root / "tatoeba-enfr", ".gz"
    elif data == "generated":
        folder = out / "grammar"
        if not (folder / "test.fr").exists():
            subprocess.run(["nmt-init", folder, "--sample-corpus"], check=True)
    return {
        part: [f"{folder}/{name}.{language}{ending if part == 'train' else ''}" for language in LANGUAGES]
        for part, name in names.items()
    }


if __name__ == "__main__":
    if len(sys.argv) < 4 or not all(re.fullmatch("[1-9][0-9]*", size) for size in sys.argv[3:]):
        print(
            "usage: corpora.py multi30k|tatoeba|generated|DIR OUT SIZE ..., sizes of 1 or more",
            file=sys.stderr,
        )
        sys.exit(2)
    try:
        main(sys.argv[1], Path(sys.argv[2]), [int(size) for size in sys.argv[3:]])
    except UserError as error:
        print(f"corpora.py: {error}", file=sys.stderr)
        sys.exit(2)
