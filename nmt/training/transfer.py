"""Start from the weights of another run: the same vocabulary (fine-tuning) or another one (parent to child,
Zoph et al. 2016)."""

import logging
from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.checkpoint import SavedRun
from nmt.data.vocab import Vocab
from nmt.errors import ConfigError
from nmt.layers.characters import CharacterWords
from nmt.models.translator import Translator

log = logging.getLogger(__name__)

SOURCE_ROWS = ("encoder.embedding.weight",)  # parameters with one row a word
TARGET_ROWS = ("decoder.embedding.weight", "decoder.output.words", "decoder.output.words_bias")
CHARACTER_ROWS = "encoder.embedding.characters"


@dataclass
class Transfer:
    copied: int  # parameters of the model, in numbers, that came from the parent
    total: int
    source_words: int  # words of the child that the parent knows
    target_words: int
    left: list[str]  # names of parameters that do not fit and stay as they were


def transfer(model: Translator, vocabs: tuple[Vocab, Vocab], parent: SavedRun) -> Transfer:
    """Copy what fits into `model`: equal shapes whole, rows of words that both vocabularies hold word by
    word.

    ConfigError when nothing but words fits: the two models have no part in common.
    """
    source, target = (
        shared_rows(parent.source_words.words, vocabs[0].words),
        shared_rows(parent.target_words.words, vocabs[1].words),
    )
    theirs, copied, left = parent.model.state_dict(), 0, []
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            rows = source if name in SOURCE_ROWS else target if name in TARGET_ROWS else None
            if name == CHARACTER_ROWS and isinstance(parent.model.encoder.embedding, CharacterWords):
                rows = shared_rows(symbols(parent.model), symbols(model))
            if (
                name not in theirs
                or theirs[name].shape[1:] != parameter.shape[1:]
                or (rows is None and theirs[name].shape != parameter.shape)
            ):
                left.append(name)
            elif rows is None:
                parameter.copy_(theirs[name])
                copied += parameter.numel()
            else:
                parameter[rows[1]] = theirs[name][rows[0]]
                copied += len(rows[1]) * parameter[0].numel()
    if len(left) == len(list(model.named_parameters())):
        raise ConfigError(
            f"init_from: no parameter of {parent.directory} fits this model; give it the same model section"
        )
    return Transfer(copied, sum(p.numel() for p in model.parameters()), len(source[0]), len(target[0]), left)


def shared_rows(theirs: list[str], ours: list[str]) -> tuple[Tensor, Tensor]:
    """Places in both lists of the entries that both hold"""
    place = {word: row for row, word in enumerate(theirs)}
    pairs = [(place[word], row) for row, word in enumerate(ours) if word in place]
    return torch.tensor([a for a, _ in pairs], dtype=torch.long), torch.tensor(
        [b for _, b in pairs], dtype=torch.long
    )


def symbols(model: Translator) -> list[str]:
    """The characters of a character encoder by row; its four markers first."""
    assert isinstance(model.encoder.embedding, CharacterWords)
    return ["\0pad", "\0begin", "\0end", "\0other", *model.encoder.embedding.symbols]
