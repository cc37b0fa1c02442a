"""smt-score-table as installed: one exact column, every other byte kept."""

import gzip
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

from nmt.runs import checkpoint
from nmt.scoring import word_scores
from nmt.work.store import lock_job
from smt_bridge.cli.score_table import main
from tests.conftest import Command, kill_once_written
from tests.smt_bridge.cli.scored_tables import ARPA, arpa_score, columns_of, in_small_chunks, write_table

# ---- test score table --------------------------------------------------------------------------------------


TABLE = (
    b"&apos;s dog ||| le chien ||| 0.5 0.25 1 2.718 ||| 0-1 1-0 ||| 1 1 1 ||| |||\n"
    b"the dog ||| l&apos; un\xc2\xa0x ||| 1e-19 0.25 1 2.718 ||| |||  1 1 ||| s 1 ||| {{Orientation b}}\n"
    b"the dog ||| le chien ||| 0.5 0.25 1 2.718 ||| 0-0 1-1 ||| 1 2 1 ||| |||\n"
)


def test_column_is_exp_of_the_pairs_own_score(tiny: Path, command: Command, tmp_path: Path) -> None:
    (tmp_path / "t.gz").write_bytes(gzip.compress(TABLE))
    done = command(
        "smt-score-table",
        tmp_path / "t.gz",
        "--feature",
        f"translation={tiny / 'run'}",
        "--output",
        tmp_path / "o.gz",
    )
    assert done.returncode == 0, done.stderr
    lines = gzip.decompress((tmp_path / "o.gz").read_bytes()).split(b"\n")
    assert lines.pop() == b""
    (tmp_path / "s").write_text("'s dog\nthe dog\nthe dog\n")
    (tmp_path / "f").write_text("le chien\nl' un\xa0x\nle chien\n")
    scorer = command(
        "nmt-score", tiny / "run", "-q", "--tokenized", "-s", tmp_path / "s", "-t", tmp_path / "f"
    )
    for old, new, log_prob in zip(TABLE.split(b"\n"), lines, scorer.stdout.split(), strict=False):
        before, scores, after = old.split(b" ||| ")[:2], old.split(b" ||| ")[2], old.split(b" ||| ", 3)[3]
        column = new[len(b" ||| ".join(before)) + 5 + len(scores) + 1 : -len(b" ||| " + after)]
        assert new == b" ||| ".join([*before, scores + b" " + column, after])
        assert math.log(float(column)) == pytest.approx(float(log_prob), abs=1e-4)


def test_unsorted_is_told_once(tiny: Path, command: Command, tmp_path: Path) -> None:
    lines = [b"b ||| x ||| 0.5", b"a ||| x ||| 0.5", b"c ||| x ||| 0.5", b"b ||| x ||| 0.5"]
    (tmp_path / "t").write_bytes(b"".join(line + b"\n" for line in lines))
    for table, text in ((tmp_path / "t", b""), ("-", (tmp_path / "t").read_bytes())):
        done = command(
            "smt-score-table", table, "-q", "--unsorted", "-f", f"unknown-words={tiny / 'run'}", input=text
        )
        assert (
            done.returncode == 0
            and done.stderr.count("\n") == 1
            and "t:2: not in" in done.stderr.replace("<stdin>", "t")
        ), done.stderr
        assert [line.rpartition(" ")[0].encode() for line in done.stdout.split("\n")[:-1]] == lines


@pytest.mark.ci
def test_stream_and_two_features(tiny: Path, command: Command) -> None:
    feature = ["--feature", f"translation={tiny / 'run'}"]
    one = command("smt-score-table", "-", "-q", *feature, input=TABLE).stdout
    two = command("smt-score-table", "-", "-q", *feature, *feature, input=TABLE).stdout
    for a, b in zip(one.split("\n")[:-1], two.split("\n")[:-1], strict=True):
        scores = a.split(" ||| ")[2].split()
        assert b.split(" ||| ")[2].split() == [*scores, scores[-1]]


