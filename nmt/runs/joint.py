"""Trained joint models, which are given the word alignment of a pair: loaded from their run directories; and
log p of pairs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nmt.data.affiliation import AlignedPair, affiliate_pair
from nmt.data.aligned import make_aligned_batch
from nmt.errors import CheckpointError
from nmt.formats import pharaoh
from nmt.models.config import ModelConfig
from nmt.models.protocols import AlignedModel
from nmt.models.registry import ALIGNED_MODELS
from nmt.runs import checkpoint
from nmt.runs.checkpoint import SavedPair
from nmt.text.vocab import Vocab

PAIRS_PER_BATCH = 128
SavedAligned = SavedPair[AlignedModel]  # a trained joint model


def load_aligned(directory: str | Path, which: str = "best", device: str = "cpu") -> SavedAligned:
    """Load a joint model to score with. `which`: best, last or a number of updates; `device`: cpu, cuda:N or
    auto. CheckpointError if the directory is not such a run, or is damaged."""

    def load_once(run: Path) -> SavedAligned:
        config = checkpoint.checked_config(run)
        kind = ALIGNED_MODELS.get(config.model.type) if isinstance(config.model, ModelConfig) else None
        if kind is None:
            raise CheckpointError(
                f"{run}: is a model of type {config.model.type}, expected a run of model.type "
                f"{' or '.join(ALIGNED_MODELS)}"
            )

        def build(source: Vocab, target: Vocab) -> AlignedModel:
            return kind(config.model, len(source), len(target), fill=False)

        return checkpoint.load_pair(run, which, device, config, build)

    return checkpoint.load_consistent(directory, load_once)


def aligned_word_scores(
    run: SavedAligned, rows: Sequence[tuple[str, ...]], name: str, first: int = 0
) -> list[list[float]]:
    """Natural log p of each target word and of the end symbol, for each row (source, target, alignment),
    three lines; from left to right even if the model reads from right to left. DataError, with `name` and
    line number, for an alignment that is malformed or does not fit; `first`: number of lines before these."""
    pairs = []
    for number, (source_line, target_line, points) in enumerate(rows, first + 1):
        source, target = run.source.units(source_line), run.target.units(target_line)
        location = f"{name}:{number}"
        links = pharaoh.parse(points, location)
        pharaoh.check_points(links, len(source), len(target), location)
        affiliation = affiliate_pair(links, len(source), len(target), run.model.within)
        pairs.append(
            AlignedPair(run.source_words.encode(source), run.target_words.encode(target), affiliation)
        )
    word_scores: list[list[float]] = []
    for start in range(0, len(pairs), PAIRS_PER_BATCH):
        batch = make_aligned_batch(pairs[start : start + PAIRS_PER_BATCH], run.model.shape)
        scores = run.model.token_log_probs(batch.to(run.model.device)).double().cpu().numpy()
        lines = [part.tolist() for part in np.split(scores, np.cumsum(batch.lengths)[:-1])]
        word_scores += [[*line[-2::-1], line[-1]] for line in lines] if run.model.shape.backward else lines
    return word_scores
