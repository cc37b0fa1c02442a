"""On a GPU: every model, scorer and search gives what it gives on the CPU; training waits for nothing, and
its CUDA graphs compute the same gradients. Skipped where torch finds no GPU."""

import copy
import random
import string
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
import torch
from torch import nn

from nmt.cli import export, score, train, translate
from nmt.compute.precision import bf16_products
from nmt.data.aligned import make_aligned_batch
from nmt.data.batches import Batch, make_batch
from nmt.data.running import ChunkStream
from nmt.errors import ConfigError
from nmt.layers.transformer import SINUSOIDS
from nmt.lm import language_model_class
from nmt.models.config import ModelConfig, RNNConfig
from nmt.models.registry import make
from nmt.models.rnn import RNNTranslator
from nmt.models.transformer import Transformer, TransformerConfig
from nmt.scoring import pair_scores, word_scores
from nmt.search.beam import ContinuousSearch, search
from nmt.search.config import BeamConfig, SamplingConfig
from nmt.search.sampling import sample
from nmt.search.steps import Ensemble, Reading, Shortlisted
from nmt.text.vocab import SPECIALS
from nmt.training import loop
from nmt.training.config import RunConfig, TrainingConfig
from nmt.training.cuda_graphs import batch_shape
from nmt.training.job import TrainingJob
from tests.nmt.lm.models import KINDS, TEXTS, config_of, model_of
from tests.nmt.models.models import (
    ALIGNED,
    PAIRS,
    RNN_VARIANTS,
    TRANSFORMER_VARIANTS,
    make_joint,
    make_rnn,
    make_transformer,
)
from tests.nmt.training.jobs import Batches

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU")
GPU = torch.device("cuda:0")
SOURCES = [source for source, _ in PAIRS if source]
MODELS = [("rnn", options) for options in RNN_VARIANTS]
MODELS += [("transformer", options) for options in TRANSFORMER_VARIANTS]
HIERARCHIES: list[dict[str, object]] = [{"output": "classes", "output_class_count": 3}, {"output": "tree"}]
CLOSE = 1e-9  # these models compute in double precision
WORDS = 50
Model = TypeVar("Model", bound=nn.Module)


def on_both(model: Model) -> tuple[Model, Model]:
    """A model on the CPU, and the same on the GPU."""
    return model, copy.deepcopy(model).to(GPU)


def translator(
    kind: str, options: dict[str, object]
) -> tuple[RNNTranslator, RNNTranslator] | tuple[Transformer, Transformer]:
    return on_both(make_rnn(**options)) if kind == "rnn" else on_both(make_transformer(**options))


def same(ours: object, theirs: object) -> None:
    assert np.allclose(np.asarray(ours), np.asarray(theirs), rtol=0, atol=CLOSE)


# ---- scores and searches -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "options"), MODELS, ids=str)
def test_translators(kind: str, options: dict[str, object]) -> None:
    cpu, gpu = translator(kind, options)
    for ours, theirs in zip(word_scores(cpu, PAIRS), word_scores(gpu, PAIRS), strict=True):
        same(ours, theirs)
    targets = [[3, 4], [3, 4, 5], [], [6], [3, 5]]
    of = [0, 0, 1, 2, 2]
    same(pair_scores(cpu, SOURCES, targets, of), pair_scores(gpu, SOURCES, targets, of))
    config = BeamConfig(beam_size=3, max_length_factor=3.0)
    for mine, other in zip(search(cpu, SOURCES, config), search(gpu, SOURCES, config), strict=True):  # type: ignore[misc]
        assert [hypothesis.words for hypothesis in mine] == [hypothesis.words for hypothesis in other]
        same([hypothesis.log_prob for hypothesis in mine], [hypothesis.log_prob for hypothesis in other])
        assert [hypothesis.looked_at for hypothesis in mine] == [one.looked_at for one in other]
    if hasattr(cpu, "source_vectors"):
        same(cpu.source_vectors(SOURCES), gpu.source_vectors(SOURCES).cpu())


def test_a_sentence_longer_than_the_table_of_positions() -> None:
    cpu, gpu = on_both(make_transformer())
    long = [3 + place % 5 for place in range(SINUSOIDS + 44)]
    pairs = [(long, long), *PAIRS]
    for ours, theirs in zip(word_scores(cpu, pairs), word_scores(gpu, pairs), strict=True):
        same(ours, theirs)
    config = BeamConfig(beam_size=2, max_length_factor=1.0)
    beams = [search(model, [long], config) for model in (cpu, gpu)]
    assert [one.words for one in beams[0][0]] == [one.words for one in beams[1][0]]