def test_kinds_of_features(tiny: Path, command: Command, tmp_path: Path) -> None:
    """Each column is what its model says of the pair alone."""
    text = write_table(tmp_path / "t")
    (tmp_path / "lm").write_text(ARPA, encoding="utf-8")
    features = [
        f"translation={tiny / 'run'}",
        f"inverse:Back={tiny / 'run'}",
        f"lm={tmp_path / 'lm'}",
        f"unknown-words={tiny / 'run'}",
    ]
    done = command(
        "smt-score-table", tmp_path / "t", "-q", *[word for feature in features for word in ("-f", feature)]
    )
    assert done.returncode == 0, done.stderr
    run = checkpoint.load(tiny / "run")
    for line, (direct, inverse, lm, unknown) in zip(
        text.split(b"\n"), columns_of(done.stdout.encode()), strict=False
    ):
        source, target = (part.decode().split() for part in line.split(b" ||| ")[:2])
        for value, (one, other) in ((direct, (source, target)), (inverse, (target, source))):
            expected = sum(
                word_scores(run.model, [(run.source_words.encode(one), run.target_words.encode(other))])[0]
            )
            assert math.log(value) == pytest.approx(expected, abs=1e-4)
        assert math.log(lm) == pytest.approx(math.log(10) * arpa_score(target), abs=1e-4)
        assert math.log(unknown) == pytest.approx(
            sum(word not in run.target_words.ids for word in target), abs=1e-4
        )


@pytest.mark.ci
def test_estimate_and_precision(tiny: Path, command: Command, tmp_path: Path) -> None:
    write_table(tmp_path / "t")
    done = command(
        "smt-score-table",
        tmp_path / "t",
        "-f",
        f"translation={tiny / 'run'}",
        "--estimate",
        "-o",
        tmp_path / "o",
    )
    assert [line.split("\t")[0] for line in done.stdout.split("\n")[:-1]] == [
        "pairs",
        "rate",
        "time",
        "memory",
    ]
    assert not (tmp_path / "o").exists() and not (tmp_path / "o.job").exists()
    done = command(
        "smt-score-table",
        tmp_path / "t",
        "-f",
        f"translation={tiny / 'run'}",
        "--precision",
        "int8",
        "-o",
        tmp_path / "o",
    )
    error = re.search(r"int8 against fp32 on \d+ pairs: RNN0: error in log p (\S+) on average", done.stderr)
    assert error and 0 < float(error[1]) < 0.5, done.stderr
    assert columns_of((tmp_path / "o").read_bytes())


def test_report(tiny: Path, command: Command, tmp_path: Path) -> None:
    lines = [
        b"the dog sees ||| t%d ||| 0.5 0.5 %g 0.5 ||| ||| 1 %d 1 ||| |||\n" % (n, 0.5**n, 7) for n in range(5)
    ]
    (tmp_path / "t").write_bytes(b"".join(lines))
    done = command(
        "smt-score-table",
        tmp_path / "t",
        "-q",
        "-f",
        f"translation={tiny / 'run'}",
        "--report",
        tmp_path / "r",
        "-o",
        tmp_path / "o",
    )
    assert done.returncode == 0, done.stderr
    scatter = [
        line.split("\t") for line in (tmp_path / "r" / "scatter-RNN0.tsv").read_text().split("\n")[1:-1]
    ]
    assert [float(row[3]) for row in scatter] == pytest.approx(
        [n * math.log(0.5) for n in range(5)], rel=1e-4
    )
    assert [float(row[4]) for row in scatter] == pytest.approx(
        [math.log(row[0]) for row in columns_of((tmp_path / "o").read_bytes())], abs=1e-4
    )
    table = [line.split("\t") for line in (tmp_path / "r" / "phrases-RNN0.tsv").read_text().split("\n")[1:-1]]
    assert [row[5] for row in table if row[:4] == ["frequent", "the dog sees", "7", "table"]] == [
        "t0",
        "t1",
        "t2",
    ]
    assert "unknown target words\t5" in (tmp_path / "r" / "coverage.tsv").read_text()
    assert (tmp_path / "r" / "scatter-RNN0.png").read_bytes()[:4] == b"\x89PNG"


