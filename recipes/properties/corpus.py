"""Write the corpora of the properties recipe: tokenized train, dev and test, line by line or joined to longer
lines.

    python recipes/properties/corpus.py multi30k --long OUT [--smt FILE]

multi30k and tatoeba are read from $NMT_DATA; `generated` is the corpus of the quickstart's grammar. With
--long, 1 to 4 consecutive lines become one, in train, dev and test; train is joined twice, at different
lines, to make up for having fewer of them. Joined lines with fewer than 5 or more than 60 words on either
side are left out. --smt names another system's output for the test lines, which is joined in the same way
and written as test.smt.
"""

import argparse
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from nmt.errors import UserError
from nmt.io import files
from nmt.text.tokenize import Tokenizer, unescape

SHORTEST, LONGEST = 5, 60  # words of a joined line
MOST = 4  # lines that are joined
PASSES = 2  # how often train is joined
SEED = 5
Row = tuple[str, ...]  # source, target, and for test perhaps the output of another system


def data() -> Path:
    """The folder of the corpora, $NMT_DATA. UserError if it is not set."""
    folder = os.environ.get("NMT_DATA", "")
    if not folder or not Path(folder).is_dir():
        raise UserError(
            "set NMT_DATA to the folder of multi30k/ and tatoeba-enfr/, or use the corpus `generated`"
        )
    return Path(folder)


def plain(line: str) -> str:
    """The tokens of a line, without Moses' escapes."""
    return " ".join(map(unescape, files.split_words(line)))


def multi30k(part: str) -> Iterator[Row]:
    """Tokenized, lower-cased pairs of Multi30k. `part`: train, dev or test. UserError as from `data`,
    DataError for a missing file."""
    name = {"train": "train", "dev": "val", "test": "test_2016_flickr"}[part]
    folder = data() / "multi30k" / "tok"
    return (
        (plain(a), plain(b))
        for a, b in files.parallel(folder / f"{name}.lc.norm.tok.en", folder / f"{name}.lc.norm.tok.fr")
    )


def tokenize_pairs(pairs: Iterator[tuple[str, ...]]) -> Iterator[Row]:
    """Tokenize and lower-case pairs of English and French."""
    source, target = Tokenizer("en", case="lower"), Tokenizer("fr", case="lower")
    return ((" ".join(source.words(a)), " ".join(target.words(b))) for a, b in pairs)


def tatoeba(part: str) -> Iterator[Row]:
    """Tokenized, lower-cased pairs of Tatoeba. Argument and errors as for `multi30k`."""
    end = ".gz" if part == "train" else ""
    folder = data() / "tatoeba-enfr"
    return tokenize_pairs(files.parallel(folder / f"{part}.en{end}", folder / f"{part}.fr{end}"))


def generated(part: str) -> Iterator[Row]:
    """Tokenized, lower-cased pairs of the quickstart's corpus, which is written if it does not exist.
    Argument as for `multi30k`."""
    folder = Path("runs/quickstart/corpus")
    if not (folder / "test.fr").exists():
        subprocess.run(["nmt-init", folder, "--sample-corpus"], check=True)
    return tokenize_pairs(files.parallel(folder / f"{part}.en", folder / f"{part}.fr"))


CORPORA = {"multi30k": multi30k, "tatoeba": tatoeba, "generated": generated}


def join_rows(rows: Sequence[Row], rng: random.Random) -> Iterator[Row]:
    """Join consecutive rows in groups of 1 to 4, each size equally likely."""
    start = 0
    while start < len(rows):
        group = rows[start : start + rng.randint(1, MOST)]
        start += len(group)
        yield tuple(" ".join(column) for column in zip(*group, strict=True))


def fits(row: Row) -> bool:
    """Whether source and target have SHORTEST to LONGEST words."""
    return all(SHORTEST <= len(files.split_words(text)) <= LONGEST for text in row[:2])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpus", choices=CORPORA)
    parser.add_argument("output", type=Path)
    parser.add_argument("--long", action="store_true", help="join lines")
    parser.add_argument("--smt", default="", help="output of another system for the test lines, tokenized")
    args = parser.parse_args()
    try:
        for part in ("train", "dev", "test"):
            rows = list(CORPORA[args.corpus](part))
            names = ["en", "fr"]
            if part == "test" and args.smt:
                outputs = [plain(line) for line in files.read_lines(args.smt)]
                if len(outputs) != len(rows):
                    raise UserError(f"{args.smt}: {len(outputs)} lines, but the test set has {len(rows)}")
                rows = [(*row, output) for row, output in zip(rows, outputs, strict=True)]
                names.append("smt")
            if args.long:
                rng, passes = random.Random(f"{SEED} {part}"), PASSES if part == "train" else 1
                rows = [row for _ in range(passes) for row in join_rows(rows, rng) if fits(row)]
            if not rows:
                raise UserError(
                    f"{args.corpus}: no lines for {part}; its text is empty or its lines are too short"
                )
            for name, column in zip(names, zip(*rows, strict=True), strict=True):
                files.write_text(args.output / f"{part}.{name}", column)
            words = sum(len(files.split_words(row[0])) for row in rows)
            print(f"{part}: {len(rows):,} lines, {words:,} source words")
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