@pytest.mark.parametrize("options", HIERARCHIES, ids=str)
def test_hierarchies(options: dict[str, object]) -> None:
    """Their layers find the best words without scoring all."""
    config = RNNConfig(embedding=4, hidden=5, maxout=3, init_scale=0.5, **options)  # type: ignore[arg-type]
    torch.manual_seed(0)
    cpu = make(config, 11, 12).double().eval()
    for part in cpu.modules():
        if getattr(part, "learns_text", False):
            part.learn(  # type: ignore[operator]
                np.array([3, 4, 5, 3, 3, 1, 6, 7, 8, 9, 1])
            )
    cpu, gpu = on_both(cpu)
    for ours, theirs in zip(word_scores(cpu, PAIRS), word_scores(gpu, PAIRS), strict=True):
        same(ours, theirs)
    beams = [search(model, SOURCES, BeamConfig(beam_size=3)) for model in (cpu, gpu)]
    for mine, other in zip(*beams, strict=True):
        assert [one.words for one in mine] == [one.words for one in other]


@pytest.mark.parametrize("options", [{}, {"ended": "refill"}, {"rows": 7}], ids=str)
@pytest.mark.parametrize("kind", ["rnn", "transformer"])
def test_searches(kind: str, options: dict[str, object]) -> None:
    """Prefixes, beams that stay full, sentences that join others, ensembles, short-lists, samples."""
    cpu, gpu = translator(kind, {"attention": 6} if kind == "rnn" else {})
    config = BeamConfig(beam_size=3, **options)  # type: ignore[arg-type]
    results = []
    for model in (cpu, gpu):
        forced = search(model, SOURCES, config, prefixes=[[4], [], [5, 6]])  # type: ignore[misc]
        both = Ensemble([model, model])
        readings = [Reading((source, source)) for source in SOURCES]
        joined = search(both, readings, config)
        listed = search(Shortlisted(model, lambda source: {1, *source}), SOURCES, config)
        going, finished = ContinuousSearch(model, config), []  # type: ignore[misc]
        for source in SOURCES:
            going.add(source)
            finished += going.step()
        while going.busy:
            finished += going.step()
        beams = [*forced, *joined, *listed, *(beam for _, beam in finished)]
        drawn = sample(model, SOURCES, SamplingConfig(samples=5))  # type: ignore[misc]
        results.append([[hypothesis.words for hypothesis in beam] for beam in [*beams, *drawn]])
    assert results[0] == results[1]


@pytest.mark.parametrize("kind", list(KINDS))
def test_language_models(kind: str) -> None:
    cpu, gpu = on_both(model_of(kind))
    for ours, theirs in zip(cpu.score_texts(TEXTS), gpu.score_texts(TEXTS), strict=True):
        same(ours, theirs)
    same(cpu.score_sentences(TEXTS, ends=False), gpu.score_sentences(TEXTS, ends=False))
    if (ours := cpu.ngram_scores()) is not None:
        contexts = np.array([[0] * (ours.order - 1), [3] * (ours.order - 1)])
        words = np.array([4, 5])
        for keep in (False, True):
            theirs = gpu.ngram_scores(keep_tables=keep)
            same(ours.score(contexts, words), theirs.score(contexts, words))


@pytest.mark.parametrize("options", [{}, {"output": "classes", "output_class_count": 3}], ids=str)
def test_joint_models(options: dict[str, object]) -> None:
    cpu, gpu = on_both(make_joint(**options))  # type: ignore[arg-type]
    batch = make_aligned_batch(ALIGNED, cpu.shape)
    same(cpu.token_log_probs(batch), gpu.token_log_probs(batch.to(GPU)).cpu())


# ---- training ----------------------------------------------------------------------------------------------


def some_batches(seed: int = 1) -> list[Batch]:
    """Batches of random pairs; several have the same shape after padding."""
    drawn = random.Random(seed)

    def sentence() -> list[int]:
        return [drawn.randrange(4, WORDS) for _ in range(drawn.randrange(0, 9))]

    sizes = [5, 6, 7, 5, 7, 6, 13, 15, 14]
    return [make_batch([sentence() for _ in range(n)], [sentence() for _ in range(n)]) for n in sizes]


RNN = RNNConfig(embedding=16, hidden=24, encoder="birnn", attention=12, maxout=10)
TRANSFORMER = TransformerConfig(
    embedding=16, heads=2, feed_forward=24, encoder_layers=2, decoder_layers=2, tied="none", dropout=0,
    attention_dropout=0, feed_forward_dropout=0,
)  # fmt: skip
CONFIGS: dict[str, ModelConfig] = {
    "attention": RNN,
    "gru": RNNConfig(embedding=16, hidden=24, maxout=10, bias=True),
    "lstm": RNNConfig(embedding=16, hidden=24, maxout=10, cell="lstm", encoder="birnn", encoder_layers=2),
    "reversed": RNNConfig(embedding=16, hidden=24, maxout=10, reverse=True, gate="take_new"),
    "transformer": TRANSFORMER,
}


