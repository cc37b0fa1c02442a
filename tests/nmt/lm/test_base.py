"""The neural language models against naive twins, sums over words, and themselves."""

import itertools
from pathlib import Path

import pytest
import torch

from nmt.data.batches import make_batch
from nmt.errors import ConfigError
from nmt.layers.batch_scores import word_scores
from nmt.lm.base import (
    NgramNetwork,
    NormalizedScores,
    OpenVocabulary,
    RunningTextModel,
    TokenSampler,
    choose_scorer,
)
from nmt.lm.registry import LANGUAGE_MODELS
from nmt.papers.multiscale.dictionary import Dictionary
from nmt.search.beam import search
from nmt.search.config import BeamConfig
from nmt.text.vocab import EOS
from tests.nmt.gradients import check_gradients
from tests.nmt.lm.models import KINDS, TEXTS, V, config_of, model_of

# ---- test base ---------------------------------------------------------------------------------------------


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


# ---- test config -------------------------------------------------------------------------------------------
# Settings of language models that cannot be are refused by name.


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {"type": "ngram"},
            "lm.type: 'ngram' is unknown, expected one of 'cslm', 'log-bilinear', 'recurrent'",
        ),
        ({"order": 1}, "lm.order: 1 is out of range, expected 2 to 1000"),
        ({"layers": []}, "lm.layers: expected one size or more"),
        (
            {"type": "recurrent", "tied": True, "embedding": 4},
            "lm.tied: needs embedding = hidden, found 4 and 512",
        ),
        ({"type": "recurrent", "cell": "vcrnn", "recompute": 8}, "lm.recompute: cell vcrnn"),
        ({"type": "recurrent", "cell": "gru", "layer_norm": True}, "lm.layer_norm: only cell: lstm has it"),
        ({"normalizer": -1}, "lm.normalizer: -1 is out of range, expected 0 or more"),
    ],
)
def test_impossible_sizes(options: dict[str, object], message: str) -> None:
    with pytest.raises(Exception, match="lm") as error:
        config_of(**{"type": "cslm", **options}).check()  # type: ignore[arg-type]
    assert message in str(error.value)


# ---- test protocols ----------------------------------------------------------------------------------------
# Which models have which capability, and what is said where one is missing.


PROTOCOLS = (NgramNetwork, NormalizedScores, RunningTextModel, TokenSampler, OpenVocabulary)


def test_capabilities_of_the_types() -> None:
    symbols, found = ["<s>", "</s>", "<unk>", "a"], {}
    for name, kind in LANGUAGE_MODELS.items():
        model = kind.build(kind.Config(embedding=8), symbols, {"dictionary": Dictionary([("a",)], [1])})
        found[name] = [protocol for protocol in PROTOCOLS if isinstance(model, protocol)]
    assert found == {
        "cslm": [NgramNetwork, NormalizedScores],
        "log-bilinear": [NgramNetwork, NormalizedScores],
        "recurrent": [RunningTextModel],
        "characters": [RunningTextModel, OpenVocabulary],
        "transformer": [],
        "multiscale": [RunningTextModel, TokenSampler],
    }


def test_scores_without_log_z_are_for_models_trained_for_them() -> None:
    plain, trained = model_of("cslm"), model_of("cslm", normalizer=0.1)
    assert choose_scorer(plain, False, Path("run")) is plain
    for model in (plain, model_of("lstm", normalizer=0.1)):
        with pytest.raises(ConfigError, match=r"run is not a CSLM trained with lm\.normalizer"):
            choose_scorer(model, True, Path("run"))
    exact, fast = (
        choose_scorer(trained, normalized, Path("run")).score_texts(TEXTS) for normalized in (False, True)
    )
    assert exact != fast and [len(line) for line in exact] == [len(line) for line in fast]
