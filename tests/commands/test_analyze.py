"""Every nmt-analyze command as installed: one row of its table worked out by hand, and its figure parsed."""

import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from nmt.metrics import ChrfStatistics, corpus_bleu

Command = Callable[..., subprocess.CompletedProcess[str]]

SOURCES = ["a b c d e f g h i j k l", "a b q", "a b c d e f g h i j z z", "b a"]
REFERENCES = ["u v w x u v w x u v w", "u v r", "u v w x u v w x u v", "v u"]
GOOD = ["u v w x u v w x u v w", "u v w", "u v w x u v w x", "v u"]
POOR = ["u v w x u w v x u v w", "r", "x w v u x u v w u v", "u v"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A test set, a system as text, another as an n-best list, vocabularies that lack q, z and r."""
    here = tmp_path_factory.mktemp("systems")
    for name, lines in (("s", SOURCES), ("r", REFERENCES), ("good", GOOD)):
        (here / name).write_text("".join(line + "\n" for line in lines))
    entries = [
        f"{n} ||| {line} ||| F= 1 ||| -{k}\n"
        for n, line in enumerate(POOR)
        for k, line in enumerate([line, "u u u"], 1)
    ]
    (here / "poor.nbest").write_text("".join(entries))
    (here / "s.vocab").write_text(
        "#version: 1 vocabulary size=12\n" + "".join(f"{letter}\t1\n" for letter in "abcdefghijkl")
    )
    (here / "t.vocab").write_text(
        "#version: 1 vocabulary size=4\n" + "".join(f"{letter}\t1\n" for letter in "uvwx")
    )
    return here


def analyze(command: Command, folder: Path, kind: str, *options: object) -> tuple[list[dict[str, str]], str]:
    """Rows of the table that a command writes into a folder, and what its SVG says; the PNG is one."""
    out = folder / f"out-{kind}"
    done = command("nmt-analyze", kind, *options, "--output", out, cwd=folder)
    assert done.returncode == 0, done.stderr
    header, *lines = (out / f"{kind}.tsv").read_text(encoding="utf-8").rstrip("\n").split("\n")
    rows = [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]
    assert f"{out}/{kind}.svg" in done.stdout
    if kind != "parse":
        assert (out / f"{kind}.png").read_bytes().startswith(b"\x89PNG")
    return rows, " ".join(ElementTree.parse(out / f"{kind}.svg").getroot().itertext())


def systems(*more: object) -> list[object]:
    return [
        "-s",
        "s",
        "-r",
        "r",
        "-t",
        "good",
        "poor.nbest",
        "--names",
        "Good",
        "Poor",
        "--bleu-tokenize",
        "none",
        *more,
    ]


def the(rows: list[dict[str, str]], **wanted: str) -> dict[str, str]:
    found = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    assert len(found) == 1, (wanted, found)
    return found[0]


def test_by_length(command: Command, folder: Path) -> None:
    """Two sentences of 12 source words: BLEU of those two; the poor system is the first entries of its
    list."""
    rows, text = analyze(command, folder, "by-length", *systems("--window", 1))
    row = the(rows, by="source", length="12", system="Poor")
    expected = corpus_bleu([POOR[0], POOR[2]], [[REFERENCES[0], REFERENCES[2]]], "none").score
    assert (
        row["sentences"] == "2"
        and float(row["bleu"]) == pytest.approx(expected, abs=1e-4)
        and row["length_ratio"] == "1.0000"
    )
    assert float(row["chrf"]) == pytest.approx(
        ChrfStatistics([POOR[0], POOR[2]], [[REFERENCES[0], REFERENCES[2]]]).chrf().score, abs=1e-4
    )
    assert "Good" in text and "Poor" in text


def test_by_unknown_is_cumulative(command: Command, folder: Path) -> None:
    """Unknown source words: 0, 1 (q), 2 (z z), 0. At most 1: three sentences."""
    rows, text = analyze(command, folder, "by-unknown", *systems("--vocabulary", "s.vocab", "t.vocab"))
    assert [the(rows, by="source", unknown=str(k), system="Good")["sentences"] for k in range(3)] == [
        "2",
        "3",
        "4",
    ]
    row = the(rows, by="source", unknown="1", system="Good")
    expected = corpus_bleu(
        [GOOD[0], GOOD[1], GOOD[3]], [[REFERENCES[0], REFERENCES[1], REFERENCES[3]]], "none"
    ).score
    assert (
        float(row["bleu"]) == pytest.approx(expected, abs=1e-4) and row["first"] == "0" and row["last"] == "1"
    )
    assert "at most this many unknown words, source" in text


def test_subsets_are_the_rows_of_table_6_1(command: Command, folder: Path) -> None:
    """10-20 words on both sides: sentences 1 and 3; without unknown words: 1 and 4; both: 1 alone."""
    rows, text = analyze(command, folder, "subsets", *systems("--vocabulary", "s.vocab", "t.vocab"))
    assert [
        the(rows, subset=name, system="Good")["sentences"]
        for name in ("all", "no unknown", "10-20 words", "10-20 words, no unknown")
    ] == [
        "4",
        "2",
        "2",
        "1",
    ]
    row = the(rows, subset="10-20 words, no unknown", system="Poor")
    assert float(row["bleu"]) == pytest.approx(
        corpus_bleu([POOR[0]], [[REFERENCES[0]]], "none").score, abs=1e-4
    )
    assert (
        the(rows, subset="10-20 words, no unknown", system="Good")["bleu"] == "100.0000" and "n = 1" in text
    )


def test_compare(command: Command, folder: Path) -> None:
    rows, text = analyze(
        command,
        folder,
        "compare",
        "-r",
        "r",
        "-b",
        "good",
        "-t",
        "poor.nbest",
        "--bleu-tokenize",
        "none",
        "--samples",
        50,
    )
    assert float(the(rows, system="poor.nbest")["bleu"]) == round(
        corpus_bleu(POOR, [REFERENCES], "none").score, 2
    )
    assert float(rows[0]["chrf"]) == round(ChrfStatistics(GOOD, [REFERENCES]).chrf().score, 2)
    assert rows[0]["p"] == "" and 0 < float(rows[1]["p"]) <= 1 and "p = " in text


def test_samples(command: Command, folder: Path) -> None:
    """More than 9 words on both sides without unknown words: sentence 1; fewer than 3: sentence 4."""
    rows, text = analyze(
        command,
        folder,
        "samples",
        *systems("--vocabulary", "s.vocab", "t.vocab", "--long", 9, "--short", 3, "--count", 9),
    )
    assert [(row["kind"], row["line"], row["of"], row["text"]) for row in rows] == [
        ("long", "1", "source", SOURCES[0]), ("long", "1", "reference", REFERENCES[0]),
        ("long", "1", "Good", GOOD[0]), ("long", "1", "Poor", POOR[0]),
        ("short", "4", "source", SOURCES[3]), ("short", "4", "reference", REFERENCES[3]),
        ("short", "4", "Good", GOOD[3]), ("short", "4", "Poor", POOR[3]),
    ]  # fmt: skip
    assert the(rows, line="4", of="Good")["chrf"] == "100.00" and "chrF of the sentence" in text


def test_scores(command: Command, folder: Path) -> None:
    """x 1 2 3, y 1 3 2: r = Σ dx dy / √(Σ dx² Σ dy²) = (1 + 0 + 0) / 2; the ranks are the numbers."""
    (folder / "x").write_text("1 ||| 0.5 0.5\n2\n3\n")
    (folder / "y").write_text("1\n3\n2\n")
    rows, text = analyze(command, folder, "scores", "--first", "x", "--second", "y")
    assert rows == [
        {
            "first": "x",
            "second": "y",
            "pairs": "3",
            "pearson": "0.500000",
            "spearman": "0.500000",
            "mean_difference": "0.000000",
        }
    ]
    assert "3 pairs" in text


def test_identical_scores_correlate_at_one(command: Command, folder: Path) -> None:
    (folder / "x").write_text("1\n2.5\n-3\n")
    done = command("nmt-analyze", "scores", "--first", folder / "x", "--second", folder / "x")
    assert done.stdout.split("\n")[1].split("\t")[3:] == ["1.000000", "1.000000", "0.000000"]


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


@pytest.mark.ci
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
    done = command(
        "nmt-train",
        tiny / "train.yaml",
        f"run={run}",
        "model.encoder=grconv",
        "training.max_steps=20",
        "training.validate_every=0",
    )
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
    done = command(
        "nmt-translate",
        grconv,
        "-q",
        "--tokenized",
        "--n-best",
        3,
        "--beam-size",
        3,
        input="the man sees <a dog>\n",
    )
    first = done.stdout.split("\n")[0].split(" ||| ")
    assert "<a" in text and f"{-float(first[2].split()[1]):.2f}   {first[1]}" in text
    assert "not a grconv" in refused(command("nmt-analyze", "parse", "-q", tiny / "run", "--line", "a b"))


@pytest.mark.ci
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


@pytest.mark.ci
def test_bad_input_is_one_line(
    command: Command, folder: Path, attentive: Path, refused: Callable[..., str]
) -> None:
    base = ["nmt-analyze", "by-length", "-q", "-s", folder / "s", "-r", folder / "r"]
    (folder / "bad.nbest").write_text("0 ||| a ||| F= 1 ||| 1\n2 ||| a ||| F= 1 ||| 1\n")
    assert "sentence 1 is missing" in refused(command(*base, "-t", folder / "bad.nbest"))
    (folder / "short").write_text("a\n")
    assert f"{folder}/short: 1 lines" in refused(command(*base, "-t", folder / "short"))
    assert "2 names for 1 systems" in refused(command(*base, "-t", folder / "good", "--names", "a", "b"))
    unknown = [
        "nmt-analyze",
        "by-unknown",
        "-q",
        "-s",
        folder / "s",
        "-r",
        folder / "r",
        "-t",
        folder / "good",
        "--vocabulary",
    ]
    assert "hold subword units" in refused(command(*unknown, attentive))
    assert "expected a run directory" in refused(command(*unknown, folder / "s.vocab"))
    (folder / "words").write_text("1\nx\n")
    assert "words:2: expected a number first" in refused(
        command("nmt-analyze", "scores", "-q", "--first", folder / "words", "--second", folder / "words")
    )
    assert "no columns" in refused(command("nmt-analyze", "curves", "-q", folder_with_log(folder)))


def folder_with_log(folder: Path) -> Path:
    (folder / "run").mkdir(exist_ok=True)
    (folder / "run" / "train.tsv").write_text("a\tb\n")
    return folder / "run"
