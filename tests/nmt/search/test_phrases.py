"""Required phrases against a count of their occurrences; avoided phrases in texts of all segmentations."""

import itertools
import random

import pytest

from nmt.search.constraints import Demand, NoRepeat
from nmt.search.phrases import ForbiddenPhrases, PhraseProgress, RequiredPhrases
from nmt.text.spelling import Spelling, bounded
from nmt.text.vocab import EOS, UNK
from tests.nmt.search.spellings import of_bpe, of_pieces, of_words

# Units 3, 4, 5.
SPELLINGS = {"words": of_words(3), "bpe": of_bpe("a@@", "b", "c"), "pieces": of_pieces("▁a", "b", "▁c")}
# Each is whole words, as `Spelling` has them.
PHRASES: dict[str, list[list[list[int]]]] = {
    "words": [[[3]], [[3, 4]], [[3], [3]], [[3, 4], [4, 5]], [[3], [4, 3]], [[3, 3]], [[3, 4], [5], [4]]],
    "bpe": [[[3, 4]], [[4]], [[5], [3, 4]], [[4], [3, 4]], [[5, 3, 4], [4, 5]], [[5], [5]]],
    "pieces": [[[3]], [[3, 4]], [[3], [3, 4]], [[5], [5, 4, 4]], [[3, 5], [5, 3]], [[5], [5]]],
}
CASES = [(kind, phrases) for kind, some in PHRASES.items() for phrases in some]


def count(phrase: list[int], text: list[int], spelling: Spelling) -> int:
    """How often a phrase stands in a text as whole words, by the words themselves."""
    joints, size = spelling.joints, len(phrase)
    return sum(
        text[at : at + size] == phrase and not joints.inside(text, at) and not joints.inside(text, at + size)
        for at in range(len(text) - size + 1)
    )


def enough(phrases: list[list[int]], text: list[int], spelling: Spelling) -> bool:
    """Does a text have every phrase as often as it is given, those inside of other phrases not counted?"""
    return all(
        count(phrase, text, spelling) >= sum(count(phrase, other, spelling) for other in phrases)
        for phrase in phrases
    )


def after(required: RequiredPhrases, text: list[int]) -> PhraseProgress:
    mark = required.start()
    for unit in text:
        mark = required.follow(mark, unit)
    return mark


@pytest.mark.parametrize(("kind", "phrases"), CASES, ids=str)
def test_a_text_may_end_when_it_has_every_phrase(kind: str, phrases: list[list[int]]) -> None:
    """All texts of up to six units: whether they may end, and what `met` and `needed` say."""
    spelling = SPELLINGS[kind]
    required = RequiredPhrases(phrases, spelling.joints)
    assert isinstance(required, Demand)
    for size in range(7):
        for units in itertools.product((3, 4, 5), repeat=size):
            text = list(units)
            mark = after(required, text)
            done = enough(phrases, text, spelling)
            assert (EOS not in required.forbidden(mark, 99)) == done
            assert (required.needed(mark) == 0) == done == (required.met(mark) == required.units)
            assert not done or not list(required.wanted(mark))


@pytest.mark.parametrize(("kind", "phrases"), CASES, ids=str)
def test_there_is_always_room_for_what_is_missing(kind: str, phrases: list[list[int]]) -> None:
    """Any walk over units that are not forbidden, as short as it may be, ends with every phrase."""
    required = RequiredPhrases(phrases, SPELLINGS[kind].joints)
    rng = random.Random(1)
    for room in range(required.needed(required.start()), 12):
        for _ in range(20):
            mark, text = required.start(), list[int]()
            for left in range(room, 0, -1):
                assert required.needed(mark) <= left
                allowed = {3, 4, 5} - set(required.forbidden(mark, left))
                assert allowed
                text.append(rng.choice(sorted(allowed)))
                mark = required.follow(mark, text[-1])
            assert enough(phrases, text, SPELLINGS[kind])
            assert EOS not in required.forbidden(mark, 0)


@pytest.mark.parametrize(("kind", "phrases"), CASES, ids=str)
def test_nothing_is_forbidden_that_could_be_met(kind: str, phrases: list[list[int]]) -> None:
    """With room for all phrases once more no unit is forbidden."""
    required = RequiredPhrases(phrases, SPELLINGS[kind].joints)
    for units in itertools.product((3, 4, 5), repeat=4):
        mark = after(required, list(units))
        assert set(required.forbidden(mark, required.units + 2)) <= {EOS}


