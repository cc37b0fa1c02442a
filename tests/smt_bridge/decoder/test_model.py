"""Language models of the search: automata and KenLM's binary models give the same scores; the first model
stands in for features."""

import itertools
import math
import random
from pathlib import Path

import numpy as np
import pytest

from nmt.ngram import count_models, estimators, trie_build
from nmt.ngram.count_models import NgramModel
from smt_bridge.decoder import automaton, system
from smt_bridge.decoder.automaton import null_model
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.features.protocol import StatefulFeature
from smt_bridge.decoder.model import (
    AnyWordLM,
    AutomatonLM,
    KenLMWords,
    SearchModel,
    State,
    WeightedFeature,
    WordLM,
    load_lm,
)
from tests.smt_bridge.decoder.models import TARGET, Stateful, decoder, same_lists, sentence, write_model

# ---- test automaton ----------------------------------------------------------------------------------------
# The automaton is the n-gram model: compiled steps, plain steps, and states that recombine.


def test_automaton_is_the_model(tmp_path: Path) -> None:
    """log p of sentences by the n-gram model, by compiled steps and by plain ones, for orders 1 to 4."""
    rng = random.Random(3)
    texts = [[rng.choice("abcdef") for _ in range(rng.randint(1, 9))] for _ in range(80)]
    for order in (1, 2, 4):
        model = estimators.estimate_kneser_ney(
            texts, estimators.KneserNeyConfig(order, discount_fallback=estimators.FALLBACK_DISCOUNTS)
        )
        check_automaton(model, [[*text[:4], "zz", *text[4:]] for text in texts[:40]] + [[]])


def test_automaton_of_a_model_with_holes(tmp_path: Path) -> None:
    """A pruned model that lacks `b c a` although it has `a b c a`, and has back-off weights of contexts
    without n-grams."""
    text = (
        "\\data\\\nngram 1=6\nngram 2=4\nngram 3=1\nngram 4=1\n\n"
        "\\1-grams:\n-1\t<unk>\t0\n-99\t<s>\t-0.3\n-0.9\t</s>\t0\n-0.7\ta\t-0.2\n-0.8\tb\t-0.4\n-0.6\tc\t-0.5\n\n"
        "\\2-grams:\n-0.4\ta b\t-0.25\n-0.3\t<s> a\t-0.15\n-0.2\tc a\t-0.35\n-0.5\tb c\t-0.1\n\n"
        "\\3-grams:\n-0.1\ta b c\t-0.45\n\n\\4-grams:\n-0.05\ta b c a\n\n\\end\\\n"
    )
    (tmp_path / "lm").write_text(text)
    model = count_models.read_arpa(tmp_path / "lm")
    check_automaton(
        model, [list(words) for size in range(6) for words in itertools.product("abcx", repeat=size)]
    )


def check_automaton(model: NgramModel, texts: list[list[str]]) -> None:
    plain = AutomatonLM(trie_build.compile_model(model))
    built, most = plain.automaton, plain.most
    for text, scores in zip(texts, model.scores(texts), strict=True):
        ids = np.array([plain.number(word) for word in text], np.int32)
        assert math.isclose(automaton.sentence_score(built, ids, True), scores.sum(), abs_tol=1e-9), text
        total, state = plain.walk(plain.start(), ids.tolist())
        assert math.isclose(total + plain.end(state)[0], scores.sum(), abs_tol=1e-9), text
    assert (most <= 1e-12).all()
    for word in range(len(model.words)):
        for state in set(plain.nodes.state):
            assert automaton.step(built, state, word)[0] <= most[word] + 1e-12


def test_equal_futures_recombine(tmp_path: Path) -> None:
    """Two histories that no n-gram distinguishes lead to the same state, as in KenLM."""
    model = estimators.estimate_kneser_ney(
        [list("abc"), list("xbc")],
        estimators.KneserNeyConfig(2, discount_fallback=estimators.FALLBACK_DISCOUNTS),
    )
    lm = AutomatonLM(trie_build.compile_model(model))
    states = set()
    for first in "ax":
        state: int | np.int64 = lm.start()
        for word in (first, "b"):
            _, state = automaton.step(lm.automaton, state, lm.number(word))
        states.add(int(state))
    assert len(states) == 1


# ---- test word lm ------------------------------------------------------------------------------------------
# Language models word by word = sentence by sentence, ours and KenLM's.


