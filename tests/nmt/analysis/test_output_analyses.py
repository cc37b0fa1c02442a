"""nmt-analyze on texts, test sets, systems and scores: rows of tables worked out by hand, figures parsed."""

import random
from pathlib import Path

import pytest

from nmt.analysis.actions import load_run
from nmt.analysis.alignment_error import AlignmentScores, score_alignment
from nmt.analysis.systems import SystemOutput
from nmt.cli import analyze as nmt_analyze
from nmt.formats.pharaoh import GoldLinks, parse, parse_gold
from nmt.metrics import ChrfStatistics, corpus_bleu
from tests.commands.runs import the
from tests.conftest import ROOT, Command
from tests.nmt.analysis.conftest import GOOD, POOR, REFERENCES, SOURCES, Analyze, Drawn, Refuses, write

TRANSLATOR = ROOT / "tests" / "models" / "translator"
OUTPUT = "-r r --hypothesis good --bleu-tokenize none -q".split()
ONE = ["-s", "s", *OUTPUT]
PAIR = "-r r --hypothesis good poor.nbest --names Good Poor --bleu-tokenize none -q".split()
BOTH = ["-s", "s", *PAIR]
VOCABULARIES = ["--vocabulary", "s.vocab", "t.vocab"]


def bleu(lines: list[str], *numbers: int, tolerance: float = 1e-4) -> object:
    """BLEU of some lines of a system."""
    references = [[REFERENCES[number] for number in numbers]]
    expected = corpus_bleu([lines[number] for number in numbers], references, "none").score
    return pytest.approx(expected, abs=tolerance)


@pytest.fixture
def training(small: Path) -> list[str]:
    """A training text without q, z and r, in which g to j and l come once."""
    write(small / "train.s", ["a b a", "c d e f g h i j k l a b b"])
    write(small / "train.t", ["u v w x"])
    return ["--train", "train.s", "train.t"]


# ---- curves and subsets ------------------------------------------------------------------------------------


@pytest.mark.ci
def test_by_length(drawn: Drawn) -> None:
    """Two sentences of 12 source words; the poor system is the first entries of its list."""
    table, text = drawn("by-length", *BOTH, "--window", 1, "--least", 1)
    row = the(table, by="source", length="12", system="Poor")
    assert (row["sentences"], row["length_ratio"], float(row["bleu"])) == ("2", "1.0000", bleu(POOR, 0, 2))
    chrf = ChrfStatistics([POOR[0], POOR[2]], [[REFERENCES[0], REFERENCES[2]]]).chrf().score
    assert float(row["chrf"]) == pytest.approx(chrf, abs=1e-4)
    assert "Good" in text and "Poor" in text


@pytest.mark.ci
def test_by_unknown_is_cumulative(drawn: Drawn) -> None:
    """Unknown source words: 0, 1 (q), 2 (z z), 0. At most 1: three sentences."""
    table, text = drawn("by-unknown", *BOTH, *VOCABULARIES, "--least", 1)
    points = [the(table, by="source", unknown=str(k), system="Good") for k in range(3)]
    assert [(row["first"], row["last"], row["sentences"]) for row in points] == [
        ("0", "0", "2"), ("0", "1", "3"), ("0", "2", "4"),
    ]  # fmt: skip
    assert float(points[1]["bleu"]) == bleu(GOOD, 0, 1, 3)
    assert "at most this many unknown words, source" in text


def test_the_figure_of_one_system_names_what_it_counts(drawn: Drawn) -> None:
    """Its curves are by unknown words of each side, not by length."""
    _, text = drawn("by-unknown", *ONE, *VOCABULARIES, "--least", 1)
    assert "the side with more" in text and "source" in text and "length" not in text and "longer" not in text


def test_by_rare(rows: Analyze, training: list[str]) -> None:
    """Source words that the training text lacks: 0, 1 (q), 2 (z z), 0. Those of at most one: 10, 1, 10, 0."""
    line = ["by-rare", *ONE, "--least", 1, *training]
    found = [(row["rare"], row["sentences"]) for row in rows(*line) if row["by"] == "source"]
    assert found == [("0", "2"), ("1", "3"), ("2", "4")]
    found = [(row["rare"], row["sentences"]) for row in rows(*line, "--rare", 1) if row["by"] == "source"]
    assert found[0] == ("0", "1") and found[-1] == ("10", "4")


def test_by_segmented(rows: Analyze, refuses: Refuses, small: Path, tiny: Path) -> None:
    write(small / "s", ["a boy sleeps", "the nurses hear her", "zzzz", "a man"])
    line = ["by-segmented", *ONE, "--least", 1, "--run"]
    found = [row for row in rows(*line, TRANSLATOR) if row["by"] == "source"]
    assert found[-1]["sentences"] == "4" and int(found[0]["sentences"]) < 4
    assert "does not split words" in refuses(*line, tiny / "run")


