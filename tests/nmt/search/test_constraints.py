"""Beam search with constraints against exhaustive search, the scorer, and itself."""

import itertools
import math
import random
from collections.abc import Callable

import pytest
import torch

from nmt.models.registry import AnyModel
from nmt.scoring import word_scores
from nmt.search import FinishedHypothesis
from nmt.search.beam import ContinuousSearch, search
from nmt.search.config import BeamConfig, length_normalizer
from nmt.search.constraints import (
    AnyConstraint,
    Constraint,
    ForbiddenPhrases,
    NoRepeat,
    PhraseProgress,
    RequiredPhrases,
)
from nmt.search.steps import Ensemble, Reading, Shortlisted
from nmt.text import spelling
from nmt.text.spelling import Spelling, mark_boundaries
from nmt.text.subwords.bpe import BPE
from nmt.text.subwords.sentencepiece import Unigram
from nmt.text.vocab import EOS, UNK
from tests.nmt.search.models import ATTENTIVE, SOURCES, WORDS, make, make_transformer

# ---- spellings ---------------------------------------------------------------------------------------------
# Vocabularies whose units are words or parts of words.


SPECIALS = ["<s>", "</s>", "<unk>"]


def of_words(count: int) -> Spelling:
    return spelling.make_spelling([f"w{unit} " for unit in range(3 + count)], raw=False)


def of_bpe(*units: str) -> Spelling:
    return spelling.make_spelling([BPE.spell(unit) for unit in [*SPECIALS, *units]], raw=False)


def of_pieces(*units: str) -> Spelling:
    return spelling.make_spelling([Unigram.spell(unit) for unit in [*SPECIALS, *units]], raw=True)


# ---- test phrases ------------------------------------------------------------------------------------------
# Required phrases against a count of their occurrences; avoided phrases in texts of all segmentations.


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
    monkeypatch.setattr("nmt.search.constraints.MOST_RESULTS", 3)
    forgetful = RequiredPhrases(phrases, SPELLINGS["words"].joints)
    for units in itertools.product((3, 4, 5), repeat=6):
        mark, other = after(usual, list(units)), after(forgetful, list(units))
        assert mark == other and usual.met(mark) == forgetful.met(other)
        assert usual.wanted(mark) == forgetful.wanted(other)
    assert len(forgetful.next) <= 3 and len(forgetful.summaries) <= 3


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
    return ForbiddenPhrases(
        [mark_boundaries(f" {phrase} ", raw=kind != "bpe") for phrase in phrases], spelling
    )


@pytest.mark.ci
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
    monkeypatch.setattr("nmt.search.constraints.MOST_STATES", remembered)
    monkeypatch.setattr("nmt.search.constraints.MOST_RESULTS", remembered)
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
    assert len(avoided.completing) <= remembered and len(avoided.next) <= remembered


def test_a_forced_phrase_is_over_when_it_is_over() -> None:
    """After a phrase that was forced the text may go on, and end."""
    avoided = made("bpe", ["ab", "ab a"])
    mark = avoided.follow(avoided.start(), 8)  # ab
    assert EOS not in avoided.forbidden(mark, 9) and 8 in avoided.forbidden(mark, 9)
    assert 6 not in avoided.forbidden(mark, 9)  # b


def test_longer_punctuation_and_other_characters() -> None:
    spelling = of_pieces("▁l'eau", "▁l", "'", "eau", "x")
    avoided = ForbiddenPhrases([mark_boundaries(" l'eau ", raw=True)], spelling)
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


SPELLING = of_words(20)
Asked = tuple[list[list[int]], list[list[int]]]  # required, avoided

ASKED: list[Asked] = [
    ([[3], [4, 5]], []),
    ([], []),
    ([[5, 5]], [[4]]),
    ([[3], [3], [4]], [[3, 4]]),
    ([], [[3], [4, 5]]),
]


def constraints_of(asked: Asked, words: int = 20) -> list[AnyConstraint]:
    spelling = of_words(words)
    required, avoided = asked
    found: list[AnyConstraint] = []
    if avoided:
        texts = ["".join(f" w{unit} " for unit in phrase) for phrase in avoided]
        found.append(ForbiddenPhrases([mark_boundaries(text, raw=False) for text in texts], spelling))
    if required:
        found.append(RequiredPhrases(required, spelling.joints))
    return found


def met(asked: Asked, text: list[int]) -> bool:
    required, avoided = asked
    holds = any(text[at : at + len(one)] == one for one in avoided for at in range(len(text)))
    return enough(required, text, SPELLING) and not holds


def repeats(text: list[int], order: int) -> bool:
    grams = [tuple(text[at : at + order]) for at in range(len(text) - order + 1)]
    return len(set(grams)) < len(grams)


def words_of(found: list[list[FinishedHypothesis]]) -> list[list[list[int]]]:
    return [[one.words for one in candidates] for candidates in found]


