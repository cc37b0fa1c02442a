"""Two processes train as one with the summed batch does; what cannot be shared is refused."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from nmt.errors import ConfigError
from nmt.models.discourse.model import Discourse, DiscourseConfig
from nmt.text.vocab import SPECIALS
from nmt.training.parallel import Team


def torchrun(count: int, *args: object) -> subprocess.CompletedProcess[str]:
    given = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(count),
        "-m",
        "nmt.cli.train",
        *map(str, args),
    ]
    return subprocess.run(given, capture_output=True, text=True, timeout=1200, check=False)


def weights(run: Path, step: int) -> dict[str, torch.Tensor]:
    return dict(torch.load(run / f"step-{step}.pt", weights_only=True))


@pytest.mark.ci
@pytest.mark.parametrize(
    ("accumulate", "size"), [(1, "batch_size=16"), (2, "batch_size=16"), (2, "batch_tokens=120")]
)
def test_two_processes_are_one(accumulate: int, size: str, tiny: Path, tmp_path: Path) -> None:
    """gloo on the CPU, 21 updates over 200 pairs in batches of 16: the last update of an epoch has fewer
    batches than processes. Of an average of weights the first process alone knows."""
    given = [tiny / "train.yaml", "training.max_steps=21", "model.dropout=0", "training.validate_every=7"]
    given.append(f"training.{size}")
    given += ["training.ema=0.8"] * (accumulate == 2)
    one = torchrun(1, *given, f"run={tmp_path}/one", f"training.accumulate={2 * accumulate}")
    two = torchrun(2, *given, f"run={tmp_path}/two", f"training.accumulate={accumulate}")
    assert one.returncode == two.returncode == 0, one.stderr + two.stderr
    expected, found = weights(tmp_path / "one", 21), weights(tmp_path / "two", 21)
    begin = weights(tiny / "run", 60)
    assert expected.keys() == found.keys() == begin.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, atol=1e-5, rtol=1e-5)

    def costs(name: str) -> list[list[str]]:
        return [
            line.split("\t")[:5] for line in (tmp_path / name / "train.tsv").read_text().split("\n")[1:-1]
        ]

    assert [row[:3] for row in costs("one")] == [row[:3] for row in costs("two")] and len(costs("one")) == 2
    for ours, theirs in zip(costs("one"), costs("two"), strict=True):
        assert abs(float(ours[3]) - float(theirs[3])) < 1e-5


@pytest.mark.ci
def test_resumed_in_parallel(tiny: Path, tmp_path: Path) -> None:
    """Stopped after 14 updates and started again: the same as never stopped, dropout and all."""
    given = [tiny / "train.yaml", "model.dropout=0.2", "training.validate_every=7", "training.ema=0.8"]
    for run, steps in (("whole", 21), ("parts", 14), ("parts", 21)):
        done = torchrun(2, *given, f"run={tmp_path}/{run}", f"training.max_steps={steps}")
        assert done.returncode == 0, done.stderr[-3000:]
    expected, found = weights(tmp_path / "whole", 21), weights(tmp_path / "parts", 21)
    assert all(torch.equal(found[name], value) for name, value in expected.items())


def test_shares() -> None:
    """Every batch once, and rounds of the same number for all."""
    for count in range(1, 9):
        parts = [Team(rank, 3).share(list(range(count))) for rank in range(3)]
        assert len({len(part) for part in parts}) == 1
        assert sorted(batch for part in parts for batch, weight in part if weight) == list(range(count))


def test_carried_state_is_refused() -> None:
    class Carrying:
        carries = True
        device = torch.device("cpu")

        def cost(self, batch: object, smoothing: float, carried: None) -> tuple[torch.Tensor, None]:
            return torch.zeros(()), None

    with pytest.raises(ConfigError, match=r"lm\.carry: .* trains in one process"):
        Team(0, 2).wrap(Carrying())


def test_batches_of_several_objectives_are_refused() -> None:
    config = DiscourseConfig(embedding=2, hidden=2)
    with pytest.raises(ConfigError, match="each batch is of one objective; start it without torchrun"):
        Team(0, 2).wrap(Discourse(config, SPECIALS))


WAITING = """
import functools, time
from datetime import timedelta
import torch.distributed as dist
dist.init_process_group = functools.partial(dist.init_process_group, timeout=timedelta(seconds=2))
from nmt.training.parallel import join
team, device = join("cpu", 1)
with team.first_then_others():
    if team.first:
        time.sleep(5)
if team.first:
    time.sleep(5)
print(team.agree("done" if team.first else "", 0.5), team.total(1.0))
team.leave()
"""


@pytest.mark.ci
def test_others_wait_while_the_first_prepares_data_or_validates(tmp_path: Path) -> None:
    """Longer than the time after which an exchange of gradients gives up."""
    (tmp_path / "waiting.py").write_text(WAITING)
    given = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*given, tmp_path / "waiting.py"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")[:-1]) == [
        "('done', 0.5) 2.0",
        "('the first process stops', 0.5) 2.0",
    ]
