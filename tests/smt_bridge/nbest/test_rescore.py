"""Rescoring n-best lists: new features, new totals, unions of lists, resumed jobs; other bytes are
unchanged."""

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nmt.data.affiliation import PHRASE, affiliate_pair, affiliations_by_phrase, fewest_phrases
from nmt.errors import DataError
from nmt.formats import nbest, phrase_table
from nmt.io import files
from nmt.runs import checkpoint
from nmt.scoring import word_scores
from nmt.text.tokenize import escape
from nmt.work.executors import EXECUTORS
from smt_bridge.cli import rescore as rescore_command
from smt_bridge.features.base import PairFeature, Values, WordPairs
from smt_bridge.features.translation import Translation
from smt_bridge.nbest.rescore import (
    ScoringForm,
    affiliation,
    choose_form,
    inverse_affiliation,
    make_requests,
    sum_scores,
)
from smt_bridge.nbest.union import NbestSentence
from smt_bridge.tables.score import FLOOR
from tests.conftest import Command, kill_once_written
from tests.nmt.work.lossy import Losing
from tests.smt_bridge.cli.scored_tables import ARPA

# A small n-best list of Moses, and the text that was translated.
LIST = """0 ||| le chien voit  ||| LM0= -3 WordPenalty0= -3 ||| -2.1 ||| 0-1=0-1 2=2 ||| 0-0 1-1 2-2\x20
0 ||| un chien  ||| LM0= -2 WordPenalty0= -2 ||| -1.4 ||| 0=0 1-2=1 ||| 0-0 1-1\x20
1 |||  ||| LM0= 0 WordPenalty0= 0 ||| 0 |||  |||\x20
2 ||| le &apos; chat  ||| LM0= -5 WordPenalty0= -3 ||| -104 ||| 0-1=0-1 2=2 ||| 0-0\x20
2 ||| un chat  ||| LM0= -6 WordPenalty0= -2 ||| -3.8 ||| 0=0 1-2=1 ||| 0-0\x20
"""
SOURCE = "the dog sees\n\nthe &apos; cat\n"


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    (tmp_path / "n").write_text(LIST)
    (tmp_path / "s").write_text(SOURCE)
    (tmp_path / "w").write_text("LM0= 0.5\nWordPenalty0= 0.2\nRNN0= 1\n")
    return tmp_path


def features_of(path: Path) -> list[dict[str, list[float]]]:
    return [hypothesis.features for hypothesis in nbest.read(path)]


def test_without_weights_only_features_are_added(lists: Path, tiny: Path, command: Command) -> None:
    """For whole sentences the value is that of nmt-score for the unescaped pair."""
    line = ["smt-rescore", *"n -s s -o o --best b -f".split(), f"translation={tiny / 'run'}"]
    done = command(*line, cwd=lists)
    assert done.returncode == 0, done.stderr
    run = checkpoint.load(tiny / "run")
    sources = [line.replace("&apos;", "'").split() for line in SOURCE.split("\n")]
    for old, new in zip(LIST.split("\n")[:-1], files.read_lines(lists / "o"), strict=True):
        left, right = old.split("|||"), new.split("|||")
        name, value = right[2].split()[-2:]
        assert [*left[:2], *left[3:]] == [*right[:2], *right[3:]]
        assert right[2] == f"{left[2]}{name} {value} " and name == "RNN0="
        target = left[1].replace("&apos;", "'").split()
        pair = run.source_words.encode(sources[int(left[0])]), run.target_words.encode(target)
        assert float(value) == pytest.approx(sum(word_scores(run.model, [pair])[0]), abs=1e-4)
    assert (lists / "b").read_text() == "un chien\n\nun chat\n"


