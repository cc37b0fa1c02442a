"""Jobs of lines: the same bytes by any number of workers, and after a kill at any moment."""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from nmt.cli import jobs, options, score, translate
from nmt.cli.arguments import InputPath, OutputPath
from nmt.cli.jobs import TextJob
from nmt.cli.translation_input import TranslationBlock
from nmt.errors import ConfigError
from nmt.io import files
from nmt.work import store
from nmt.work.executors import EXECUTORS, ExecutorConfig, Local, Lost
from nmt.work.stages import SharedFolder
from nmt.work.store import ChunkRecords
from nmt.work.text_chunks import Lines
from tests.commands.runs import LINES
from tests.conftest import BIN, ROOT, kill_once_written

# ---- test jobs ---------------------------------------------------------------------------------------------


RUN = ROOT / "tests" / "models" / "translator"
OPTIONS = ("-q", "--read-ahead", "2", "--threads", "1", "--beam-size", "3")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_text("".join(f"{line}\n" for line in [*LINES, "", *LINES[:2]]), encoding="utf-8")
    return path


def translated(text: Path, name: str, *more: str) -> bytes:
    out = text.with_name(name)
    assert translate.main([str(RUN), "-i", str(text), "-o", str(out), *OPTIONS, *more]) == 0
    return out.read_bytes()


def args_of(*words: str) -> argparse.Namespace:
    parser = options.Parser("test", "")
    parser.add_argument("--input", type=InputPath)
    parser.add_argument("--other", type=InputPath, nargs="*", default=[])
    parser.add_argument("--points", type=OutputPath)
    parser.add_argument("--beam", type=int, default=3)
    options.add_output(parser)
    options.add_processor(parser)
    options.add_quiet(parser)
    jobs.add_options(parser)
    return parser.parse_args(words)


def test_what_a_job_keeps_depends_on_its_files(tmp_path: Path) -> None:
    text, out = tmp_path / "text", str(tmp_path / "out")
    text.write_text("a\n")

    def kept(*words: str) -> bool:
        return TextJob(args_of(*words), "test", [str(text)]).keeps_chunks

    assert not kept("-o", out) and kept("-o", out, "--resume")
    assert kept("-o", out, "--workers", "2") and kept("-o", out, "--cluster", "127.0.0.1:1")
    assert not kept("--workers", "2") and not kept("-o", os.devnull, "--workers", "2")
    with pytest.raises(ConfigError, match="--resume reads the input again"):
        kept("--resume")
    with pytest.raises(ConfigError, match="--resume reads the input again"):
        TextJob(args_of("-o", out, "--resume"), "test", ["-"])


def test_what_is_recorded_of_the_options() -> None:
    """All that results depend on, and nothing else."""
    found = jobs.recorded_options(
        args_of("--input", "a", "--other", "b", "c", "--points", "d", "--beam", "4")
    )
    assert found == {"--output": True, "--points": True, "--beam": 4}
    same = args_of("--other", "e", "--points", "f", "--beam", "4", "--workers", "2", "-q", "--input", "b")
    assert (
        found == jobs.recorded_options(same) != jobs.recorded_options(args_of("--points", "f", "--beam", "5"))
    )


def test_paths_are_valid_wherever_a_worker_was_started(tmp_path: Path) -> None:
    args = args_of("--input", "a", "--other", "b", "c", "-o", "d")
    args.backoff = InputPath("")
    found = jobs.absolute_paths(args, ["a"])
    assert found.input == "a" and found.output == "d" and found.backoff == ""
    assert found.other == [os.path.abspath("b"), os.path.abspath("c")]


@pytest.mark.ci
def test_a_resumed_job_has_its_own_settings(text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = translated(text, "plain")
    killed_after_a_chunk(text)
    line = [str(RUN), "-i", str(text), "-o", str(text.with_name("out")), *OPTIONS]
    assert translate.main([*line, "--resume", "--beam-size", "4"]) == 2
    assert "was started with other settings (--beam-size)" in capsys.readouterr().err
    assert translate.main([*line, "--executor", "processes"]) == 2
    assert "an unfinished job; --resume continues it" in capsys.readouterr().err
    assert translated(text, "out", "--resume") == b"kept: " + expected  # and is not computed again
    assert not store.job_folder_path(line[4]).exists()


def killed_after_a_chunk(text: Path) -> None:
    """What it has kept is marked: the first of four chunks."""
    add = ChunkRecords.add

    def add_and_end(self: ChunkRecords, number: int, result: bytes) -> None:
        add(self, number, result.replace(b'[["', b'[["kept: '))
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChunkRecords, "add", add_and_end)
        line = [str(RUN), "-i", str(text), "-o", str(text.with_name("out")), *OPTIONS, "--resume"]
        assert translate.main(line) == 130
    assert not text.with_name("out").exists()


