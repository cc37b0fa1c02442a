"""nmt-analyze on trained models, as installed: each table against the model, and its figure parsed."""

import math
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.commands.runs import analyze, the
from tests.conftest import Command

# ---- test runs ---------------------------------------------------------------------------------------------


pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def table(folder: Path) -> Path:
    """Two sources of four words with four targets each: counts of target, source, both."""
    lines = [
        f"{source} ||| {target} ||| 0.1 0.1 {p} 0.1 ||| 0-0 ||| 9 {count} 1 ||| |||\n"
        for source, count in (("a man sees the", 7), ("the dog sees a", 2))
        for target, p in (("la femme", 0.1), ("le chat", 0.5), ("un homme", 0.25), ("une", 0.15))
    ]
    (folder / "phrase-table").write_text("".join(lines), encoding="utf-8")
    return folder / "phrase-table"


def test_phrases(command: Command, folder: Path, table: Path, tiny: Path) -> None:
    """By the table `le chat` is best, ln .5; the model's scores are nmt-score's; draws are counted, all 20 of
    them at most."""
    rows, text = analyze(
        command, folder, "phrases", tiny / "run", "--table", table, "--sources", 1, "--samples", 20
    )
    best = the(rows, kind="frequent", by="table", rank="1")
    assert (best["source"], best["count"], best["target"]) == ("a man sees the", "7", "le chat")
    assert float(best["ln_table"]) == pytest.approx(math.log(0.5), abs=1e-6)
    (folder / "p.s").write_text("a man sees the\n")
    (folder / "p.t").write_text("le chat\n")
    scored = command(
        "nmt-score", tiny / "run", "-q", "--tokenized", "--source", folder / "p.s", "--target", folder / "p.t"
    )
    assert float(best["ln_model"]) == pytest.approx(float(scored.stdout), abs=1e-4)
    for kind in ("frequent", "rare"):
        ranked = [float(row["ln_model"]) for row in rows if row["kind"] == kind and row["by"] == "model"]
        drawn = [row for row in rows if row["kind"] == kind and row["by"] == "samples"]
        assert ranked == sorted(ranked, reverse=True) and len(ranked) == 3
        assert 0 < len(drawn) <= 5 and sum(int(row["drawn"]) for row in drawn) <= 20
    assert (
        the(rows, kind="rare", by="table", rank="1")["source"] == "the dog sees a" and "phrases shown" in text
    )


def test_words(command: Command, folder: Path, tiny: Path) -> None:
    pytest.importorskip("sklearn")
    rows, text = analyze(command, folder, "words", tiny / "run", "--count", 40, "--zoom", 2)
    vocab = [
        line.split("\t")[0]
        for line in (tiny / "run" / "source.vocab").read_text(encoding="utf-8").split("\n")[1:41]
    ]
    assert [row["text"] for row in rows] == vocab and {row["region"] for row in rows} >= {"1", "2"}
    assert "region 2" in text and "source words of run@" in text


def test_phrase_map(command: Command, folder: Path, table: Path, tiny: Path) -> None:
    pytest.importorskip("sklearn")
    lines = [
        f"the {adjective} {noun} {verb} ||| x"
        for adjective in ("old", "red")
        for noun in ("man", "dog", "hat")
        for verb in ("sees", "sings")
    ]
    (folder / "phrases").write_text("\n".join([*lines, lines[0], "too short ||| x"]) + "\n")
    rows, _ = analyze(command, folder, "phrase-map", tiny / "run", "--input", "phrases", "--zoom", 1)
    assert sorted(row["text"] for row in rows) == sorted(line.split(" |||")[0] for line in lines)
    points = np.array([[float(row["x"]), float(row["y"])] for row in rows])
    assert np.isfinite(points).all() and points.std(0).min() > 0


@pytest.fixture(scope="module")
def grconv(tiny: Path, tmp_path_factory: pytest.TempPathFactory, command: Command) -> Path:
    run = tmp_path_factory.mktemp("grconv") / "run"
    settings = "model.encoder=grconv training.max_steps=20 training.validate_every=0".split()
    done = command("nmt-train", tiny / "train.yaml", f"run={run}", *settings)
    assert done.returncode == 0, done.stderr
    return run


def test_parse(command: Command, folder: Path, grconv: Path, tiny: Path, refused: Callable[..., str]) -> None:
    """Five words, ten merges; three weights that sum to 1; edges above .1 alone; the translations with their
    -log p below."""
    rows, text = analyze(
        command, folder, "parse", grconv, "--line", "the man sees <a dog>", "--tokenized", "--translations", 3
    )
    assert [row["level"] for row in rows] == ["1"] * 4 + ["2"] * 3 + ["3"] * 2 + ["4"]
    assert rows[4]["words"] == "the man sees" and rows[-1]["words"] == "the man sees <a dog>"
    weights = np.array([[float(row[name]) for name in ("new", "left", "right")] for row in rows])
    assert np.allclose(weights.sum(1), 1, atol=1e-5)
    lines = [
        node
        for node in ElementTree.parse(folder / "out-parse" / "parse.svg").getroot().iter()
        if node.tag.endswith("line")
    ]
    assert len(lines) == 2 * (weights[:, 0] > 0.1).sum() + (weights[:, 1:] > 0.1).sum()
    options = "-q --tokenized --n-best 3 --beam-size 3".split()
    done = command("nmt-translate", grconv, *options, input="the man sees <a dog>\n")
    first = done.stdout.split("\n")[0].split(" ||| ")
    assert "<a" in text and f"{-float(first[2].split()[1]):.2f}   {first[1]}" in text
    assert "not a grconv" in refused(command("nmt-analyze", "parse", "-q", tiny / "run", "--line", "a b"))


def test_attention(
    command: Command, folder: Path, attentive: Path, tiny: Path, refused: Callable[..., str]
) -> None:
    """Rows are the words of the translation, each with weights that sum to 1; they are those that
    --alignments reads."""
    rows, text = analyze(command, folder, "attention", attentive, "--line", "The man sees the dog.")
    target = sorted({int(row["target"]) for row in rows})
    for number in target:
        assert sum(float(row["weight"]) for row in rows if row["target"] == str(number)) == pytest.approx(
            1, abs=1e-4
        )
    assert rows[-1]["target_word"] == rows[-1]["source_word"] == "</s>" and rows[0]["source_word"] in text
    assert "has no attention" in refused(
        command("nmt-analyze", "attention", "-q", tiny / "run", "--line", "a b")
    )


def test_curves(command: Command, folder: Path, tiny: Path, attentive: Path) -> None:
    rows, text = analyze(command, folder, "curves", tiny / "run", attentive, "--names", "plain", "attentive")
    dev = [line.split("\t") for line in (tiny / "run" / "dev.tsv").read_text().rstrip("\n").split("\n")]
    row = the(rows, run="plain", curve="dev cost", update="40")
    assert float(row["value"]) == pytest.approx(float(next(line for line in dev if line[0] == "40")[2]))
    assert "plain" in text and "attentive" in text
