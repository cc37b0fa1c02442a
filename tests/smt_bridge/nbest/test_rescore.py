"""smt-rescore: new features, totals, unions; what was there keeps its bytes."""

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.formats import nbest, phrase_table
from nmt.io import files
from nmt.runs import checkpoint
from nmt.scoring import word_scores
from nmt.text.tokenize import escape
from nmt.work.executors import EXECUTORS
from smt_bridge.cli import rescore as rescore_command
from smt_bridge.nbest import rescore
from tests.conftest import kill_once_written
from tests.nmt.work.lossy import Losing
from tests.smt_bridge.cli.scored_tables import ARPA
from tests.smt_bridge.nbest.lists import LIST, SOURCE

# ---- test rescore ------------------------------------------------------------------------------------------


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    (tmp_path / "n").write_text(LIST)
    (tmp_path / "s").write_text(SOURCE)
    (tmp_path / "w").write_text("LM0= 0.5\nWordPenalty0= 0.2\nRNN0= 1\n")
    return tmp_path


def features_of(path: Path) -> list[dict[str, list[float]]]:
    return [hypothesis.features for hypothesis in nbest.read(path)]


def test_without_weights_only_features_are_added(lists: Path, tiny: Path, command: Command) -> None:
    """Whole sentences: the value is that of nmt-score's pair, Moses' escapes undone."""
    done = command(
        "smt-rescore",
        lists / "n",
        "-s",
        lists / "s",
        "-f",
        f"translation={tiny / 'run'}",
        "-o",
        lists / "o",
        "--best",
        lists / "b",
    )
    assert done.returncode == 0, done.stderr
    run = checkpoint.load(tiny / "run")
    sources = [line.replace("&apos;", "'").split() for line in SOURCE.split("\n")]
    for old, new in zip(LIST.split("\n")[:-1], files.read_lines(lists / "o"), strict=True):
        left, right = old.split("|||"), new.split("|||")
        name, value = right[2].split()[-2:]
        assert (
            [*left[:2], *left[3:]] == [*right[:2], *right[3:]]
            and right[2] == f"{left[2]}{name} {value} "
            and name == "RNN0="
        )
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
    assert (
        command(
            "smt-rescore", lists / "n", "-q", "-s", lists / "s", "--by-phrase", *feature, "-o", lists / "o"
        ).returncode
        == 0
    )
    found = [features["RNN0"][0] for features in features_of(lists / "o")]
    pairs = [
        [("the dog", "le chien"), ("sees", "voit")], [("the", "un"), ("dog sees", "chien")], [],
        [("the &apos;", "le &apos;"), ("cat", "chat")], [("the", "un"), ("&apos; cat", "chat")],
    ]  # fmt: skip
    assert found == pytest.approx([sum(column[pair] for pair in row) for row in pairs], abs=1e-3)


def test_totals_and_best(lists: Path, tiny: Path, command: Command) -> None:
    """New totals are weights x features, -100 for an unknown word kept; the list is sorted by them, the best
    is its first."""
    (lists / "old").write_text("LM0= 0.5\nWordPenalty0= 0.2\nUnknownWordPenalty0= 1\n")
    (lists / "n").write_text(
        LIST.replace("||| -104 |||", "||| -103.1 |||").replace("||| -3.8 |||", "||| -3.4 |||")
    )
    command_line = [
        "smt-rescore",
        lists / "n",
        "-s",
        lists / "s",
        "-f",
        f"translation={tiny / 'run'}",
        "-w",
        lists / "w",
    ]
    done = command(
        *command_line, "--decoder-weights", lists / "old", "-o", lists / "o", "--best", lists / "b"
    )
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
    assert all(
        group == sorted(group, key=lambda hypothesis: -hypothesis.total) for group in by_sentence.values()
    )


