"""smt-score-table as installed: one exact column, every other byte kept."""

import gzip
import math
import os
import re
import signal
import struct
import subprocess
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from nmt.runs import checkpoint
from nmt.scoring import word_scores
from nmt.work.store import lock_job
from smt_bridge.cli.score_table import main
from smt_bridge.features import feature_set
from smt_bridge.features.feature_set import FeatureSet
from tests.conftest import Command, kill_once_written, refusal, until
from tests.nmt.work import clusters
from tests.smt_bridge.cli.scored_tables import ARPA, arpa_score, columns_of, in_small_chunks, write_table

TABLE = (
    b"&apos;s dog ||| le chien ||| 0.5 0.25 1 2.718 ||| 0-1 1-0 ||| 1 1 1 ||| |||\n"
    b"the dog ||| l&apos; un\xc2\xa0x ||| 1e-19 0.25 1 2.718 ||| |||  1 1 ||| s 1 ||| {{Orientation b}}\n"
    b"the dog ||| le chien ||| 0.5 0.25 1 2.718 ||| 0-0 1-1 ||| 1 2 1 ||| |||\n"
)


def test_column_is_exp_of_the_pairs_own_score(tiny: Path, command: Command, tmp_path: Path) -> None:
    (tmp_path / "t.gz").write_bytes(gzip.compress(TABLE))
    line = ["smt-score-table", "t.gz", "--feature", f"translation={tiny / 'run'}", "--output", "o.gz"]
    done = command(*line, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = gzip.decompress((tmp_path / "o.gz").read_bytes()).split(b"\n")
    assert lines.pop() == b""
    (tmp_path / "s").write_text("'s dog\nthe dog\nthe dog\n")
    (tmp_path / "f").write_text("le chien\nl' un\xa0x\nle chien\n")
    scorer = command("nmt-score", tiny / "run", *"-q --tokenized -s s -t f".split(), cwd=tmp_path)
    for old, new, log_prob in zip(TABLE.split(b"\n"), lines, scorer.stdout.split(), strict=False):
        before, scores, after = old.split(b" ||| ")[:2], old.split(b" ||| ")[2], old.split(b" ||| ", 3)[3]
        column = new[len(b" ||| ".join(before)) + 5 + len(scores) + 1 : -len(b" ||| " + after)]
        assert new == b" ||| ".join([*before, scores + b" " + column, after])
        assert math.log(float(column)) == pytest.approx(float(log_prob), abs=1e-4)


def test_more_shards_than_chunks(tmp_path: Path) -> None:
    """Some of them are empty."""
    (tmp_path / "t").write_bytes(TABLE)
    (tmp_path / "lm").write_text(ARPA)
    given = [str(tmp_path / "t"), "-q", "-f", f"lm={tmp_path / 'lm'}", "-o"]
    assert main([*given, str(tmp_path / "whole")]) == 0
    shards = []
    for number in range(1, 4):
        assert main([*given, str(tmp_path / "shard"), "--shard", f"{number}/3"]) == 0
        shards.append((tmp_path / "shard").read_bytes())
        described = (tmp_path / "shard.scores.json").read_text()
        assert described == (tmp_path / "whole.scores.json").read_text()
    assert b"".join(shards) == (tmp_path / "whole").read_bytes() and b"" in shards
    assert not (tmp_path / "shard.job").exists()


def test_unsorted_is_told_once(tiny: Path, command: Command, tmp_path: Path) -> None:
    lines = [b"b ||| x ||| 0.5", b"a ||| x ||| 0.5", b"c ||| x ||| 0.5", b"b ||| x ||| 0.5"]
    (tmp_path / "t").write_bytes(b"".join(line + b"\n" for line in lines))
    given = ["-q", "--unsorted", "-f", f"unknown-words={tiny / 'run'}"]
    for table, text in ((tmp_path / "t", b""), ("-", (tmp_path / "t").read_bytes())):
        done = command("smt-score-table", table, *given, input=text)
        assert done.returncode == 0 and done.stderr.count("\n") == 1, done.stderr
        assert "t:2: not in" in done.stderr.replace("<stdin>", "t")
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
    kinds = f"translation={tiny}/run", f"inverse:Back={tiny}/run", "lm=lm", f"unknown-words={tiny}/run"
    given = [word for feature in kinds for word in ("-f", feature)]
    done = command("smt-score-table", "t", "-q", *given, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = checkpoint.load(tiny / "run")
    rows = zip(text.split(b"\n"), columns_of(done.stdout.encode()), strict=False)
    for line, (direct, inverse, lm, unknown) in rows:
        source, target = (part.decode().split() for part in line.split(b" ||| ")[:2])
        for value, (one, other) in ((direct, (source, target)), (inverse, (target, source))):
            pair = run.source_words.encode(one), run.target_words.encode(other)
            assert math.log(value) == pytest.approx(sum(word_scores(run.model, [pair])[0]), abs=1e-4)
        assert math.log(lm) == pytest.approx(math.log(10) * arpa_score(target), abs=1e-4)
        count = sum(word not in run.target_words.ids for word in target)
        assert math.log(unknown) == pytest.approx(count, abs=1e-4)


@pytest.mark.ci
def test_estimate_and_precision(tiny: Path, command: Command, tmp_path: Path) -> None:
    write_table(tmp_path / "t")
    line = ["smt-score-table", "t", "-f", f"translation={tiny / 'run'}", "-o", "o"]
    done = command(*line, "--estimate", cwd=tmp_path)
    assert re.fullmatch(r"pairs\t.*\nrate\t.*\ntime\t.*\nmemory\t.*\n", done.stdout)
    assert not (tmp_path / "o").exists() and not (tmp_path / "o.job").exists()
    done = command(*line, "--precision", "int8", cwd=tmp_path)
    error = re.search(r"int8 against fp32 on \d+ pairs: RNN0: error in log p (\S+) on average", done.stderr)
    assert error and 0 < float(error[1]) < 0.5, done.stderr
    assert columns_of((tmp_path / "o").read_bytes())


@pytest.mark.ci
def test_report(tiny: Path, command: Command, tmp_path: Path) -> None:
    row = b"the dog sees ||| t%d ||| 0.5 0.5 %g 0.5 ||| ||| 1 7 1 ||| |||\n"
    (tmp_path / "t").write_bytes(b"".join(row % (n, 0.5**n) for n in range(5)))
    line = ["smt-score-table", *"t -q --report r -o o -f".split(), f"translation={tiny / 'run'}"]
    done = command(*line, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    scatter, table = (
        [line.split("\t") for line in (tmp_path / "r" / f"{name}-RNN0.tsv").read_text().split("\n")[1:-1]]
        for name in ("scatter", "phrases")
    )
    direct, scores = zip(*(map(float, fields[3:]) for fields in scatter), strict=True)
    assert direct == pytest.approx([n * math.log(0.5) for n in range(5)], rel=1e-4)
    column = [math.log(value) for (value,) in columns_of((tmp_path / "o").read_bytes())]
    assert scores == pytest.approx(column, abs=1e-4)
    frequent = [fields[5] for fields in table if fields[:4] == ["frequent", "the dog sees", "7", "table"]]
    assert frequent == ["t0", "t1", "t2"]
    assert "unknown target words\t5" in (tmp_path / "r" / "coverage.tsv").read_text()
    assert (tmp_path / "r" / "scatter-RNN0.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (b"a ||| b ||| 1\na ||| b\n", "<stdin>:2: 2 fields"),
        (b"a ||| b ||| 1\na ||| c ||| 1 1\n", "<stdin>:2: 2 scores, but the lines above have 1"),
        (b"", "empty file"),
        (b"a ||| b ||| 1\n\n", "<stdin>:2: empty line"),
        (b"b ||| b ||| 1\na ||| b ||| 1\n", "<stdin>:2: not in whole-line LC_ALL=C order"),
        (b"a ||| \xe9 ||| 1\n", "is not UTF-8"),
    ],
)
def test_tables_that_are_refused(
    table: bytes, message: str, tiny: Path, tmp_path: Path, command: Command, refused: Callable[..., str]
) -> None:
    line = ["smt-score-table", "-", "-q", "-f", f"translation={tiny / 'run'}", "-o", tmp_path / "o"]
    assert message in refused(command(*line, input=table))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("- -f translation", "expected TYPE[:NAME]=PATH"),
        ("- -f nmt=.", "expected one of translation"),
        ("- -f translation:R_NN=.", "split names at '_'"),
        ("- -f lm:A=. -f lm:A=.", "the name A is taken"),
        ("- -f lm=.", "expected an ARPA or KenLM file"),
        ("- -f lm=train.en", "not an ARPA or KenLM file"),
        ("- -f neural-lm=run", "is a translator, expected a language model's run directory"),
        ("- -f translation=. --shard 1/2", "reads the table twice"),
        ("- -f translation=. --shard 3/2", "1 <= I <= N"),
        ("- -f translation=nosuch", "no such run directory"),
        ("nosuch -f translation=run", "nosuch: cannot read"),
    ],
)
def test_words_that_are_refused(
    words: str, message: str, tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tiny)
    assert message in refusal(main, capsys, *words.split(), "-q")


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


