"""nmt-analyze on test sets, systems and scores, as installed: one row of each table worked out by
hand, its figure parsed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.analysis.actions import load_run
from nmt.analysis.systems import SystemOutput
from nmt.cli import analyze as nmt_analyze
from nmt.metrics import ChrfStatistics, corpus_bleu
from tests.commands.runs import analyze, the
from tests.conftest import Command
from tests.nmt.analysis.conftest import POOR, REFERENCES, Analyze, Refuses, write

# ---- test outputs ------------------------------------------------------------------------------------------


SOURCES = ["a b c d e f g h i j k l", "a b q", "a b c d e f g h i j z z", "b a"]
REFERENCE_LINES = ["u v w x u v w x u v w", "u v r", "u v w x u v w x u v", "v u"]
GOOD = ["u v w x u v w x u v w", "u v w", "u v w x u v w x", "v u"]
POOR_LINES = ["u v w x u w v x u v w", "r", "x w v u x u v w u v", "u v"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A test set, a system as text, another as an n-best list, vocabularies that lack q, z and r."""
    here = tmp_path_factory.mktemp("systems")
    for name, lines in (("s", SOURCES), ("r", REFERENCE_LINES), ("good", GOOD)):
        (here / name).write_text("".join(line + "\n" for line in lines))
    entries = [
        f"{n} ||| {line} ||| F= 1 ||| -{k}\n"
        for n, line in enumerate(POOR_LINES)
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


def systems(*more: object) -> list[object]:
    return [
        "-s",
        "s",
        "-r",
        "r",
        "--hypothesis",
        "good",
        "poor.nbest",
        "--names",
        "Good",
        "Poor",
        "--bleu-tokenize",
        "none",
        *more,
    ]


def test_by_length(command: Command, folder: Path) -> None:
    """Two sentences of 12 source words: BLEU of those two; the poor system is the first entries of its
    list."""
    rows, text = analyze(command, folder, "by-length", *systems("--window", 1, "--least", 1))
    row = the(rows, by="source", length="12", system="Poor")
    expected = corpus_bleu(
        [POOR_LINES[0], POOR_LINES[2]], [[REFERENCE_LINES[0], REFERENCE_LINES[2]]], "none"
    ).score
    assert (
        row["sentences"] == "2"
        and float(row["bleu"]) == pytest.approx(expected, abs=1e-4)
        and row["length_ratio"] == "1.0000"
    )
    assert float(row["chrf"]) == pytest.approx(
        ChrfStatistics([POOR_LINES[0], POOR_LINES[2]], [[REFERENCE_LINES[0], REFERENCE_LINES[2]]])
        .chrf()
        .score,
        abs=1e-4,
    )
    assert "Good" in text and "Poor" in text


def test_by_unknown_is_cumulative(command: Command, folder: Path) -> None:
    """Unknown source words: 0, 1 (q), 2 (z z), 0. At most 1: three sentences."""
    rows, text = analyze(
        command, folder, "by-unknown", *systems("--vocabulary", "s.vocab", "t.vocab", "--least", 1)
    )
    assert [the(rows, by="source", unknown=str(k), system="Good")["sentences"] for k in range(3)] == [
        "2",
        "3",
        "4",
    ]
    row = the(rows, by="source", unknown="1", system="Good")
    expected = corpus_bleu(
        [GOOD[0], GOOD[1], GOOD[3]], [[REFERENCE_LINES[0], REFERENCE_LINES[1], REFERENCE_LINES[3]]], "none"
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
        corpus_bleu([POOR_LINES[0]], [[REFERENCE_LINES[0]]], "none").score, abs=1e-4
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
        "--baseline",
        "good",
        "--hypothesis",
        "poor.nbest",
        "--bleu-tokenize",
        "none",
        "--samples",
        50,
    )
    assert float(the(rows, system="poor.nbest")["bleu"]) == round(
        corpus_bleu(POOR_LINES, [REFERENCE_LINES], "none").score, 2
    )
    assert float(rows[0]["chrf"]) == round(ChrfStatistics(GOOD, [REFERENCE_LINES]).chrf().score, 2)
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
        ("long", "1", "source", SOURCES[0]), ("long", "1", "reference", REFERENCE_LINES[0]),
        ("long", "1", "Good", GOOD[0]), ("long", "1", "Poor", POOR_LINES[0]),
        ("short", "4", "source", SOURCES[3]), ("short", "4", "reference", REFERENCE_LINES[3]),
        ("short", "4", "Good", GOOD[3]), ("short", "4", "Poor", POOR_LINES[3]),
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


@pytest.mark.ci
def test_bad_input_is_one_line(
    command: Command, folder: Path, attentive: Path, refused: Callable[..., str]
) -> None:
    base = ["nmt-analyze", "by-length", "-q", "-s", folder / "s", "-r", folder / "r"]
    (folder / "bad.nbest").write_text("0 ||| a ||| F= 1 ||| 1\n2 ||| a ||| F= 1 ||| 1\n")
    assert "sentence 1 is missing" in refused(command(*base, "--hypothesis", folder / "bad.nbest"))
    (folder / "short").write_text("a\n")
    assert f"{folder}/short: 1 lines" in refused(command(*base, "--hypothesis", folder / "short"))
    assert "2 names for 1 systems" in refused(
        command(*base, "--hypothesis", folder / "good", "--names", "a", "b")
    )
    unknown = [
        "nmt-analyze",
        "by-unknown",
        "-q",
        "-s",
        folder / "s",
        "-r",
        folder / "r",
        "--hypothesis",
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


@pytest.mark.parametrize("kind", ["by-length", "by-unknown", "subsets", "compare", "by-frequency"])
def test_scores_without_regard_to_case(small: Path, capfd: pytest.CaptureFixture[str], kind: str) -> None:
    """-lc, as sacreBLEU's own command has it."""
    write(small / "GOOD", [line.upper() for line in GOOD])
    more = {
        "compare": ["--baseline", "poor"],
        "by-frequency": [],
        "by-length": ["-s", "s"],
    }.get(kind, ["-s", "s", "--vocabulary", "s.vocab", "t.vocab"])
    said = []
    for name in ("good", "GOOD"):
        assert nmt_analyze.main([kind, "-r", "r", "--hypothesis", name, *more, "-lc"]) == 0
        said.append(capfd.readouterr())
    assert "case:lc" in said[0].err and said[0].err == said[1].err
    assert said[0].out.replace("good", "GOOD") == said[1].out


def test_subsets_without_unseen_words(rows: Analyze, small: Path) -> None:
    """Only sentence 1 has 10 to 20 words and, like sentence 4, no word that the training text lacks."""
    write(small / "train.s", ["a b a", "c d e f g h i j k l a b b"])
    write(small / "train.t", ["u v w x"])
    found = rows(
        "subsets", "-q", "-s", "s", "-r", "r", "--hypothesis", "good", "--train", "train.s", "train.t"
    )
    counts = {row["subset"]: row["sentences"] for row in found}
    assert counts == {"all": "4", "no unseen": "2", "10-20 words": "2", "10-20 words, no unseen": "1"}


def test_a_vocabulary_of_another_form_is_refused(refuses: Refuses, small: Path) -> None:
    write(small / "S", [line.upper() for line in SOURCES])
    (small / "units").write_text("#version: 1 vocabulary size=2\nb@@\t1\nc\t1\n")
    base = ["subsets", "-q", "-r", "r", "--hypothesis", "good", "--vocabulary"]
    says = refuses(*base, "s.vocab", "t.vocab", "-s", "S")
    assert "s.vocab: 100% of the running words of the text are not in it; probably its words are" in says
    assert "probably source and target are exchanged" in refuses(*base, "t.vocab", "s.vocab", "-s", "s")
    assert "holds subword units" in refuses(*base, "units", "t.vocab", "-s", "s")


def test_subsets_need_a_list_of_words(refuses: Refuses) -> None:
    assert "Give --vocabulary, or --train" in refuses("subsets", "-s", "s", "-r", "r", "--hypothesis", "good")


# ---- test by number ----------------------------------------------------------------------------------------
# nmt-analyze by a number that each sentence has.


MODELS = Path(__file__).resolve().parents[2] / "models"
CURVE_BASE = ["-s", "s", "-r", "r", "--hypothesis", "good", "--bleu-tokenize", "none"]


def test_by_rare(rows: Analyze, small: Path) -> None:
    """Source words that the training text lacks: 0, 1 (q), 2 (z z), 0. Those of at most one: 10, 1, 10, 0."""
    write(small / "train.s", ["a b a", "c d e f g h i j k l a b b"])
    write(small / "train.t", ["u v w x"])
    line = ["by-rare", *CURVE_BASE, "-q", "--least", 1, "--train", "train.s", "train.t"]
    found = [(row["rare"], row["sentences"]) for row in rows(*line) if row["by"] == "source"]
    assert found == [("0", "2"), ("1", "3"), ("2", "4")]
    found = [(row["rare"], row["sentences"]) for row in rows(*line, "--rare", 1) if row["by"] == "source"]
    assert found[0] == ("0", "1") and found[-1] == ("10", "4")


def test_by_segmented(rows: Analyze, refuses: Refuses, small: Path, tiny: Path) -> None:
    write(small / "s", ["a boy sleeps", "the nurses hear her", "zzzz", "a man"])
    line = ["by-segmented", *CURVE_BASE, "-q", "--least", 1, "--run"]
    found = [row for row in rows(*line, MODELS / "translator") if row["by"] == "source"]
    assert found[-1]["sentences"] == "4" and int(found[0]["sentences"]) < 4
    assert "splits no words" in refuses(*line, tiny / "run")


def test_too_few_sentences_for_a_curve(small: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert nmt_analyze.main(["by-length", *CURVE_BASE]) == 0
    assert "no point has 20 sentences; --least asks for fewer" in capfd.readouterr().err


def test_a_report_on_a_run_with_subwords(
    small: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a curve by words that the run cuts, and one by unseen words; the first is about the source."""
    write(small / "s", ["a boy sleeps", "the nurses hear her", "zzzz", "a man"])
    monkeypatch.setattr(
        "nmt.analysis.report.translate_test",
        lambda args, name, path, test: (
            SystemOutput(name, POOR, test),
            load_run(args, path).members[0],
        ),
    )
    run = MODELS / "translator"
    line = ["report", run, "good", "-s", "s", "-r", "r", "--least", 1, "--train", "s", "r", "-o", "page.html"]
    assert nmt_analyze.main([*map(str, line)]) == 0, capfd.readouterr().err
    page = (small / "page.html").read_text()
    titles = [title for title in ("unseen", "segmented", "unknown") if f"BLEU by {title} words" in page]
    assert titles == ["unseen", "segmented"] and '"kinds":["unseen","segmented"]' in page
    assert "no unseen" in page and "no segmented" in page and "words by their frequency in training" in page
    write(small / "S", ["A BOY SLEEPS", "THE NURSES HEAR HER", "ZZZZ", "A MAN"] * 3)
    write(small / "R", ["a"] * 12)
    line = ["report", run, "-s", "S", "-r", "R", "--train", "s", "r", "-o", "other.html"]
    monkeypatch.setattr("nmt.analysis.report.translate_test", None)  # what does not fit is told before
    assert nmt_analyze.main([*map(str, line)]) == 2 and not (small / "other.html").exists()
    assert "s: 100% of the running words" in capfd.readouterr().err


# ---- test differences --------------------------------------------------------------------------------------
# nmt-analyze by-frequency, ngrams, differences.


BASE = ["-r", "r", "--hypothesis", "good", "poor", "--bleu-tokenize", "none", "-q"]


def test_by_frequency(rows: Analyze, small: Path) -> None:
    """The vocabulary has u, v, w, x once each and no r, which the good system never says."""
    found = {(row["system"], row["first"]): row for row in rows("by-frequency", *BASE, "--train", "t.vocab")}
    row = found["good", "0"]
    assert (row["reference"], row["hypothesis"], row["f1"]) == ("1", "0", "0.00")
    row = found["good", "1"]
    assert (row["reference"], row["hypothesis"], row["matches"]) == ("25", "24", "23")
    assert found["poor", "0"]["f1"] == "100.00"
    assert rows("by-frequency", *BASE, "-o", "out") and (small / "out" / "by-frequency.svg").exists()


def test_ngrams(rows: Analyze) -> None:
    found = rows("ngrams", *BASE, "--count", 1)
    assert [row["better"] for row in found] == ["good", "poor"]
    assert found[0]["ngram"] == "w x u v" and found[1]["ngram"] == "r"


def test_differences(rows: Analyze, small: Path) -> None:
    found = rows("differences", *BASE, "-s", "s", "--count", 1)
    assert [(row["line"], row["reference"], row["second_text"]) for row in found] == [
        ("1", REFERENCES[0], POOR[0])
    ]
    assert rows("differences", *BASE, "-s", "s", "-o", "out")
    svg = (small / "out" / "differences.svg").read_text()
    assert "equal" in svg and "chrf of poor minus chrf of good" in svg


def test_differences_are_those_of_two(refuses: Refuses) -> None:
    for kind, source in (("ngrams", []), ("differences", ["-s", "s"])):
        assert "1 system; expected 2" in refuses(kind, "-r", "r", "--hypothesis", "good", *source)
    line = [
        "differences",
        "-s",
        "s",
        "-r",
        "r",
        "--hypothesis",
        "good",
        "good",
        "good",
        "--names",
        "a",
        "b",
        "c",
    ]
    assert "3 systems; differences are those of two" in refuses(*line)
