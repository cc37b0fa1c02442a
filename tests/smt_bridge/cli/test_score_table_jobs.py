"""smt-score-table in workers and shards, killed, resumed, and with an earlier table: the bytes of one run."""

import math
import os
import re
import signal
import struct
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from nmt.jobs.folder import held
from smt_bridge.cli.score_table import main
from tests.conftest import Command, kill_once_written
from tests.smt_bridge.cli.scored_tables import columns_of, in_small_chunks, write_table


@pytest.mark.ci
def test_workers_shards_and_chunks_give_the_same_bytes(tiny: Path, tmp_path: Path) -> None:
    write_table(tmp_path / "t")
    feature = ["-q", "-f", f"translation={tiny / 'run'}"]
    outputs = []
    for workers in (1, 3):
        done = in_small_chunks(tmp_path / "t", *feature, "--workers", workers, "-o", tmp_path / "o")
        assert done.wait() == 0
        outputs.append((tmp_path / "o").read_bytes())
    shards = b""
    for number in (1, 2, 3):
        assert (
            in_small_chunks(tmp_path / "t", *feature, "--shard", f"{number}/3", "-o", tmp_path / "s").wait()
            == 0
        )
        shards += (tmp_path / "s").read_bytes()
    assert outputs[0] == outputs[1] == shards and len(outputs[0].split(b"\n")) > 50
    assert outputs[0].split(b"\n") == [*sorted(outputs[0].split(b"\n")[:-1]), b""]  # still in LC_ALL=C order


@pytest.mark.ci
def test_killed_and_resumed(
    tiny: Path, command: Command, refused: Callable[..., str], tmp_path: Path
) -> None:
    """kill -9 in the middle leaves no output; --resume ends with the bytes of a run that was never
    stopped."""
    write_table(tmp_path / "t")
    arguments = [tmp_path / "t", "-q", "-f", f"translation={tiny / 'run'}", "-o", tmp_path / "o"]
    process = in_small_chunks(*arguments, slow=0.5)
    scores = tmp_path / "o.job" / "scores"
    kill_once_written(process, scores)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.job", "t"]
    done = scores.read_bytes()
    with open(scores, "ab") as stream:
        stream.write(b"\x08\x00\x00\x00torn")  # a record that was being written
    assert "unfinished job; --resume continues it" in refused(command("smt-score-table", *arguments))
    assert "other settings (features" in refused(
        command("smt-score-table", *arguments, "--resume", "--unknown", "split")
    )
    scores.write_bytes(
        with_first_value(done, math.log(0.75))
    )  # shows that finished chunks are taken as they are
    assert in_small_chunks(*arguments, "--resume").wait() == 0
    assert in_small_chunks(*arguments[:-1], tmp_path / "whole").wait() == 0
    resumed, whole = (
        (tmp_path / "o").read_bytes().split(b"\n", 1),
        (tmp_path / "whole").read_bytes().split(b"\n", 1),
    )
    assert (
        resumed[1] == whole[1] and b" 0.125 0.75 ||| " in resumed[0] and b" 0.125 0.75 ||| " not in whole[0]
    )
    assert not (tmp_path / "o.job").exists()


