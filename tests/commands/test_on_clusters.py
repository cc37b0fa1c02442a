"""Commands on a cluster of two workers: the bytes of one process. One cluster serves all tests."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.cli import score, translate
from nmt.ngram import selection
from nmt.work import store
from smt_bridge.cli import decode, select, tune
from smt_bridge.cli import propose as propose_command
from smt_bridge.tables import propose
from tests.commands.runs import LINES
from tests.conftest import ROOT
from tests.nmt.work import clusters

pytestmark = pytest.mark.ci
MODELS = ROOT / "tests" / "models"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with clusters.cluster(tmp_path_factory.mktemp("cluster")) as place:
        yield place


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In the working folder, which is not that of the workers."""
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in [*LINES, "", *LINES[:2]]))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "text"


def test_translations(two: str, text: Path) -> None:
    run = os.path.relpath(MODELS / "translator")  # workers find it, too
    line = [run, "-i", "text", "-q", "--read-ahead", "2", "--threads", "1", "--n-best", "2"]
    assert translate.main([*line, "-o", "here"]) == 0
    assert translate.main([*line, "-o", "there", "--cluster", two]) == 0
    assert Path("there").read_bytes() == Path("here").read_bytes()
    assert not store.job_folder_path("there").exists()


def test_scores_of_pairs_and_of_text(
    two: str, text: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr(score, "READ_AHEAD", 3)
    for line in (
        [str(MODELS / "translator"), "-s", "text", "-t", "text", "--word-scores"],
        [str(MODELS / "lm"), "-i", "text"],
    ):
        assert score.main([*line, "-q", "--threads", "1"]) == 0
        here = capfdbinary.readouterr().out
        assert score.main([*line, "-q", "--cluster", two]) == 0  # a stream: nothing is kept
        assert capfdbinary.readouterr().out == here and here.count(b"\n") == 7


def test_phrase_based_translations(two: str, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "BLOCK", 2)
    shutil.copytree(MODELS / "phrase-based", "model")
    for name, more in (("here", ["--workers", "2"]), ("there", ["--cluster", two])):
        outputs = ["-o", name, "--n-best-list", f"{name}.list", "--n-best", "3"]
        assert decode.main(["model", "-i", "text", "-q", *outputs, *more]) == 0
    for ending in ("", ".list"):
        assert Path(f"there{ending}").read_bytes() == Path(f"here{ending}").read_bytes()


def test_a_tuning(two: str, text: Path) -> None:
    """The same lists and weights in each iteration."""
    shutil.copytree(MODELS / "phrase-based", "model")
    for name, file in (("source", "tokenized.en"), ("refs", "phrase-based.fr")):
        lines = (MODELS / file).read_text(encoding="utf-8").splitlines(True)[:60]
        Path(name).write_text("".join(lines), encoding="utf-8")
    line = "model -s source -r refs --iterations 2 --restarts 1 --n-best 5 --stack 5 -q".split()
    assert tune.main([*line, "-o", "here.ini"]) == 0
    assert tune.main([*line, "-o", "there.ini", "--cluster", two]) == 0
    made = sorted(Path("here.ini.tuning").glob("*[sz]"))  # lists and weights
    assert len(made) > 1
    for path in made:
        assert Path("there.ini.tuning", path.name).read_bytes() == path.read_bytes()


def test_a_selection(two: str, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "BLOCK", 2)
    line = "--in-domain text --general text --keep 3 --min-count 1 -q --scores".split()
    assert select.main([*line, "here.scores", "-o", "here"]) == 0
    assert select.main([*line, "there.scores", "-o", "there", "--cluster", two]) == 0
    for ending in ("", ".scores"):
        assert Path(f"there{ending}").read_bytes() == Path(f"here{ending}").read_bytes()


def test_proposals(two: str, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(propose, "BATCH", 3)
    for name in ("lex.e2f", "lex.f2e"):
        Path(name).write_text("fille girl 0.5\n")
    table, run = MODELS / "phrase-based" / "phrase-table.gz", os.path.relpath(MODELS / "translator")
    line = [str(table), run, "--inverse", run, "--lexical", "lex", "-i", "text", "--least", "0.001", "-q"]
    assert propose_command.main([*line, "-o", "here", "--threads", "1"]) == 0
    assert propose_command.main([*line, "-o", "there", "--cluster", two]) == 0
    assert (
        Path("there").read_bytes() == Path("here").read_bytes() and b"2.718282" in Path("here").read_bytes()
    )


def test_a_file_that_differs_on_a_worker(
    two: str, text: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As if the run had been trained on since."""
    monkeypatch.setattr(
        "nmt.work.store.file_digests", lambda paths: dict.fromkeys(map(str, paths), "another")
    )
    line = [str(MODELS / "translator"), "-i", "text", "-o", "out", "-q", "--cluster", two]
    assert translate.main(line) == 2
    assert "differs on" in capfd.readouterr().err and not Path("out").exists()
