"""Draw the learning curve of a run from its train.tsv and dev.tsv.

python recipes/multi30k/curve.py runs/multi30k curve.svg [more.png ...]
"""

import argparse
from pathlib import Path

from nmt import files
from nmt.analysis import plots


def column(path: Path, name: str) -> list[float]:
    header, *rows = (line.split("\t") for line in files.read_lines(path))
    return [float(row[header.index(name)]) for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("figures", type=Path, nargs="+")
    args = parser.parse_args()
    train, dev = args.run / "train.tsv", args.run / "dev.tsv"
    pyplot = plots.load()
    figure, left = pyplot.subplots(figsize=(7, 3.6), layout="constrained")
    left.plot(column(train, "step"), column(train, "cost"), color="#9a9a9a", linewidth=1, label="training cost a word")
    left.plot(column(dev, "step"), column(dev, "cost"), color="#1b6ca8", label="dev cost a word")
    left.set_xlabel("updates")
    left.set_ylabel("-log p a word (nats)")
    left.set_ylim(bottom=0)
    right = left.twinx()
    right.plot(column(dev, "step"), column(dev, "bleu"), color="#d1495b", marker="o", markersize=3, label="dev BLEU")
    right.set_ylabel("BLEU")
    right.set_ylim(bottom=0)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    for path in args.figures:
        plots.save(figure, path)


if __name__ == "__main__":
    main()
