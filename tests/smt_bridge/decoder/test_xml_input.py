"""Markup of input lines: what tags mean, and a message for every mistake."""

import math
import random
from collections.abc import Sequence

import pytest

from smt_bridge.decoder import xml_input
from smt_bridge.decoder.xml_input import (
    NOTHING_AVOIDED,
    AvoidedPhrases,
    ForcedTranslation,
    MarkedLine,
    Markup,
)

# ---- test xml input ----------------------------------------------------------------------------------------


def parse(line: str, policy: str = "exclusive", brackets: tuple[str, str] = ("<", ">")) -> MarkedLine:
    return xml_input.parse_markup(line, Markup(policy, brackets))


def test_translations() -> None:
    found = parse('a <np translation="un||truc bleu" prob="0.8||0.2">b c</np> d')
    assert found.words == ["a", "b", "c", "d"] and not found.walls and not found.zones
    assert [(option.first, option.last, option.words) for option in found.forced] == [
        (1, 2, ["un"]),
        (1, 2, ["truc", "bleu"]),
    ]
    assert [option.log_prob for option in found.forced] == pytest.approx(
        [math.log(0.8), math.log(0.2)], abs=1e-7
    )


def marked(
    words: str,
    *forced: tuple[int, int, str],
    walls: Sequence[int] = (),
    zones: Sequence[tuple[int, int]] = (),
) -> MarkedLine:
    """A line with forced translations of probability 1: first and last word, translation."""
    options = [ForcedTranslation(first, last, text.split(), 0.0) for first, last, text in forced]
    return MarkedLine(words.split(), options, list(walls), list(zones))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('a<x translation="p">b</x>c', marked("a b c", (1, 1, "p"))),  # a tag separates words
        ('<x english="p">a</x>', marked("a", (0, 0, "p"))),
        (
            '<x translation="p" english="q" prob="1||0">a</x>',
            MarkedLine(["a"], [ForcedTranslation(0, 0, ["p"], 0.0), ForcedTranslation(0, 0, ["q"], -100.0)]),
        ),
        ('a b c <x translation="p" span="0-1"/>', marked("a b c", (0, 1, "p"))),
        ('<x translation="p" span="2"/> a b c', marked("a b c", (2, 2, "p"))),
        ('<x translation="p"><y translation="q">a</y> b</x>', marked("a b", (0, 0, "q"), (0, 1, "p"))),
        ('<x translation="p||">a</x>', marked("a", (0, 0, "p"), (0, 0, ""))),  # nothing is a translation
        (r'<x translation="say \"p\"">a</x>', marked("a", (0, 0, r"say \"p\""))),
        ("a <b> c </b> <br/> d", marked("a c d")),
        ('<x translation="">a</x>', marked("a")),
        ("a <wall/> b", marked("a b", walls=[0])),
        ("<wall/> a <wall /> b", marked("a b", walls=[0])),
        ("a <wall> b c </wall> d", marked("a b c d", walls=[0, 1, 2])),
        (f'a <wall span="1-{10**18}"/> b c', marked("a b c", walls=[0, 1, 2])),
        ("a <zone> b <wall/> c </zone> d", marked("a b c d", walls=[1], zones=[(1, 2)])),
        ('a <ne entity="3"> @num@ </ne>', marked("a @num@")),
        ("3 < 5 and 7 > 2 &lt; &amp;amp;", marked("3 < 5 and 7 > 2 &lt; &amp;amp;")),
        ("ho|mme |x", MarkedLine(["ho", ""])),
        ("", MarkedLine([])),
    ],
)
def test_tags(line: str, expected: MarkedLine) -> None:
    assert parse(line) == expected


def test_policies_and_brackets() -> None:
    line = 'a <np translation="p">b</np> <wall/> c'
    assert parse(line, "pass-through").words == ["a", "<np", 'translation="p">b</np>', "<wall/>", "c"]
    assert parse(line, "ignore") == MarkedLine(["a", "b", "c"], walls=[1])
    other = line.replace("<", "{{").replace(">", "}}")
    assert parse(other, "inclusive", ("{{", "}}")) == parse(line, "inclusive")
    assert parse(other).words == other.split()


