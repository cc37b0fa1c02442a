"""Starting values of a model: the weights of another run, of the same vocabulary (fine-tuning) or another one
(parent to child, Zoph et al. 2016); pretrained word vectors."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from nmt.errors import ConfigError, DataError
from nmt.formats import word_vectors
from nmt.layers.output import OutputLayer
from nmt.models.protocols import WordEmbeddings, WordParameters
from nmt.models.registry import AnyModel
from nmt.runs.checkpoint import Parent
from nmt.text.vocab import Vocab
from nmt.training.config import RunConfig

log = logging.getLogger(__name__)


@dataclass
class Transfer:
    """Report of how many weights and words a model has taken over from its parent."""

    copied: int  # weights (single numbers) of the model that came from the parent
    total: int
    source_words: int  # words of the child that the parent knows
    target_words: int
    left: list[str]  # names of parameters that do not fit and stay as they were


def transfer_weights(model: AnyModel, vocabs: tuple[Vocab, Vocab], parent: Parent) -> Transfer:
    """Copy the weights of `parent` that fit into `model`: parameters of equal shape as a whole, those with a
    row for each word or character row by row, for the words that both models know. `vocabs`: those of
    `model`.

    ConfigError if no parameter fits.
    """
    ours, fixed = row_words(model, vocabs), text_parameters(model)
    theirs = row_words(parent.model, (parent.source_words, parent.target_words))
    weights, copied, left = parent.model.state_dict(), 0, []
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parent_weights = weights.get(name)
            rows = shared_rows(theirs[name], ours[name]) if name in ours and name in theirs else None
            if (
                parent_weights is None
                or name in fixed
                or parent_weights.shape[1:] != parameter.shape[1:]
                or (rows is None and parent_weights.shape != parameter.shape)
            ):
                left.append(name)
            elif rows is None:
                parameter.copy_(parent_weights)
                copied += parameter.numel()
            else:
                parameter[rows[1]] = parent_weights[rows[0]].to(parameter)
                copied += len(rows[1]) * parameter[0].numel()
    if len(left) == len(list(model.named_parameters())):
        raise ConfigError(
            f"init_from: no parameter of {parent.directory} fits this model; give it the same model section"
        )
    source, target = (
        len(shared_rows(a.words, b.words)[0])
        for a, b in zip((parent.source_words, parent.target_words), vocabs, strict=True)
    )
    return Transfer(
        copied=copied,
        total=sum(parameter.numel() for parameter in model.parameters()),
        source_words=source,
        target_words=target,
        left=left,
    )


def text_parameters(model: AnyModel) -> set[str]:
    """Names of the parameters that cannot be transferred, since an output layer has learned from its training
    text what their rows stand for."""
    return {
        f"{path}.{name}"
        for path, layer in model.named_modules()
        if isinstance(layer, OutputLayer) and layer.learns_text
        for name, _ in layer.named_parameters()
        if name not in layer.word_parameters()
    }


def row_words(model: object, vocabs: tuple[Vocab, Vocab]) -> Mapping[str, Sequence[str]]:
    """Map the name of each parameter with a row for each word or character to these words or characters;
    empty for a model that is not `WordParameters`."""
    return model.row_words(vocabs[0].words, vocabs[1].words) if isinstance(model, WordParameters) else {}


def shared_rows(theirs: Sequence[str], ours: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Indices of the entries in both lists: (n,) in `theirs`, (n,) in `ours`, in the order of `ours`."""
    row_of = {word: row for row, word in enumerate(theirs)}
    pairs = [(row_of[word], row) for row, word in enumerate(ours) if word in row_of]
    parent = torch.tensor([a for a, _ in pairs], dtype=torch.long)
    return parent, torch.tensor([b for _, b in pairs], dtype=torch.long)


# ---- vectors -----------------------------------------------------------------------------------------------
# Pretrained word vectors: initial values of the embeddings, which may be frozen (data.source_vectors,
# data.target_vectors, training.freeze_vectors).


@dataclass
class PretrainedVectors:
    """Vectors from a file for some words of a vocabulary."""

    ids: Tensor  # (n,)
    values: Tensor  # (n, E)


def vectors_file(config: RunConfig, side: str) -> str:
    """Path of the pretrained vectors for a side, source or target; empty if there is none."""
    return config.data.source_vectors if side == "source" else config.data.target_vectors


def read_vectors(config: RunConfig, side: str, vocab: Vocab) -> PretrainedVectors:
    """Read the pretrained vectors of a side. DataError for a malformed file, or one without its words."""
    path, section = vectors_file(config, side), "lm" if config.lm else "model"
    size: int = getattr(config.lm or config.model, "embedding")  # noqa: B009  # of models with `vector_sides`
    vectors = dict(word_vectors.read(path, vocab.ids, size, f"{section}.embedding"))
    if not vectors:
        raise DataError(
            f"{path}: has none of the {vocab.word_count:,} words of the {side} vocabulary; is it of this "
            "language, and are its words cased and tokenized in the same way?"
        )
    ids = torch.tensor([vocab.ids[word] for word in vectors])
    return PretrainedVectors(ids, torch.from_numpy(np.stack(list(vectors.values()))))


def check_vectors(config: RunConfig, vocabs: Mapping[str, Vocab]) -> None:
    """Check the vector files of all sides before a run is created. `vocabs`: by side, source or target.
    DataError as from `read_vectors`."""
    for side, vocab in vocabs.items():
        if vectors_file(config, side):
            read_vectors(config, side, vocab)


def apply_vectors(config: RunConfig, model: object, vocabs: Mapping[str, Vocab], fresh: bool) -> None:
    """Put pretrained vectors into a model if it is `fresh`, and freeze them if training.freeze_vectors says
    so, also in a resumed run. `vocabs`: by side, source or target. DataError as from `read_vectors`."""
    for side, vocab in vocabs.items():
        frozen = config.training.freeze_vectors in (side, "both")
        if vectors_file(config, side) and (fresh or frozen):
            assert isinstance(model, WordEmbeddings)
            vectors, table = read_vectors(config, side, vocab), model.word_embedding(side)
            assert isinstance(table, nn.Embedding)
            if fresh:
                put_vectors(table, vectors)
                report_vectors(vectors, vocab, side, vectors_file(config, side))
            if frozen:
                freeze_rows(table, vectors.ids)


@torch.no_grad()
def put_vectors(table: nn.Embedding, vectors: PretrainedVectors) -> None:
    """Copy vectors into the rows of their words. If the table multiplies its rows by a `scale`, they are
    divided by it first."""
    scale = float(getattr(table, "scale", 1.0))
    table.weight[vectors.ids.to(table.weight.device)] = (vectors.values / scale).to(table.weight)


def freeze_rows(table: nn.Embedding, ids: Tensor) -> None:
    """Freeze the rows `ids` (n,) by a gradient of 0: no optimizer here moves a weight that always had it."""
    learned = torch.ones(table.num_embeddings, 1, device=table.weight.device)
    learned[ids.to(learned.device)] = 0
    table.weight.register_hook(lambda grad: grad * learned)


def report_vectors(vectors: PretrainedVectors, vocab: Vocab, side: str, path: str) -> None:
    """Log how many words, and what share of the text, have a pretrained vector. `path`: of the vectors."""
    total = sum(vocab.counts.values())
    running = sum(vocab.counts.get(word, 0) for word in vocab.decode(vectors.ids.tolist()))
    log.info(
        "%s vectors: %s of %s words, %.2f%% of the running text, from %s",
        side, f"{len(vectors.ids):,}", f"{vocab.word_count:,}", 100 * running / max(1, total), path,
    )  # fmt: skip