REFUSALS = {
    "two fields": (b"a ||| b ||| 1\na ||| b\n", "<stdin>:2: 2 fields"),
    "another number of scores": (
        b"a ||| b ||| 1\na ||| c ||| 1 1\n",
        "<stdin>:2: 2 scores, but the lines above have 1",
    ),
    "empty table": (b"", "empty file"),
    "empty line": (b"a ||| b ||| 1\n\n", "<stdin>:2: empty line"),
    "unsorted": (b"b ||| b ||| 1\na ||| b ||| 1\n", "<stdin>:2: not in whole-line LC_ALL=C order"),
    "latin-1": (b"a ||| \xe9 ||| 1\n", "is not UTF-8"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(
    case: str, tiny: Path, tmp_path: Path, command: Command, refused: Callable[..., str]
) -> None:
    table, message = REFUSALS[case]
    done = command(
        "smt-score-table", "-", "-q", "-f", f"translation={tiny / 'run'}", "-o", tmp_path / "o", input=table
    )
    assert message in refused(done)
    assert not list(tmp_path.iterdir())


@pytest.mark.ci
def test_bad_features_are_refused(tiny: Path, command: Command, refused: Callable[..., str]) -> None:
    assert "expected TYPE[:NAME]=PATH" in refused(command("smt-score-table", "-", "-f", "translation"))
    assert "expected one of translation" in refused(command("smt-score-table", "-", "-f", f"nmt={tiny}"))
    assert "split names at '_'" in refused(command("smt-score-table", "-", "-f", f"translation:R_NN={tiny}"))
    assert "the name A is taken" in refused(
        command("smt-score-table", "-", "-f", f"lm:A={tiny}", "-f", f"lm:A={tiny}")
    )
    assert "expected an ARPA or KenLM file" in refused(
        command("smt-score-table", "-", "-q", "-f", f"lm={tiny}")
    )
    assert "not an ARPA or KenLM file" in refused(
        command("smt-score-table", "-", "-q", "-f", f"lm={tiny / 'train.en'}")
    )
    assert "is a translator, expected a language model's run directory" in refused(
        command("smt-score-table", "-", "-q", "-f", f"neural-lm={tiny / 'run'}")
    )
    assert "reads the table twice" in refused(
        command("smt-score-table", "-", "-q", "-f", f"translation={tiny}", "--shard", "1/2")
    )
    assert "1 <= I <= N" in refused(
        command("smt-score-table", "-", "-q", "-f", f"translation={tiny}", "--shard", "3/2")
    )
    assert "no such run directory" in refused(
        command("smt-score-table", "-", "-q", "-f", "translation=nosuch")
    )
    assert "nosuch: cannot read" in refused(
        command("smt-score-table", "nosuch", "-q", "-f", f"translation={tiny / 'run'}")
    )


def test_real_table(tiny: Path, command: Command, nmt_data: Path, tmp_path: Path) -> None:
    """3,000 lines of a real Moses table: every line keeps its bytes but for one more number."""
    lines = gzip.open(nmt_data / "moses-multi30k" / "phrase-table.gz").read(1 << 20).split(b"\n")[:3000]
    done = command(
        "smt-score-table", "-", "-q", "-f", f"translation={tiny / 'run'}", input=b"\n".join(lines) + b"\n"
    )
    out = done.stdout.encode().split(b"\n")
    assert out.pop() == b"" and len(out) == 3000
    for old, new in zip(lines, out, strict=True):
        left, right = old.split(b" ||| "), new.split(b" ||| ")
        assert [*right[:2], right[2].rpartition(b" ")[0], *right[3:]] == left
        assert 0 < float(right[2].split()[-1]) <= 1


# ---- test score table jobs ---------------------------------------------------------------------------------
# smt-score-table in workers and shards, killed, resumed, and with an earlier table: the bytes of one run.


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
    with lock_job(str(tmp_path / "o"), "smt-score-table"):
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