def test_kenlm_through_the_package(tmp_path: Path) -> None:
    """Plain search with KenLM's own states and probabilities finds the same as with the automaton."""
    pytest.importorskip("kenlm", reason="needs kenlm: pip install 'nmt-smt[kenlm]'")
    folder = write_model(tmp_path, 1)
    one, loaded = decoder(folder, stack=5, nbest=3), system.load(str(folder), use_cache=False)
    loaded.lms = [KenLMWords(count_models.KenLM(str(folder / "lm0")))]
    other = Decoder(loaded, DecoderConfig(stack=5, nbest=3))
    assert other.compiled is None
    for number in range(15):
        line = sentence(number, 1 + number % 6)
        same_lists(one.translate_line(line), other.translate_line(line), line, 1e-5)


def check(lm: WordLM[State], texts: list[list[str]]) -> None:
    """A sentence is scored like its words one after the other, a phrase without context like a walk from the
    empty state, and no context exceeds the bound."""
    for text in texts:
        ids = [lm.number(word) for word in text]
        total, state = lm.walk(lm.start(), ids)
        assert math.isclose(lm.sentence(ids, complete=False), total, abs_tol=1e-9)
        assert math.isclose(lm.sentence(ids), total + lm.end(state)[0], abs_tol=1e-9)
    phrases = [[lm.number(word) for word in text] for text in texts]
    starts = np.cumsum([0, *map(len, phrases)])
    alone, most = lm.phrases(np.array([*itertools.chain(*phrases)], np.int32), starts)
    for words, score, bound in zip(phrases, alone, most, strict=True):
        assert math.isclose(score, lm.phrase(words), abs_tol=1e-9)
        assert max(score, lm.walk(lm.start(), words)[0]) <= bound + 1e-9


def texts_of(seed: int) -> list[list[str]]:
    rng = random.Random(seed)
    return [[rng.choice([*TARGET, "zz"]) for _ in range(rng.randint(0, 5))] for _ in range(30)]


def test_word_by_word_is_sentence_by_sentence(tmp_path: Path) -> None:
    lm = load_lm(str(write_model(tmp_path, 1) / "lm0"))
    assert isinstance(lm, AutomatonLM) and lm.automaton is not None
    check(lm, texts_of(1))
    assert lm.knows("p") and not lm.knows("zz") and lm.number("zz") == lm.number("yy") != lm.number("p")
    for state in set(lm.nodes.state):
        for word in range(lm.automaton.words):
            ours, theirs = lm.step(state, word), automaton.step(lm.automaton, state, word)
            assert math.isclose(ours[0], theirs[0], abs_tol=1e-12) and ours[1] == theirs[1]


def test_kenlm_is_the_automaton(tmp_path: Path) -> None:
    """Probabilities agree in single precision, and states are equal if those of the automaton are."""
    pytest.importorskip("kenlm", reason="needs kenlm: pip install 'nmt-smt[kenlm]'")
    path = str(write_model(tmp_path, 1) / "lm0")
    ours, theirs = load_lm(path), KenLMWords(count_models.KenLM(path))
    check(theirs, texts_of(2))
    states: dict[object, object] = {}
    for text in texts_of(3):
        (mine, state), (his, other) = (
            lm.walk(lm.start(), [lm.number(word) for word in text]) for lm in (ours, theirs)
        )
        assert math.isclose(mine, his, abs_tol=1e-4)
        assert states.setdefault(state, other) == other
        assert all(ours.knows(word) == theirs.knows(word) for word in text)


# ---- test model --------------------------------------------------------------------------------------------


class Opaque(AutomatonLM):
    """A language model without arrays, like a binary one of KenLM."""

    def __init__(self) -> None:
        super().__init__(null_model())
        self.automaton = None  # type: ignore[assignment]


def model_of(*lms: AnyWordLM, weights: tuple[tuple[float, ...], ...] = ()) -> SearchModel:
    stateful = [WeightedFeature[StatefulFeature](Stateful("F0"), np.array(row)) for row in weights]
    return SearchModel(word_lms=lms, lm_weights=np.ones(len(lms)), stateful=stateful, beam=0)


def test_one_unreadable_language_model_is_enough() -> None:
    one, other = AutomatonLM(null_model()), Opaque()
    found = model_of(one, one).automata
    assert found is not None and len(found) == 2 and found[0] is one.automaton
    assert model_of(one, other).automata is None and model_of(other).automata is None


def test_the_first_language_model_stands_in() -> None:
    """The stand-in is the sum over features of the first weight of each."""
    lm = AutomatonLM(null_model())
    assert model_of(lm).stand_in == 0
    assert model_of(lm, weights=((0.25, 9.0), (-0.5,))).stand_in == 0.5 * 0.25 + 0.5 * -0.5
