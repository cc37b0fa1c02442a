"""Translators and language models with each output layer: trained, resumed, searched, scored, saved and
loaded."""

import re
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch

from nmt.errors import ConfigError
from nmt.layers.output import OUTPUTS
from nmt.lm.cslm import CSLM, CSLMConfig, ngrams
from nmt.lm.recurrent import RecurrentConfig, RecurrentLM
from nmt.models.config import RNNConfig
from nmt.models.joint import JointConfig, JointModel
from nmt.models.rnn.translator import Translator
from nmt.runs import weights
from nmt.runs.language_model import load_language_model
from nmt.runs.run import Run
from nmt.scoring import pair_scores, word_scores
from nmt.search.beam import search
from nmt.search.config import BeamConfig
from nmt.training import config_file
from nmt.training.train import run_training
from tests.commands.runs import start
from tests.nmt.layers.output.layers import zipf

V = 12
KINDS: dict[str, dict[str, object]] = {
    "classes": {"output": "classes", "output_class_count": 4},
    "huffman": {"output": "tree"},
    "random": {"output": "tree", "output_tree": "random", "output_arity": 3},
    "learned": {"output": "learned-tree"},
    "nce": {"output": "nce"},
    "negative": {"output": "negative-sampling", "output_power": 1.0},
}
TRAINED = {
    "classes": ["output=classes"],
    "clusters": ["output=classes", "output_classes=clusters", "output_class_count=9"],
    "huffman": ["output=tree", "output_arity=3"],
    "random": ["output=tree", "output_tree=random"],
    "learned": ["output=learned-tree", "output_rebuild=6"],
    "nce": ["output=nce"],
    "negative": ["output=negative-sampling", "output_power=1"],
}
TEXTS = [[3, 4, 5], [3, 4, 6, 7], [], [11, 11, 3], [3, 4, 5]]


def with_text(model: torch.nn.Module) -> torch.nn.Module:
    """The model in double precision, its output layer made for a text, its biases not 0."""
    output = next(part for part in model.modules() if isinstance(part, tuple(OUTPUTS.values())))
    output.learn(zipf(V))  # type: ignore[operator]
    for parameter in model.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter)
    return model.double().eval()


