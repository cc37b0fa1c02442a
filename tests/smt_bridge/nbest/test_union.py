"""Several n-best lists read as one: unions of entries, features that are missing, and refused lists."""

from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError, UserError
from nmt.formats.nbest import UNLABELED, Hypothesis
from smt_bridge.nbest.union import NbestLists, NbestSentence, missing_features, union


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
