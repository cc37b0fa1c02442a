"""A language model of variable computation reads a text: what it computes at each unit."""

from collections.abc import Iterable, Iterator

import torch

from nmt.analysis.computation import Step
from nmt.errors import ConfigError, DataError
from nmt.lm.protocols import VariableComputation
from nmt.runs.checkpoint import SavedLM
from nmt.text.vocab import EOS, SPECIALS


def steps(run: SavedLM, lines: Iterable[str], tokenized: bool = False) -> Iterator[Step]:
    """Every unit of a text, each line after an end symbol, in each layer. ConfigError for a model that
    computes everything, DataError for no text."""
    model, state, line = run.model, None, 0
    if not isinstance(model, VariableComputation):
        raise refused(run)
    for line, text in enumerate(lines, 1):
        units = run.text.units(text, tokenized)
        ids = torch.tensor([EOS, *run.encode([units])[0]], device=run.model.device)
        found, after = model.computed(ids, state)
        if not found:
            raise refused(run)
        state = after if model.carries else None
        for layer, part in enumerate(found, 1):
            values = zip([SPECIALS[EOS], *units], part.shares.tolist(), part.dimensions.tolist(), strict=True)
            for position, (unit, m, d) in enumerate(values):
                yield Step(line, position, unit, layer, m, d, d * part.equivalent)
    if not line:
        raise DataError("an empty text: nothing is computed")


def refused(run: SavedLM) -> ConfigError:
    """The model has no such cells."""
    return ConfigError(
        f"{run.directory}: computes all of its state at each step; train with lm.cell vcrnn or vcgru"
    )