def translator(kind: str) -> Translator:
    torch.manual_seed(0)
    config = RNNConfig(embedding=4, hidden=6, maxout=5, init_scale=1.0, **KINDS[kind])  # type: ignore[arg-type]
    return cast(Translator, with_text(Translator(config, 9, V)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_translation_has_the_score_that_the_scorer_gives_it(kind: str) -> None:
    model, sources, config = translator(kind), [[3, 4], [5], [6, 7, 8]], BeamConfig(beam_size=4)
    together = search(model, sources, config)
    for source, found in zip(sources, together, strict=True):
        for best in found[:2]:
            assert sum(word_scores(model, [(source, best.words)])[0]) == pytest.approx(
                best.log_prob, abs=1e-9
            )
        alone = search(model, [source], config)[0]
        assert [one.words for one in alone] == [one.words for one in found]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_through_tries_are_those_of_pairs(kind: str) -> None:
    model, sources = translator(kind), [[3, 4], [5]]
    source_of = [0, 1, 1, 0, 1]
    expected = [sum(word_scores(model, [(sources[s], t)])[0]) for s, t in zip(source_of, TEXTS, strict=True)]
    assert pair_scores(model, sources, TEXTS, source_of) == pytest.approx(np.array(expected), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_language_models_score_texts_words_and_ngrams_alike(kind: str) -> None:
    torch.manual_seed(0)
    options = {"embedding": 5, "init_scale": 1.0, **KINDS[kind]}
    cslm = cast(CSLM, with_text(CSLM(CSLMConfig(order=3, layers=[6], **options), V)))  # type: ignore[arg-type]
    flat = np.array([score for text in cslm.score_texts(TEXTS) for score in text])
    contexts, words = (torch.from_numpy(part) for part in ngrams(TEXTS, 3))
    plain = cslm.output.log_probs(cslm.features(contexts))[torch.arange(len(words)), words]
    assert flat == pytest.approx(plain.detach().numpy(), abs=1e-10)
    one = [cslm.score_texts([text])[0] for text in TEXTS]
    assert flat == pytest.approx(np.concatenate(one), abs=1e-10)
    quick = np.array([score for text in cslm.without_log_z().score_texts(TEXTS) for score in text])
    log_z = cslm.output.log_z(cslm.features(contexts)).detach().numpy()
    assert cslm.self_normalized and quick - log_z == pytest.approx(flat, abs=1e-10)  # --assume-normalized
    lm = cast(RecurrentLM, with_text(RecurrentLM(RecurrentConfig(hidden=6, **options), V)))  # type: ignore[arg-type]
    sums = np.array([sum(scores) for scores in lm.score_texts(TEXTS)])
    assert lm.score_sentences(TEXTS) == pytest.approx(sums, abs=1e-10)
    state, total = lm.requires_grad_(False).start([()]), 0.0
    for read, word in zip([None, 3, 4, 6, 7], [3, 4, 6, 7, 1], strict=True):
        log_probs, state = lm.step(state, None if read is None else torch.tensor([read]))
        assert float(log_probs.logsumexp(1)) == pytest.approx(0, abs=1e-12)
        total += float(log_probs[0, word])
    assert total == pytest.approx(sums[1], abs=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_joint_models_score_words_as_all_at_once(kind: str) -> None:
    torch.manual_seed(0)
    config = JointConfig(order=3, window=3, embedding=4, layers=[5], init_scale=1.0, **KINDS[kind])  # type: ignore[arg-type]
    model = cast(JointModel, with_text(JointModel(config, 9, V)))
    rng = np.random.default_rng(0)
    windows, contexts = rng.integers(0, 9, (4, 3)), rng.integers(0, V, (20, 2))
    places, words = rng.integers(0, 4, 20), rng.integers(0, V, 20)
    scores = model.window_scores()
    found = scores.score(scores.source_part(windows), places, contexts, words)
    features = model.features(torch.from_numpy(contexts), torch.from_numpy(windows[places]))
    wanted = model.output.log_probs(features)[torch.arange(20), torch.from_numpy(words)]
    assert found == pytest.approx(wanted.detach().numpy(), abs=1e-10)


@pytest.mark.parametrize(
    "model, message",
    [
        (
            {"output": "classes"},
            "training.label_smoothing: does not go with model.output: classes: ",
        ),
        ({"output": "classes", "tied": "target"}, "model.tied: does not go with model.output: classes: its"),
        ({"output_class_count": 5}, "model.output_class_count: output: softmax does not read it; leave it"),
    ],
)
def test_what_a_layer_cannot_do_is_said_before_training(model: dict[str, object], message: str) -> None:
    sizes = {"embedding": 8, "maxout": 8}
    config = {"run": "x", "model": {**sizes, **model}, "training": {"label_smoothing": 0.1, "max_steps": 1}}
    with pytest.raises(ConfigError, match=re.escape(message)):
        config_file.from_mapping(config)


@pytest.fixture(scope="module", params=TRAINED)
def trained(request: pytest.FixtureRequest, tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator after 40 updates, which was stopped twice: equal to one that never was."""
    folder = tmp_path_factory.mktemp("layers")
    options = [f"model.{option}" for option in TRAINED[request.param]]
    for limit in (13, 27, 40):
        start(tiny, folder / "run", *options, f"training.max_steps={limit}", "training.log_every=4")
    start(tiny, folder / "whole", *options, "training.max_steps=40", "training.log_every=4")
    one, other = (weights.load_tensors(folder / name / "step-40.pt") for name in ("run", "whole"))
    assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
    return folder / "run"


@pytest.mark.ci
def test_a_resumed_translator_translates_and_scores(trained: Path, tiny: Path) -> None:
    run = Run.load(trained)
    lines = (tiny / "dev.en").read_text(encoding="utf-8").splitlines()[:5]
    for line, found in zip(lines, run.n_best(lines, beam_size=3), strict=True):
        pair = (" ".join(run.members[0].source.units(line)), " ".join(found[0].words))
        assert run.score([pair], tokenized=True) == pytest.approx([found[0].log_prob], abs=1e-4)


@pytest.mark.ci
@pytest.mark.parametrize("kind", TRAINED)
def test_a_language_model_learns_and_is_loaded(kind: str, tiny: Path, tmp_path: Path) -> None:
    config = {
        "run": str(tmp_path / "run"),
        "threads": 1,
        "matmul": "mkl",
        "data": {"train_text": f"{tiny}/train.fr", "dev_text": f"{tiny}/dev.fr"},
        "lm": {"type": "recurrent", "embedding": 16, "hidden": 16, "init_scale": 0.1,
               **dict(option.split("=") for option in TRAINED[kind])},
        "training": {"optimizer": "adam", "learning_rate": 0.02, "cost": "word", "max_epochs": 3,
                     "validate_every": 0, "tensorboard": False},
    }  # fmt: skip
    run_training(config_file.from_mapping(config))
    costs = [
        float(line.split("\t")[2]) for line in (tmp_path / "run/dev.tsv").read_text().split("\n")[1:] if line
    ]
    assert costs[-1] < costs[0] - 0.05
    lm = load_language_model(str(tmp_path / "run"))
    lines = (tiny / "dev.fr").read_text(encoding="utf-8").splitlines()
    together = [sum(scores.log_probs) for scores in lm.score(lines)]
    alone = [sum(lm.score([line])[0].log_probs) for line in lines[:4]]
    assert together[:4] == pytest.approx(alone, abs=1e-4)
