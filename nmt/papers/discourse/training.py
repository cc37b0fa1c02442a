"""The training of an encoder on plain text with paragraphs, by discourse objectives."""

import logging
from functools import partial
from pathlib import Path
from typing import cast

import torch
from torch import nn

from nmt.data.corpus import Corpus, check_text_config
from nmt.papers.discourse.model import Discourse, DiscourseConfig
from nmt.papers.discourse.objectives import DiscourseStream, Paragraphs
from nmt.runs import checkpoint
from nmt.runs import directory as run_directory
from nmt.runs.checkpoint import SavedPair
from nmt.runs.weights import load_weights
from nmt.text.vocab import Vocab
from nmt.training import build, inputs, prepare
from nmt.training.build import TrainableKind
from nmt.training.validation import DevScore, evaluating

log = logging.getLogger(__name__)

DEV_SEED = 0  # draws the examples of the development text, the same ones at each validation


def pretrained(run: build.RunSetup) -> build.Parts:
    """Model, batches and development text of an encoder."""
    config, directory = run.config, run.directory
    training, sizes = config.training, cast(DiscourseConfig, config.model)
    words = prepare.training_text(config.data, directory, run.show_bar)
    if not run_directory.exists(directory):
        stamps = inputs.take_stamps(config.data)
        build.create(config, directory, {"target": prepare.make_text(config.data, words)}, stamps)
    pipeline, vocab = checkpoint.load_side(directory, "target", config.data)
    build.remember_back_end(directory)
    cache = build.cache_of(config, directory)
    corpus = prepare.make_running(config.data, cache, pipeline, vocab, words, run.thorough)
    dev = prepare.make_dev_text(config.data, pipeline, vocab)
    torch.manual_seed(config.seed)
    model = Discourse(sizes, vocab.words, fill=run.fresh).to(run.device)
    stream = stream_of(corpus, vocab, sizes, training.batch_size, config.seed)
    for name, positions in stream.positions.items():
        log.info("objective %s: %s examples", name, f"{len(positions):,}")
    validate = None
    if dev:
        validate = partial(validate_pretrained, model, stream_of(dev, vocab, sizes, 64, DEV_SEED))
    return build.Parts(model=model, stream=stream, validate=validate)


def stream_of(
    corpus: Corpus, vocab: Vocab, config: DiscourseConfig, batch_size: int, seed: int
) -> DiscourseStream:
    """The examples of a text in batches."""
    return DiscourseStream(Paragraphs.of(corpus, vocab.words), config.names, batch_size, seed)


def validate_pretrained(model: Discourse, dev: DiscourseStream) -> DevScore:
    """The mean over objectives of the cost of an answer. Accuracies stand where translators have the
    signatures of their scores: in the log and in dev.tsv."""
    with evaluating(model):
        costs = model.accuracies(dev.batches(0))
    accuracies = " ".join(f"{name} {right:.4f}" for name, (_, right) in costs.items())
    return DevScore(
        cost=sum(cost for cost, _ in costs.values()) / len(costs), signature=f"accuracy {accuracies}"
    )


def load_encoder(directory: Path) -> SavedPair[nn.Module]:
    """The encoder of a run with its best weights and its text, for translators to start from."""
    config = checkpoint.checked_config(directory)
    pipeline, vocab = checkpoint.load_side(directory, "target", config.data)
    step = run_directory.find_step(directory, "best")
    model = Discourse(cast(DiscourseConfig, config.model), vocab.words, fill=False)
    load_weights(model, run_directory.weights_path(directory, step))
    return SavedPair(
        directory=directory,
        model=model.eval(),
        source=pipeline,
        target=pipeline,
        source_words=vocab,
        target_words=Vocab({}, 0),
        data=config.data,
        step=step,
        kind=config.model.type,
    )


ENCODER = TrainableKind(
    "model",
    {"discourse": Discourse},
    lambda config, fresh: check_text_config(config.data, fresh),
    pretrained,
    load_encoder,
    starts_translators=True,
)
