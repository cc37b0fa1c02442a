"""Language models word by word = sentence by sentence, ours and KenLM's."""

import itertools
import math
import random
from pathlib import Path

import numpy as np
import pytest

from nmt.ngram import count_model as count
from smt_bridge.decoder import automaton, system
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.word_lm import AutomatonLM, KenLMWords, State, WordLM, phrase_score, walk
from tests.smt_bridge.decoder.models import TARGET, decoder, same_lists, sentence, write_model


def test_kenlm_through_the_package(tmp_path: Path) -> None:
    """KenLM's own states and probabilities, word by word: the plain search finds what the automaton finds."""
    pytest.importorskip("kenlm", reason="needs kenlm: pip install 'nmt-smt[kenlm]'")
    folder = write_model(tmp_path, 1)
    one, loaded = decoder(folder, stack=5, nbest=3), system.load(str(folder), use_cache=False)
    loaded.lms = [KenLMWords(count.KenLM(str(folder / "lm0")))]
    other = Decoder(loaded, DecoderConfig(stack=5, nbest=3))
    assert other.compiled is None
    for number in range(15):
        line = sentence(number, 1 + number % 6)
        same_lists(one.translate_line(line), other.translate_line(line), line, 1e-5)


def check(lm: WordLM[State], texts: list[list[str]]) -> None:
    """A sentence is its words one after the other; without context a phrase is a walk from nowhere; no
    context makes more of it than the bound."""
    for text in texts:
        ids = [lm.number(word) for word in text]
        total, state = walk(lm, lm.begin(), ids)
        assert math.isclose(lm.sentence(ids, complete=False), total, abs_tol=1e-9)
        assert math.isclose(lm.sentence(ids), total + lm.end(state)[0], abs_tol=1e-9)
    phrases = [[lm.number(word) for word in text] for text in texts]
    starts = np.cumsum([0, *map(len, phrases)])
    alone, most = lm.phrases(np.array([*itertools.chain(*phrases)], np.int32), starts)
    for words, score, bound in zip(phrases, alone, most, strict=True):
        assert math.isclose(score, phrase_score(lm, words), abs_tol=1e-9)
        assert max(score, walk(lm, lm.begin(), words)[0]) <= bound + 1e-9


def texts_of(seed: int) -> list[list[str]]:
    rng = random.Random(seed)
    return [[rng.choice([*TARGET, "zz"]) for _ in range(rng.randint(0, 5))] for _ in range(30)]


def test_word_by_word_is_sentence_by_sentence(tmp_path: Path) -> None:
    lm = system.load_lm(str(write_model(tmp_path, 1) / "lm0"))
    assert isinstance(lm, AutomatonLM) and lm.automaton is not None
    check(lm, texts_of(1))
    assert lm.knows("p") and not lm.knows("zz") and lm.number("zz") == lm.number("yy") != lm.number("p")
    for state in range(lm.automaton.root + 1):
        for word in range(lm.automaton.words):
            ours, theirs = lm.step(state, word), automaton.step(lm.automaton, state, word)
            assert math.isclose(ours[0], theirs[0], abs_tol=1e-12) and ours[1] == theirs[1]


def test_kenlm_is_the_automaton(tmp_path: Path) -> None:
    """Probabilities in single precision; states are equal where ours are."""
    pytest.importorskip("kenlm", reason="needs kenlm: pip install 'nmt-smt[kenlm]'")
    path = str(write_model(tmp_path, 1) / "lm0")
    ours, theirs = system.load_lm(path), KenLMWords(count.KenLM(path))
    check(theirs, texts_of(2))
    states: dict[object, object] = {}
    for text in texts_of(3):
        (mine, state), (his, other) = (
            walk(lm, lm.begin(), [lm.number(word) for word in text]) for lm in (ours, theirs)
        )
        assert math.isclose(mine, his, abs_tol=1e-4)
        assert states.setdefault(state, other) == other
        assert all(ours.knows(word) == theirs.knows(word) for word in text)