@pytest.mark.ci
def test_by_phrase_is_the_sum_of_the_tables_column(lists: Path, tiny: Path, command: Command) -> None:
    (lists / "t").write_text("".join(f"{pair} ||| 1\n" for pair in sorted([
        "&apos; cat ||| chat", "cat ||| chat", "dog sees ||| chien", "sees ||| voit",
        "the &apos; ||| le &apos;", "the dog ||| le chien", "the ||| un",
    ], key=str.encode)))  # fmt: skip
    feature = ["-f", f"translation={tiny / 'run'}"]
    table = command("smt-score-table", lists / "t", "-q", "--unsorted", *feature).stdout
    column = {
        tuple(line.split(" ||| ")[:2]): math.log(float(line.split()[-1])) for line in table.split("\n")[:-1]
    }
    line = ["smt-rescore", *"n -q -s s --by-phrase -o o".split(), *feature]
    assert command(*line, cwd=lists).returncode == 0
    found = [features["RNN0"][0] for features in features_of(lists / "o")]
    pairs = [
        [("the dog", "le chien"), ("sees", "voit")], [("the", "un"), ("dog sees", "chien")], [],
        [("the &apos;", "le &apos;"), ("cat", "chat")], [("the", "un"), ("&apos; cat", "chat")],
    ]  # fmt: skip
    assert found == pytest.approx([sum(column[pair] for pair in row) for row in pairs], abs=1e-3)


def test_totals_and_best(lists: Path, tiny: Path, command: Command) -> None:
    """New totals are weights x features, plus -100 for each unknown word; the list is sorted by them, and the
    first entry is the best."""
    (lists / "old").write_text("LM0= 0.5\nWordPenalty0= 0.2\nUnknownWordPenalty0= 1\n")
    (lists / "n").write_text(LIST.replace("| -104 |", "| -103.1 |").replace("| -3.8 |", "| -3.4 |"))
    line = ["smt-rescore", *"n -s s -w w --decoder-weights old -o o --best b -f".split()]
    done = command(*line, f"translation={tiny / 'run'}", cwd=lists)
    assert done.returncode == 0, done.stderr
    by_sentence: dict[int, list[nbest.Hypothesis]] = {}
    for hypothesis in nbest.read(lists / "o"):
        unknown = -100 if "&apos;" in hypothesis.text else 0
        values = {name: value for name, (value,) in hypothesis.features.items()}
        assert hypothesis.total == pytest.approx(
            0.5 * values["LM0"] + 0.2 * values["WordPenalty0"] + values["RNN0"] + unknown, rel=1e-4
        )
        by_sentence.setdefault(hypothesis.sentence, []).append(hypothesis)
    best = [" ".join(group[0].text) for group in by_sentence.values()]
    assert (lists / "b").read_text().split("\n")[:-1] == best and best[2] == "un chat"
    for group in by_sentence.values():
        assert group == sorted(group, key=lambda hypothesis: -hypothesis.total)


