"""Cuts are drawn from p(cut) ** alpha."""

import itertools
import math
import random
from collections import Counter

from nmt.text.subwords import Learning
from nmt.text.subwords.unigram import Resegmented, Unigram
from nmt.text.vocab import UNK, Vocab
from tests.nmt.text.subwords.test_pieces import text
from tests.spaceless import japanese


def cuts(word: str) -> list[list[str]]:
    """Every way to cut a word."""
    found = []
    for ends in itertools.product([False, True], repeat=len(word) - 1):
        places = [0, *(at for at, end in enumerate(ends, 1) if end), len(word)]
        found.append([word[a:b] for a, b in itertools.pairwise(places)])
    return found


def test_cuts_have_their_probability() -> None:
    """20,000 draws against the sum over all cuts, by hand."""
    scores = {"a": -2.0, "b": -2.5, "ab": -3.0, "ba": -3.5, "aba": -5.0}
    vocab = Vocab(dict.fromkeys(scores, 1), 9)
    for alpha in (0.0, 0.5, 1.0):
        weights = {
            tuple(cut): math.exp(alpha * sum(scores[piece] for piece in cut))
            for cut in cuts("abab")
            if all(piece in scores for piece in cut)
        }
        total, draw = sum(weights.values()), random.Random(1)
        resegment = Resegmented(scores, alpha, vocab)
        found = Counter(tuple(resegment.cut("abab", draw)) for _ in range(20000))
        assert set(found) == set(weights)
        for cut, weight in weights.items():  # 5 standard deviations are 0.018 at most
            assert abs(found[cut] / 20000 - weight / total) < 0.018


def test_draws_keep_the_text_and_follow_their_key() -> None:
    """The same key cuts alike, whatever was cut before; others differ; a high alpha is the best cut; unknown
    units and bytes stay."""
    lines = [target for _, target in japanese(400)]
    model = Unigram.learn(text(lines), Learning(0, 250, True, "identity"))
    vocab = Vocab(dict.fromkeys(model.inventory((), True), 1), 9999)
    sample = model.sampler(0.05, vocab)
    ids = vocab.encode(model.apply([lines[0] + "é", lines[1]]))
    drawn = [sample(ids, f"1 2 {row}") for row in range(30)]
    assert all(model.undo(vocab.decode(one)) == [lines[0] + "é", lines[1]] for one in drawn)
    assert len({tuple(one) for one in drawn}) > 20
    assert model.sampler(0.05, vocab)(ids, "1 2 7") == drawn[7] == sample(ids, "1 2 7")
    assert model.sampler(50.0, vocab)(ids, "x") == ids
    assert sample([UNK, UNK], "x") == [UNK, UNK] and sample([], "x") == []
