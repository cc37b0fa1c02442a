"""What tests of the commands share: text, and runs that are made and compared."""

import time
from pathlib import Path

import torch

from nmt.training import config_file as config
from nmt.training.train import run_training

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


def start(tiny: Path, run: Path, *overrides: str, overwrite: bool = False) -> None:
    """What nmt-train does after it has read its options, in this process."""
    run_training(config.load(str(tiny / "train.yaml"), [f"run={run}", *overrides]), overwrite=overwrite)