@pytest.mark.parametrize("allocation", ["dynamic", "grid"])
@pytest.mark.parametrize("order", [0, 2])
@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_a_wide_beam_is_exhaustive(asked: Asked, order: int, allocation: str) -> None:
    """All sentences of up to four words that keep to the constraints, the best first."""
    model, source = make(WORDS, 0), [3, 4]
    config = BeamConfig(
        beam_size=500, max_length_factor=2, no_repeat_ngram=order, allocation=allocation, normalize="length"
    )
    [found] = search(model, [source], config, constraints=[constraints_of(asked, WORDS)])
    texts = [list(text) for size in range(5) for text in itertools.product((3, 4, 5), repeat=size)]
    allowed = [text for text in texts if met(asked, text) and not (order and repeats(text, order))]
    totals = [sum(scores) for scores in word_scores(model, [(source, text) for text in allowed])]
    rank = length_normalizer("length")
    expected = sorted(
        ((rank(total, len(text) + 1), text) for total, text in zip(totals, allowed, strict=True)),
        reverse=True,
    )
    assert [one.words for one in found] == [text for _, text in expected]
    assert [one.score for one in found] == pytest.approx([score for score, _ in expected], abs=1e-10)


MODELS: dict[str, Callable[[], AnyModel]] = {
    "rnn": lambda: make(words=20, seed=4),
    "attention": lambda: make(words=20, seed=3, **ATTENTIVE),
    "transformer": lambda: make_transformer(words=20),
}


@pytest.mark.parametrize("allocation", ["dynamic", "grid"])
@pytest.mark.parametrize("beam", [1, 2, 6])
@pytest.mark.parametrize("kind", list(MODELS))
@pytest.mark.ci
def test_every_hypothesis_keeps_to_its_constraints(kind: str, beam: int, allocation: str) -> None:
    """In a batch with sentences that have none: each is found as alone, with the scorer's probability, and
    those without constraints as in plain search."""
    model = MODELS[kind]()
    config = BeamConfig(beam_size=beam, rows=9, allocation=allocation)
    given = [constraints_of(asked) for asked in ASKED]
    together = search(model, SOURCES, config, constraints=given)
    plain = search(model, SOURCES, config)
    for row, (source, candidates) in enumerate(zip(SOURCES, together, strict=True)):
        assert 1 <= len(candidates) <= beam
        assert all(met(ASKED[row], one.words) for one in candidates)
        [alone] = search(model, [source], config, constraints=[constraints_of(ASKED[row])])
        assert [(one.words, one.looked_at) for one in candidates] == [
            (one.words, one.looked_at) for one in alone
        ]
        scores = word_scores(model, [(source, one.words) for one in candidates])
        assert [one.log_prob for one in candidates] == pytest.approx([sum(row) for row in scores], abs=1e-10)
        assert [one.score for one in candidates] == sorted((one.score for one in candidates), reverse=True)
        if not given[row]:
            assert words_of([candidates]) == words_of([plain[row]])


