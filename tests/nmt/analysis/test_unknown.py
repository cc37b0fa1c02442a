"""Unknown words and the subsets of Table 6.1."""

from nmt.analysis.systems import System, TestSet
from nmt.analysis.unknown import by_unknown, score_subsets, subsets, table, unknown_words
from nmt.text.vocab import Vocab

TEST = TestSet(["a a", "a z", "z z z", ""], [["b", "y", "b b b", "b"]])
VOCABS = Vocab({"a": 3}, 9), Vocab({"b": 3}, 9)


def test_unknown_words_are_counted_on_each_side() -> None:
    found = unknown_words(TEST, *VOCABS)
    assert found == {"source": [0, 1, 3, 0], "reference": [0, 1, 0, 0], "both": [0, 1, 3, 0]}


def test_curves_are_cumulative() -> None:
    """Each point holds all sentences of the point before; the last one is the whole test set."""
    system = System("it", TEST.references[0], TEST)
    curve = by_unknown([system], *VOCABS, least=1)["it"]["source"]
    assert [(bucket.key, bucket.sentences) for bucket in curve] == [(0, 2), (1, 3), (2, 3), (3, 4)]
    assert curve[-1].chrf == system.chrf().score
    assert [bucket.key for bucket in by_unknown([system], *VOCABS, least=3)["it"]["source"]] == [1, 2, 3]


def test_subsets_are_masks_and_the_last_is_both_conditions() -> None:
    masks = subsets(TEST, *VOCABS, min_length=1, max_length=2)
    assert {name: mask.tolist() for name, mask in masks.items()} == {
        "all": [True] * 4,
        "no unknown": [True, False, False, True],
        "1-2 words": [True, True, False, False],
        "1-2 words, no unknown": [True, False, False, False],
    }


def test_a_subset_without_sentences_has_no_scores() -> None:
    masks = subsets(TEST, *VOCABS, min_length=90, max_length=99)
    scores = score_subsets([System("it", TEST.references[0], TEST)], masks)
    assert [row.sentences for row in scores] == [4, 2, 0, 0]
    assert list(table(scores).lines())[3] == "90-99 words\tit\t0\t\t\t"