def test_a_second_one_on_the_same_output_is_refused(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the lock it wrote over the first one's scores, and the output became NUL bytes."""
    write_table(tmp_path / "t")
    arguments = [
        str(tmp_path / "t"),
        "-q",
        "-f",
        f"unknown-words={tiny / 'run'}",
        "-o",
        str(tmp_path / "o"),
        "--resume",
    ]
    with held(str(tmp_path / "o"), "smt-score-table"):
        assert main(arguments) == 2
        assert "o.job: in use by smt-score-table, process" in capsys.readouterr().err
    assert main(arguments) == 0 and b"\0" not in (tmp_path / "o").read_bytes()


@pytest.mark.slow
def test_two_at_once(tiny: Path, tmp_path: Path) -> None:
    """The first one rests while the second is started, so that it is at work whatever the machine does."""
    write_table(tmp_path / "t")
    feature = ["-q", "-f", f"translation={tiny / 'run'}", "-o"]
    first = in_small_chunks(tmp_path / "t", *feature, tmp_path / "o", slow=0.5)
    until(lambda: (tmp_path / "o.job" / "scores").exists())
    first.send_signal(signal.SIGSTOP)
    try:
        assert in_small_chunks(tmp_path / "t", *feature, tmp_path / "o", "--resume").wait() == 2
    finally:
        first.send_signal(signal.SIGCONT)
        assert first.wait() == 0
    assert in_small_chunks(tmp_path / "t", *feature, tmp_path / "whole").wait() == 0
    assert (tmp_path / "o").read_bytes() == (tmp_path / "whole").read_bytes()


def until(happened: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.002)


def children(process: int) -> list[int]:
    """The living processes that a process started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            fields = dict(line.split(":\t", 1) for line in status.read_text().split("\n") if ":\t" in line)
            if int(fields["PPid"]) == process and not fields["State"].startswith("Z"):
                found.append(int(status.parent.name))
    return found


@pytest.fixture(scope="module")
def scored(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table `t` and what two workers that nobody stopped made of it, `whole`."""
    folder = tmp_path_factory.mktemp("scored")
    write_table(folder / "t", 2000)
    assert (
        in_small_chunks(
            folder / "t", "-q", "-f", f"translation={tiny / 'run'}", "--workers", 2, "-o", folder / "whole"
        ).wait()
        == 0
    )
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["parent", "worker"])
@pytest.mark.parametrize("moment", ["locked", "begun", 1, 2000, 8000])
def test_killed_with_two_workers(
    victim: str, moment: str | int, tiny: Path, scored: Path, tmp_path: Path
) -> None:
    """kill -9 of the command or of a worker: no process is left over, and --resume ends with the bytes of a
    run that was never stopped."""
    arguments = [scored / "t", "-q", "-f", f"translation={tiny / 'run'}", "--workers", 2, "-o"]
    job = tmp_path / "o.job"
    reached = {"locked": lambda: (job / ".lock").exists(), "begun": lambda: (job / "job.json").exists()}
    process = in_small_chunks(*arguments, tmp_path / "o")
    until(
        reached[moment]
        if isinstance(moment, str)
        else lambda: (job / "scores").exists() and (job / "scores").stat().st_size > moment
    )
    if victim == "worker":
        until(lambda: len(children(process.pid)) > 1)
    left = children(process.pid)
    os.kill(process.pid if victim == "parent" else left[-1], signal.SIGKILL)
    assert process.wait() == (-signal.SIGKILL if victim == "parent" else 2)
    until(lambda: not any(Path(f"/proc/{child}").exists() for child in left), 20)
    assert not (tmp_path / "o").exists()
    assert in_small_chunks(*arguments, tmp_path / "o", "--resume").wait() == 0
    assert (tmp_path / "o").read_bytes() == (scored / "whole").read_bytes() and not job.exists()


def with_first_value(records: bytes, value: float) -> bytes:
    """Records of a job whose first value is another, with the right checksum."""
    rows, _ = struct.unpack("<II", records[:8])
    body = struct.pack("<d", value) + records[16 : 8 + 8 * rows]
    return struct.pack("<II", rows, zlib.crc32(body)) + body + records[8 + 8 * rows :]


@pytest.mark.ci
def test_reuse_copies_and_computes(
    tiny: Path, command: Command, refused: Callable[..., str], tmp_path: Path
) -> None:
    text = write_table(tmp_path / "t")
    lines = text.split(b"\n")[:-1]
    (tmp_path / "part").write_bytes(b"".join(line + b"\n" for line in lines[5:30:2]))
    feature = ["-f", f"translation={tiny / 'run'}"]
    assert (
        command("smt-score-table", tmp_path / "part", "-q", *feature, "-o", tmp_path / "old").returncode == 0
    )
    # a recognizable value shows what was copied
    old = (tmp_path / "old").read_bytes().split(b"\n")
    (tmp_path / "old").write_bytes(
        b"\n".join([re.sub(rb"(0.125) \S+ \|\|\|", rb"\1 0.75 |||", old[0]), *old[1:]])
    )
    done = command(
        "smt-score-table",
        tmp_path / "t",
        *feature,
        "-f",
        f"unknown-words={tiny / 'run'}",
        "--reuse",
        tmp_path / "old",
        "-o",
        tmp_path / "new",
    )
    assert f"13 of {len(lines)} pairs were found" in done.stderr, done.stderr
    assert (
        command("smt-score-table", tmp_path / "t", "-q", *feature, "-o", tmp_path / "fresh").returncode == 0
    )
    new, fresh = (columns_of((tmp_path / name).read_bytes()) for name in ("new", "fresh"))
    assert new[5][0] == 0.75 and fresh[5][0] != 0.75
    assert [row[0] for number, row in enumerate(new) if number != 5] == pytest.approx(
        [row[0] for number, row in enumerate(fresh) if number != 5], rel=1e-4
    )
    message = refused(
        command(
            "smt-score-table",
            tmp_path / "t",
            "-q",
            "-f",
            f"inverse={tiny / 'run'}",
            "--reuse",
            tmp_path / "old",
        )
    )
    assert "none of its columns was made by these runs" in message
    assert "smt-score-table writes it beside" in refused(
        command("smt-score-table", tmp_path / "t", "-q", *feature, "--reuse", tmp_path / "t")
    )
