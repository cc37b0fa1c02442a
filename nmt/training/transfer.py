"""Start from the weights of another run: the same vocabulary (fine-tuning) or another one (parent to child,
Zoph et al. 2016)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from nmt.errors import ConfigError
from nmt.layers.output import LearnsText, OutputLayer
from nmt.models.protocols import WordParameters
from nmt.models.registry import AnyModel
from nmt.runs.checkpoint import Parent
from nmt.text.vocab import Vocab


@dataclass
class Transfer:
    """What of a model came from its parent."""

    copied: int  # numbers of the model's parameters that came from the parent
    total: int
    source_words: int  # words of the child that the parent knows
    target_words: int
    left: list[str]  # names of parameters that do not fit and stay as they were


def transfer(model: AnyModel, vocabs: tuple[Vocab, Vocab], parent: Parent) -> Transfer:
    """Copy what fits into `model`: parameters of equal shape as a whole, those of words or characters row by
    row, where both models know the word.

    ConfigError when no parameter fits.
    """
    ours, made = rows_of(model, vocabs), made_for_text(model)
    theirs = rows_of(parent.model, (parent.source_words, parent.target_words))
    weights, copied, left = parent.model.state_dict(), 0, []
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            given = weights.get(name)
            rows = shared_rows(theirs[name], ours[name]) if name in ours and name in theirs else None
            if (
                given is None
                or name in made
                or given.shape[1:] != parameter.shape[1:]
                or (rows is None and given.shape != parameter.shape)
            ):
                left.append(name)
            elif rows is None:
                parameter.copy_(given)
                copied += parameter.numel()
            else:
                parameter[rows[1]] = given[rows[0]]
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


def made_for_text(model: AnyModel) -> set[str]:
    """Names of the parameters whose rows mean what an output layer has learned from the text."""
    return {
        f"{path}.{name}"
        for path, layer in cast(nn.Module, model).named_modules()
        if isinstance(layer, LearnsText)
        for name, _ in cast(nn.Module, layer).named_parameters()
        if name not in cast(OutputLayer, layer).word_parameters()
    }


def rows_of(model: object, vocabs: tuple[Vocab, Vocab]) -> Mapping[str, Sequence[str]]:
    """Parameter name -> the words or characters of its rows; nothing for a model that cannot tell."""
    return model.rows_of(vocabs[0].words, vocabs[1].words) if isinstance(model, WordParameters) else {}


def shared_rows(theirs: Sequence[str], ours: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Positions in both lists of the entries that both have."""
    row_of = {word: row for row, word in enumerate(theirs)}
    pairs = [(row_of[word], row) for row, word in enumerate(ours) if word in row_of]
    parent = torch.tensor([a for a, _ in pairs], dtype=torch.long)
    return parent, torch.tensor([b for _, b in pairs], dtype=torch.long)