@pytest.mark.ci
def test_union_of_lists(lists: Path, tiny: Path, command: Command, refused: Callable[..., str]) -> None:
    """Moses' list and one of nmt-translate: a text of both has the features of both; the List features tell
    where it is from."""
    (lists / "m").write_text(
        "0 ||| un chien ||| NMT0= -1 ||| -1\n0 ||| la voiture ||| NMT0= -2 ||| -1\n2 ||| le ' chat ||| "
        "NMT0= "
        "-3 ||| -1\n"
    )
    line = ["smt-rescore", lists / "n", lists / "m", "-q", "-s", lists / "s", "-o", lists / "o"]
    message = refused(command(*line))
    assert "sentence 0 has hypotheses without NMT0, which are not computed from the text" in message
    (lists / "lm").write_text(ARPA)
    message = refused(command(*line, "--escape", "-f", f"lm:LM0={lists / 'lm'}"))
    assert "hypotheses without NMT0, which" in message  # LM0 is computed, the word penalty counted
    done = command(*line, "--fill-missing", "--escape", "-f", f"translation={tiny / 'run'}")
    assert done.returncode == 0, done.stderr
    found = {
        (h.sentence, " ".join(h.text)): {
            name: value for name, (value,) in h.features.items() if name != "RNN0"
        }
        for h in nbest.read(lists / "o")
    }
    assert found[0, "un chien"] == {"LM0": -2, "WordPenalty0": -2, "NMT0": -1, "List0": 1, "List1": 1}
    assert found[0, "la voiture"] == {"LM0": 0, "WordPenalty0": -2, "NMT0": -2, "List0": 0, "List1": 1}
    assert found[2, "le &apos; chat"] == {"LM0": -5, "WordPenalty0": -3, "NMT0": -3, "List0": 1, "List1": 1}
    assert found[2, "un chat"] == {"LM0": -6, "WordPenalty0": -2, "NMT0": 0, "List0": 1, "List1": 0}
    assert (
        len(found) == 6 == len(features_of(lists / "o"))
        and len({tuple(features) for features in found.values()}) == 1
    )
    assert all("RNN0" in features for features in features_of(lists / "o"))


def test_a_missing_feature_is_computed(lists: Path, command: Command) -> None:
    """The list of nmt-translate gets a language model score; entries that have one keep theirs; all have the
    same order of features."""
    (lists / "lm").write_text(ARPA)
    (lists / "m").write_text(
        "1 |||  ||| NMT0= -1 ||| -1\n2 ||| the dog ||| NMT0= -3 ||| -1\n"
    )  # nothing for sentence 0
    line = [
        "smt-rescore",
        lists / "n",
        lists / "m",
        "-q",
        "-s",
        lists / "s",
        "-o",
        lists / "o",
        "-f",
        f"lm:LM0={lists / 'lm'}",
        "--fill-missing",
    ]
    done = command(*line)
    assert done.returncode == 0, done.stderr
    hypotheses = list(nbest.read(lists / "o"))
    assert {tuple(h.features) for h in hypotheses} == {("LM0", "WordPenalty0", "NMT0", "List0", "List1")}
    (new,) = (h for h in hypotheses if h.text == ["the", "dog"])
    # <s> the: back-off -0.3, -0.5; the dog: -0.125; dog </s>: back-off 0, -0.9
    assert new.features["LM0"][0] == pytest.approx(
        math.log(10) * (-0.3 - 0.5 - 0.125 - 0.9), rel=1e-5
    ) and new.features["WordPenalty0"] == [-2]
    assert [h.features["LM0"][0] for h in hypotheses if h.sentence == 0] == [-3, -2]


def test_escape() -> None:
    assert [escape(word) for word in ["l'", "&", "a|b", "[x]", "&apos;", "&amp;", "R&D"]] == [
        "l&apos;", "&amp;", "a&#124;b", "&#91;x&#93;", "&apos;", "&amp;", "R&amp;D",
    ]  # fmt: skip