def test_too_few_sentences_for_a_curve(small: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert nmt_analyze.main(["by-length", *ONE[:-1]]) == 0
    assert "no point has 20 sentences; lower --least" in capfd.readouterr().err


def test_subsets_are_the_rows_of_table_6_1(drawn: Drawn, rows: Analyze, training: list[str]) -> None:
    """10-20 words on both sides: sentences 1 and 3; without unknown words: 1 and 4; both: 1 alone."""
    table, text = drawn("subsets", *BOTH, *VOCABULARIES)
    good = {row["subset"]: row["sentences"] for row in table if row["system"] == "Good"}
    assert good == {"all": "4", "no unknown": "2", "10-20 words": "2", "10-20 words, no unknown": "1"}
    row = the(table, subset="10-20 words, no unknown", system="Poor")
    assert float(row["bleu"]) == bleu(POOR, 0)
    assert the(table, subset="10-20 words, no unknown", system="Good")["bleu"] == "100.0000"
    assert "n = 1" in text
    unseen = {row["subset"]: row["sentences"] for row in rows("subsets", *ONE, *training)}
    assert unseen == {name.replace("unknown", "unseen"): count for name, count in good.items()}
    empty = the(
        rows("subsets", *ONE, *VOCABULARIES, "--min-length", 90, "--max-length", 99), subset="90-99 words"
    )
    assert (empty["sentences"], empty["bleu"], empty["chrf"], empty["length_ratio"]) == ("0", "", "", "")


def test_samples(drawn: Drawn) -> None:
    """More than 9 words on both sides without unknown words: sentence 1; fewer than 3: sentence 4."""
    table, text = drawn("samples", *BOTH, *VOCABULARIES, "--long", 9, "--short", 3, "--count", 9)
    assert [(row["kind"], row["line"], row["of"], row["text"]) for row in table] == [
        (kind, str(number + 1), system, lines[number])
        for kind, number in (("long", 0), ("short", 3))
        for system, lines in zip(
            ("source", "reference", "Good", "Poor"), (SOURCES, REFERENCES, GOOD, POOR), strict=True
        )
    ]
    assert the(table, line="4", of="Good")["chrf"] == "100.00" and "chrF of the sentence" in text


# ---- significance and correlation --------------------------------------------------------------------------


def test_a_comparison_shows_names_as_they_are(drawn: Drawn) -> None:
    """They are not paths, though they may look like them."""
    options = ["-r", "r", "--baseline", "poor", "--hypothesis", "good", "--samples", 5]
    _, text = drawn("compare", *options, "--names", "small/1", "large/1")
    assert "against small/1" in text and "large/1" in text


def test_compare(drawn: Drawn) -> None:
    line = "-r r --baseline good --hypothesis poor.nbest --bleu-tokenize none --samples 50".split()
    table, text = drawn("compare", *line)
    assert float(the(table, system="poor.nbest")["bleu"]) == bleu(POOR, 0, 1, 2, 3, tolerance=0.01)
    assert float(table[0]["chrf"]) == round(ChrfStatistics(GOOD, [REFERENCES]).chrf().score, 2)
    assert table[0]["p"] == "" and 0 < float(table[1]["p"]) <= 1 and "p = " in text


def test_scores(drawn: Drawn, small: Path) -> None:
    """x 1 2 3, y 1 3 2: r = Σ dx dy / √(Σ dx² Σ dy²) = (1 + 0 + 0) / 2; the ranks are the numbers."""
    write(small / "x", ["1 ||| 0.5 0.5", "2", "3"])
    write(small / "y", ["1", "3", "2"])
    (row,), text = drawn("scores", "--first", "x", "--second", "y")
    assert list(row) == ["first", "second", "pairs", "pearson", "spearman", "mean_difference"]
    assert list(row.values()) == ["x", "y", "3", "0.500000", "0.500000", "0.000000"] and "3 pairs" in text


def test_scores_that_are_infinite_are_not_drawn(drawn: Drawn, small: Path) -> None:
    write(small / "x", ["1", "2", "-inf", "3"])
    write(small / "y", ["1", "3", "2", "nan"])
    (row,), text = drawn("scores", "--first", "x", "--second", "y")
    assert row["pairs"] == "2" and "(2 pairs)" in text


# ---- differences -------------------------------------------------------------------------------------------


def test_by_frequency(drawn: Drawn) -> None:
    """The vocabulary has u, v, w, x once each and no r, which the good system never says."""
    table, _ = drawn("by-frequency", *PAIR, "--train", "t.vocab")
    row = the(table, system="Good", first="0")
    assert (row["reference"], row["hypothesis"], row["f1"]) == ("1", "0", "0.00")
    row = the(table, system="Good", first="1")
    assert (row["reference"], row["hypothesis"], row["matches"]) == ("25", "24", "23")
    assert (row["precision"], row["recall"]) == ("95.83", "92.00")
    assert the(table, system="Poor", first="0")["f1"] == "100.00"


def test_ngrams(rows: Analyze) -> None:
    found = rows("ngrams", *PAIR, "--count", 1)
    assert [(row["better"], row["ngram"]) for row in found] == [("Good", "w x u v"), ("Poor", "r")]
    assert found[1]["score"] == "0.6667"


def test_differences(drawn: Drawn) -> None:
    table, text = drawn("differences", *BOTH, "--count", 1)
    assert [(row["line"], row["reference"], row["second_text"]) for row in table] == [
        ("1", REFERENCES[0], POOR[0])
    ]
    assert table[0]["first"] == "100.00" and "equal" in text and "chrf of Poor minus chrf of Good" in text


# ---- options -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["by-length", "by-unknown", "subsets", "compare", "by-frequency"])
def test_scores_without_regard_to_case(small: Path, capfd: pytest.CaptureFixture[str], kind: str) -> None:
    """-lc, as sacreBLEU's own command has it."""
    write(small / "GOOD", [line.upper() for line in GOOD])
    source = ["-s", "s"]
    more = {"compare": ["--baseline", "poor"], "by-frequency": [], "by-length": source}
    said = []
    for name in ("good", "GOOD"):
        options = more.get(kind, [*source, *VOCABULARIES])
        assert nmt_analyze.main([kind, "-r", "r", "--hypothesis", name, *options, "-lc"]) == 0
        said.append(capfd.readouterr())
    assert "case:lc" in said[0].err and said[0].err == said[1].err
    assert said[0].out.replace("good", "GOOD") == said[1].out


SUBSETS = "subsets -q -r r --hypothesis good --vocabulary"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("by-length -q -s s -r r --hypothesis bad.nbest", "sentence 1 is missing"),
        ("by-length -q -s s -r r --hypothesis short", "short: 1 line, but s has 4"),
        ("by-length -q -s none -r r --hypothesis good --bleu-tokenize nonsense", "nonsense"),
        ("by-length -q -s s -r r --hypothesis good --names a b", "2 names, expected 1"),
        ("by-length -q -s s -r r --hypothesis good good --names a a", "two systems have the same name, a;"),
        ("ngrams -q -r r --hypothesis good good", "two systems have the same name, good;"),
        ("curves -q . . --names a a", "two runs have the same name, a;"),
        ("by-unknown -q -s s -r r --hypothesis good --vocabulary s.vocab", "expected a run directory"),
        (f"by-unknown -q -s s -r r --hypothesis good --vocabulary {TRANSLATOR}", "hold subword units"),
        ("scores -q --first words --second words", "words:2: expected a number first"),
        ("curves -q .", "no columns"),
        ("ngram-counts -q -i blank", "blank: no words"),
        ("subsets -q -s s -r r --hypothesis good", "Give --vocabulary, or --train"),
        (f"{SUBSETS} s.vocab t.vocab -s s --min-length 21", "--min-length: 21 is more than --max-length 20"),
        (f"{SUBSETS} s.vocab t.vocab -s S", "s.vocab: 100% of the running words of the text are not in it"),
        (f"{SUBSETS} t.vocab s.vocab -s s", "probably source and target are swapped"),
        (f"{SUBSETS} units t.vocab -s s", "holds subword units"),
        ("ngrams -r r --hypothesis good", "1 system; expected 2"),
        ("differences -s s -r r --hypothesis good", "1 system; expected 2"),
        ("differences -s s -r r --hypothesis good good good --names a b c", "3 systems, expected two"),
        ("alignment-error --gold empty --hypothesis empty", "empty: empty file"),
    ],
)
def test_bad_input_is_one_line(refuses: Refuses, small: Path, line: str, message: str) -> None:
    write(small / "bad.nbest", ["0 ||| a ||| F= 1 ||| 1", "2 ||| a ||| F= 1 ||| 1"])
    write(small / "short", ["a"])
    write(small / "blank", [""])
    write(small / "empty", [])
    write(small / "words", ["1", "x"])
    write(small / "train.tsv", ["a\tb"])
    write(small / "S", [line.upper() for line in SOURCES])
    write(small / "units", ["#version: 1 vocabulary size=2", "b@@\t1", "c\t1"])
    assert message in refuses(*line.split())


