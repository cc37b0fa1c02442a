"""The neural language models against naive twins, sums over words, and themselves."""

import itertools

import pytest
import torch

from nmt.data.batches import make_batch
from nmt.errors import ConfigError
from nmt.layers.batch_scores import word_scores
from nmt.search.beam import search
from nmt.search.config import BeamConfig
from nmt.text.vocab import EOS
from tests.nmt.gradients import check_gradients
from tests.nmt.lm.models import KINDS, TEXTS, V, model_of


@pytest.mark.parametrize("kind", list(KINDS))
def test_probabilities_of_every_next_word_sum_to_one_and_steps_are_the_whole(kind: str) -> None:
    model = model_of(kind)
    whole = word_scores(model, [((), text) for text in TEXTS])
    for text, scores in zip(TEXTS, whole, strict=True):
        state, word, found = model.start([()]), None, []
        for next_word in [*text, EOS]:
            with torch.no_grad():
                log_probs, state = model.step(state, word)
            assert float(log_probs.exp().sum()) == pytest.approx(1, abs=1e-9)
            found.append(float(log_probs[0, next_word]))
            word = torch.tensor([next_word])
        assert found == pytest.approx(scores, abs=1e-9)
    assert word_scores(model, [((), TEXTS[1])])[0] == pytest.approx(whole[1], abs=1e-12), (
        "neighbours change nothing"
    )
    with torch.no_grad():
        loss = float(model.loss(make_batch([()] * len(TEXTS), TEXTS)))
    assert loss == pytest.approx(-sum(map(sum, whole)), abs=1e-9)


@pytest.mark.parametrize("kind", list(KINDS))
def test_scores_of_sentences_with_shared_work_are_those_word_by_word(kind: str) -> None:
    model = model_of(kind)
    assert model.score_sentences(TEXTS).tolist() == pytest.approx(
        [sum(scores) for scores in word_scores(model, [((), text) for text in TEXTS])], abs=1e-9
    )
    assert model.score_sentences([]).tolist() == []


@pytest.mark.parametrize("kind", list(KINDS))
def test_gradients(kind: str) -> None:
    model, batch = model_of(kind), make_batch([()] * 2, [[3, 4, 5], [6]])
    check_gradients(model, lambda: model.loss(batch))


@pytest.mark.parametrize("kind", ["cslm", "lstm"])
def test_search_works_on_language_models_too(kind: str) -> None:
    """The most probable sentence of up to 3 words, by the beam and by trying all."""
    model = model_of(kind, seed=5)
    texts = [list(text) for length in range(4) for text in itertools.product(range(3, V), repeat=length)]
    scores = model.score_sentences(texts)
    found = search(model, [(3,)], BeamConfig(300, normalize="none"))[0][0]
    best = int(scores.argmax())
    assert found.words == texts[best] and found.log_prob == pytest.approx(scores[best], abs=1e-9)


@pytest.mark.parametrize("kind", ["cslm", "lstm"])
def test_beginnings_of_sentences_are_scored_without_their_end(kind: str) -> None:
    model = model_of(kind)
    expected = [sum(scores[:-1]) for scores in word_scores(model, [((), text) for text in TEXTS])]
    assert model.score_sentences(TEXTS, ends=False).tolist() == pytest.approx(expected, abs=1e-9)


def test_an_unknown_output_layer_is_named() -> None:
    with pytest.raises(ConfigError, match=r"lm\.output: 'hardmax' is unknown, expected one of 'softmax'"):
        model_of("cslm", output="hardmax")
