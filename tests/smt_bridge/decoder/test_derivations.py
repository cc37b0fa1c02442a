"""Lists of derivations: a shorter list is the head of a longer one, a list of texts the first of each."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from smt_bridge.decoder.derivations import digest_before
from tests.smt_bridge.decoder.models import decoder, sentence, write_model


@pytest.mark.parametrize("seed", [1, 2])
def test_heads_and_firsts(seed: int, tmp_path: Path) -> None:
    """No derivation stands twice; the first is what search without a list finds; with `distinct` one of each
    text, as far as the factor lets it look."""
    made = decoder(write_model(tmp_path, seed), stack=30)
    for number in range(5):
        line = sentence(number, 5)
        (whole,) = made.nbest([line], 300)
        assert whole[0].options.tolist() == made.translate_line(line).derivations[0].options.tolist()
        paths = [tuple(one.options.tolist()) for one in whole]
        assert len(set(paths)) == len(paths)
        assert [one.total for one in whole] == sorted((one.total for one in whole), reverse=True)
        (head,) = made.nbest([line], 7)
        assert [tuple(one.options.tolist()) for one in head] == paths[:7]
        firsts = {tuple(one.text): one.total for one in reversed(whole)}
        (texts,) = made.nbest([line], 10, distinct=True)
        assert [tuple(one.text) for one in texts] == sorted(firsts, key=lambda text: -firsts[text])[:10]


def test_the_factor_ends_a_list_of_texts(tmp_path: Path) -> None:
    """With factor 1 as many derivations are looked at as are listed at most."""
    made = decoder(write_model(tmp_path, 1), stack=30, nbest_factor=1)
    shorter = 0
    for number in range(5):
        line = sentence(number, 5)
        (looked,), (texts,) = made.nbest([line], 20), made.nbest([line], 20, distinct=True)
        assert {tuple(one.text) for one in looked} == {tuple(one.text) for one in texts}
        shorter += len(texts) < len(looked)
    assert shorter


def test_the_hash_of_a_text_does_not_depend_on_its_phrases() -> None:
    """Words put before others, in whatever portions, give the hash of the whole; other texts another."""
    seen = {}
    for text in itertools.product(range(3), repeat=4):
        words = np.array(text, np.int32)
        whole = digest_before(np.uint64(0), 0, words)
        for cut in range(5):
            tail = digest_before(np.uint64(0), 0, words[cut:])
            assert digest_before(np.uint64(tail), 4 - cut, words[:cut]) == whole
        seen[int(whole)] = text
    assert len(seen) == 81