@pytest.mark.parametrize(("kind", "phrases"), CASES, ids=str)
def test_what_is_wanted_is_a_step_forward(kind: str, phrases: list[list[int]]) -> None:
    required = RequiredPhrases(phrases, SPELLINGS[kind].joints)
    for units in itertools.product((3, 4, 5), repeat=4):
        mark = after(required, list(units))
        if required.needed(mark) > 1 or not mark.inside:
            best = min((3, 4, 5), key=lambda unit: required.needed(required.follow(mark, unit)))
            steps = [required.needed(required.follow(mark, unit)) for unit in required.wanted(mark)]
            assert not steps or min(steps) == required.needed(required.follow(mark, best))
    assert required.vocabulary() == {unit for phrase in phrases for unit in phrase}


def test_results_that_are_forgotten_are_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    phrases = [[3, 4], [5], [4], [4, 4, 5]]
    usual = RequiredPhrases(phrases, SPELLINGS["words"].joints)
    monkeypatch.setattr("nmt.search.phrases.MOST_RESULTS", 3)
    forgetful = RequiredPhrases(phrases, SPELLINGS["words"].joints)
    for units in itertools.product((3, 4, 5), repeat=6):
        mark, other = after(usual, list(units)), after(forgetful, list(units))
        assert mark == other and usual.met(mark) == forgetful.met(other)
        assert usual.wanted(mark) == forgetful.wanted(other)
    assert len(forgetful.next) <= 3 and len(forgetful.summaries) <= 3


# ---- avoided phrases ----


# ---- test avoided ------------------------------------------------------------------------------------------


BPE_UNITS = ["a@@", "b@@", "a", "b", "ab@@", "ab", "aba"]
PIECES = ["▁", "a", "b", "▁a", "▁ab", "ab", "."]


def text_of(kind: str, units: tuple[int, ...]) -> str:
    """The text of units from 3, as a person reads it, a blank between words and at both ends."""
    names = [(BPE_UNITS if kind == "bpe" else PIECES)[unit - 3] for unit in units]
    if kind == "bpe":
        return " " + " ".join("".join(f"{name} " for name in names).replace("@@ ", "").split()) + " "
    return " " + " ".join("".join(names).replace("▁", " ").replace(".", " . ").split()) + " "


def made(kind: str, phrases: list[str]) -> ForbiddenPhrases:
    spelling = of_bpe(*BPE_UNITS) if kind == "bpe" else of_pieces(*PIECES)
    return ForbiddenPhrases([bounded(f" {phrase} ", raw=kind != "bpe") for phrase in phrases], spelling)


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
    monkeypatch.setattr("nmt.search.phrases.MOST_STATES", remembered)
    avoided = made(kind, phrases)
    vocabulary = range(3, 3 + len(BPE_UNITS))
    for units in itertools.product(vocabulary, repeat=4):
        mark, hit = avoided.start(), False
        for unit in (*units, EOS):
            hit = hit or unit in avoided.forbidden(mark, 9)
            mark = avoided.follow(mark, unit)
        text = text_of(kind, units)
        assert hit == any(f" {phrase} " in text for phrase in phrases), text
        assert hit == avoided.contains_phrase([*units, EOS])


def test_a_forced_phrase_is_over_when_it_is_over() -> None:
    """After a phrase that was forced the text may go on, and end."""
    avoided = made("bpe", ["ab", "ab a"])
    mark = avoided.follow(avoided.start(), 8)  # ab
    assert EOS not in avoided.forbidden(mark, 9) and 8 in avoided.forbidden(mark, 9)
    assert 6 not in avoided.forbidden(mark, 9)  # b


def test_longer_punctuation_and_other_characters() -> None:
    spelling = of_pieces("▁l'eau", "▁l", "'", "eau", "x")
    avoided = ForbiddenPhrases([bounded(" l'eau ", raw=True)], spelling)
    assert not len(avoided.forbidden(avoided.start(), 9))  # the word may go on
    mark = avoided.follow(avoided.start(), 3)
    assert avoided.forbidden(mark, 9).tolist() == [EOS, UNK, 3, 4, 5]  # but no other one may begin


# ---- test repeats ------------------------------------------------------------------------------------------
# What would repeat an n-gram is forbidden, and nothing else.


@pytest.mark.parametrize("order", [1, 2, 3])
def test_against_all_n_grams(order: int) -> None:
    rng, constraint = random.Random(order), NoRepeat(order)
    for _ in range(200):
        text = [rng.randint(3, 5) for _ in range(rng.randint(0, 9))]
        mark = constraint.start()
        for unit in text:
            mark = constraint.follow(mark, unit)
        seen = {tuple(text[at : at + order]) for at in range(len(text) - order + 1)}
        expected = {unit for unit in range(8) if tuple([*text, unit][-order:]) in seen and len(text) >= order}
        assert set(constraint.forbidden(mark, 9)) == expected
