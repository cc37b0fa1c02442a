"""Unknown, rare and segmented words; samples; do texts and lists of words fit?"""

import logging
from pathlib import Path

import pytest

from nmt.analysis.hard_words import (
    by_rare,
    by_segmented,
    by_unknown,
    check_coverage,
    is_subwords,
    likely_mismatch,
    rare_words,
    read_counts,
    segmented_sides,
    segmented_words,
    subsets,
    unknown_words,
)
from nmt.analysis.samples import SampleConfig, sample_sentences, samples_table
from nmt.analysis.systems import SystemOutput, TestSet
from nmt.errors import ConfigError
from nmt.text.vocab import Vocab

# ---- unknown -----------------------------------------------------------------------------------------------
# Unknown words and the subsets of Table 6.1.


TEST = TestSet(["a a", "a z", "z z z", ""], [["b", "y", "b b b", "b"]])
VOCABS = Vocab({"a": 3}, 9), Vocab({"b": 3}, 9)


def test_unknown_words_are_counted_on_each_side() -> None:
    found = unknown_words(TEST, *VOCABS)
    assert found == {"source": [0, 1, 3, 0], "reference": [0, 1, 0, 0], "both": [0, 1, 3, 0]}


def test_subsets_are_masks_and_the_last_is_both_conditions() -> None:
    masks = subsets(TEST, *VOCABS, min_length=1, max_length=2)
    assert {name: mask.tolist() for name, mask in masks.items()} == {
        "all": [True] * 4,
        "no unknown": [True, False, False, True],
        "1-2 words": [True, True, False, False],
        "1-2 words, no unknown": [True, False, False, False],
    }


# ---- rare --------------------------------------------------------------------------------------------------
# Words that are rare or unseen in training.


RARE_TEST = TestSet(["a a b", "A z", "z z z", ""], [["b.", "y", "b b b", "b"]])


def test_rare_words_are_counted_on_each_side() -> None:
    source, target = {"a": 9, "b": 1}, {"b": 2, ".": 1}
    assert rare_words(RARE_TEST, source, target)["source"] == [0, 2, 3, 0]
    assert rare_words(RARE_TEST, source, target, most=1)["source"] == [1, 2, 3, 0]
    both_words = [1, 1, 0, 0]  # "b." is two words of BLEU
    assert rare_words(RARE_TEST, source, target, most=1)["reference"] == both_words


def test_unseen_words_are_the_unknown_ones_of_a_vocabulary_of_all_words() -> None:
    test = TestSet(RARE_TEST.sources, RARE_TEST.references, tokenize="none")
    system = SystemOutput("it", test.references[0], test)
    counts = {"a": 3}, {"b": 3, "b.": 1}
    vocabs = Vocab(counts[0], 9), Vocab(counts[1], 9)
    assert by_rare([system], *counts, least=1) == by_unknown([system], *vocabs, least=1)


