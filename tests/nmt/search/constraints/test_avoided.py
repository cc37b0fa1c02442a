"""A phrase is found in the text, however it is cut into units."""

import itertools
import random

import pytest

from nmt.search.constraints.avoided import Avoided, NoRepeat
from nmt.text.spelling import bounded
from nmt.text.vocab import EOS, UNK
from tests.nmt.search.constraints.spellings import of_bpe, of_pieces

# ---- test avoided ------------------------------------------------------------------------------------------


BPE_UNITS = ["a@@", "b@@", "a", "b", "ab@@", "ab", "aba"]
PIECES = ["▁", "a", "b", "▁a", "▁ab", "ab", "."]


def text_of(kind: str, units: tuple[int, ...]) -> str:
    """The text of units from 3, as a person reads it, a blank between words and at both ends."""
    names = [(BPE_UNITS if kind == "bpe" else PIECES)[unit - 3] for unit in units]
    if kind == "bpe":
        return " " + " ".join("".join(f"{name} " for name in names).replace("@@ ", "").split()) + " "
    return " " + " ".join("".join(names).replace("▁", " ").replace(".", " . ").split()) + " "


def made(kind: str, phrases: list[str]) -> Avoided:
    spelling = of_bpe(*BPE_UNITS) if kind == "bpe" else of_pieces(*PIECES)
    return Avoided([bounded(f" {phrase} ", raw=kind != "bpe") for phrase in phrases], spelling)


@pytest.mark.parametrize("remembered", [1, 1000])
@pytest.mark.parametrize("kind", ["bpe", "pieces"])
@pytest.mark.parametrize(
    "phrases", [["ab"], ["a b"], ["a b a", "b"], ["ab a", "b"], ["aba", "b ab"], ["a ab a"]], ids=str
)
def test_every_text_of_four_units(
    kind: str, phrases: list[str], remembered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A walk over units that are not forbidden, the end included, is a text without the phrases; any other
    walk is one with a phrase."""
    monkeypatch.setattr("nmt.search.constraints.avoided.REMEMBERED", remembered)
    avoided = made(kind, phrases)
    vocabulary = range(3, 3 + len(BPE_UNITS))
    for units in itertools.product(vocabulary, repeat=4):
        mark, hit = avoided.begin(), False
        for unit in (*units, EOS):
            hit = hit or unit in avoided.forbidden(mark, 9)
            mark = avoided.follow(mark, unit)
        text = text_of(kind, units)
        assert hit == any(f" {phrase} " in text for phrase in phrases), text
        assert hit == avoided.occurs([*units, EOS])


def test_a_forced_phrase_is_over_when_it_is_over() -> None:
    """After a phrase that was forced the text may go on, and end."""
    avoided = made("bpe", ["ab", "ab a"])
    mark = avoided.follow(avoided.begin(), 8)  # ab
    assert EOS not in avoided.forbidden(mark, 9) and 8 in avoided.forbidden(mark, 9)
    assert 6 not in avoided.forbidden(mark, 9)  # b


def test_longer_punctuation_and_other_characters() -> None:
    spelling = of_pieces("▁l'eau", "▁l", "'", "eau", "x")
    avoided = Avoided([bounded(" l'eau ", raw=True)], spelling)
    assert not len(avoided.forbidden(avoided.begin(), 9))  # the word may go on
    mark = avoided.follow(avoided.begin(), 3)
    assert avoided.forbidden(mark, 9).tolist() == [EOS, UNK, 3, 4, 5]  # but no other one may begin


# ---- test repeats ------------------------------------------------------------------------------------------
# What would repeat an n-gram is forbidden, and nothing else.


@pytest.mark.parametrize("order", [1, 2, 3])
def test_against_all_n_grams(order: int) -> None:
    rng, constraint = random.Random(order), NoRepeat(order)
    for _ in range(200):
        text = [rng.randint(3, 5) for _ in range(rng.randint(0, 9))]
        mark = constraint.begin()
        for unit in text:
            mark = constraint.follow(mark, unit)
        seen = {tuple(text[at : at + order]) for at in range(len(text) - order + 1)}
        expected = {unit for unit in range(8) if tuple([*text, unit][-order:]) in seen and len(text) >= order}
        assert set(constraint.forbidden(mark, 9)) == expected
