"""Compare presets by the number of training pairs and of minutes: train them with equal work from several
seeds, and print mean and range of development BLEU.

    python recipes/presets/choice.py                     # small and transformer-small, 3, 6 and 12 minutes
    python recipes/presets/choice.py --minutes 29000=48 --seeds 1
    python recipes/presets/choice.py --dry-run           # make texts and configurations, print the commands
    python recipes/presets/choice.py --measure           # print the speeds to be written into RATES

A minute is the work of one core that nothing else uses: RATES turns minutes into a number of updates, at
whose end the learning rate is 0. The other settings are those that nmt-init writes for the text. Trainings
run one after the other: the first seed of all sizes, the shortest first, then the second seed. The script can
be stopped and started again; finished trainings are not repeated, and only their translations are kept. Test
sets are not used.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from nmt.compute.device import set_up_device
from nmt.io import files
from nmt.metrics import BleuScore, References, choose_tokenizer
from nmt.text.inspection import inspect_pairs
from nmt.training import config_file, loop
from nmt.training.config import RunConfig
from nmt.training.cost import TrainingSample, make_job, take_sample
from nmt.training.proposal import MOST_WARM_UP

# Target units (subwords and end symbols) per CPU second in training, one thread: medians of --measure over
# the texts and sizes of this recipe, on an AMD EPYC.
RATES = {"small": 2250, "transformer-small": 4400}
MINUTES = ((2000, 3.0), (10_000, 6.0), (29_000, 12.0))  # pairs, minutes
DIRECTIONS = ("multi30k:en-fr", "multi30k:fr-en", "tatoeba:en-fr")
SAVES = 20  # checkpoints of a training; presets average the last 5 or 10
MEASURED, ROUNDS = 2.5, 3  # seconds of a measurement, and their number: in turn, as other load disturbs them
COLUMNS = (
    "direction", "pairs", "minutes", "preset", "updates", "seeds", "last", "range", "mean of checkpoints",
    "range",
)  # fmt: skip


@dataclass(frozen=True)
class Text:
    """A training text of `pairs` pairs and its development set, in one direction."""

    direction: str  # CORPUS:SOURCE-TARGET
    pairs: int
    out: Path  # folder of the recipe's files

    @property
    def languages(self) -> list[str]:
        """The two language codes, of the source and the target."""
        return self.direction.split(":")[1].split("-")

    @property
    def corpus(self) -> Path:
        return self.out / self.direction.split(":")[0]

    def files(self, part: str) -> list[str]:
        """Paths of the source and target text of a part: `train-PAIRS` or `dev`."""
        return [f"{self.corpus}/{part}.{language}" for language in self.languages]

    def make(self) -> None:
        """Write the files of the corpus, unless they exist."""
        if not os.path.exists(self.files(f"train-{self.pairs}")[0]):
            self.corpus.mkdir(parents=True, exist_ok=True)
            script = Path(__file__).parents[1] / "low_resource" / "corpora.py"
            call([sys.executable, str(script), self.corpus.name, str(self.corpus), str(self.pairs)])


@dataclass(frozen=True)
class Setup:
    """A preset on a text, as nmt-init configures it."""

    text: Text
    preset: str

    @property
    def folder(self) -> Path:
        name = f"{self.text.direction.replace(':', '-')}.{self.text.pairs}.{self.preset}"
        return self.text.out / "configs" / name

    def init(self) -> list[str]:
        """The command that writes the configuration. --minutes makes the learning rate fall to 0; its value
        does not matter, since `Training.commands` gives the number of updates."""
        (source, target), (dev_source, dev_target) = (
            self.text.files(part) for part in (f"train-{self.text.pairs}", "dev")
        )
        return [
            "nmt-init", "-q", str(self.folder), "--source", source, "--target", target,
            "--dev-source", dev_source, "--dev-target", dev_target, "--preset", self.preset,
            "--minutes", "1", "--no-measure",
        ]  # fmt: skip

    def make(self) -> None:
        """Write text and configuration, unless they exist."""
        self.text.make()
        if not self.folder.exists():
            call(self.init())

    @cached_property
    def config(self) -> RunConfig:
        """The configuration, for one thread of the CPU. It must exist."""
        return config_file.load(str(self.folder / "config.yaml"), ["device=cpu", "threads=1"])

    def sample(self) -> TrainingSample:
        """A sample of the text as the model reads it."""
        sides = inspect_pairs(self.config.data.train_source, self.config.data.train_target).sides
        with TemporaryDirectory() as folder:
            return take_sample(self.config, sides, Path(folder))

    @cached_property
    def units(self) -> float:
        """Average number of target units of an update; stored in a file."""
        path = self.folder / "units"
        if not path.exists():
            sample = self.sample()
            units = (len(sample.corpus.target) + len(sample.corpus)) / sample.share
            batches = -(-self.text.pairs // self.config.training.batch_size)
            files.write_text(path, [f"{units / batches}"])
        return float(next(iter(files.read_lines(path))))


@dataclass(frozen=True)
class Training:
    """A training run: a setup, the minutes that it may take, and its seed."""

    setup: Setup
    minutes: float
    seed: int

    @property
    def updates(self) -> int:
        """The number of updates that fit into `minutes` at the speed in RATES; at least 2."""
        return max(2, round(60 * self.minutes * RATES[self.setup.preset] / self.setup.units))

    @property
    def row_key(self) -> tuple[str, ...]:
        """The first columns of the training's row in the table: direction, pairs, minutes, preset."""
        text = self.setup.text
        return text.direction, f"{text.pairs}", f"{self.minutes:g}", self.setup.preset

    @property
    def run(self) -> Path:
        name = ".".join((*self.row_key, f"seed-{self.seed}")).replace(":", "-")
        return self.setup.text.out / "trainings" / name

    def outputs(self) -> list[Path]:
        """Paths of the translations by the last checkpoint, and by the mean of the last ones."""
        return [Path(f"{self.run}{name}.dev") for name in ("", "-mean")]

    def commands(self) -> list[list[str]]:
        """The commands to train, to average checkpoints, and to translate the development set with the last
        checkpoint and with the average."""
        training, updates, mean = self.setup.config.training, self.updates, f"{self.run}-mean"
        changes = {
            "max_steps": updates, "max_epochs": 0, "max_minutes": 0, "patience": 0,
            "warmup": min(training.warmup, int(MOST_WARM_UP * updates)),
            "save_every": max(1, updates // SAVES), "validate_every": updates, "dev_beam": 0,
            "metric": "cost",
        }  # fmt: skip
        train = [
            "nmt-train", "-q", str(self.setup.folder / "config.yaml"), f"run={self.run}", "device=cpu",
            "threads=1", f"seed={self.seed}", *(f"training.{key}={value}" for key, value in changes.items()),
        ]  # fmt: skip
        average = ["nmt-average", "-q", str(self.run), "--last", str(training.keep), "--output", mean]
        translate = ["nmt-translate", "-q", "--threads", "1", "-i", self.setup.text.files("dev")[0]]
        last, averaged = map(str, self.outputs())
        return [
            train,
            average,
            [*translate, str(self.run), "--checkpoint", "last", "-o", last],
            [*translate, mean, "-o", averaged],
        ]

    def is_finished(self) -> bool:
        return all(path.exists() for path in self.outputs())

    def do(self) -> None:
        """Train and translate, unless that is done; remove the weights. CalledProcessError if it fails."""
        mean = Path(f"{self.run}-mean")
        if not self.is_finished():
            train, average, *translations = self.commands()
            call(train)
            if not (mean / "version").exists():
                call(average)
            for command in translations:
                call(command)
        for path in (self.run, mean):
            shutil.rmtree(path, ignore_errors=True)

    def scores(self) -> list[BleuScore]:
        """BLEU of both outputs, which must exist."""
        tokenizer = choose_tokenizer(self.setup.text.languages[1])
        references = References(list(files.read_lines(self.setup.text.files("dev")[1])), tokenizer)
        return [references.bleu(list(files.read_lines(path))) for path in self.outputs()]


def main() -> int:
    args = parser().parse_args()
    sizes = sorted(args.minutes, key=lambda size: size[::-1])
    trainings = [
        Training(Setup(Text(direction, pairs, args.out), preset), minutes, seed)
        for seed in args.seeds
        for pairs, minutes in sizes
        for direction in args.directions
        for preset in args.presets
    ]
    setups = list(dict.fromkeys(training.setup for training in trainings))
    for setup in setups:
        setup.make()
    if args.measure:
        print(*speeds(setups), sep="\n")
        return 0
    for number, training in enumerate(trainings, 1):
        if args.dry_run:
            print(*map(shlex.join, training.commands()), sep="\n")
            continue
        print(f"{number} of {len(trainings)}: {training.run.name}", file=sys.stderr)
        training.do()
        files.write_text(args.out / "table.tsv", table(trainings))
    if not args.dry_run:
        print(*table(trainings), sep="\n")
    return 0


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--directions", nargs="+", default=DIRECTIONS, metavar="CORPUS:SOURCE-TARGET")
    parser.add_argument(
        "--minutes", nargs="+", type=size_and_minutes, default=MINUTES, metavar="PAIRS=MINUTES"
    )
    parser.add_argument("--presets", nargs="+", default=list(RATES), choices=RATES)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--out", type=Path, default=Path("runs/choice"))
    parser.add_argument(
        "--dry-run", action="store_true", help="make texts and configurations, print commands"
    )
    parser.add_argument("--measure", action="store_true", help="print target units per CPU second, and stop")
    return parser


def size_and_minutes(text: str) -> tuple[int, float]:
    """Argument type: PAIRS=MINUTES, such as 2000=3. ValueError for other text."""
    pairs, _, minutes = text.partition("=")
    return int(pairs), float(minutes)


def call(command: Sequence[str]) -> None:
    """Run one of our commands on one core; its output goes to stderr. CalledProcessError if it fails."""
    subprocess.run(command, check=True, stdout=sys.stderr, env={**os.environ, "OMP_NUM_THREADS": "1"})


def table(trainings: Iterable[Training]) -> list[str]:
    """The lines of the table: mean and range of BLEU over the finished seeds; below them its signatures."""
    scores_by_row: dict[tuple[str, ...], list[list[BleuScore]]] = {}
    updates: dict[tuple[str, ...], int] = {}
    for training in trainings:
        if training.is_finished():
            scores_by_row.setdefault(training.row_key, []).append(training.scores())
            updates[training.row_key] = training.updates
    rows = ["\t".join(COLUMNS)]
    for key, seeds in scores_by_row.items():
        columns = [column for scores in zip(*seeds, strict=True) for column in mean_and_range(scores)]
        rows.append("\t".join((*key, f"{updates[key]}", f"{len(seeds)}", *columns)))
    signatures = {score.signature for seeds in scores_by_row.values() for scores in seeds for score in scores}
    return rows + [f"# {signature}" for signature in sorted(signatures)]


def mean_and_range(scores: Sequence[BleuScore]) -> tuple[str, str]:
    """Format the mean of scores, and the lowest and the highest one."""
    values = [score.score for score in scores]
    return f"{fmean(values):.2f}", f"{min(values):.2f} to {max(values):.2f}"


def speeds(setups: Sequence[Setup]) -> Iterator[str]:
    """Yield a line for each measurement: name of the setup, and target units per CPU second. Each setup is
    measured ROUNDS times, in turn. Sets torch to one thread of the CPU."""
    set_up_device("cpu", 1, "auto")
    jobs = [(setup, make_job(setup.config, setup.sample(), "cpu")) for setup in setups]
    for setup, job in jobs * ROUNDS:
        job.model.train()
        batches = chain.from_iterable(map(job.stream.batches, count()))
        loop.update(job, [next(batches)])  # allocates memory
        units, began = 0, time.process_time()
        while (seconds := time.process_time() - began) < MEASURED:
            batch = next(batches)
            loop.update(job, [batch])
            job.progress.step += 1
            units += batch.target_tokens
        yield f"{setup.folder.name}\t{units / seconds:.0f}"


if __name__ == "__main__":
    sys.exit(main())