def test_another_text_is_another_job(text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    killed_after_a_chunk(text)
    with open(text, "a") as stream:
        stream.write("more\n")
    line = [str(RUN), "-i", str(text), "-o", str(text.with_name("out")), *OPTIONS, "--resume"]
    assert translate.main(line) == 2
    assert "was started with other settings (inputs)" in capsys.readouterr().err


def test_resume_of_a_stream_is_refused(text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert translate.main([str(RUN), "-i", str(text), "--resume"]) == 2
    assert "--resume reads the input again" in capsys.readouterr().err


class Losing(Local[TranslationBlock, Lines]):
    """Loses the second chunk."""

    def map(self, tasks: Iterable[TranslationBlock]) -> Iterator[Lines | Lost]:  # type: ignore[override]
        for number, task in enumerate(tasks):
            yield Lost("three workers died") if number == 1 else self.compute(task)


@pytest.mark.ci
def test_lost_lines_are_named_and_computed_by_the_next_start(
    text: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = translated(text, "plain")
    monkeypatch.setitem(EXECUTORS, "losing", Losing)
    out = text.with_name("out")
    line = [str(RUN), "-i", str(text), *OPTIONS, "--executor", "losing"]
    assert translate.main([*line, "-o", str(out)]) == 2
    assert capsys.readouterr().err == (
        f"translate: {text}: lines 3-4: three workers died; the others are kept, --resume computes only "
        "these\n"
    )
    assert not out.exists() and len(ChunkRecords(store.job_folder_path(str(out)) / jobs.RESULTS)) == 3
    assert translated(text, "out", "--resume") == expected
    assert translate.main(line) == 2
    found = capsys.readouterr()
    assert found.out.encode() == b"".join(expected.splitlines(True)[:2]) and "lines 3-4" in found.err


@pytest.mark.ci
def test_translations_by_several_processes(text: Path, tmp_path: Path) -> None:
    more = ("--n-best", "2")
    assert translated(text, "two", "--workers", "2", *more) == translated(text, "one", *more)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "text", "two"]


@pytest.mark.ci
def test_scores_by_several_processes(
    text: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(score, "READ_AHEAD", 3)
    found = []
    for workers in ("1", "2"):
        words = ["-s", str(text), "-t", str(text), "-o", str(text.with_name(workers)), "--word-scores"]
        assert score.main([str(RUN), *words, "--threads", "1", "--workers", workers]) == 0
        found.append((text.with_name(workers).read_bytes(), capfd.readouterr().err.split("\n")[-2]))
    assert found[0] == found[1] and found[0][0].count(b"\n") == 7 and "mean log p" in found[0][1]


@pytest.mark.ci
def test_a_killed_command_is_resumed_with_the_same_bytes(text: Path) -> None:
    with open(text, "a") as stream:
        stream.write("\n".join(LINES * 30) + "\n")
    expected = translated(text, "plain")
    line = [
        sys.executable, str(BIN / "nmt-translate"), str(RUN), "-i", str(text), "-o",
        str(text.with_name("out")), *OPTIONS, "--workers", "2",
    ]  # fmt: skip
    with subprocess.Popen(line) as process:
        kill_once_written(process, store.job_folder_path(line[6]) / jobs.RESULTS)
    assert len(ChunkRecords(store.job_folder_path(line[6]) / jobs.RESULTS)) and not os.path.exists(line[6])
    assert translated(text, "out", "--workers", "2", "--resume") == expected
    assert files.count_lines(text) == expected.count(b"\n")


# ---- test shared job ---------------------------------------------------------------------------------------
# Where the job of several workers lies.


def place(*words: str, output: str = "table.gz") -> SharedFolder | None:
    parser = argparse.ArgumentParser()
    jobs.add_shared_job(parser)
    args = parser.parse_args(words)
    args.output = output
    config = ExecutorConfig(workers=args.workers, executor=args.executor, cluster=args.cluster)
    return jobs.shared_folder(args, "smt-extract", config)


def test_alone_there_is_no_folder() -> None:
    assert place() is None and place("--workers", "1", output="-") is None


def test_beside_the_output_or_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a whole path, since workers are elsewhere."""
    monkeypatch.chdir(tmp_path)
    for words in (["--workers", "2"], ["--cluster", "127.0.0.1:1"], ["--executor", "processes"]):
        found = place(*words)
        assert found == SharedFolder(tmp_path / "table.gz.job", "smt-extract")
    assert place("--work", "here", output="-") == SharedFolder(tmp_path / "here", "smt-extract")
    resumed = place("--resume")
    assert resumed and resumed.resume


def test_several_workers_need_a_folder() -> None:
    with pytest.raises(ConfigError, match="several workers share a folder"):
        place("--workers", "2", output="-")
