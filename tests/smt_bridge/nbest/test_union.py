"""Several lists read as one."""

from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError, UserError
from nmt.formats.nbest import UNLABELED, Hypothesis
from smt_bridge.cli import rescore
from smt_bridge.features.kinds import Translation
from smt_bridge.nbest.union import NbestLists, NbestSentence, missing_features, union
from tests.smt_bridge.nbest.lists import LIST, SOURCE

# ---- test union --------------------------------------------------------------------------------------------


def hypothesis(text: str, **features: float) -> Hypothesis:
    return Hypothesis(0, text.split(), {name: [value] for name, value in features.items()}, 0.0, [])


def lists(folder: Path, *texts: str, source: str = "a\n", fill_missing: bool = False) -> NbestLists:
    paths = [folder / f"list{number}" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    (folder / "s").write_text(source)
    return NbestLists(paths=list(map(str, paths)), source=str(folder / "s"), fill_missing=fill_missing)


def test_one_entry_for_each_derivation_of_the_first_list_that_has_a_text() -> None:
    one = [hypothesis("l&apos; eau", A=1), hypothesis("l&apos; eau", A=2), hypothesis("x", A=3)]
    other = [hypothesis("l' eau", B=4), hypothesis("y", B=5)]
    entries, holders = union([one, other])
    assert [" ".join(entry.text) for entry in entries] == ["l&apos; eau", "l&apos; eau", "x", "y"]
    assert holders == [{0, 1}, {0, 1}, {0}, {1}]
    assert [entry.features for entry in entries[:2]] == [{"A": [1], "B": [4]}, {"A": [2], "B": [4]}]


def test_what_an_entry_lacks() -> None:
    entries = [hypothesis("x", A=1, S_rule=1), hypothesis("y", B=1)]
    sentence = NbestSentence(
        number=0, source=["a"], hypotheses=entries, lists=[frozenset([0]), frozenset([1])]
    )
    assert missing_features(sentence, []) == (0, ["B"])
    assert missing_features(sentence, ["B"]) == (1, ["A"])
    assert missing_features(sentence, ["A", "B"]) == (0, [])  # a sparse feature is 0 where it is not


def test_names_that_are_taken(tmp_path: Path) -> None:
    both = lists(tmp_path, "0 ||| x ||| A= 1 B= 2 W= 1 2 ||| 0\n", "0 ||| x ||| A= 1 C= 2 ||| 0\n")
    assert both.survey() == ["A", "List0", "List1", "W"] and both.sizes == {"A": 1, "B": 1, "W": 2, "C": 1}
    assert lists(tmp_path, "0 ||| x ||| A= 1 ||| 0\n").survey() == ["A"]
    nameless = "0 ||| x ||| 1 2 ||| 0\n"
    assert lists(tmp_path, nameless).survey() == [UNLABELED]
    with pytest.raises(ConfigError, match="features without names"):
        lists(tmp_path, nameless, nameless).survey()


def test_completing_has_one_order(tmp_path: Path) -> None:
    both = lists(tmp_path, "0 ||| x ||| A= 1 ||| 0\n", "0 ||| y ||| B= 2 ||| 0\n", fill_missing=True)
    both.survey()
    for sentence in both.sentences([]):
        for entry, holders in zip(sentence.hypotheses, sentence.lists, strict=True):
            both.complete(entry, {"A": [9.0], "N": [8.0]}, holders)
    assert [list(entry.features.items()) for entry in sentence.hypotheses] == [
        [("A", [1.0]), ("B", [0.0]), ("List0", [1.0]), ("List1", [0.0])],
        [("A", [9.0]), ("B", [2.0]), ("List0", [0.0]), ("List1", [1.0])],
    ]


def test_refusals(tmp_path: Path) -> None:
    entry = "0 ||| x y ||| A= 1 ||| 0\n"
    with pytest.raises(DataError, match=r"no entry for sentence 1 \(line 2"):
        list(lists(tmp_path, entry, source="a\nb\n").sentences([]))
    with pytest.raises(DataError, match=r"entries for sentence 0, but .* has 0 lines"):
        list(lists(tmp_path, entry, source="").sentences([]))
    with pytest.raises(DataError, match="list0: sentence 0"):
        list(lists(tmp_path, entry).sentences([], limit=1))
    assert list(lists(tmp_path, entry).sentences([], limit=2))
    with pytest.raises(UserError, match="list1: sentence 0 has hypotheses without A"):
        list(lists(tmp_path, entry, "0 ||| z ||| B= 1 ||| 0\n").sentences(["B"]))


# ---- test refused lists ------------------------------------------------------------------------------------
# smt-rescore: what does not fit is said before the work begins.


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
    """What is wrong with the last sentence is said before the first is scored, and nothing is left that the
    next start would have to resume."""
    assert LIST.count(old) == 1
    texts = {"n": LIST.replace(old, new), "s": SOURCE, "w": "LM0= 0.5\nWordPenalty0= 0.2\nRNN0= 1\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr("smt_bridge.nbest.rescore.SENTENCES", 1)
    monkeypatch.setattr(Translation, "score", lambda self, pairs: pytest.fail("it has begun"))
    files = ["n", "-s", "s", "-w", "w", "-o", "o"]
    argv = [name if name.startswith("-") else str(tmp_path / name) for name in files]
    assert rescore.main([*argv, "-q", "--by-phrase", "-f", f"translation={tiny / 'run'}"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert message in line and sorted(path.name for path in tmp_path.iterdir()) == sorted(texts)