def job_of(name: str, device: str, precision: str = "fp32", **training: object) -> TrainingJob:
    """A job over `some_batches`, the same for each device."""
    given = {"optimizer": "adam", "learning_rate": 0.001, "tensorboard": False, **training}
    settings = TrainingConfig(**given)  # type: ignore[arg-type]
    job = TrainingJob(RunConfig(training=settings, precision=precision), device)
    torch.manual_seed(3)
    job.set_up(make(CONFIGS[name], WORDS, WORDS).to(device), Batches(some_batches()))
    return job


LANGUAGE_MODELS: dict[str, dict[str, object]] = {
    "lstm": {"type": "recurrent", "embedding": 16, "hidden": 24, "depth": 2, "normalizer": 0.1},
    "running text": {"type": "recurrent", "cell": "gru", "embedding": 16, "hidden": 24, "carry": True},
    "transformer lm": {
        "type": "transformer", "embedding": 16, "heads": 2, "feed_forward": 24, "depth": 2, "dropout": 0,
        "attention_dropout": 0, "feed_forward_dropout": 0,
    },
    "cslm": {"type": "cslm", "order": 4, "embedding": 8, "layers": [24, 16], "normalizer": 0.1},
}  # fmt: skip


def lm_job_of(name: str, device: str, precision: str = "fp32", **training: object) -> TrainingJob:
    """A job for a language model over the targets of `some_batches`, or over running text."""
    given = {"optimizer": "adam", "learning_rate": 0.001, "tensorboard": False, **training}
    settings = TrainingConfig(**given)  # type: ignore[arg-type]
    job = TrainingJob(RunConfig(training=settings, precision=precision), device)
    config = config_of(**LANGUAGE_MODELS[name])  # type: ignore[arg-type]
    torch.manual_seed(3)
    model = language_model_class(config.type).build(config, [*SPECIALS, *map(str, range(WORDS))])
    text = np.random.default_rng(1).integers(1, WORDS, 200)
    stream = ChunkStream(text, 4, 6) if model.carries else Batches(some_batches())
    job.set_up(model.to(device), stream)
    return job


@pytest.mark.parametrize("graphs", [False, True], ids=["eager", "graphs"])
@pytest.mark.parametrize("name", list(LANGUAGE_MODELS))
def test_language_models_train_as_on_the_cpu(name: str, graphs: bool) -> None:
    """The costs of three epochs, in fp32; running text carries its state from graph to graph. Nothing waits
    for the GPU."""
    expected, job = run(lm_job_of(name, "cpu"), 3), lm_job_of(name, "cuda")
    assert job.graphs is not None
    if not graphs:
        job.graphs = None
    assert run(job, 3) == pytest.approx(expected, rel=1e-4)
    batches = list(job.stream.batches(0))
    if job.graphs is not None:
        assert set(job.graphs.graphs) == {batch_shape(batch) for batch in batches}  # type: ignore[arg-type]
    with no_waiting():
        for batch in batches:
            loop.count_update(job, 1, loop.update(job, [batch]))


@pytest.mark.parametrize("name", list(LANGUAGE_MODELS))
def test_language_models_in_bf16(name: str) -> None:
    expected = run(lm_job_of(name, "cpu"), 3)
    assert run(lm_job_of(name, "cuda", "bf16"), 3) == pytest.approx(expected, rel=2e-2)


def run(job: TrainingJob, epochs: int) -> list[float]:
    """Train, and return the cost of each epoch."""
    job.model.train()
    costs = []
    for _ in range(epochs):
        for batch in job.stream.batches(0):
            loop.count_update(job, 1, loop.update(job, [batch]))
        loop.read_results(job)
        costs.append(job.progress.log_cost)
        job.progress.log_cost = 0.0
    return costs


@contextmanager
def no_waiting() -> Iterator[None]:
    """Context in which waiting for the GPU is an error."""
    try:
        with warnings.catch_warnings(action="ignore"):  # it is said to miss some
            torch.cuda.set_sync_debug_mode("error")
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("graphs", [False, True], ids=["eager", "graphs"])
@pytest.mark.parametrize("name", list(CONFIGS))
def test_training_follows_the_cpu(name: str, graphs: bool) -> None:
    """The costs of three epochs, in fp32; the second and third replay graphs."""
    expected, job = run(job_of(name, "cpu"), 3), job_of(name, "cuda")
    assert job.graphs is not None
    if not graphs:
        job.graphs = None
    assert run(job, 3) == pytest.approx(expected, rel=1e-4)
    if graphs and job.graphs is not None:
        assert set(job.graphs.graphs) == {batch_shape(batch) for batch in some_batches()}


@pytest.mark.parametrize("name", ["attention", "transformer"])
def test_bf16_is_near(name: str) -> None:
    expected = run(job_of(name, "cpu"), 3)
    assert run(job_of(name, "cuda", "bf16"), 3) == pytest.approx(expected, rel=2e-2)


