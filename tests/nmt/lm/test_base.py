"""The neural language models against naive twins, sums over words, and themselves."""

import itertools
from pathlib import Path

import pytest
import torch

from nmt.data.batches import make_batch
from nmt.errors import ConfigError
from nmt.layers.batch_scores import word_scores
from nmt.lm import LANGUAGE_MODELS, language_model_class
from nmt.lm.base import FeatureLM, LanguageModel, choose_scorer
from nmt.papers.multiscale.dictionary import Dictionary
from nmt.search.beam import search
from nmt.search.config import BeamConfig, SamplingConfig
from nmt.search.sampling import sample
from nmt.text.vocab import EOS, UNK
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


@pytest.mark.ci
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


@pytest.mark.parametrize("kind", ["cslm", "lstm", "transformer"])
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


def test_capabilities_of_the_types() -> None:
    """What a model can do besides scoring sentences; the decoder and the commands ask for it."""
    symbols, capabilities = ["<s>", "</s>", "<unk>", "a"], {}
    for name, kind in LANGUAGE_MODELS.items():
        config = kind.Config(embedding=8)
        if hasattr(config, "carry"):
            config.carry = True
        model = kind.build(config, symbols, {"dictionary": Dictionary([("a",)], [1])})
        can = {
            "n-grams": model.ngram_scores() is not None,
            "carries": model.carries,
            "samples": model.sample(1, 5, 1, 1.0, 0, 1.0) is not None,
            "spells": model.spelling_ids(["b"], [UNK]) != [UNK]
            and model.filter_vectors(torch.tensor([3])) is not None,
        }
        capabilities[name] = [what for what, is_able in can.items() if is_able]
    assert capabilities == {
        "cslm": ["n-grams"],
        "log-bilinear": ["n-grams"],
        "recurrent": ["carries"],
        "characters": ["carries", "spells"],
        "transformer": [],
        "multiscale": ["carries", "samples"],
    }


def test_scores_without_log_z_are_for_models_trained_for_them() -> None:
    trained: LanguageModel = model_of("cslm", normalizer=0.1)
    assert choose_scorer(trained, False, Path("run")) is trained
    for model in (model_of("cslm"), model_of("lstm", normalizer=0.1)):
        with pytest.raises(ConfigError, match=r"run is not a CSLM trained with lm\.normalizer"):
            choose_scorer(model, True, Path("run"))
    exact, fast = (
        choose_scorer(trained, normalized, Path("run")).score_texts(TEXTS) for normalized in (False, True)
    )
    assert exact != fast and [len(line) for line in exact] == [len(line) for line in fast]


# ---- test registry -----------------------------------------------------------------------------------------
# `lm.type` names a class, users' own ones too.


def test_a_class_of_ones_own_is_found_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        ConfigError, match=r"lm\.type: 'mine' is unknown, expected one of 'cslm', 'log-bilinear', 'rec"
    ):
        language_model_class("mine")
    monkeypatch.setitem(LANGUAGE_MODELS, "mine", FeatureLM)
    assert language_model_class("mine") is FeatureLM
    with pytest.raises(ConfigError, match=r"'mine'$"):
        language_model_class("yours")


@pytest.mark.parametrize("kind", list(LANGUAGE_MODELS))
def test_a_configuration_says_its_type(kind: str) -> None:
    config = LANGUAGE_MODELS[kind].Config()
    assert config.type == kind
    config.check()


# ---- test transformer --------------------------------------------------------------------------------------


def test_options_change_the_function() -> None:
    variants: list[dict[str, object]] = [
        {}, {"norm": "pre"}, {"positions": "none"}, {"positions": "learned"}, {"heads": 1}, {"depth": 1},
        {"feed_forward": 7}, {"tied": False}, {"init": "uniform", "init_scale": 0.5},
    ]  # fmt: skip
    totals = [float(model_of("transformer", **options).score_sentences(TEXTS).sum()) for options in variants]  # type: ignore[arg-type]
    assert len({round(total, 9) for total in totals}) == len(variants)


def test_it_is_sampled_step_by_step() -> None:
    model = model_of("transformer")
    drawn = sample(model, [range(5)] * 4, SamplingConfig(samples=1, seed=1, max_length_factor=1.0))
    for [line] in drawn:
        if line.complete:
            assert line.log_prob == pytest.approx(float(model.score_sentences([line.words])[0]), abs=1e-9)