def test_unknown_words_do_not_decide_between_lists(lists: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries of other lists lack the decoder's -100 for unknown words."""
    monkeypatch.chdir(lists)
    Path("n").write_text(LIST.replace("| -104 |", "| -103.1 |").replace("| -3.8 |", "| -3.4 |"))
    Path("m").write_text("0 ||| un chien ||| NMT0= -1 ||| -1\n")
    Path("old").write_text("LM0= 0.5\nWordPenalty0= 0.2\nUnknownWordPenalty0= 1\n")
    Path("w").write_text("LM0= 0.5\nWordPenalty0= 0.2\nNMT0= 1\nList0= 0\nList1= 0\n")
    given = "n m -q -s s -w w --decoder-weights old --fill-missing -o o".split()
    assert rescore_command.main(given) == 0
    totals = {" ".join(entry.text): entry.total for entry in nbest.read("o")}
    assert totals["le &apos; chat"] == pytest.approx(-3.1) and totals["un chien"] == pytest.approx(-2.4)


@pytest.mark.ci
def test_union_of_lists(lists: Path, tiny: Path, command: Command, refused: Callable[..., str]) -> None:
    """Lists of Moses and of nmt-translate: a text of both has the features of both, and List features say
    which list it is from."""
    texts = ("0 ||| un chien", -1), ("0 ||| la voiture", -2), ("2 ||| le ' chat", -3)
    (lists / "m").write_text("".join(f"{text} ||| NMT0= {value} ||| -1\n" for text, value in texts))
    (lists / "lm").write_text(ARPA)
    line = ["smt-rescore", *"n m -q -s s -o o".split()]
    message = refused(command(*line, cwd=lists))
    assert "sentence 0 has hypotheses without NMT0, which are not computed from the text" in message
    message = refused(command(*line, "--escape", "-f", "lm:LM0=lm", cwd=lists))
    assert "hypotheses without NMT0, which" in message  # LM0 is computed, the word penalty counted
    more = ["--fill-missing", "--escape", "-f", f"translation={tiny / 'run'}"]
    done = command(*line, *more, cwd=lists)
    assert done.returncode == 0, done.stderr
    found = {
        (h.sentence, " ".join(h.text)): {name: value for name, (value,) in h.features.items()}
        for h in nbest.read(lists / "o")
    }
    assert all(features.pop("RNN0") for features in found.values())
    assert found[0, "un chien"] == {"LM0": -2, "WordPenalty0": -2, "NMT0": -1, "List0": 1, "List1": 1}
    assert found[0, "la voiture"] == {"LM0": 0, "WordPenalty0": -2, "NMT0": -2, "List0": 0, "List1": 1}
    assert found[2, "le &apos; chat"] == {"LM0": -5, "WordPenalty0": -3, "NMT0": -3, "List0": 1, "List1": 1}
    assert found[2, "un chat"] == {"LM0": -6, "WordPenalty0": -2, "NMT0": 0, "List0": 1, "List1": 0}
    assert len(found) == 6 == len(features_of(lists / "o"))
    assert len({tuple(features) for features in found.values()}) == 1


def test_a_missing_feature_is_computed(lists: Path, command: Command) -> None:
    """Entries of nmt-translate get a language model score, entries with one keep it, and all have their
    features in the same order."""
    (lists / "lm").write_text(ARPA)
    # nothing for sentence 0
    (lists / "m").write_text("1 |||  ||| NMT0= -1 ||| -1\n2 ||| the dog ||| NMT0= -3 ||| -1\n")
    done = command("smt-rescore", *"n m -q -s s -o o -f lm:LM0=lm --fill-missing".split(), cwd=lists)
    assert done.returncode == 0, done.stderr
    hypotheses = list(nbest.read(lists / "o"))
    assert {tuple(h.features) for h in hypotheses} == {("LM0", "WordPenalty0", "NMT0", "List0", "List1")}
    (new,) = (h for h in hypotheses if h.text == ["the", "dog"])
    # <s> the: back-off -0.3, -0.5; the dog: -0.125; dog </s>: back-off 0, -0.9
    expected = math.log(10) * (-0.3 - 0.5 - 0.125 - 0.9)
    assert new.features["LM0"][0] == pytest.approx(expected, rel=1e-5)
    assert new.features["WordPenalty0"] == [-2]
    assert [h.features["LM0"][0] for h in hypotheses if h.sentence == 0] == [-3, -2]


def test_escape() -> None:
    assert [escape(word) for word in ["l'", "&", "a|b", "[x]", "&apos;", "&amp;", "R&D"]] == [
        "l&apos;", "&amp;", "a&#124;b", "&#91;x&#93;", "&apos;", "&amp;", "R&amp;D",
    ]  # fmt: skip


@pytest.mark.ci
def test_killed_and_resumed(tiny: Path, command: Command, tmp_path: Path) -> None:
    (tmp_path / "s").write_text("the dog sees\n" * 40)
    entries = "{0} ||| {1}chien ||| LM0= {2} ||| 0\n{0} ||| un ||| LM0= -1 ||| 0\n"
    (tmp_path / "n").write_text("".join(entries.format(n, "le " * (n % 3), -n % 7) for n in range(40)))
    code = (
        "import sys, time; import smt_bridge.nbest.rescore as r; r.SENTENCES = 4\n"
        "from smt_bridge.features.feature_set import FeatureSet\n"
        "whole = FeatureSet.compute; slow = float(sys.argv.pop(1))\n"
        "FeatureSet.compute = lambda features, task: (time.sleep(slow), whole(features, task))[1]\n"
        "from smt_bridge.cli.rescore import main; sys.exit(main())"
    )
    feature = f"translation={tiny / 'run'}"
    arguments = [str(tmp_path / "n"), "-q", "-s", str(tmp_path / "s"), "-f", feature, "-o"]

    def start(slow: float, *more: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", code, str(slow), *arguments, *more])

    process = start(0.5, str(tmp_path / "o"))
    scores = tmp_path / "o.job" / "scores"
    kill_once_written(process, scores)
    assert not (tmp_path / "o").exists() and scores.exists()
    assert start(0, str(tmp_path / "o"), "--resume").wait() == 0
    assert start(0, str(tmp_path / "whole")).wait() == 0
    assert (tmp_path / "o").read_bytes() == (tmp_path / "whole").read_bytes()
    assert not (tmp_path / "o.job").exists()


@pytest.mark.ci
def test_real_features_recomputed(nmt_data: Path, command: Command, tmp_path: Path) -> None:
    """LM0 = ln 10 x KenLM; TranslationModel0 = Σ ln p over the segmentation (60 sentences, the printed
    precision)."""
    out = nmt_data / "moses-multi30k" / "out"
    line = "nbest60.nb4.gz -s nbest60.src -f lm=../lm.fr.arpa.gz -o".split()
    done = command("smt-rescore", *line, tmp_path / "o", cwd=out)
    assert done.returncode == 0, done.stderr
    hypotheses = list(nbest.read(tmp_path / "o"))
    sources = [files.split_words(line) for line in files.read_lines(out / "nbest60.src")]
    used = [
        [
            (" ".join(sources[h.sentence][a : b + 1]).encode(), " ".join(h.text[c : d + 1]).encode())
            for (a, b), (c, d) in nbest.segmentation(h, "n")
        ]
        for h in hypotheses
    ]
    wanted = {pair for row in used for pair in row}
    table = {
        (pair.source, pair.target): [math.log(float(score)) for score in pair.scores.split()]
        for pair in phrase_table.read(out.parent / "phrase-table.gz")
        if (pair.source, pair.target) in wanted
    }
    unknown = 0
    for hypothesis, row in zip(hypotheses, used, strict=True):
        assert hypothesis.features["KenLM0"][0] == pytest.approx(hypothesis.features["LM0"][0], abs=2e-3)
        unknown += any(pair not in table for pair in row)
        for column, value in enumerate(hypothesis.features["TranslationModel0"]):
            expected = sum(table[pair][column] for pair in row if pair in table)
            assert value == pytest.approx(expected, abs=1e-3)
    assert unknown < len(hypotheses) / 2


@pytest.fixture
def two_lists(tmp_path: Path) -> Path:
    """Lists of two systems whose features differ, the text, and references."""
    one = ["le chien voit|-1", "un chien noir voit|-1.2", "un chien noir vit|-1.2"]
    other = ["un chien noir voit|-40", "un chat|-45"]
    for name, feature, texts in (("n", "LM0", one), ("m", "NMT0", other)):
        rows = [
            f"{number} ||| {text.split('|')[0]} ||| {feature}= {number - 1} ||| {text.split('|')[1]}\n"
            for number in range(3)
            for text in texts
        ]
        (tmp_path / name).write_text("".join(rows))
    (tmp_path / "s").write_text("a black dog sees\n" * 3)
    (tmp_path / "r").write_text("un chien noir voit\n" * 3)
    return tmp_path


@pytest.mark.ci
def test_minimum_bayes_risk(two_lists: Path, command: Command) -> None:
    """With one list, with two lists without weights, and with scales tuned on references."""

    def best(*given: str) -> str:
        done = command("smt-rescore", *given, "-s", "s", "-q", "--best", "b", cwd=two_lists)
        assert done.returncode == 0, done.stderr
        (line,) = set((two_lists / "b").read_text().split("\n")[:-1])
        return line

    assert best("n") == best("n", "--mbr", "bleu", "--mbr-scale", "50") == "le chien voit"
    assert best("n", "--mbr", "bleu") == best("n", "--mbr", "chrf") == "un chien noir voit"
    assert best("n", "m", "--mbr", "bleu", "--mbr-scale", "50", "1") == "le chien voit"
    assert best("n", "m", "--mbr", "bleu", "--mbr-scale", "1", "50") == "un chien noir voit"
    assert best("n", "--mbr", "chrf", "--mbr-tune", "r", "--mbr-scale-output", "c") == "un chien noir voit"
    chosen = (two_lists / "c").read_text().strip()
    assert best("n", "--mbr", "chrf", "--mbr-scale", chosen) == "un chien noir voit"


@pytest.mark.ci
def test_minimum_bayes_risk_of_new_totals(two_lists: Path, tiny: Path, command: Command) -> None:
    """With weights the union of the lists is one list; neither workers nor an output list change the
    choice."""
    (two_lists / "w").write_text("LM0= 0\nNMT0= 0\nList0= 1\nList1= 0.5\nRNN0= 0.01\n")
    given = ["n", "m", "-s", "s", "-q", "--fill-missing", "-f", f"translation={tiny / 'run'}", "-w", "w"]
    for name, more in {"1": [], "2": ["--workers", "2"], "3": ["-o", "o"]}.items():
        line = ["smt-rescore", *given, "--mbr", "bleu", "--best", name, *more]
        done = command(*line, cwd=two_lists)
        assert done.returncode == 0, done.stderr
    assert len({(two_lists / name).read_bytes() for name in "123"}) == 1
    assert (two_lists / "1").read_text() == "un chien noir voit\n" * 3
    totals = [h.total for h in nbest.read(two_lists / "o") if h.sentence == 0]
    assert len(totals) == 4 and totals == sorted(totals, reverse=True)


def test_lost_sentences_are_named_and_computed_by_a_resumed_job(
    lists: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Chunks have one sentence, and the second chunk is lost."""
    monkeypatch.setattr("smt_bridge.nbest.rescore.SENTENCES", 1)
    monkeypatch.setitem(EXECUTORS, "lossy", Losing(1))
    monkeypatch.chdir(lists)
    Path("lm.arpa").write_text(ARPA)

    def run(output: str, *options: str) -> int:
        return rescore_command.main([*"n -q -s s -f lm=lm.arpa -o".split(), output, *options])

    assert run("whole") == 0
    assert run("o", "--executor", "lossy") == 2
    message = capsys.readouterr().err
    assert "s: line 2: three workers died while computing this; all others" in message
    assert not Path("o").exists()
    assert run("o", "--resume") == 0
    assert Path("o").read_bytes() == Path("whole").read_bytes()


# ---- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-s s", "nothing to write"),
        ("-s s -o o -w w2", "no weight for feature WordPenalty0"),
        ("-s s -o o -w w3", "a weight for XX0, which no list has"),
        ("-s s -o o --decoder-weights w4", "these are not the weights that its decoder used"),
        ("-s s -o o -f lm:LM0=x", "the name LM0 is taken"),
        ("-s s -o o --by-phrase", "--by-phrase needs a --feature"),
        ("-s s -o o --resume", "--resume goes with --feature"),
        ("-s short -o o", "entries for sentence 2, but short has 2 lines"),
        ("-s long -o o", "no entry for sentence 3 (line 4 of long)"),
        ("-s s -o o --mbr bleu", "--mbr chooses what --best writes"),
        ("-s s -o o --mbr-scale 2", "go with --mbr bleu or --mbr chrf"),
        ("-s s --best o --mbr bleu --mbr-scale 1 2", "2 values of --mbr-scale, but"),
        ("-s s --best o --mbr bleu --mbr-scale 2 --mbr-tune s", "--mbr-tune chooses the scale"),
        ("-s s --best o --mbr bleu --mbr-scale-output x", "give --mbr-tune REF"),
        ("-s s --best o --mbr bleu --mbr-tune short", "short: 2 lines, but s has 3"),
        ("-s s -o n", "is also read"),
    ],
)
def test_refusals(
    words: str, message: str, lists: Path, command: Command, refused: Callable[..., str]
) -> None:
    """Options that exclude each other, and lists that do not fit together."""
    for name, text in (
        ("w2", "LM0= 1\n"),
        ("w3", "LM0= 1\nWordPenalty0= 1\nXX0= 1\n"),
        ("w4", "LM0= 1\nWordPenalty0= 1\n"),
        ("short", "a\n\n"),
        ("long", f"{SOURCE}a\n"),
    ):
        (lists / name).write_text(text)
    assert message in refused(command("smt-rescore", "n", "-q", *words.split(), cwd=lists))
    assert not (lists / "o").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("-3.8 ||| 0=0", "-3.8 ||| 0=7", "sentence 2: segmentation"),
        ("LM0= -6", "LM1= -6", "LM0"),
        ("WordPenalty0= -2 ||| -3.8", "WordPenalty0= -2 1 ||| -3.8", "n:5: features"),
    ],
)
def test_all_is_checked_before_the_work(
    old: str,
    new: str,
    message: str,
    tiny: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A mistake in the last sentence is reported before the first is scored, and no job is left to be
    resumed."""
    assert LIST.count(old) == 1
    texts = {"n": LIST.replace(old, new), "s": SOURCE, "w": "LM0= 0.5\nWordPenalty0= 0.2\nRNN0= 1\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr("smt_bridge.nbest.rescore.SENTENCES", 1)
    monkeypatch.setattr(Translation, "score", lambda self, pairs: pytest.fail("it has begun"))
    given = ["n", "-s", "s", "-w", "w", "-o", "o"]
    argv = [name if name.startswith("-") else str(tmp_path / name) for name in given]
    assert rescore_command.main([*argv, "-q", "--by-phrase", "-f", f"translation={tiny / 'run'}"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert message in line and sorted(path.name for path in tmp_path.iterdir()) == sorted(texts)


# ---- scoring requests --------------------------------------------------------------------------------------
# The pairs of n-best lists that features score; affiliations of hypotheses by hand.


class Plain(PairFeature):
    def score(self, pairs: WordPairs) -> Values:
        raise NotImplementedError

    def identity(self) -> str:
        return ""


class Local(Plain):
    by_phrase = True


class Aligned(Plain):
    word_aligned = True


class Inverse(Aligned):
    inverse_aligned = True


def hypothesis(words: str, segments: str, points: str | None) -> nbest.Hypothesis:
    line = f"0 ||| {words} ||| F0= 1 ||| 0 ||| {segments}"
    return nbest.parse(line + (f" ||| {points}" if points is not None else ""), "list:1")


def chunk() -> list[NbestSentence]:
    entries = [nbest.parse(line, "list") for line in LIST.split("\n")[:-1]]
    return [
        NbestSentence(
            number, line.split(), own := [one for one in entries if one.sentence == number],
            [frozenset([0])] * len(own),
        )
        for number, line in enumerate(SOURCE.split("\n")[:-1])
    ]  # fmt: skip


def test_the_form_that_each_kind_of_feature_scores() -> None:
    for feature, by_phrase, form in (
        (Plain(), True, ScoringForm.SENTENCE),
        (Local(), True, ScoringForm.PHRASES),
        (Local(), False, ScoringForm.SENTENCE),
        (Aligned(), True, ScoringForm.ALIGNED),
        (Inverse(), True, ScoringForm.INVERSE_ALIGNED),
    ):
        assert choose_form(feature, by_phrase) is form


def test_each_distinct_pair_once() -> None:
    twice = chunk()
    twice[0].hypotheses += [
        hypothesis("un chien", "0=0 1-2=1", "0-0 1-1"),
        hypothesis("un chien", "0=0 1-2=1", "0-0 2-1"),
    ]
    whole, parts, aligned, again = make_requests(
        twice, [ScoringForm.SENTENCE, ScoringForm.PHRASES, ScoringForm.ALIGNED, ScoringForm.SENTENCE], "list"
    )
    assert again is whole and whole.pairs.affiliations is None and whole.pairs.whole
    assert whole.rows[:4] == [[0], [1], [1], [1]] and aligned.rows[:4] == [[0], [1], [1], [2]]
    assert aligned.pairs.affiliations == [[0, 1, 2], [0, 1], [0, 2], [], [0, 0, 2], [0, 2]]
    assert aligned.pairs.take([2, 0]).affiliations == [[0, 2], [0, 1, 2]]
    values = -np.arange(len(whole.pairs), dtype=np.float64)
    assert sum_scores(whole, values, ScoringForm.SENTENCE).tolist()[:4] == [0, -1, -1, -1]
    impossible = sum_scores(whole, np.full(len(whole.pairs), -np.inf), ScoringForm.SENTENCE)
    assert {nbest.format_number(value) for value in impossible.tolist()} == {"-100000"}  # as tuners read it
    floored = sum_scores(parts, np.full(len(parts.pairs), -1e9), ScoringForm.PHRASES)
    assert floored[0] == 2 * math.log(FLOOR) and floored[4] == 0


def test_affiliations_are_those_of_the_search() -> None:
    """Phrase by phrase; a phrase without words has the position of the next one, or is after the end."""
    assert affiliation(hypothesis("x y z", "0-1=0-1 2=2", "1-0 2-2"), 3, "l") == [1, 1, 2]
    assert affiliation(hypothesis("x y", "2=0 0-1=1", ""), 3, "l") == [2, 1], "diagonals"
    assert affiliation(hypothesis("x y", "2=0 1=1 0=1", "2-0 0-1"), 3, "l") == [2, 0]
    assert affiliation(hypothesis("x", "0=0 1=1", "0-0"), 2, "l") == [0]
    assert affiliation(hypothesis("", "0=0", ""), 1, "l") == [] == affiliation(hypothesis("", "", ""), 0, "l")
    links = frozenset([(0, 0), (2, 1), (1, 3)])
    segments = " ".join(f"{a}-{b}={c}-{d}" for (a, b), (c, d) in fewest_phrases(links, 3, 4))
    points = " ".join(f"{a}-{b}" for a, b in links)
    assert affiliation(hypothesis("w x y z", segments, points), 3, "l") == affiliate_pair(links, 3, 4, PHRASE)


def test_affiliations_of_source_words_are_those_of_the_exchanged_pair() -> None:
    """Phrase by phrase; source words of a phrase without words are affiliated with the beginning of the next
    phrase."""
    for words, segments, points, source, expected in (
        ("x y z", "0-1=0-1 2=2", "1-0 2-2", 3, [0, 0, 2]),
        ("x y", "2=0 0-1=1", "", 3, [1, 1, 0]),
        ("x y", "2=0 1=1 0=1", "2-0 0-1", 3, [1, 1, 0]),
        ("x", "0=0 1=1", "0-0", 2, [0, 1]),
        ("", "0=0", "", 1, [0]),
        ("", "", "", 0, []),
    ):
        assert inverse_affiliation(hypothesis(words, segments, points), source, "l") == expected
    links = frozenset([(0, 0), (2, 1), (1, 3)])
    found = fewest_phrases(links, 3, 4)
    segments = " ".join(f"{a}-{b}={c}-{d}" for (a, b), (c, d) in found)
    points = " ".join(f"{a}-{b}" for a, b in links)
    exchanged = affiliations_by_phrase([(b, a) for a, b in links], [(t, s) for s, t in found], 3)
    assert inverse_affiliation(hypothesis("w x y z", segments, points), 3, "l") == exchanged
    for words, segments in (("x", "0-1=0"), ("x y", "0=0 0-1=1"), ("x y", "1=0 2=1")):
        with pytest.raises(DataError, match=r"^l: .*does not cover each of 3 source words once"):
            inverse_affiliation(hypothesis(words, segments, ""), 3, "l")


@pytest.mark.parametrize(
    ("words", "segments", "points", "message"),
    [
        ("x", "0=0", None, "no alignment field .*print-alignment-info"),
        ("x", "", "0-0", "no segmentation field"),
        ("x y", "0=0", "0-0", "covers 1 of 2 words"),
        ("x y", "0=0 3=1", "0-0", "segmentation 3-3=1-1 does not fit"),
        ("x y", "0=1 1=0", "0-0", "segmentation 0-0=1-1 does not fit"),
        ("x", "0=0", "0-1", "point 0-1 is outside"),
    ],
)
def test_lists_that_do_not_say_it(words: str, segments: str, points: str | None, message: str) -> None:
    with pytest.raises(DataError, match=f"^l: .*{message}"):
        affiliation(hypothesis(words, segments, points), 2, "l")
