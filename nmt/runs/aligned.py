"""Trained aligned models from their run directories, and log p of pairs with a given alignment."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nmt.data.affiliation import of_pair
from nmt.data.aligned import AlignedPair, make_aligned_batch
from nmt.errors import CheckpointError
from nmt.formats import pharaoh
from nmt.models.config import ModelConfig
from nmt.models.protocols import AlignedModel
from nmt.models.registry import ALIGNED_MODELS
from nmt.runs import checkpoint
from nmt.runs.checkpoint import SavedPair
from nmt.text.vocab import Vocab

BATCH = 128  # pairs in a batch


# A trained model that is given the alignment.
SavedAligned = SavedPair[AlignedModel]


def load(directory: str | Path, which: str = "best", device: str = "cpu") -> SavedAligned:
    """A joint model ready to score. CheckpointError says in one line what is wrong with the directory."""
    return checkpoint.settled(load_once, Path(directory), which, device)


def load_once(directory: Path, which: str, device: str) -> SavedAligned:
    """As `load`, for a run that nobody changes."""
    config = checkpoint.checked_config(directory)
    kind = ALIGNED_MODELS.get(config.model.type) if isinstance(config.model, ModelConfig) else None
    if kind is None:
        raise CheckpointError(
            f"{directory}: is a model of type {config.model.type}, expected a run of model.type "
            f"{' or '.join(ALIGNED_MODELS)}"
        )

    def build(source: Vocab, target: Vocab) -> AlignedModel:
        return kind(config.model, len(source), len(target), fill=False)

    return checkpoint.load_pair(directory, which, device, config, build)


def word_scores(
    run: SavedAligned,
    rows: Sequence[tuple[str, ...]],
    tokenized: bool,
    name: str,
    first: int = 0,
) -> list[list[float]]:
    """Natural log p of each word of the target and of its end symbol, for each (source, target, alignment) of
    lines; in this order also where the model reads from right to left. DataError for an alignment that does
    not fit, with `name` and line number; `first`: number of the lines before."""
    pairs = []
    for number, (line, other, points) in enumerate(rows, first + 1):
        source, target = run.source.units(line, tokenized), run.target.units(other, tokenized)
        links, where = pharaoh.parse(points, f"{name}:{number}"), f"{name}:{number}"
        pharaoh.check_points(links, len(source), len(target), where)
        affiliation = of_pair(links, len(source), len(target), run.model.within)
        pairs.append(
            AlignedPair(run.source_words.encode(source), run.target_words.encode(target), affiliation)
        )
    found: list[list[float]] = []
    for start in range(0, len(pairs), BATCH):
        batch = make_aligned_batch(pairs[start : start + BATCH], run.model.shape)
        scores = run.model.token_log_probs(batch.to(run.model.device)).double().cpu().numpy()
        lines = [part.tolist() for part in np.split(scores, np.cumsum(batch.lengths)[:-1])]
        found += [[*line[-2::-1], line[-1]] for line in lines] if run.model.shape.backward else lines
    return found