BAD = {
    'a <np translation="p" b': "a tag without '>'",
    'a <np translation="p">b': "tag 'np' is never closed",
    "3 < 5 <np> a </np>": "'<' before a tag, which Moses then takes for text",
    "a </np> b": "tag 'np' is closed, but was not opened",
    "<np> a <b> c </np> </b>": "tag 'b' is closed by 'np'",
    "a </np/> b": "both closes and is closed",
    "a </> b": "both closes and is closed",
    '<np translation="p||q" prob="1">a</np>': "has 2 translations, but 1 probabilities",
    '<np translation="p" prob="x">a</np>': "prob: 'x' is not a number",
    '<np translation="p" prob="-1">a</np>': "prob: '-1' is negative",
    '<np translation="p" prob="1e39">a</np>': "too large for single precision",
    '<np translation="p">': "never closed",
    '<np translation="p"/> a': "has a translation, but encloses no word",
    '<np translation="p>a</np>': "no closing quote",
    "<np translation='p'>a</np>": "Moses ignores translation of tag",
    '<np translation = "p">a</np>': "Moses ignores translation of tag",
    '<np translation="" prob="1">a</np>': "translation=\"\" of tag 'np' is empty",
    '<np translation="p" span="1-2-3">a</np>': "span='1-2-3' of tag 'np': expected numbers of words",
    '<np translation="p" span="a">a</np>': "span='a' of tag 'np'",
    '<np translation="p" span="3-1"/> a b c d': "span='3-1' of tag 'np' ends before it begins; write 1-3",
    '<np span="3-1"/> a b c d': "span='3-1' of tag 'np' ends before it begins",
    '<zone span="3-1"/> a b c d': "span='3-1' of tag 'zone' ends before it begins",
    '<wall span="3-1"/> a b c d': "span='3-1' of tag 'wall' ends before it begins",
    '<np translation="p" span="0-1"/> a': "ends at word 1, but the words of the line have the numbers 0 to 0",
    '<np translation="p" span="0-1"/>': "a span ends at word 1, but the line has no words",
    '<zone span="0-7"/> a': "a span ends at word 7",
    "<zone></zone> a": "a zone without words",
    "<ne>a b</ne>": "tag 'ne' has to enclose one word",
    '<weight-overwrite weights="LM0= 1"/> a': "changes the model",
    f'<np translation="p">{"a " * 21}</np>': (
        "a translation of 21 words, but options have at most 20 (max-phrase-length)"
    ),
    "a|b|c|d|e": "more than 4 factors",
}


@pytest.mark.parametrize("line", BAD)
def test_mistakes(line: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse(line)
    assert BAD[line] in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 250


def test_any_line_is_understood_or_refused() -> None:
    """Pieces of markup in any order give a ValueError, or words without complete tags and spans inside the
    line."""
    rng = random.Random(2)
    pieces = '< > / np zone wall " 0.5 || a 1 - \\ <np> </np> <wall/>'.split()
    pieces += [' translation="', ' prob="', ' span="', " ", "b "]
    refused = 0
    for _ in range(5000):
        line = "".join(rng.choice(pieces) for _ in range(rng.randint(1, 25)))
        try:
            found = parse(line)
        except ValueError:
            refused += 1
            continue
        text = " ".join(found.words)
        assert "<np>" not in text and "</np>" not in text and "<wall/>" not in text
        assert all(0 <= option.first <= option.last < len(found.words) for option in found.forced)
        assert all(0 <= begin <= last < len(found.words) for begin, last in found.zones)
    assert 1000 < refused < 4900


# ---- test avoided ------------------------------------------------------------------------------------------
# Phrases that a translation may not contain.


def test_whole_words_in_a_row() -> None:
    phrases = AvoidedPhrases([["a", "b"], ["c"], []])
    assert phrases.occurs(["x", "a", "b"]) and phrases.occurs(["c"])
    assert not phrases.occurs(["a", "x", "b"]) and not phrases.occurs(["b", "a"]) and not phrases.occurs([])
    assert phrases and not NOTHING_AVOIDED and not NOTHING_AVOIDED.occurs(["a"])
