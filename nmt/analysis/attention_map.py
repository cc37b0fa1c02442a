"""The source words that each word of a translation attends to (Bahdanau et al. 2015, Fig. 3)."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from nmt.analysis.table import Table
from nmt.errors import ConfigError, DataError
from nmt.runs.run import Run
from nmt.search.config import BeamConfig
from nmt.text.vocab import EOS, SPECIALS

END = SPECIALS[EOS]


@torch.no_grad()
def weights(
    run: Run, line: str, target: str = "", tokenized: bool = False
) -> tuple[list[str], list[str], NDArray[np.float64]]:
    """Source units and target units, each with the end symbol, and weights (target, source) whose rows sum
    to 1.

    Without a `target` the run translates `line` itself. ConfigError for a model without attention, DataError
    for an empty line.
    """
    member = run.members[0]
    source = member.source.units(line, tokenized)
    if not source:
        raise DataError("an empty sentence has no words to attend to")
    if not member.model.attends:
        raise ConfigError(f"{member.directory}: has no attention; train with model.attention")
    ids = (
        run.target_ids(target, tokenized)
        if target
        else run.search([line], BeamConfig(), tokenized)[0][0].words
    )
    state, words, rows = member.model.start([member.source_words.encode(source)]), None, []
    for word in [*ids, EOS]:
        _, state = member.model.step(state, words)
        looked = member.model.attention(state)
        assert looked is not None
        rows.append(looked[0].double().cpu().numpy())
        words = torch.tensor([word], device=member.model.device)
    units = member.target.units(target, tokenized) if target else member.target_words.decode(ids)
    return [*source, END], [*units, END], np.stack(rows)


def table(source: Sequence[str], target: Sequence[str], found: NDArray[np.floating]) -> Table:
    """One row per weight: positions from 0, units, weight."""
    return Table(
        {"target": "", "source": "", "target_word": "", "source_word": "", "weight": ".6f"},
        [[i, j, target[i], source[j], weight] for i, row in enumerate(found) for j, weight in enumerate(row)],
    )
