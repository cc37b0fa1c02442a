"""Runs that tests of commands train, and the tables that analyses of them print."""

import random
import signal
import subprocess
import time
from pathlib import Path
from xml.etree import ElementTree

import torch

from nmt.training import config_file
from nmt.training.train import run_training
from tests.conftest import BIN, Command

# ---- runs --------------------------------------------------------------------------------------------------


LINES = [
    "The man sees the dog.",
    "She does not buy a red hat.",
    "A nurse sings.",
    "I know the old king of the island.",
]


def copy(tiny: Path, folder: Path, *overrides: str) -> list[str]:
    """Arguments of a training of the tiny corpus into a new run directory."""
    return [str(tiny / "train.yaml"), f"run={folder}/run", *overrides]


def tables(run: Path) -> list[list[str]]:
    """The logs without times and rates."""
    rows = []
    for name, columns in (("train.tsv", 6), ("dev.tsv", 6)):
        rows.append(["\t".join(line.split("\t")[:columns]) for line in (run / name).read_text().split("\n")])
    return rows


def equal_runs(a: Path, b: Path) -> None:
    left, right = (torch.load(run / "training.pt", weights_only=True) for run in (a, b))
    assert torch.equal(left["random"], right["random"])
    for key, state in left["optimizer"]["state"].items():
        for name, value in state.items():
            assert torch.equal(value, right["optimizer"]["state"][key][name])
    for drop in ("seconds", "validation_seconds"):
        left["progress"].pop(drop), right["progress"].pop(drop)
    assert left["progress"] == right["progress"]
    names = {path.name for path in a.glob("step-*.pt")}
    assert names == {path.name for path in b.glob("step-*.pt")} and names
    for name in names:
        weights, others = (torch.load(run / name, weights_only=True) for run in (a, b))
        assert all(torch.equal(value, others[key]) for key, value in weights.items())
    assert tables(a) == tables(b)
    assert (a / "checkpoints.json").read_text() == (b / "checkpoints.json").read_text()


def wait_for(path: Path, seconds: float = 1200) -> None:
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path} never came"
        time.sleep(0.02)


def kill_and_resume(tiny: Path, folder: Path, command: Command, *options: str) -> str:
    """kill -9 a training of 200 updates somewhere between two saves: the same command ends with the bytes of
    one that was never killed. Returns what the latter has said."""
    options = (*options, "training.save_every=7", "training.log_every=4", "training.max_steps=200")
    for name in ("whole", "killed"):
        (folder / name).mkdir()
    whole = command("nmt-train", *copy(tiny, folder / "whole", *options))
    assert whole.returncode == 0, whole.stderr
    arguments, run = copy(tiny, folder / "killed", *options), folder / "killed" / "run"
    process = subprocess.Popen([str(BIN / "nmt-train"), *arguments], stderr=subprocess.DEVNULL)
    wait_for(run / "training.pt")
    time.sleep(0.15)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    step = torch.load(run / "training.pt", weights_only=True)["progress"]["step"]
    assert 0 < step < 200, "the run was over before it was killed"
    done = command("nmt-train", *arguments)
    assert done.returncode == 0 and f"resuming from update {step}" in done.stderr, done.stderr
    equal_runs(folder / "whole" / "run", run)
    return whole.stderr


def start(tiny: Path, run: Path, *overrides: str, overwrite: bool = False) -> None:
    """What nmt-train does after it has read its options, in this process."""
    run_training(config_file.load(str(tiny / "train.yaml"), [f"run={run}", *overrides]), overwrite=overwrite)


# ---- analyses ----------------------------------------------------------------------------------------------
# Running an nmt-analyze command and reading its table.


def analyze(command: Command, folder: Path, kind: str, *options: object) -> tuple[list[dict[str, str]], str]:
    """Rows of the table that a command writes into a folder, and what its SVG says; the PNG is one."""
    out = folder / f"out-{kind}"
    done = command("nmt-analyze", kind, *options, "--output", out, cwd=folder)
    assert done.returncode == 0, done.stderr
    header, *lines = (out / f"{kind}.tsv").read_text(encoding="utf-8").rstrip("\n").split("\n")
    rows = [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]
    assert f"{out}/{kind}.svg" in done.stdout
    if kind != "parse":
        assert (out / f"{kind}.png").read_bytes().startswith(b"\x89PNG")
    return rows, " ".join(ElementTree.parse(out / f"{kind}.svg").getroot().itertext())


def the(rows: list[dict[str, str]], **wanted: str) -> dict[str, str]:
    found = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    assert len(found) == 1, (wanted, found)
    return found[0]


# ---- joint runs --------------------------------------------------------------------------------------------
# Aligned text in which each source word has a translation of its own, and joint models trained with it.


WORDS = {"a": ["p"], "b": ["q"], "c": ["r"], "d": ["s", "p"], "e": ["t'"]}


def write_text(folder: Path, name: str, lines: int, seed: int) -> None:
    """name.s, name.t and name.align; now and then two words change places, or a word has no translation."""
    rng = random.Random(seed)
    rows: list[tuple[str, str, str]] = []
    for _ in range(lines):
        source = [rng.choice("abcde") for _ in range(rng.randint(1, 6))]
        order = list(range(len(source)))
        place = rng.randrange(len(source))
        order[place : place + 2] = order[place : place + 2][::-1]
        target: list[str] = []
        points: list[str] = []
        for at in order:
            if rng.random() < 0.9 or not target:
                points += [f"{at}-{len(target) + k}" for k in range(len(WORDS[source[at]]))]
                target += WORDS[source[at]]
            if rng.random() < 0.2:
                target.append("u")
        rows.append((" ".join(source), " ".join(target), " ".join(points)))
    for ending, column in zip(("s", "t", "align"), zip(*rows, strict=True), strict=True):
        (folder / f"{name}.{ending}").write_text("".join(f"{line}\n" for line in column), encoding="utf-8")


def joint_config(folder: Path, run: str, *more: str) -> list[str]:
    """Arguments of nmt-train for a joint model over the text of `folder`, which is made where it is not."""
    if not (folder / "train.s").exists():
        folder.mkdir(exist_ok=True)
        write_text(folder, "train", 200, 1)
        write_text(folder, "dev", 30, 2)
    files = [
        f"data.{name}_{side}={folder}/{name}.{side[0]}"
        for name in ("train", "dev")
        for side in ("source", "target")
    ]
    text = [
        f"data.{side}.{key}"
        for side in ("source", "target")
        for key in ("tokenize=false", "normalize=false", "case=keep")
    ]
    (folder / "joint.yaml").write_text(
        "model: {type: joint, order: 3, window: 5, embedding: 8, layers: [16, 12], init_scale: 0.3}\n"
        "training: {optimizer: adam, learning_rate: 0.01, cost: word, batch_size: 16, max_steps: 60, "
        "validate_every: 20, tensorboard: false}\nthreads: 1\nmatmul: mkl\n",
        encoding="utf-8",
    )
    alignments = [f"data.alignment={folder}/train.align", f"data.dev_alignment={folder}/dev.align"]
    return [str(folder / "joint.yaml"), f"run={folder / run}", *files, *text, *alignments, *more]


def joint_run(folder: Path, *more: str) -> Path:
    """A trained run."""
    path, *overrides = joint_config(folder, "run", *more)
    run_training(config_file.load(path, overrides))
    return folder / "run"
