"""Train a preset on several language pairs and corpora, as it is and with changes of some settings, to see
whether it suits texts on which it was not tuned. Prints development BLEU of the last checkpoint, of the best
one, and of the mean of the last five.

    python recipes/presets/run.py                 # --preset small, all directions and variants
    python recipes/presets/run.py --directions multi30k:en-fr --variants base constant --workers 2
    python recipes/presets/run.py --dry-run       # only print the commands

Each training takes one core. The script can be stopped and started again; finished trainings are not
repeated. A direction is CORPUS:SOURCE-TARGET, CORPUS as in recipes/low_resource (multi30k and tatoeba of
$NMT_DATA; generated: our grammar). All trainings have --epochs epochs of --size pairs, so that schedules can
be compared. Test sets are not used.
"""

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from nmt.io import files
from nmt.metrics import References
from nmt.training import config_file

ROOT = Path(__file__).resolve().parents[2]
DIRECTIONS = ("multi30k:en-fr", "multi30k:fr-en", "tatoeba:en-fr", "generated:en-fr")
COLUMNS = ("direction", "variant", "last", "best", "mean of five", "best at")
AVERAGED = 5  # last checkpoints
MOST = {"generated": 20000}  # pairs of a corpus that is smaller than the default of --size


@dataclass(frozen=True)
class Training:
    """One training: a direction and a variant of the preset."""

    direction: str
    variant: str  # its name
    changes: tuple[str, ...]  # section.key=value
    out: Path  # folder of all trainings

    @property
    def run(self) -> Path:
        return self.out / f"{self.direction.replace(':', '-')}.{self.variant}"

    def texts(self, size: int) -> dict[str, Path]:
        """The files of the texts by configuration keys. `size`: number of training pairs."""
        corpus, languages = self.direction.split(":")
        size = corpus_size(corpus, size)
        sides = dict(zip(("source", "target"), languages.split("-"), strict=True))
        return {
            f"data.{part}_{side}": self.out / corpus / f"{name}.{language}"
            for part, name in (("train", f"train-{size}"), ("dev", "dev"))
            for side, language in sides.items()
        }

    def commands(self, args: argparse.Namespace) -> list[list[str]]:
        """The commands to train, to average the last checkpoints, and to translate the development set."""
        texts, mean = self.texts(args.size), f"{self.run}-mean"
        train = [
            "nmt-train", "-q", str(self.out / "empty.yaml"), "--preset", args.preset, f"run={self.run}",
            "threads=1", f"seed={args.seed}", f"training.max_epochs={args.epochs}", "training.patience=0",
            f"training.keep={AVERAGED}", *(f"{key}={path}" for key, path in texts.items()), *self.changes,
        ]  # fmt: skip
        average = ["nmt-average", "-q", str(self.run), "--last", str(AVERAGED), "--output", mean]
        translate = [
            "nmt-translate", "-q", mean, "--threads", "1", "--beam-size", str(args.beam_size),
            "-i", str(texts["data.dev_source"]), "-o", f"{mean}.dev",
        ]  # fmt: skip
        return [train, average, translate]


def main() -> int:
    args = parser().parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    files.write_text(args.out / "empty.yaml", ["# all settings are the preset's and the command line's"])
    variants = read_variants(args.variant_file)
    unknown = [name for name in args.variants or () if name not in variants]
    if unknown:
        print(
            f"run.py: {unknown[0]}: not in {args.variant_file}, which has {', '.join(variants)}",
            file=sys.stderr,
        )
        return 2
    trainings = [
        Training(direction, name, variants[name], args.out)
        for name in args.variants or variants
        for direction in args.directions
    ]
    if args.dry_run:
        for training in trainings:
            print(*(shlex.join(command) for command in training.commands(args)), sep="\n")
        return 0
    for corpus in dict.fromkeys(direction.split(":")[0] for direction in args.directions):
        write_texts(corpus, args.out / corpus, corpus_size(corpus, args.size))
    with ThreadPoolExecutor(args.workers) as pool:
        rows = list(pool.map(lambda training: measure(training, args), trainings))
    table = ["\t".join(COLUMNS), *("\t".join(row) for row in sorted(rows))]
    files.write_text(args.out / "table.tsv", table)
    print(*table, sep="\n")
    return 0


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--preset", default="small")
    parser.add_argument("--directions", nargs="+", default=DIRECTIONS, metavar="CORPUS:SOURCE-TARGET")
    parser.add_argument("--variants", nargs="+", metavar="NAME", help="variants of the file; default: all")
    parser.add_argument("--variant-file", type=Path, default=Path(__file__).parent / "variants.txt")
    parser.add_argument("--size", type=int, default=29000, help="training pairs")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--beam-size",
        type=int,
        default=5,
        help="beam size for the mean of checkpoints; validations use that of the preset",
    )
    parser.add_argument("--workers", type=int, default=1, help="trainings at a time")
    parser.add_argument("--out", type=Path, default=Path("runs/presets"))
    parser.add_argument("--dry-run", action="store_true", help="print the commands")
    return parser


def read_variants(path: Path) -> dict[str, tuple[str, ...]]:
    """The changes of each variant in a file, by name; # starts a comment line."""
    lines = [files.split_words(line) for line in files.read_lines(path)]
    return {line[0]: tuple(line[1:]) for line in lines if line and line[0] != "#"}


def corpus_size(corpus: str, size: int) -> int:
    """Number of training pairs: `size`, or all if the corpus has fewer."""
    return min(size, MOST.get(corpus, size))


def write_texts(corpus: str, folder: Path, size: int) -> None:
    """Write train-SIZE, dev and test of a corpus, unless they exist."""
    if not (folder / f"train-{size}.en").exists():
        folder.mkdir(parents=True, exist_ok=True)
        script = ROOT / "recipes" / "low_resource" / "corpora.py"
        subprocess.run([sys.executable, script, corpus, folder, str(size)], check=True, stdout=sys.stderr)


def measure(training: Training, args: argparse.Namespace) -> tuple[str, ...]:
    """Train, score, and return a row of the table. The row of a finished run is read from its file.
    CalledProcessError if a command fails."""
    row_path = Path(f"{training.run}.row")
    if not row_path.exists():
        train, average, translate = training.commands(args)
        call(train)
        if not Path(f"{training.run}-mean/version").exists():
            call(average)
        call(translate)
        row = (training.direction, training.variant, *scores(training, args))
        files.write_text(row_path, ["\t".join(row)])
        print(*row, sep="\t", file=sys.stderr)
    return tuple(next(iter(files.read_lines(row_path))).split("\t"))


def call(command: Sequence[str]) -> None:
    """Run one of our commands on one core. CalledProcessError if it fails."""
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def scores(training: Training, args: argparse.Namespace) -> tuple[str, ...]:
    """Development BLEU of the last, the best and the averaged checkpoint, and the update of the best."""
    header, *rows = files.read_lines(training.run / "dev.tsv")
    columns = header.split("\t")
    validations = [dict(zip(columns, row.split("\t"), strict=True)) for row in rows]
    best = max(validations, key=lambda row: float(row["bleu"]))
    tokenizer = config_file.read_run_config(training.run).training.bleu_tokenizer
    references = References(list(files.read_lines(training.texts(args.size)["data.dev_target"])), tokenizer)
    mean = references.bleu(list(files.read_lines(f"{training.run}-mean.dev"))).score
    return f"{float(validations[-1]['bleu']):.2f}", f"{float(best['bleu']):.2f}", f"{mean:.2f}", best["step"]


if __name__ == "__main__":
    sys.exit(main())