def test_a_report_on_a_run_with_subwords(
    small: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a curve by words that the run cuts, and one by unseen words; the first is about the source."""
    write(small / "s", ["a boy sleeps", "the nurses hear her", "zzzz", "a man"])
    monkeypatch.setattr(
        "nmt.analysis.report.translate_test",
        lambda args, name, path, test: (SystemOutput(name, POOR, test), load_run(args, path).members[0]),
    )
    line = f"report {TRANSLATOR} good -s s -r r --least 1 --train s r -o page.html"
    assert nmt_analyze.main(line.split()) == 0, capfd.readouterr().err
    page = (small / "page.html").read_text()
    titles = [title for title in ("unseen", "segmented", "unknown") if f"BLEU by {title} words" in page]
    assert titles == ["unseen", "segmented"] and '"kinds":["unseen","segmented"]' in page
    assert "no unseen" in page and "no segmented" in page and "words by their frequency in training" in page
    write(small / "S", ["A BOY SLEEPS", "THE NURSES HEAR HER", "ZZZZ", "A MAN"] * 3)
    write(small / "R", ["a"] * 12)
    monkeypatch.setattr("nmt.analysis.report.translate_test", None)  # what does not fit is told before
    assert nmt_analyze.main(f"report {TRANSLATOR} -s S -r R --train s r -o other.html".split()) == 2
    assert "s: 100% of the running words" in capfd.readouterr().err and not (small / "other.html").exists()


# ---- texts -------------------------------------------------------------------------------------------------


def test_ngram_counts(rows: Analyze, small: Path) -> None:
    (small / "train").write_text("a b a b\n\na b c\n")
    (small / "dev").write_text("a b d\n")
    found = rows("ngram-counts", "-i", "train", "--dev", "dev", "--order", 2, "-q")
    assert [list(row.values()) for row in found] == [
        ["1", "10", "4", "0.2500", "0.2500"],
        ["2", "10", "7", "0.7143", "0.5000"],
    ]
    assert rows("ngram-counts", "-i", "train", "--order", 3, "-q", "-o", "out")
    svg = (small / "out" / "ngram-counts.svg").read_text()
    assert "once, of the distinct" in svg and "new in the other text" not in svg


# ---- alignment error ---------------------------------------------------------------------------------------
# nmt-analyze alignment-error.


def test_alignment_error(rows: Analyze, small: Path, command: Command) -> None:
    (small / "gold").write_text("1-1 2-2 2?3\n\n")
    (small / "a").write_text("0-0 1-2 2-2\n\n")
    (small / "b").write_text("0-0 1-1\n\n")
    found = rows("alignment-error", "--gold", "gold", "--gold-from", 1, "--hypothesis", "a", "b", "-q")
    assert [list(row.values()) for row in found] == [
        ["a", "2", "3", "0.6667", "0.5000", "0.4000"],
        ["b", "2", "2", "1.0000", "1.0000", "0.0000"],
    ]
    (small / "c").write_text("0-0 1-1\n")
    for given, message in (
        (["--gold", "gold", "--hypothesis", "c"], "c: 1 line, but gold has 2"),
        (["--gold", "a", "--hypothesis", "a", "--gold-from", 1], "a:1: '0-0' is not a point of a gold"),
        (["--gold", "gold", "--hypothesis", "gold"], "gold:1: '2?3' is not an alignment point"),
    ):
        done = command("nmt-analyze", "alignment-error", *given, cwd=small)
        assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1


def test_by_hand() -> None:
    """The example of a gold set with sure and possible links: |A| 3, |S| 2, |A ∩ S| 1, |A ∩ P| 2."""
    found = score_alignment([parse_gold("0-0 1-1 1?2", "")], [parse("0-0 1-2 2-2", "")])
    assert found == AlignmentScores(links=3, sure=2, sure_matches=1, possible_matches=2)
    assert (found.precision, found.recall) == (2 / 3, 1 / 2)
    assert found.error_rate == pytest.approx(1 - 3 / 5)


def test_relations() -> None:
    """The sure links have no errors, nor have all possible ones; without possible ones it is 1 - F; sentences
    are summed, not averaged."""
    rng = random.Random(1)
    gold, others = [], []
    for _ in range(20):
        links = frozenset((rng.randrange(6), rng.randrange(6)) for _ in range(8))
        sure = frozenset(link for link in links if rng.random() < 0.5)
        gold.append(GoldLinks(sure, links))
        others.append(frozenset((rng.randrange(6), rng.randrange(6)) for _ in range(5)))
    assert score_alignment(gold, [one.sure for one in gold]).error_rate == 0
    assert score_alignment(gold, [one.possible for one in gold]).error_rate == 0
    only = [GoldLinks(one.sure, one.sure) for one in gold]
    found = score_alignment(only, others)
    f1 = 2 * found.precision * found.recall / (found.precision + found.recall)
    assert found.error_rate == pytest.approx(1 - f1)
    halves = score_alignment(gold[:7], others[:7]), score_alignment(gold[7:], others[7:])
    whole = score_alignment(gold, others)
    assert vars(whole) == {key: sum(vars(half)[key] for half in halves) for key in vars(whole)}
    assert score_alignment([GoldLinks(frozenset(), frozenset())], [frozenset()]).error_rate == 0
