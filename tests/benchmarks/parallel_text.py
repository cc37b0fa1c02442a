"""A generated TMX of 200,000 units: units a CPU second and peak memory of the reader beside a plain loop over
lxml's iterparse that knows the file, in turn, each in a process of its own."""

import argparse
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lxml import etree

from nmt.formats.parallel_text import Wanted, write_pairs

ROUNDS = 3


def write_tmx(path: Path, units: int) -> None:
    chance = random.Random(1)
    words = [
        "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(5000)
    ]
    with open(path, "w", encoding="utf-8") as out:
        out.write('<?xml version="1.0"?>\n<tmx version="1.4"><header srclang="en"/><body>\n')
        for number in range(units):
            sides = [" ".join(chance.choices(words, k=chance.randint(5, 20))) for _ in range(2)]
            out.write(
                f'<tu tuid="{number}"><tuv xml:lang="en-US"><seg>{sides[0]}</seg></tuv>'
                f'<tuv xml:lang="fr-FR"><seg>{sides[1]}</seg></tuv></tu>\n'
            )
        out.write("</body></tmx>\n")


def read(path: Path) -> None:
    write_pairs([str(path)], Wanted(("en", "fr")), (path.with_suffix(".en"), path.with_suffix(".fr")))


def read_plainly(path: Path) -> None:
    with open(path.with_suffix(".1"), "w") as source, open(path.with_suffix(".2"), "w") as target:
        for _, unit in etree.iterparse(path, tag="tu"):
            for variant, out in zip(unit.iterchildren("tuv"), (source, target), strict=True):
                out.write(variant.find("seg").text + "\n")
            unit.clear()
            while unit.getprevious() is not None:
                del unit.getparent()[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=200_000)
    parser.add_argument("--reader", choices=("ours", "plain"), help="of one round, which --file is for")
    parser.add_argument("--file", type=Path)
    args = parser.parse_args()
    if args.reader:
        start = time.process_time()
        (read if args.reader == "ours" else read_plainly)(args.file)
        print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file.tmx")
        write_tmx(path, args.units)
        rows: dict[str, list[list[float]]] = {"ours": [], "plain": []}
        for _ in range(ROUNDS):
            for reader, results in rows.items():
                call = [
                    sys.executable,
                    "-m",
                    "tests.benchmarks.parallel_text",
                    "--reader",
                    reader,
                    "--file",
                    str(path),
                ]
                printed = subprocess.run(call, check=True, capture_output=True, text=True).stdout
                results.append([float(word) for word in printed.split()])
        for end in ("en", "1"), ("fr", "2"):
            assert path.with_suffix(f".{end[0]}").read_bytes() == path.with_suffix(f".{end[1]}").read_bytes()
        for reader, results in rows.items():
            seconds, memory = (statistics.median(column) for column in zip(*results, strict=True))
            print(
                f"{reader}: {args.units / seconds:,.0f} units a CPU second, {memory:.0f} MB "
                f"({path.stat().st_size / 1e6:.0f} MB of TMX)"
            )


if __name__ == "__main__":
    main()
