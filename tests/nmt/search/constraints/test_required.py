"""Progress towards required phrases against a count of their occurrences."""

import itertools
import random

import pytest

from nmt.search.constraints.protocol import Demand
from nmt.search.constraints.required import Progress, Required
from nmt.text.spelling import Spelling
from nmt.text.vocab import EOS
from tests.nmt.search.constraints.spellings import of_bpe, of_pieces, of_words

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


def after(required: Required, text: list[int]) -> Progress:
    mark = required.begin()
    for unit in text:
        mark = required.follow(mark, unit)
    return mark


@pytest.mark.parametrize(("kind", "phrases"), CASES, ids=str)
def test_a_text_may_end_when_it_has_every_phrase(kind: str, phrases: list[list[int]]) -> None:
    """All texts of up to six units: whether they may end, and what `met` and `needed` say."""
    spelling = SPELLINGS[kind]
    required = Required(phrases, spelling.joints)
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
    required = Required(phrases, SPELLINGS[kind].joints)
    rng = random.Random(1)
    for room in range(required.needed(required.begin()), 12):
        for _ in range(20):
            mark, text = required.begin(), list[int]()
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
    required = Required(phrases, SPELLINGS[kind].joints)
    for units in itertools.product((3, 4, 5), repeat=4):
        mark = after(required, list(units))
        assert set(required.forbidden(mark, required.units + 2)) <= {EOS}


@pytest.mark.parametrize(("kind", "phrases"), CASES, ids=str)
def test_what_is_wanted_is_a_step_forward(kind: str, phrases: list[list[int]]) -> None:
    required = Required(phrases, SPELLINGS[kind].joints)
    for units in itertools.product((3, 4, 5), repeat=4):
        mark = after(required, list(units))
        if required.needed(mark) > 1 or not mark.inside:
            best = min((3, 4, 5), key=lambda unit: required.needed(required.follow(mark, unit)))
            steps = [required.needed(required.follow(mark, unit)) for unit in required.wanted(mark)]
            assert not steps or min(steps) == required.needed(required.follow(mark, best))
    assert required.vocabulary() == {unit for phrase in phrases for unit in phrase}


def test_results_that_are_forgotten_are_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    phrases = [[3, 4], [5], [4], [4, 4, 5]]
    usual = Required(phrases, SPELLINGS["words"].joints)
    monkeypatch.setattr("nmt.search.constraints.required.REMEMBERED", 3)
    forgetful = Required(phrases, SPELLINGS["words"].joints)
    for units in itertools.product((3, 4, 5), repeat=6):
        mark, other = after(usual, list(units)), after(forgetful, list(units))
        assert mark == other and usual.met(mark) == forgetful.met(other)
        assert usual.wanted(mark) == forgetful.wanted(other)
    assert len(forgetful.next) <= 3 and len(forgetful.states) <= 3