def test_a_text_and_its_vocabulary_have_the_same_counts(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a b, a\n\nA b\n")
    counts = {"a": 2, "b": 2, ",": 1, "A": 1}
    Vocab(counts, 2).save(tmp_path / "vocab")
    lower = TestSet(RARE_TEST.sources, RARE_TEST.references, lowercase=True)
    for name in ("text", "vocab"):
        assert read_counts(tmp_path / name, RARE_TEST) == counts
        assert read_counts(tmp_path / name, lower) == {"a": 3, "b": 2, ",": 1}


# ---- segmented ---------------------------------------------------------------------------------------------
# Words of several units.


def test_words_of_several_units_are_counted() -> None:
    assert segmented_words("a lo@@ w@@ er ca@@ se b".split()) == 2
    assert segmented_words("\u2581a \u2581lo w er \u2581ca se \u2581b".split()) == 2
    assert segmented_words('\u2581dog s . \u2581( cat ) \u2581" n o ". \u2581x'.split()) == 2
    assert segmented_words("\u2581a . \u2581b , \u2581c".split()) == 0
    assert segmented_words(["a", "b"]) == segmented_words(["\u2581a"]) == segmented_words([]) == 0


def test_curves_of_segmented_words_are_cumulative() -> None:
    source, reference = [["a@@", "b"], ["c"], []], [["x"], ["y"], ["z@@", "z@@", "z"]]
    assert segmented_sides(source, reference)["both"] == [1, 0, 1]
    test = TestSet(["ab", "c", ""], [["x", "y", "zzz"]])
    systems = [SystemOutput("it", ["x", "y", "zzz"], test)]
    curve = by_segmented(systems, source, reference, least=1)["it"]["source"]
    assert [(bucket.key, bucket.sentences) for bucket in curve] == [(0, 2), (1, 3)]


# ---- samples -----------------------------------------------------------------------------------------------
# Sentences chosen to be read.


def test_both_sides_have_to_be_long_or_short_and_without_unknown_words() -> None:
    """Short is fewer than 3 words, long more than 4: of the pairs 2-2, 2-5, 5-5, 5-4, 0-0 only the first and
    third are either; of the others one side has an unknown word."""
    sizes = [(2, 2), (2, 5), (5, 5), (5, 4), (0, 0)]
    sources = [" ".join("a" * a) for a, _ in sizes] + ["z a", "a"]
    references = [" ".join("b" * b) for _, b in sizes] + ["b", "y"]
    system = SystemOutput("it", references, TestSet(sources, [references]))
    vocabs = Vocab({"a": 1}, 9), Vocab({"b": 1}, 9)
    found = sample_sentences([system], vocabs, SampleConfig(count=9, long=4, short=3))
    assert [(sample.kind, sample.line, sample.words) for sample in found] == [("long", 3, 5), ("short", 1, 2)]


def test_the_seed_decides_which_are_drawn() -> None:
    many = SystemOutput("it", ["b"] * 50, TestSet(["a"] * 50, [["b"] * 50]))
    lines, again, other = (
        [sample.line for sample in sample_sentences([many], None, SampleConfig(count=4, seed=seed))]
        for seed in (2, 2, 3)
    )
    assert len(lines) == 4 and lines == sorted(lines) == again != other


def test_a_tab_in_a_text_stays_inside_its_column() -> None:
    system = SystemOutput("it", ["c\td"], TestSet(["a\tb"], [["c"]]))
    lines = list(samples_table(sample_sentences([system], None, SampleConfig())).lines())
    assert lines[1] == "short\t1\t2\tsource\t\ta b"
    assert {line.count("\t") for line in lines} == {5} and lines[3].endswith("\tc d")


# ---- coverage ----------------------------------------------------------------------------------------------
# Do a text and a list of words have the same form?


TEXT = "a man sees the dog , and the dog sees a man .".split()
KNOWN = set(TEXT)


def counts(words: list[str]) -> dict[str, int]:
    return {word: 10 * words.count(word) for word in words}


@pytest.mark.parametrize(
    ("text", "known", "share", "reason"),
    [
        (TEXT, KNOWN, 0, ""),
        (["Emu", *TEXT], KNOWN, 1 / 14, ""),  # a word that is really unknown
        ([word.capitalize() for word in TEXT], KNOWN, 11 / 13, "its words are lower-cased"),
        (TEXT, {word.upper() for word in KNOWN}, 11 / 13, "the text is lower-cased"),
        ("a man sees the dog, and the dog sees a man.".split(), KNOWN, 2 / 11, "not tokenized"),
        ("A Man Sees The Dog, And The Dog Sees A Man.".split(), KNOWN, 1, "neither tokenized nor"),
        ("un homme voit le chien".split(), KNOWN, 1, "swapped"),
        ("ein Mann sieht den Hund".split(), KNOWN, 1, ""),
    ],
)
def test_the_likely_reason(text: list[str], known: set[str], share: float, reason: str) -> None:
    found, why = likely_mismatch(counts(text), known, set("un homme voit le chien".split()))
    assert found == pytest.approx(share) and reason in why and bool(reason) == bool(why)


def test_units_are_told_from_words() -> None:
    assert is_subwords({"lower@@", "case"}) and is_subwords({"\u2581low", "er"})
    assert not is_subwords({"a@b", "x", "@"}) and not is_subwords(set())
    with pytest.raises(ConfigError, match=r"en.vocab: holds subword units"):
        check_coverage([TEXT], {"lower@@", "case"}, set(), "en.vocab")


def test_most_is_refused_and_less_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "nmt")
    check_coverage([TEXT] * 9, KNOWN, set(), "en.vocab")
    assert not caplog.messages
    with pytest.raises(ConfigError, match=r"en.vocab: 85% of .* lower-cased and the text is not"):
        check_coverage([[word.capitalize() for word in TEXT]] * 9, KNOWN, set(), "en.vocab")
    check_coverage([["A", *TEXT[1:]]] * 9, KNOWN, set(), "en.vocab")
    check_coverage([["x"]] * 99, KNOWN, set(), "en.vocab")
    assert [message[:13] for message in caplog.messages] == ["en.vocab: 8% ", "en.vocab: 100"]
    check_coverage([["x"]], KNOWN, set(), "en.vocab")  # one word says nothing
    assert len(caplog.messages) == 2
