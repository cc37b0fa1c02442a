"""Two processes train as one with the summed batch does; what cannot be shared is refused."""

import os
import platform
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from nmt.data.batches import ALL_BATCHES
from nmt.errors import ConfigError
from nmt.papers.discourse import Discourse, DiscourseConfig
from nmt.runs import directory as run_directory
from nmt.text.vocab import SPECIALS
from nmt.training.config import RunConfig
from nmt.training.parallel import Team, join
from nmt.training.train import run_training
from tests.conftest import Command
from tests.nmt.training import elastic
from tests.nmt.training.elastic import falling, hosts, killed_at_random


def torchrun(
    count: int, *args: object, restarts: int = 0, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    line = elastic.torchrun("--standalone", "--nproc-per-node", count, "--max-restarts", restarts)
    line += ["-m", "nmt.cli.train", *map(str, args)]
    return subprocess.run(line, capture_output=True, text=True, timeout=1200, check=False, env=env)


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
def test_a_lost_process_changes_nothing(tiny: Path, tmp_path: Path) -> None:
    """kill -9 of one of three processes after update 10, the last save being that of update 7: torchrun
    starts them again, and the end is the same as that of a run that was left alone, dropout and all. Three,
    because a sum of two has one order only; epochs of 13 batches leave two of them without one at the end."""
    given = [tiny / "train.yaml", "model.dropout=0.2", "training.validate_every=7", "training.ema=0.8"]
    given.append("training.max_steps=14")
    whole = torchrun(3, *given, f"run={tmp_path}/whole")
    assert whole.returncode == 0, whole.stderr[-3000:]
    env = {**os.environ, **elastic.NEW_STORES, **falling(tmp_path, step=10, rank=1)}
    fallen = torchrun(3, *given, f"run={tmp_path}/fallen", restarts=1, env=env)
    assert fallen.returncode == 0 and "resuming from update 7" in fallen.stderr, fallen.stderr[-3000:]
    assert "of 3, on " in fallen.stderr and "cannot reach another process" in fallen.stderr
    assert "Traceback" not in fallen.stderr
    expected, found = weights(tmp_path / "whole", 14), weights(tmp_path / "fallen", 14)
    assert all(torch.equal(found[name], value) for name, value in expected.items())


@pytest.mark.ci
def test_a_lost_host_costs_time_and_nothing_else(tiny: Path, tmp_path: Path, command: Command) -> None:
    """The host of the first process, which holds the run directory's lock, is gone after update 10. The other
    one goes on from update 7 with the same updates, as a run of two processes does that one resumes."""
    given = [tiny / "train.yaml", "training.validate_every=7"]
    with socket.socket() as free, hosts(tmp_path, free_port(free)) as both:
        env = falling(tmp_path, step=10, rank=0, host=True)
        ends = "training.max_steps=21", f"run={tmp_path}/run"
        first = both.start(*given, *ends, rendezvous=False, env=env)  # the older agent has the first process
        second = both.start(*given, *ends, rendezvous=True)
        assert first.wait(600) == -signal.SIGKILL
        assert second.wait(600) == 0, second.messages()
    told = second.messages()
    assert "resuming from update 7\n" in told and "processes: 1, previously 2\n" in told
    begun = torchrun(2, *given, f"run={tmp_path}/other", "training.max_steps=7")
    done = command("nmt-train", *given, f"run={tmp_path}/other", "training.max_steps=21")
    assert begun.returncode == done.returncode == 0, begun.stderr + done.stderr
    found, expected = weights(tmp_path / "run", 21), weights(tmp_path / "other", 21)
    assert all(torch.equal(found[name], value) for name, value in expected.items())
    assert columns(tmp_path / "run") == columns(tmp_path / "other")
    run_directory.verify(tmp_path / "run", "training.pt", "step-21.pt")
    assert not list((tmp_path / "run").glob("*.part*"))


@pytest.mark.slow
def test_kills_at_random_moments_lose_and_repeat_nothing(
    tiny: Path, tmp_path: Path, command: Command
) -> None:
    """The first two columns of train.tsv, and the sentences that were seen, are those of a run that was left
    alone: each update is of the same batches, whoever computed it."""
    given = [
        tiny / "train.yaml", "training.max_steps=3000", "training.validate_every=1000", "training.patience=0",
        "training.save_every=50", "training.log_every=50", "training.update_batches=2",
        "training.metric=cost", "training.dev_beam=0",
    ]  # fmt: skip
    with socket.socket() as free, hosts(tmp_path, free_port(free)) as both:
        found = killed_at_random(both, [*given, f"run={tmp_path}/run"], seed=1, kills=3)
    assert found.status == 0 and len(found.kills) == 3, f"{found.kills}\n{found.messages}"
    assert found.starts >= 2 and "Traceback (most recent call last)" not in found.messages
    alone = command("nmt-train", *given, f"run={tmp_path}/alone")
    assert alone.returncode == 0, alone.stderr
    rows, expected = columns(tmp_path / "run"), columns(tmp_path / "alone")
    assert [row[:3] for row in rows] == [row[:3] for row in expected]
    run_directory.verify(tmp_path / "run", "training.pt", "step-3000.pt")


def free_port(free: socket.socket) -> int:
    """A port that nobody listens on."""
    free.bind(("127.0.0.1", 0))
    port: int = free.getsockname()[1]
    free.close()
    return port


def columns(run: Path) -> list[list[str]]:
    """train.tsv without its times."""
    return [line.split("\t")[:6] for line in (run / "train.tsv").read_text().split("\n")]


def test_shares() -> None:
    """Every batch once, in rounds of the same number for all, wherever the first update starts."""
    for start, update, there in [(0, 4, 10), (3, 4, 10), (2, 2, 9), (0, 7, 21), (5, 1, 9)]:
        teams = [Team(rank, 3) for rank in range(3)]
        shares = [team.share(start, update) for team in teams]
        for first in range(start, there, update):
            numbers = range(first, min(first + update, there))
            parts = [list(filter(share.has, numbers)) for share in shares]
            assert sorted(number for part in parts for number in part) == list(numbers)
            rounds = {len(part) + team.idle(len(numbers)) for part, team in zip(parts, teams, strict=True)}
            assert rounds == {-(-len(numbers) // 3)}
    assert all(map(ALL_BATCHES.has, range(9)))


def test_restarts_that_would_not_work_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WORLD_SIZE": "1", "TORCHELASTIC_USE_AGENT_STORE": "True"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "0")
    assert join("cpu", 1)[0].size == 1
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "1")
    with pytest.raises(ConfigError, match="set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 in its environment"):
        join("cpu", 1)
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "False")
    assert join("cpu", 1)[0].size == 1
    config = RunConfig(run="run")
    with pytest.raises(ConfigError, match="--overwrite: with --max-restarts torchrun starts"):
        run_training(config, overwrite=True)


def test_carried_state_is_refused() -> None:
    class Carrying:
        carries = True
        device = torch.device("cpu")

        def cost(self, batch: object, smoothing: float, carried: None) -> tuple[torch.Tensor, None]:
            return torch.zeros(()), None

    with pytest.raises(ConfigError, match=r"lm\.carry: .* trains in one process"):
        Team(0, 2).wrap(Carrying())  # type: ignore[arg-type]


def test_batches_of_several_objectives_are_refused() -> None:
    config = DiscourseConfig(embedding=2, hidden=2)
    with pytest.raises(ConfigError, match="start it without torchrun"):
        Team(0, 2).wrap(Discourse(config, SPECIALS))


WAITING = """
import os, signal, sys, time
from datetime import timedelta
from pathlib import Path
from nmt.errors import UserError
from nmt.training import parallel
parallel.LOST_AFTER, parallel.BEAT, parallel.GRACE = timedelta(seconds=8), 1.0, 0.5
team, device = parallel.join("cpu", 1)
with team.first_then_others(Path("none")):
    if team.first:
        time.sleep(12)
with team.busy():
    if team.first:
        time.sleep(12)
print(team.agree("done" if team.first else "", 0.5, 7.0), team.totals(1.0))
run = Path(sys.argv[1], f"run{team.rank}")
try:
    with team.first_then_others(run):
        if team.first:
            run.mkdir()
            (run / "version").write_text("1")
except UserError as error:
    print(error, flush=True)
if team.first:
    os.kill(os.getpid(), signal.SIGSTOP)
try:
    with parallel.report_lost_process():
        team.agree("", 0.5)
except UserError as error:
    print(error, flush=True)
os._exit(0)
"""


@pytest.mark.ci
def test_others_wait_for_the_first_while_it_gives_signs_of_life(tmp_path: Path) -> None:
    """Longer than the time after which a silent process is lost: while it prepares data, or validates. One
    that stops is lost. Before that, a host that does not see the run directory is told so."""
    (tmp_path / "waiting.py").write_text(WAITING)
    with socket.socket() as free:
        shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port(free)), "WORLD_SIZE": "2"}
    first, second = (
        subprocess.Popen(
            [sys.executable, tmp_path / "waiting.py", tmp_path],
            env={**os.environ, **shared, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    )
    with first, second:
        told, _ = second.communicate(timeout=600)
        first.kill()
        before = first.communicate()[0]
    tail = "does not see here what the first process wrote; all hosts have to share the run directory\n"
    here = f"process 1 of 2, on {platform.node()}"
    assert before == f"('done', [0.5, 7.0]) [2.0]\n{tmp_path}/run0: another process {tail}"
    waited, unseen, lost = told.splitlines(keepends=True)
    assert waited == "('the first process stops', [0.5, 7.0]) [2.0]\n"
    assert unseen == f"{tmp_path}/run1: {here}, {tail}"
    assert lost.startswith(f"{here}: cannot reach another process")