# ---- jobs --------------------------------------------------------------------------------------------------
# In workers and shards, killed, resumed, and with an earlier table: the bytes of one run.


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
        part = in_small_chunks(tmp_path / "t", *feature, "--shard", f"{number}/3", "-o", tmp_path / "s")
        assert part.wait() == 0
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
    # shows that finished chunks are taken as they are
    scores.write_bytes(with_first_value(done, math.log(0.75)))
    assert in_small_chunks(*arguments, "--resume").wait() == 0
    assert in_small_chunks(*arguments[:-1], tmp_path / "whole").wait() == 0
    resumed, whole = ((tmp_path / name).read_bytes().split(b"\n", 1) for name in ("o", "whole"))
    assert resumed[1] == whole[1]
    assert b" 0.125 0.75 ||| " in resumed[0] and b" 0.125 0.75 ||| " not in whole[0]
    assert not (tmp_path / "o.job").exists()


def test_a_second_one_on_the_same_output_is_refused(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the lock it wrote over the first one's scores, and the output became NUL bytes."""
    write_table(tmp_path / "t")
    paths = [str(tmp_path / "t"), "-o", str(tmp_path / "o")]
    arguments = [*paths, "-q", "--resume", "-f", f"unknown-words={tiny / 'run'}"]
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
    given = ["-q", "-f", f"translation={tiny / 'run'}", "--workers", 2]
    assert in_small_chunks(folder / "t", *given, "-o", folder / "whole").wait() == 0
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
    until(lambda: not any(Path(f"/proc/{child}").exists() for child in left), 120)
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

    def score(table: str, *more: object) -> subprocess.CompletedProcess[str]:
        return command("smt-score-table", table, *more, cwd=tmp_path)

    assert score("part", "-q", *feature, "-o", "old").returncode == 0
    # a recognizable value shows what was copied
    old = (tmp_path / "old").read_bytes().split(b"\n")
    old[0] = re.sub(rb"(0.125) \S+ \|\|\|", rb"\1 0.75 |||", old[0])
    (tmp_path / "old").write_bytes(b"\n".join(old))
    more = ["-f", f"unknown-words={tiny / 'run'}", "--reuse", "old", "-o", "new"]
    done = score("t", *feature, *more)
    assert f"13 of {len(lines)} pairs were found" in done.stderr, done.stderr
    assert score("t", "-q", *feature, "-o", "fresh").returncode == 0
    new, fresh = (columns_of((tmp_path / name).read_bytes()) for name in ("new", "fresh"))
    assert new[5][0] == 0.75 and fresh[5][0] != 0.75
    rest, expected = ([row[0] for row in rows[:5] + rows[6:]] for rows in (new, fresh))
    assert rest == pytest.approx(expected, rel=1e-4)
    message = refused(score("t", "-q", "-f", f"inverse={tiny / 'run'}", "--reuse", "old"))
    assert "none of its columns was made by these runs" in message
    assert "smt-score-table writes it beside" in refused(score("t", "-q", *feature, "--reuse", "t"))


# ---- on a cluster ------------------------------------------------------------------------------------------
# The bytes of one machine, whatever is killed; and what is refused.


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with clusters.cluster(tmp_path_factory.mktemp("cluster"), workers=1) as place:
        yield place


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_table(tmp_path / "t", pairs=4000)
    (tmp_path / "lm.arpa").write_text(ARPA)
    return tmp_path


def arguments(folder: Path, output: str, *options: str) -> list[str]:
    return [str(folder / "t"), "-q", "-f", f"lm={folder / 'lm.arpa'}", "-o", str(folder / output), *options]


@pytest.mark.ci
def test_killed_and_resumed_on_a_cluster(one: str, folder: Path) -> None:
    """kill -9 of the command, at work on the cluster; the same cluster continues."""
    on_cluster = arguments(folder, "o", "--cluster", one)
    kill_once_written(in_small_chunks(*on_cluster), folder / "o.job" / "scores")
    assert not (folder / "o").exists() and (folder / "o.job" / "scores").stat().st_size > 100
    assert in_small_chunks(*on_cluster, "--resume").wait() == 0
    assert main(arguments(folder, "whole")) == 0  # another size of chunks
    assert (folder / "o").read_bytes() == (folder / "whole").read_bytes()
    assert not (folder / "o.job").exists()


def refused_by_cluster(capsys: pytest.CaptureFixture[str], folder: Path, *options: str) -> str:
    assert main(arguments(folder, "o", *options)) == 2
    assert not (folder / "o").exists() and not (folder / "o.job").exists()
    lines = capsys.readouterr().err.split("\n")
    assert len(lines) == 2, lines
    return lines[0]


@pytest.mark.ci
def test_a_worker_without_the_path(
    one: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(feature_set, "absolute", lambda path: path and f"{path}.there")
    message = refused_by_cluster(capsys, folder, "--cluster", one)
    assert "worker tcp://127.0.0.1:" in message and f"{folder}/lm.arpa.there: " in message


@pytest.mark.ci
def test_a_worker_with_another_model(
    one: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same path, other content."""
    monkeypatch.setattr(FeatureSet, "identities", lambda features: ["another"])
    message = refused_by_cluster(capsys, folder, "--cluster", one)
    assert "worker tcp://127.0.0.1:" in message
    assert f"{folder}/lm.arpa: differs from the model where the job was started" in message


@pytest.mark.ci
def test_a_scheduler_that_cannot_be_reached(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = refused_by_cluster(capsys, folder, "--cluster", "127.0.0.1:1")
    assert "--cluster 127.0.0.1:1: no scheduler answers within 10 s" in message
    assert "without TLS" in refused_by_cluster(capsys, folder, "--cluster", "10.0.0.1:8786")
