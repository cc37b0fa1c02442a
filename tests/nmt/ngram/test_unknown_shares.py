"""A short-list network and a count model together: one distribution over all words."""

import random

import numpy as np
import pytest
import torch

from nmt.lm.cslm import CSLM, CSLMConfig
from nmt.ngram import estimators
from nmt.ngram.count_models import NgramModel
from nmt.ngram.estimators import FALLBACK_DISCOUNTS, KneserNeyConfig
from nmt.ngram.unknown_shares import UnknownShares, masses
from nmt.scoring import word_scores
from nmt.text.vocab import BOS, EOS, Vocab


def some_model(order: int, prune: tuple[int, ...] = (0,)) -> tuple[NgramModel, list[list[str]]]:
    rng = random.Random(2)
    text = [[f"w{int(rng.paretovariate(0.9)) % 20}" for _ in range(rng.randrange(0, 9))] for _ in range(200)]
    return estimators.estimate_kneser_ney(
        text, KneserNeyConfig(order, prune, discount_fallback=FALLBACK_DISCOUNTS)
    ), text


@pytest.mark.parametrize("order, prune", [(1, (0,)), (2, (0,)), (4, (0,)), (3, (0, 1, 2))])
def test_masses_are_sums_over_words(order: int, prune: tuple[int, ...]) -> None:
    model, _ = some_model(order, prune)
    inside = np.array([word in ("</s>", "w1", "w2", "w7") for word in model.words])
    for n, found in enumerate(masses(model, inside)):
        contexts = model.grams(n).tolist() if n else [[]]
        for context, mass in list(zip(contexts, found, strict=True))[:200]:
            texts = [
                [*(model.words[word] for word in context), model.words[word]]
                for word in np.flatnonzero(inside)
            ]
            assert mass == pytest.approx(
                sum(np.exp(scores[-1]) for scores in model.scores(texts, whole=False)), abs=1e-9
            )


def test_probabilities_of_all_words_sum_to_one() -> None:
    model, text = some_model(3)
    vocab = Vocab.count(text, 6)
    torch.manual_seed(1)
    network = CSLM(CSLMConfig(order=3, embedding=4, layers=[5], init_scale=1.0), len(vocab)).double().eval()
    shares = UnknownShares(model, vocab.ids)
    words = [*(word for word in model.words if word not in ("<s>", "</s>")), "never-seen"]
    for before in ([], ["w1"], ["w1", "w19"], ["never-seen", "w2"], ["w19", "w19"]):
        total = float(np.exp(word_scores(network, [((), vocab.encode(before))])[0][-1]))  # of the end symbol
        total += float(
            np.exp(word_scores(network, [((), [*vocab.encode(before), BOS])])[0][len(before)])
        )  # training makes that 0
        for word in words[:-1]:  # <unk> stands for all that are in neither
            line = [*before, word]
            scores, share = word_scores(network, [((), vocab.encode(line))])[0], shares.logs([line])[0]
            assert len(scores) == len(share) == len(line) + 1
            total += float(np.exp(scores[len(before)] + share[len(before)]))
            assert (share[len(before)] == 0) == (word in vocab.ids)
        assert total == pytest.approx(1, abs=1e-9)
    assert (
        shares.logs([["never-seen"]])[0].tolist() == shares.logs([["<unk>"]])[0].tolist()
        and shares.logs([]) == []
        and EOS == 1
    )
