"""Sentences chosen to be read."""

from nmt.analysis.samples import Sample, SampleConfig, sample_sentences, table
from nmt.analysis.systems import System, TestSet
from nmt.text.vocab import Vocab


def choose(system: System, config: SampleConfig, vocabs: tuple[Vocab, Vocab] | None = None) -> list[Sample]:
    return sample_sentences([system], vocabs, config)


def test_both_sides_have_to_be_long_or_short() -> None:
    """Short is fewer than 3 words, long more than 4: of the pairs 2-2, 2-5, 5-5, 5-4, 0-0 only the first and
    third are either."""
    sizes = [(2, 2), (2, 5), (5, 5), (5, 4), (0, 0)]
    test = TestSet([" ".join("a" * a) for a, _ in sizes], [[" ".join("b" * b) for _, b in sizes]])
    found = choose(System("it", test.references[0], test), SampleConfig(count=9, long=4, short=3))
    assert [(sample.kind, sample.line, sample.words) for sample in found] == [("long", 3, 5), ("short", 1, 2)]


def test_the_seed_decides_which_are_drawn() -> None:
    many = System("it", ["b"] * 50, TestSet(["a"] * 50, [["b"] * 50]))
    lines = [sample.line for sample in choose(many, SampleConfig(count=4, seed=2))]
    assert len(lines) == 4 and lines == sorted(lines)
    assert lines == [sample.line for sample in choose(many, SampleConfig(count=4, seed=2))]
    assert lines != [sample.line for sample in choose(many, SampleConfig(count=4, seed=3))]


def test_sentences_with_unknown_words_are_left_out() -> None:
    test = TestSet(["a", "z", "a"], [["b", "b", "y"]])
    vocabs = Vocab({"a": 1}, 9), Vocab({"b": 1}, 9)
    found = choose(System("it", ["b", "b", "b"], test), SampleConfig(count=9), vocabs)
    assert [sample.line for sample in found] == [1]


def test_a_tab_in_a_text_stays_inside_its_column() -> None:
    test = TestSet(["a\tb"], [["c"]])
    lines = list(table(choose(System("it", ["c\td"], test), SampleConfig())).lines())
    assert lines[1] == "short\t1\t2\tsource\t\ta b"
    assert {line.count("\t") for line in lines} == {5} and lines[3].endswith("\tc d")
