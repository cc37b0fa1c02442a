"""Maps of vectors (Figs. 4.4 and 4.5): t-SNE of word vectors or of the phrase vectors c, with enlarged
regions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt.analysis.table import Table
from nmt.errors import DataError, UserError
from nmt.settings import number

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


def regions(points: Floats, count: int, share: float = 0.08, most: int = 25) -> list[Region]:
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


def table(labels: Sequence[str], points: Floats, zoomed: Sequence[Region]) -> Table:
    """One row per point; a point of an enlarged region has its number, from 1."""
    region = {member: number for number, region in enumerate(zoomed, 1) for member in region.members}
    return Table(
        {"text": "", "x": ".4f", "y": ".4f", "region": ""},
        [
            [label, x, y, region.get(row)]
            for row, (label, (x, y)) in enumerate(zip(labels, points, strict=True))
        ],
    )
