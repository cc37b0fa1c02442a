"""Maps of vectors (Figs. 4.4 and 4.5): t-SNE of word vectors, and of the phrase vectors c, with zoomed
regions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt.errors import DataError, UserError

Floats = NDArray[np.floating]


@dataclass
class Region:
    """A square of the map."""

    x: float
    y: float
    half: float
    members: list[int]


def tsne(vectors: Floats, seed: int = 1, perplexity: float = 30.0) -> Floats:
    """(n, d) -> (n, 2), Barnes-Hut (van der Maaten 2013) by scikit-learn. DataError for fewer than 5
    vectors."""
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise UserError("maps need scikit-learn: pip install 'nmt-smt[analysis]'") from error
    if len(vectors) < 5:
        raise DataError(f"{len(vectors)} vectors are too few for a map; expected 5 or more")
    model = TSNE(2, perplexity=min(perplexity, (len(vectors) - 1) / 3), init="pca", random_state=seed)
    return np.asarray(model.fit_transform(np.asarray(vectors, np.float32)))


def regions(points: Floats, count: int, share: float = 0.08, most: int = 25) -> list[Region]:
    """Squares around the densest places that do not overlap: `share` of the width of the map each, fewer if
    points have many neighbours."""
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


def to_tsv(labels: Sequence[str], points: Floats, zoomed: Sequence[Region]) -> Iterator[str]:
    yield "\t".join(["text", "x", "y", "region"])
    of = {member: str(number) for number, region in enumerate(zoomed, 1) for member in region.members}
    for row, (label, (x, y)) in enumerate(zip(labels, points, strict=True)):
        yield "\t".join([label, f"{x:.4f}", f"{y:.4f}", of.get(row, "")])
