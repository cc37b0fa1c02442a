from nmt.analysis.samples import samples
from nmt.analysis.systems import System, TestSet


def test_both_sides_have_to_be_long_or_short() -> None:
    """Short is fewer than 3 words, long more than 4: of the pairs 2-2, 2-5, 5-5, 5-4, 0-0 only the first and
    third are either."""
    sizes = [(2, 2), (2, 5), (5, 5), (5, 4), (0, 0)]
    test = TestSet([" ".join("a" * a) for a, _ in sizes], [[" ".join("b" * b) for _, b in sizes]])
    found = samples([System("it", test.references[0], test)], None, count=9, long=4, short=3)
    assert [(sample.kind, sample.line, sample.words) for sample in found] == [("long", 3, 5), ("short", 1, 2)]
    many = TestSet(["a"] * 50, [["b"] * 50])
    lines = [sample.line for sample in samples([System("it", ["b"] * 50, many)], None, count=4, seed=2)]
    assert len(lines) == 4 and lines == sorted(lines) != [
        sample.line for sample in samples([System("it", ["b"] * 50, many)], None, count=4, seed=3)
    ]