@pytest.mark.ci
def test_killed_and_resumed(tiny: Path, command: Command, tmp_path: Path) -> None:
    (tmp_path / "s").write_text("the dog sees\n" * 40)
    (tmp_path / "n").write_text(
        "".join(
            f"{n} ||| {'le ' * (n % 3)}chien ||| LM0= {-n % 7} ||| 0\n{n} ||| un ||| LM0= -1 ||| 0\n"
            for n in range(40)
        )
    )
    code = (
        "import sys, time; import smt_bridge.nbest.rescore as r; r.SENTENCES = 4\n"
        "from smt_bridge.features.feature_set import FeatureSet\n"
        "whole = FeatureSet.compute; slow = float(sys.argv.pop(1))\n"
        "FeatureSet.compute = lambda features, task: (time.sleep(slow), whole(features, task))[1]\n"
        "from smt_bridge.cli.rescore import main; sys.exit(main())"
    )
    arguments = [
        str(tmp_path / "n"),
        "-q",
        "-s",
        str(tmp_path / "s"),
        "-f",
        f"translation={tiny / 'run'}",
        "-o",
    ]

    def start(slow: float, *more: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", code, str(slow), *arguments, *more])

    process = start(0.5, str(tmp_path / "o"))
    scores = tmp_path / "o.job" / "scores"
    kill_once_written(process, scores)
    assert not (tmp_path / "o").exists() and scores.exists()
    assert start(0, str(tmp_path / "o"), "--resume").wait() == 0
    assert start(0, str(tmp_path / "whole")).wait() == 0
    assert (tmp_path / "o").read_bytes() == (tmp_path / "whole").read_bytes() and not (
        tmp_path / "o.job"
    ).exists()


@pytest.mark.ci
def test_real_features_recomputed(nmt_data: Path, command: Command, tmp_path: Path) -> None:
    """LM0 = ln 10 x KenLM; TranslationModel0 = Σ ln p over the segmentation (60 sentences, the printed
    precision)."""
    out = nmt_data / "moses-multi30k" / "out"
    done = command(
        "smt-rescore",
        out / "nbest60.nb4.gz",
        "-s",
        out / "nbest60.src",
        "-f",
        f"lm={out.parent / 'lm.fr.arpa.gz'}",
        "-o",
        tmp_path / "o",
    )
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
            assert value == pytest.approx(
                sum(table[pair][column] if pair in table else 0 for pair in row), abs=1e-3
            )
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
    """One list, two lists without weights, and the scale that references chose."""

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
    assert (
        best("n", "--mbr", "chrf", "--mbr-scale", (two_lists / "c").read_text().strip())
        == "un chien noir voit"
    )


@pytest.mark.ci
def test_minimum_bayes_risk_of_new_totals(two_lists: Path, tiny: Path, command: Command) -> None:
    """The union of the lists with weights is one list; workers change nothing, nor does the list that is
    written beside it."""
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


# ---- test lost sentences -----------------------------------------------------------------------------------
# smt-rescore where sentences are lost on a cluster.


def test_lost_sentences_are_named_and_computed_by_a_resumed_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sentence a chunk; the second is lost."""
    monkeypatch.setattr(rescore, "SENTENCES", 1)
    monkeypatch.setitem(EXECUTORS, "lossy", Losing(1))
    (tmp_path / "n").write_text(LIST)
    (tmp_path / "s").write_text(SOURCE)
    (tmp_path / "lm.arpa").write_text(ARPA)

    def run(output: str, *options: str) -> int:
        nbest, source = str(tmp_path / "n"), str(tmp_path / "s")
        own = [nbest, "-q", "-s", source, "-f", f"lm={tmp_path / 'lm.arpa'}", "-o", str(tmp_path / output)]
        return rescore_command.main([*own, *options])

    assert run("whole") == 0
    assert run("o", "--executor", "lossy") == 2
    message = capsys.readouterr().err
    assert f"{tmp_path / 's'}: line 2: three workers died while computing them; all others" in message
    assert not (tmp_path / "o").exists()
    assert run("o", "--resume") == 0
    assert (tmp_path / "o").read_bytes() == (tmp_path / "whole").read_bytes()
