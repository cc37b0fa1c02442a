"""Vectors of words and phrases: maps of them, and nearest neighbors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt.analysis.table import Table, fields_of
from nmt.config.settings import number
from nmt.errors import DataError, UserError

# ---- maps --------------------------------------------------------------------------------------------------
# Maps of vectors (Figs. 4.4 and 4.5): t-SNE of word vectors or of the phrase vectors c, with enlarged
# regions.


Floats = NDArray[np.floating]


@dataclass
class MapConfig:
    """How a map is drawn."""

    zoom: int = number(3, least=0, most=100, help="dense regions shown enlarged")
    perplexity: float = number(30.0, above=0, help="t-SNE's number of neighbors")
    seed: int = number(1, least=0, most=2**32 - 1, help="random seed of t-SNE and of the choice of phrases")


@dataclass
class Region:
    """A square of the map with its middle at (x, y)."""

    x: float
    y: float
    half: float  # of the width
    members: list[int]  # points inside


def tsne(vectors: Floats, seed: int = 1, perplexity: float = 30.0) -> Floats:
    """(n, d) -> (n, 2): Barnes-Hut t-SNE (van der Maaten 2013) by scikit-learn.

    DataError for fewer than 5 vectors, UserError where scikit-learn is not installed.
    """
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise UserError("maps need scikit-learn: pip install 'nmt-smt[analysis]'") from error
    if len(vectors) < 5:
        raise DataError(f"{len(vectors)} vectors are too few for a map; expected 5 or more")
    model = TSNE(2, perplexity=min(perplexity, (len(vectors) - 1) / 3), init="pca", random_state=seed)
    return np.asarray(model.fit_transform(np.asarray(vectors, np.float32)))


def dense_regions(points: Floats, count: int, share: float = 0.08, most: int = 25) -> list[Region]:
    """Up to `count` squares around the densest places, which do not overlap, each `share` of the map's width.

    A region lists the `most` points nearest to its middle.
    """
    span = float((points.max(0) - points.min(0)).max())
    half = share * span / 2
    distance = np.abs(points[:, None] - points[None]).max(2)
    inside = distance <= half
    chosen: list[Region] = []
    for row in np.argsort(-inside.sum(1), kind="stable"):
        if all(float(np.abs(points[row] - (region.x, region.y)).max()) > 2 * half for region in chosen):
            near = np.flatnonzero(inside[row])
            near = near[np.argsort(distance[row][near], kind="stable")][:most]
            chosen.append(Region(float(points[row, 0]), float(points[row, 1]), half, sorted(near.tolist())))
        if len(chosen) == count:
            break
    return chosen


def map_table(labels: Sequence[str], points: Floats, zoomed: Sequence[Region]) -> Table:
    """One row per point; a point of an enlarged region has its number, from 1."""
    region = {member: number for number, region in enumerate(zoomed, 1) for member in region.members}
    return Table(
        {"text": "", "x": ".4f", "y": ".4f", "region": ""},
        [
            [label, x, y, region.get(row)]
            for row, (label, (x, y)) in enumerate(zip(labels, points, strict=True))
        ],
    )


# ---- neighbors ---------------------------------------------------------------------------------------------
# The words whose vectors are nearest to those of given words (the sub-word thesis, table 2.5).


@dataclass
class NeighborsConfig:
    """How many neighbors are listed."""

    count: int = number(5, least=1, help="neighbors of each word")


@dataclass
class Neighbor:
    """A word and one of its neighbors."""

    word: str
    known: bool  # is the word in the vocabulary?
    rank: int  # from 1
    neighbor: str
    cosine: float


def nearest(
    words: Sequence[str], queries: Floats, vocab: Sequence[str], vectors: Floats, config: NeighborsConfig
) -> list[Neighbor]:
    """The neighbors of each word in order of their cosine, the word itself left out. `queries` (Q, d) belong
    to `words`, `vectors` (V, d) to `vocab`."""
    cosines = unit_vectors(queries) @ unit_vectors(vectors).T
    found, places = [], {word: place for place, word in enumerate(vocab)}
    for word, row in zip(words, cosines, strict=True):
        known = word in places
        if known:
            row[places[word]] = -np.inf
        best = np.argsort(-row, kind="stable")[: min(config.count, len(vocab) - known)]
        found += [
            Neighbor(word=word, known=known, rank=rank, neighbor=vocab[place], cosine=float(row[place]))
            for rank, place in enumerate(best.tolist(), 1)
        ]
    return found


def unit_vectors(vectors: Floats) -> Floats:
    """Rows of length 1; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def neighbors_table(found: Sequence[Neighbor]) -> Table:
    """A row for each neighbor."""
    columns = {"word": "", "known": "d", "rank": "", "neighbor": "", "cosine": ".4f"}
    return Table(columns, fields_of(found))
