"""The automaton is the n-gram model: compiled steps, plain steps, and states that recombine."""

import itertools
import math
import random
from pathlib import Path

import numpy as np

from nmt.ngram import arpa, estimators
from nmt.ngram.arpa import NgramModel
from smt_bridge.decoder import automaton
from smt_bridge.decoder.automaton import CachedNgramModel
from smt_bridge.decoder.word_lm import AutomatonLM, walk


def test_automaton_is_the_model(tmp_path: Path) -> None:
    """log p of every sentence as the arrays have it, by the compiled steps and by the plain ones; orders 1 to
    4."""
    rng = random.Random(3)
    texts = [[rng.choice("abcdef") for _ in range(rng.randint(1, 9))] for _ in range(80)]
    for order in (1, 2, 4):
        model = estimators.estimate_kneser_ney(
            texts, estimators.KneserNeyConfig(order, discount_fallback=estimators.FALLBACK_DISCOUNTS)
        )
        check_automaton(model, [[*text[:4], "zz", *text[4:]] for text in texts[:40]] + [[]])


def test_automaton_of_a_model_with_holes(tmp_path: Path) -> None:
    """A pruned model in which `b c a` is not there although `a b c a` is, and contexts have back-off weights
    but no longer n-gram."""
    text = (
        "\\data\\\nngram 1=6\nngram 2=4\nngram 3=1\nngram 4=1\n\n"
        "\\1-grams:\n-1\t<unk>\t0\n-99\t<s>\t-0.3\n-0.9\t</s>\t0\n-0.7\ta\t-0.2\n-0.8\tb\t-0.4\n-0.6\tc\t-0.5\n\n"
        "\\2-grams:\n-0.4\ta b\t-0.25\n-0.3\t<s> a\t-0.15\n-0.2\tc a\t-0.35\n-0.5\tb c\t-0.1\n\n"
        "\\3-grams:\n-0.1\ta b c\t-0.45\n\n\\4-grams:\n-0.05\ta b c a\n\n\\end\\\n"
    )
    (tmp_path / "lm").write_text(text)
    model = arpa.read(tmp_path / "lm")
    check_automaton(
        model, [list(words) for size in range(6) for words in itertools.product("abcx", repeat=size)]
    )


def check_automaton(model: NgramModel, texts: list[list[str]]) -> None:
    built = automaton.build(model)
    plain = AutomatonLM(CachedNgramModel(model.words, *built))
    for text, scores in zip(texts, model.scores(texts), strict=True):
        ids = np.array(model.encode(text), np.int32)
        assert math.isclose(automaton.sentence_score(built, ids, True), scores.sum(), abs_tol=1e-9), text
        total, state = walk(plain, plain.begin(), ids.tolist())
        assert math.isclose(total + plain.end(state)[0], scores.sum(), abs_tol=1e-9), text
    assert (built.most[: len(model.words)] <= 1e-12).all()
    for word in range(len(model.words)):
        for state in {int(value) for value in built.state}:
            assert automaton.step(built, state, word)[0] <= built.most[word] + 1e-12


def test_equal_futures_recombine(tmp_path: Path) -> None:
    """Two histories that no n-gram tells apart lead to one state, as in KenLM."""
    model = estimators.estimate_kneser_ney(
        [list("abc"), list("xbc")],
        estimators.KneserNeyConfig(2, discount_fallback=estimators.FALLBACK_DISCOUNTS),
    )
    built = automaton.build(model)
    states = set()
    for first in "ax":
        state = built.begin
        for word in (first, "b"):
            _, state = automaton.step(built, state, model.ids[word])
        states.add(int(state))
    assert len(states) == 1
