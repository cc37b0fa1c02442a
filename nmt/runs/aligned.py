"""Trained aligned models from their run directories, and log p of pairs with a given alignment."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmt.data.affiliation import of_pair
from nmt.data.aligned import AlignedPair, make_aligned_batch
from nmt.data.corpus import DataConfig
from nmt.errors import CheckpointError
from nmt.formats import pharaoh
from nmt.models.config import ModelConfig
from nmt.models.protocols import AlignedModel
from nmt.models.registry import ALIGNED_MODELS
from nmt.runs import checkpoint
from nmt.runs import directory as run_directory
from nmt.runs.directory import weights_path
from nmt.text.pipeline import TextPipeline
from nmt.text.vocab import Vocab

BATCH = 128  # pairs in a batch


@dataclass
class SavedAligned:
    """A trained model that is given the alignment, with its text pipelines."""

    directory: Path
    model: AlignedModel
    source: TextPipeline
    target: TextPipeline
    source_words: Vocab
    target_words: Vocab
    data: DataConfig
    step: int

    @property
    def name(self) -> str:
        """How results name the model that made them."""
        return f"{self.directory.name}@{self.step}"


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
    source, source_words = checkpoint.load_side(directory, "source", config.data)
    target, target_words = checkpoint.load_side(directory, "target", config.data)
    step = run_directory.find_step(directory, which)
    model = kind(config.model, len(source_words), len(target_words), fill=False)
    checkpoint.load_weights(model, weights_path(directory, step))
    model.eval()
    return SavedAligned(
        directory=directory,
        model=model.to(device),
        source=source,
        target=target,
        source_words=source_words,
        target_words=target_words,
        data=config.data,
        step=step,
    )


def word_scores(
    run: SavedAligned,
    rows: Sequence[tuple[str, ...]],
    tokenized: bool,
    name: str,
    first: int = 0,
) -> list[list[float]]:
    """Natural log p of each word of the target and of its end symbol, for each (source, target, alignment) of
    lines. DataError for an alignment that does not fit, with `name` and line number; `first`: number of the
    lines before."""
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
        found += [part.tolist() for part in np.split(scores, np.cumsum(batch.lengths)[:-1])]
    return found
