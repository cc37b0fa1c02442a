"""Pretrained word vectors: the start of a model's own, which may stay as they are (data.source_vectors,
data.target_vectors, training.freeze_vectors)."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from nmt.errors import DataError
from nmt.formats import word_vectors
from nmt.models.protocols import WordTables
from nmt.text.vocab import Vocab
from nmt.training.run_config import RunConfig

log = logging.getLogger(__name__)


@dataclass
class Pretrained:
    """The vectors that a file has for words of a vocabulary."""

    ids: Tensor  # (n,)
    values: Tensor  # (n, E)


def path_of(config: RunConfig, side: str) -> str:
    """The file of a side; empty without one."""
    return config.data.source_vectors if side == "source" else config.data.target_vectors


def read(config: RunConfig, side: str, vocab: Vocab) -> Pretrained:
    """The vectors of a side. DataError for a file that is none, and for one without any of the words."""
    path, section = path_of(config, side), "lm" if config.lm else "model"
    size: int = getattr(config.lm or config.model, "embedding")  # noqa: B009  # of models with `vector_sides`
    found = dict(word_vectors.read(path, vocab.ids, size, f"{section}.embedding"))
    if not found:
        raise DataError(
            f"{path}: has none of the {vocab.known:,} words of the {side} vocabulary; is it of this "
            "language, and are its words cased and cut in the same way?"
        )
    ids = torch.tensor([vocab.ids[word] for word in found])
    return Pretrained(ids, torch.from_numpy(np.stack(list(found.values()))))


def check(config: RunConfig, vocabs: Mapping[str, Vocab]) -> None:
    """Read the files of all sides, before a run is made."""
    for side, vocab in vocabs.items():
        if path_of(config, side):
            read(config, side, vocab)


def apply(config: RunConfig, model: object, vocabs: Mapping[str, Vocab], fresh: bool) -> None:
    """Put the vectors of the files into a `fresh` model, and freeze those that the configuration wants so."""
    for side, vocab in vocabs.items():
        frozen = config.training.freeze_vectors in (side, "both")
        if path_of(config, side) and (fresh or frozen):
            assert isinstance(model, WordTables)
            found, table = read(config, side, vocab), model.word_table(side)
            if fresh:
                put(table, found)
                report(found, vocab, side, path_of(config, side))
            if frozen:
                freeze(table, found.ids)


@torch.no_grad()
def put(table: nn.Embedding, found: Pretrained) -> None:
    """Let the model read these words as these vectors. A table that multiplies its rows gets them divided."""
    scale = float(getattr(table, "scale", 1.0))
    table.weight[found.ids.to(table.weight.device)] = (found.values / scale).to(table.weight)


def freeze(table: nn.Embedding, ids: Tensor) -> None:
    """Keep these rows: their gradient is 0, and no optimizer here moves a weight whose gradient was always
    0."""
    learned = torch.ones(table.num_embeddings, 1, device=table.weight.device)
    learned[ids.to(learned.device)] = 0
    table.weight.register_hook(lambda grad: grad * learned)


def report(found: Pretrained, vocab: Vocab, side: str, path: str) -> None:
    """Log how many words have a vector, and how much of the running text they are."""
    total = sum(vocab.counts.values())
    running = sum(vocab.counts.get(word, 0) for word in vocab.decode(found.ids.tolist()))
    log.info(
        "%s vectors: %s of %s words, %.2f%% of the running text, from %s",
        side, f"{len(found.ids):,}", f"{vocab.known:,}", 100 * running / max(1, total), path,
    )  # fmt: skip
