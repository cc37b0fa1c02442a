"""Words of several units."""

from nmt.analysis.segmented import by_segmented, segmented_sides, segmented_words
from nmt.analysis.systems import System, TestSet


def test_words_of_several_units_are_counted() -> None:
    assert segmented_words("a lo@@ w@@ er ca@@ se b".split()) == 2
    assert segmented_words("\u2581a \u2581lo w er \u2581ca se \u2581b".split()) == 2
    assert segmented_words('\u2581dog s . \u2581( cat ) \u2581" n o ". \u2581x'.split()) == 2
    assert segmented_words("\u2581a . \u2581b , \u2581c".split()) == 0
    assert segmented_words(["a", "b"]) == segmented_words(["\u2581a"]) == segmented_words([]) == 0


def test_curves_are_cumulative() -> None:
    source, reference = [["a@@", "b"], ["c"], []], [["x"], ["y"], ["z@@", "z@@", "z"]]
    assert segmented_sides(source, reference)["both"] == [1, 0, 1]
    test = TestSet(["ab", "c", ""], [["x", "y", "zzz"]])
    curve = by_segmented([System("it", ["x", "y", "zzz"], test)], source, reference, least=1)["it"]["source"]
    assert [(bucket.key, bucket.sentences) for bucket in curve] == [(0, 2), (1, 3)]
