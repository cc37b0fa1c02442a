"""Words that are rare or unseen in training."""

from pathlib import Path

from nmt.analysis.rare import by_rare, rare_words, read_counts
from nmt.analysis.systems import System, TestSet
from nmt.analysis.unknown import by_unknown
from nmt.text.vocab import Vocab

TEST = TestSet(["a a b", "A z", "z z z", ""], [["b.", "y", "b b b", "b"]])


def test_rare_words_are_counted_on_each_side() -> None:
    source, target = {"a": 9, "b": 1}, {"b": 2, ".": 1}
    assert rare_words(TEST, source, target)["source"] == [0, 2, 3, 0]
    assert rare_words(TEST, source, target, most=1)["source"] == [1, 2, 3, 0]
    assert rare_words(TEST, source, target, most=1)["reference"] == [1, 1, 0, 0]  # "b." is two words of BLEU


def test_unseen_words_are_the_unknown_ones_of_a_vocabulary_of_all_words() -> None:
    test = TestSet(TEST.sources, TEST.references, tokenize="none")
    system = System("it", test.references[0], test)
    counts = {"a": 3}, {"b": 3, "b.": 1}
    vocabs = Vocab(counts[0], 9), Vocab(counts[1], 9)
    assert by_rare([system], *counts, least=1) == by_unknown([system], *vocabs, least=1)


def test_a_text_and_its_vocabulary_have_the_same_counts(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a b, a\n\nA b\n")
    counts = {"a": 2, "b": 2, ",": 1, "A": 1}
    Vocab(counts, 2).save(tmp_path / "vocab")
    lower = TestSet(TEST.sources, TEST.references, lowercase=True)
    for name in ("text", "vocab"):
        assert read_counts(tmp_path / name, TEST) == counts
        assert read_counts(tmp_path / name, lower) == {"a": 3, "b": 2, ",": 1}
