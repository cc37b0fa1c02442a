"""nmt-score and nmt-perplexity."""

import math
from pathlib import Path

import pytest

from nmt import Run, load_language_model
from nmt.cli import perplexity, score
from nmt.cli.score import BlockScorer, ScoringBlock, load_scorer
from nmt.errors import ConfigError, DataError
from nmt.runs.language_model import LineScores, line_scorer
from tests.commands.runs import LINES
from tests.conftest import ROOT, Command, Refused

# ---- test score --------------------------------------------------------------------------------------------


def test_score_one_line_a_pair_with_words_that_sum(tiny: Path, command: Command) -> None:
    done = command(
        "nmt-score", tiny / "run", "-q", "--source", tiny / "dev.en", "--target", tiny / "dev.fr",
        "--word-scores",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")[:-1]
    assert len(lines) == 20
    for line in lines:
        total, words = line.split(" ||| ")
        assert sum(map(float, words.split())) == pytest.approx(float(total), abs=1e-4)
    plain = command(
        "nmt-score", tiny / "run", "-q", "-s", tiny / "dev.en", "-t", tiny / "dev.fr"
    ).stdout.split()
    assert plain == [line.split(" ||| ")[0] for line in lines]


def test_score_keeps_empty_lines(tiny: Path, command: Command, tmp_path: Path) -> None:
    (tmp_path / "s").write_text("The man sees the dog.\n\n")
    (tmp_path / "t").write_text("\nL'homme voit le chien.\n")
    done = command(
        "nmt-score", tiny / "run", "-q", "-s", tmp_path / "s", "-t", tmp_path / "t", "--word-scores"
    )
    assert [len(line.split(" ||| ")[1].split()) for line in done.stdout.split("\n")[:-1]] == [1, 7]


def test_score_refuses_unequal_files(tiny: Path, command: Command, tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "t").write_text("x\n" * 7)
    done = command(
        "nmt-score", tiny / "run", "-s", tiny / "dev.en", "-t", tmp_path / "t", "-o", tmp_path / "out"
    )
    assert "t: 7 lines, but" in refused(done) and "has 20" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_language_model_says_both_perplexities(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = ROOT / "tests" / "models" / "lm"
    (tmp_path / "text").write_text("Un garçon ne suit pas xyzzy.\n\n", encoding="utf-8")
    assert score.main([str(run), "-i", str(tmp_path / "text"), "-o", str(tmp_path / "out")]) == 0
    totals = perplexity.PerplexityTotals()
    for line, scored in zip(
        ("Un garçon ne suit pas xyzzy.", ""),
        line_scorer(run).score(["Un garçon ne suit pas xyzzy.", ""]),
        strict=True,
    ):
        totals.add(line, scored)
    assert totals.unknown == 1 and totals.perplexity != totals.known_perplexity
    assert f"2 lines, {totals.perplexities()} (lm@" in capfd.readouterr().err


# ---- test scorers ------------------------------------------------------------------------------------------
# Blocks of pairs and lines as nmt-score computes them.


MODELS = ROOT / "tests" / "models"
PAIRS = [(line, line) for line in LINES]


def made(*words: object) -> BlockScorer:
    return score.load_scorer(score.parser().parse_args(list(map(str, words))))


def test_scores_of_pairs_are_those_of_python() -> None:
    work = made(MODELS / "translator", "-s", "s", "-t", "t")
    expected = Run.load(MODELS / "translator").score(PAIRS)
    lines, sums = work.lines(ScoringBlock(0, PAIRS))
    assert [float(line) for line in lines] == pytest.approx(expected, abs=1e-6)
    more = work.lines(ScoringBlock(4, PAIRS[:1]))[1]
    total = sum(expected) + expected[0]
    assert work.summary([*sums, *more], 5).startswith(f"5 pairs, mean log p {total / 5:.4f}, a word ")
    assert work.summary([], 0) == ""


def test_scores_of_text_are_those_of_python() -> None:
    work = made(MODELS / "lm", "-i", "text")
    lines, sums = work.lines(ScoringBlock(0, [(line,) for line in LINES]))
    found = load_language_model(MODELS / "lm").score(LINES)
    assert [float(line) for line in lines] == pytest.approx([sum(one.log_probs) for one in found], abs=1e-6)
    assert work.summary(sums * 2, 8).startswith("8 lines, perplexity ")


def test_a_line_that_is_too_long_has_its_number() -> None:
    work = made(MODELS / "translator", "-s", "s", "-t", "t", "--max-line-words", 2)
    with pytest.raises(DataError, match=r"^s:12: "):
        work.lines(ScoringBlock(10, [("a", "b"), ("a boy does not follow the man", "b")]))


def test_lines_that_depend_on_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    work = made(MODELS / "lm", "-i", "text")
    work.check(in_parts=True)
    monkeypatch.setattr("nmt.runs.neural_lm.NeuralLineScorer.carries", True)
    work.check(in_parts=False)
    with pytest.raises(ConfigError, match="each line depends on those before it"):
        work.check(in_parts=True)


def test_scores_depend_on_the_files_of_the_model(tmp_path: Path) -> None:
    names = [path.name for path in made(MODELS / "lm", "-i", "text").models()]
    assert "config.yaml" in names and len(names) > 2
    pairs = made(MODELS / "translator", "-s", "s", "-t", "t").models()
    assert all(path.parent == MODELS / "translator" for path in pairs) and len(pairs) > 2


# ---- test perplexity ---------------------------------------------------------------------------------------
# nmt-perplexity, in process: its table is the sums of the scores of lines.


RUN = Path(__file__).resolve().parents[2] / "models" / "lm"


def test_totals_by_hand() -> None:
    totals = perplexity.PerplexityTotals(seconds=2.0)
    totals.add(
        "ab c", LineScores(units=["ab", "c"], log_probs=[-1.0, -2.0, -3.0], in_vocabulary=[True, False])
    )
    totals.add("", LineScores(units=[], log_probs=[-4.0], in_vocabulary=[]))
    found = {name: value for value, name in totals.rows()}
    assert found["sentences"] == "2" and found["words or subword units"] == "2"
    assert (
        found["perplexity per unit, ends of sentences counted, unknown ones as <unk>"]
        == f"{math.exp(2.5):.4f}"
    )
    assert found["perplexity without unknown units"] == f"{math.exp(8 / 3):.4f}"
    assert found["bits per character, ends of lines counted"] == f"{10 / math.log(2) / 6:.5f}"
    assert found["units per CPU second"] == "2" and "mean |log Z| of distinct contexts" not in found
    assert math.isnan(perplexity.perplexity(0.0, 0))


def test_blanks_between_the_symbols_of_spelled_text_are_no_characters() -> None:
    """`t h e`, as the Penn Treebank's characters are written, has as many bits per character as `the`."""
    scored = LineScores(["t", "h", "e"], [-1.0, -2.0, -3.0, -4.0], [True] * 3)
    found = []
    for line in ("the", "t h e", " t h e "):
        totals = perplexity.PerplexityTotals()
        totals.add(line, scored)
        found.append(dict(row[::-1] for row in totals.rows())["bits per character, ends of lines counted"])
    assert found == [f"{10 / math.log(2) / 4:.5f}"] * 3


def test_totals_of_parts_are_those_of_the_whole() -> None:
    scored = [LineScores(["a", "b"], [-0.1, -1 / 3, -0.5], [True, False]), LineScores([], [-0.25], [])]
    whole, parts = perplexity.PerplexityTotals(), perplexity.PerplexityTotals()
    for line, one in zip(("ab", ""), scored, strict=True):
        part = perplexity.PerplexityTotals()
        for totals in (whole, part):
            totals.add(line, one)
        parts.add_packed(part.pack())
    assert parts == whole and parts.perplexity == whole.perplexity


def test_a_run(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("Un garçon ne suit pas l'homme.\n\n", encoding="utf-8")
    arguments = ["-i", str(tmp_path / "text"), "-o", str(tmp_path / "table"), "-q", "--threads", "1"]
    assert perplexity.main([str(RUN), *arguments, "--assume-normalized"]) == 0
    lines = (tmp_path / "table").read_text(encoding="utf-8").split("\n")[:-1]
    found = {name: value for value, name in (line.split("\t") for line in lines)}
    model = line_scorer(RUN, normalized=True)
    expected = sum(sum(line.log_probs) for line in model.score(["Un garçon ne suit pas l'homme.", ""]))
    assert float(found["log p of the text, natural"]) == pytest.approx(expected, abs=1e-3)
    assert found["log Z = 0: probabilities do not sum to one"] == "assumed"
    assert float(found["mean |log Z| of distinct contexts"]) > 0


def test_an_empty_text(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").touch()
    assert perplexity.main([str(RUN), "-i", str(tmp_path / "text"), "-q"]) == 2
    assert "empty file, expected one sentence a line" in capfd.readouterr().err


def test_a_text_of_unknown_words_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The perplexity of <unk> says nothing, such as that of words under a model of classes."""
    (tmp_path / "lm.arpa").write_text(
        "\\data\\\nngram 1=3\n\n\\1-grams:\n-1\t<unk>\n0\t<s>\n-1\t</s>\n\n\\end\\\n"
    )
    for line, warns in (("a b", True), ("", False)):
        (tmp_path / "text").write_text(f"{line}\n")
        assert perplexity.main([str(tmp_path / "lm.arpa"), "-i", str(tmp_path / "text"), "-q"]) == 0
        assert ("knows no word of" in capfd.readouterr().err) == warns


def test_the_summary_of_pairs_of_no_probability(tiny: Path) -> None:
    """exp(-log p) is more than a float holds."""
    scorer = load_scorer(score.parser().parse_args([str(tiny / "run"), "-s", "s", "-t", "t"]))
    assert "1 pair, mean log p -2000.0000, a word -1000.0000" in scorer.summary(["-2000.0 2"], 1)