@pytest.mark.parametrize("most", [1, 2])
def test_of_many_phrases_the_likeliest_are_tried(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every hypothesis still has all of them."""
    monkeypatch.setattr("nmt.search.constraints.MOST_WANTED", most)
    asked: Asked = ([[number] for number in range(3, 9)], [])
    for candidates in search(
        MODELS["attention"](), SOURCES[:2], BeamConfig(beam_size=4), constraints=[constraints_of(asked)] * 2
    ):
        assert candidates[0].log_prob > -math.inf and all(met(asked, one.words) for one in candidates)


def test_no_constraints_no_change() -> None:
    """Not a bit, whether none are given or empty ones."""
    model = make(words=20, seed=4)
    plain = search(model, SOURCES, BeamConfig(beam_size=4))
    assert search(model, SOURCES, BeamConfig(beam_size=4), constraints=[[] for _ in SOURCES]) == plain
    everything = [[ForbiddenPhrases(["\0zz\0"], SPELLING)] for _ in SOURCES]
    assert search(model, SOURCES, BeamConfig(beam_size=4), constraints=everything) == plain


def test_the_limit_of_length_gives_way() -> None:
    """A source of one word may have three; five that are required are all there, and nothing else is. With
    room for one more word there is one more at most."""
    model, required = make(words=20), [[3, 4, 5], [7], [7]]
    for longest in (1, 5, 6):
        config = BeamConfig(beam_size=3, max_length=longest)
        for one in search(model, [[5]], config, constraints=[[RequiredPhrases(required, SPELLING.joints)]])[
            0
        ]:
            assert enough(required, one.words, SPELLING) and 5 <= len(one.words) <= max(5, longest)


def test_forced_prefixes_come_first() -> None:
    """A prefix counts: it may have what is required, begin it, or break what else is asked."""
    model = make(words=20)
    sources, prefixes = [[5]] * 4, [[4, 5], [8, 3], [UNK, 9], [7, 7, 7]]
    asked: list[Asked] = [([[4, 5]], []), ([[3, 4, 5]], []), ([], [[3]]), ([[3]], [[7]])]
    found = search(
        model, sources, BeamConfig(4, no_repeat_ngram=1), prefixes, [constraints_of(one) for one in asked]
    )
    for (required, avoided), prefix, candidates in zip(asked, prefixes, found, strict=True):
        for one in candidates:
            assert one.words[: len(prefix)] == prefix and enough(required, one.words, SPELLING)
            rest = one.words[len(prefix) :]
            assert met(([], avoided), rest) and not repeats(rest, 1) and not set(rest) & set(prefix)
            assert one.log_prob > -math.inf


def test_what_cannot_be_met_has_no_probability() -> None:
    """The same word twice, and no word twice; a required word that is avoided. Others are not disturbed."""
    model = make(words=20)
    twice = [RequiredPhrases([[3], [3]], SPELLING.joints)]
    found = search(model, SOURCES[:2], BeamConfig(4, no_repeat_ngram=1), constraints=[twice, []])
    assert [(one.words, one.log_prob) for one in found[0]] == [([], -math.inf)]
    assert words_of(found[1:]) == words_of(search(model, SOURCES[1:2], BeamConfig(4, no_repeat_ngram=1)))
    [found] = [search(model, [[3]], BeamConfig(4), constraints=[constraints_of(([[5]], [[5]]))])]
    assert [(one.words, one.log_prob) for one in found[0]] == [([], -math.inf)]


class NoEnd(Constraint[None]):
    """Forbids the end."""

    def start(self) -> None: ...

    def follow(self, mark: None, unit: int) -> None: ...

    def forbidden(self, mark: None, left: int) -> list[int]:
        return [EOS]


def test_a_translation_that_must_not_end_at_the_limit() -> None:
    [found] = search(make(words=20), [[3]], BeamConfig(4), constraints=[[NoEnd()]])
    assert [(one.words, one.log_prob) for one in found] == [([], -math.inf)]


def test_an_ensemble_and_its_short_lists() -> None:
    """A required word that no short-list has is there, with the probability of a short-list that has it."""
    members = [make(words=20, seed=seed) for seed in (0, 1)]
    short = [Shortlisted(member, lambda source: {0, 1, 2, 3, 4, 6}) for member in members]
    both = Ensemble([short[0], members[1]])
    readings = [Reading((source, source)) for source in SOURCES]
    given = [constraints_of(([[9, 8]], [])), *([[]] * 4)]
    found = search(both, readings, BeamConfig(4), constraints=given)
    assert all(enough([[9, 8]], one.words, SPELLING) for one in found[0])
    assert words_of(found[1:]) == words_of(search(both, readings[1:], BeamConfig(4)))
    wider = Shortlisted(members[0], lambda source: {0, 1, 2, 3, 4, 6, 8, 9})
    expected = search(wider, SOURCES[:1], BeamConfig(4), constraints=given[:1])
    assert words_of(search(short[0], SOURCES[:1], BeamConfig(4), constraints=given[:1])) == words_of(expected)
    [forced] = search(short[0], SOURCES[:1], BeamConfig(4), [[9]])
    assert all(one.words[0] == 9 and one.log_prob > -math.inf for one in forced)


def test_continuous_search_is_the_same() -> None:
    """Sentences with constraints that come while others are being searched, and one that is cancelled."""
    model, config = make(words=20, seed=4), BeamConfig(beam_size=4, rows=14)
    work = ContinuousSearch(model, config)
    numbers, found = dict[int, int](), dict[int, list[FinishedHypothesis]]()
    for number in (1, 0, 2, 3, 4):
        numbers[work.add(SOURCES[number], constraints=constraints_of(ASKED[number]))] = number
        for place, candidates in work.step():
            found[numbers.pop(place)] = candidates
        if number == 0:
            gone = work.add(SOURCES[2], constraints=constraints_of(ASKED[2]))
            for place, candidates in work.step():
                found[numbers.pop(place)] = candidates
            work.cancel(gone)
    while work.busy:
        for place, candidates in work.step():
            found[numbers.pop(place)] = candidates
    expected = search(model, SOURCES, config, constraints=[constraints_of(asked) for asked in ASKED])
    assert words_of([found[number] for number in range(5)]) == words_of(expected)


def test_units_of_parts_of_words() -> None:
    """A required word is not found inside of another one."""
    spelling = of_bpe("a@@", "b", "c")
    config = BeamConfig(beam_size=500, max_length_factor=2)
    [found] = search(
        make(WORDS, 0), [[3, 4]], config, constraints=[[RequiredPhrases([[4]], spelling.joints)]]
    )
    texts = [one.words for one in found]
    assert [3, 4] not in texts and [3, 4, 4] in texts and [4, 3, 4] in texts
    assert len(texts) == sum(
        enough([[4]], list(text), spelling)
        for size in range(5)
        for text in itertools.product((3, 4, 5), repeat=size)
    )
    assert all(EOS not in text for text in texts) and torch.is_grad_enabled()