@pytest.mark.parametrize("graphs", [False, True], ids=["eager", "graphs"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("name", list(CONFIGS))
def test_updates_wait_for_nothing(name: str, precision: str, graphs: bool) -> None:
    job = job_of(name, "cuda", precision, clip=1.0, ema=0.9, label_smoothing=0.1)
    if not graphs:
        job.graphs = None
    job.model.train()
    batches = some_batches()
    for batch in [*batches, *batches]:  # records the graphs
        loop.update(job, [batch])
    with no_waiting():
        for batch in batches:
            loop.count_update(job, 1, loop.update(job, [batch]))
    assert len(job.unread) == len(batches)
    loop.read_results(job)
    assert job.progress.log_cost > 0 and not job.unread


def test_a_gradient_that_is_not_finite_is_found_when_it_is_read() -> None:
    job = job_of("gru", "cuda")
    with torch.no_grad():
        next(iter(job.model.parameters())).fill_(torch.inf)
    with pytest.raises(Exception, match="the gradient is not finite at update 1"):
        run(job, 1)


def test_accumulated_batches(precision: str = "fp32") -> None:
    """Graphs add to the gradients: two batches in one update are one batch."""
    first, *_ = some_batches()
    jobs = [job_of("gru", "cuda", cost="word") for _ in range(2)]
    jobs[1].graphs = None
    for _ in range(3):
        for job in jobs:
            job.model.train()
            loop.update(job, [first, first])
    for ours, theirs in zip(*(job.model.parameters() for job in jobs), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_products_in_bf16_round_only_their_factors() -> None:
    a, b = torch.randn(512, 300, device=GPU), torch.randn(300, 700, device=GPU)
    exact = a.bfloat16().double() @ b.bfloat16().double()
    with bf16_products(GPU):
        assert torch.allclose((a @ b).double(), exact, atol=1e-3)


@pytest.mark.parametrize("trained", ["cuda", "cpu"])
def test_either_device_uses_what_the_other_trained(tmp_path: Path, trained: str) -> None:
    """Command by command: train, stop and resume on one device; both translate and score alike."""
    config = write_training(
        tmp_path, "type: rnn, embedding: 16, hidden: 24, maxout: 8, encoder: birnn, attention: 12"
    )
    for steps in (10, 20):
        train.command([str(config), f"device={trained}", f"training.max_steps={steps}", "--quiet"])
    devices_agree(tmp_path / "run", tmp_path)


def test_exported_runs(tmp_path: Path) -> None:
    """CTranslate2 translates and scores alike on both devices."""
    pytest.importorskip("ctranslate2")
    model = (
        "type: transformer, embedding: 16, feed_forward: 24, heads: 2, encoder_layers: 1, decoder_layers: 1"
    )
    config = write_training(tmp_path, model)
    train.command([str(config), "training.max_steps=20", "--quiet"])
    export.command([str(tmp_path / "run"), "-o", str(tmp_path / "exported")])
    try:
        devices_agree(tmp_path / "exported", tmp_path)
    except ConfigError as error:
        if "cublas" not in str(error):
            raise
        pytest.skip(str(error))


def write_training(folder: Path, model: str) -> Path:
    """A configuration of 40 pairs of more words than a beam has hypotheses; its run is `folder`/run."""
    words = string.ascii_lowercase
    lines = [" ".join(words[first : first + 1 + first % 4]) for first in range(20)] * 2
    for name in ("text.en", "text.fr"):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    source, target = folder / "text.en", folder / "text.fr"
    config = folder / "train.yaml"
    config.write_text(
        f"run: {folder}/run\n"
        f"data: {{train_source: {source}, train_target: {target}, dev_source: {source}, "
        f"dev_target: {target}}}\n"
        f"model: {{{model}}}\n"
        "training: {validate_every: 4, tensorboard: false, bleu_tokenizer: none, log_every: 3}\n",
        encoding="utf-8",
    )
    return config


def devices_agree(run: Path, folder: Path) -> None:
    """Both devices translate the texts of `folder` to the same bytes, and score them alike."""
    source, target, results = str(folder / "text.en"), str(folder / "text.fr"), []
    for device in ("cpu", "cuda"):
        out = [str(folder / f"{device}.{name}") for name in ("out", "scores")]
        translate.command([str(run), "-i", source, "-o", out[0], "--device", device, "--quiet"])
        score.command([str(run), "-s", source, "-t", target, "-o", out[1], "--device", device, "--quiet"])
        results.append([Path(path).read_text(encoding="utf-8").split() for path in out])
    assert results[0][0] == results[1][0]
    numbers = [[float(value) for value in scores] for _, scores in results]
    assert numbers[0] == pytest.approx(numbers[1], abs=1e-4)
