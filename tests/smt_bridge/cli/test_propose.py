"""smt-propose: the rows of the library, merged into both tables; contradictory options are refused before a
model is loaded."""

import gzip
import shutil
from pathlib import Path

import pytest

from nmt.formats import phrase_table
from nmt.io import files
from nmt.runs.run import Run
from nmt.work.executors import ExecutorConfig, Local
from smt_bridge.cli.propose import main
from smt_bridge.config import ProposeConfig
from smt_bridge.features.registry import FEATURES, FeatureSettings, FeatureSpec
from smt_bridge.tables import propose
from smt_bridge.tables.filter import Occurring
from tests.conftest import ROOT, refusal
from tests.nmt.compute.restored import torch_as_before

MODELS = ROOT / "tests" / "models"
TEXTS = ["a girl reads", "the boy sleeps ."]


as_before = pytest.fixture(autouse=True)(torch_as_before)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Some rows of a phrase table and its reordering table, word translation probabilities, and a run."""
    shutil.copytree(MODELS / "translator", tmp_path / "run")
    for name, old in (("t", "phrase-table.gz"), ("r", "reordering-table.wbe-msd-bidirectional-fe.gz")):
        lines = gzip.decompress((MODELS / "phrase-based" / old).read_bytes()).split(b"\n")[:-1]
        (tmp_path / name).write_bytes(b"".join(line + b"\n" for line in lines[::40]))
    (tmp_path / "lex.e2f").write_text("fille girl 0.5\nNULL a 0.25\n")
    (tmp_path / "lex.f2e").write_text("girl fille 0.5\nNULL une 0.25\n")
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in TEXTS))
    return tmp_path


def given(folder: Path) -> list[str]:
    words = [f"{folder}/t", f"{folder}/run", "--lexical", f"{folder}/lex", "-i", f"{folder}/in"]
    return [*words, "--reordering", f"{folder}/r", "--matmul", "mkl", "--threads", "1", "-q"]


def test_both_tables_are_those_of_the_library(folder: Path) -> None:
    out = ["-o", f"{folder}/o", "--reordering-output", f"{folder}/ro"]
    assert main([*given(folder), *out, "--least", "0.0001", "--options", "2", "--max-length", "2"]) == 0
    config = ProposeConfig(least=0.0001, options=2, max_length=2)
    known = propose.read_table(f"{folder}/t", f"{folder}/r")
    thin = propose.thin_sources(Occurring(line.encode() for line in TEXTS), known, config)
    proposer = propose.Proposer(
        config=config,
        table=known,
        lexicons=tuple(propose.read_lexicon(f"{folder}/lex.{way}") for way in ("f2e", "e2f")),  # type: ignore[arg-type]
    )
    search = Run.of(folder / "run").for_text(tokenized=True).n_best
    spec = FeatureSpec(kind="translation", name="T", path=f"{folder}/run")  # the run has subwords
    direct = FEATURES["translation"].load(spec, FeatureSettings())
    networks = propose.Networks(search, None, config.beam_size, direct=direct)
    rows = proposer.rows(thin, Local(networks.compute, lambda: networks.compute, ExecutorConfig()))
    old = files.read_byte_lines(f"{folder}/r")
    merged = list(propose.merge_rows(phrase_table.read(f"{folder}/t"), rows, old))
    assert rows and (folder / "o").read_bytes() == b"".join(line + b"\n" for line, _ in merged)
    assert (folder / "ro").read_bytes() == b"".join(line + b"\n" for _, line in merged)


def test_a_table_with_count_bins(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The number of scores that moses.ini needs is told, and each row has as many."""
    lines = (folder / "t").read_bytes().split(b"\n")[:-1]
    fields = [line.split(b" ||| ") for line in lines]
    for row in fields:
        row[2] += b" 2.718 1 1 1 1 1"
    (folder / "t").write_bytes(b"".join(b" ||| ".join(row) + b"\n" for row in fields))
    out = ["-o", f"{folder}/o", "--reordering-output", f"{folder}/ro", "--least", "0.0001"]
    assert main([*given(folder)[:-1], *out]) == 0
    assert "moses.ini: num-features=11 " in capsys.readouterr().err
    rows = [row.scores.split() for row in phrase_table.read(f"{folder}/o")]
    assert len(rows) > len(lines) and {len(row) for row in rows} == {11}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--reordering and --reordering-output go together"),
        (["--lexical", "none", "--reordering-output", "ro"], "none.e2f"),
        (["-i", "-", "--reordering-output", "ro"], "are read more than once; give files, not -"),
        (["--reordering-output", "lex.e2f"], "is also read"),
        (["--reordering-output", "ro", "--least", "2"], "argument --least"),
        (["--reordering-output", "ro", "--max-length", "1", "--thin", "0", "--rare", "0"], "covers every"),
    ],
)
def test_refused(
    words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(folder)
    (folder / "in").write_text(".\n")
    assert message in refusal(main, capsys, *given(folder), *words, "-o", "o")
    assert not (folder / "o").exists() and not (folder / "ro").exists()
