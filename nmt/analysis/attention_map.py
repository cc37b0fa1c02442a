"""Where each word of a translation looked (Bahdanau et al. 2015, Fig. 3)."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from nmt.data.vocab import EOS, SPECIALS
from nmt.errors import ConfigError, DataError
from nmt.run import Run
from nmt.search.beam import BeamConfig

END = SPECIALS[EOS]


@torch.no_grad()
def weights(
    run: Run, line: str, target: str = "", tokenized: bool = False
) -> tuple[list[str], list[str], NDArray[np.float64]]:
    """Source units, target units (each with the end symbol), and weights (target, source) whose rows sum to
    1.

    Without a `target` it is the run's own translation. ConfigError for a model without attention.
    """
    member = run.members[0]
    source = member.source.units(line, tokenized)
    if not source:
        raise DataError("an empty sentence has nothing to look at")
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


def to_tsv(source: Sequence[str], target: Sequence[str], found: NDArray[np.floating]) -> Iterator[str]:
    yield "\t".join(["target", "source", "target_word", "source_word", "weight"])
    for i, row in enumerate(found):
        for j, weight in enumerate(row):
            yield "\t".join([str(i), str(j), target[i], source[j], f"{weight:.6f}"])
