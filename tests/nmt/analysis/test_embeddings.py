"""Maps of vectors, and nearest neighbors."""

import numpy as np
import pytest

from nmt.analysis.embeddings import NeighborsConfig, dense_regions, map_table, nearest, neighbors_table, tsne
from nmt.errors import DataError

# ---- test maps ---------------------------------------------------------------------------------------------
# Regions of a map.


# A crowd of five at the origin, a pair far away, and two loners.
POINTS = np.array(
    [[0, 0], [0.1, 0], [0, 0.1], [0.1, 0.1], [0.05, 0.05], [9, 9], [9.1, 9], [0, 10], [10, 0]], np.float64
)


def test_the_densest_places_come_first_and_do_not_overlap() -> None:
    found = dense_regions(POINTS, count=2)
    assert found[0].members == [0, 1, 2, 3, 4] and found[1].members == [5, 6]
    assert abs(found[0].x - found[1].x) > 2 * found[0].half
    assert len(dense_regions(POINTS, count=99)) == 4  # no place is left for a fifth


def test_a_region_lists_its_nearest_points_at_most() -> None:
    assert len(dense_regions(POINTS, count=1, most=3)[0].members) == 3


def test_the_table_names_the_region_of_a_point() -> None:
    lines = list(map_table([*"abcdefghi"], POINTS, dense_regions(POINTS, count=2)).lines())
    assert lines[1] == "a\t0.0000\t0.0000\t1" and lines[6].endswith("\t2") and lines[9].endswith("\t")


@pytest.mark.ci
def test_five_vectors_make_a_map_and_four_do_not() -> None:
    pytest.importorskip("sklearn")
    assert tsne(np.eye(5)).shape == (5, 2)
    with pytest.raises(DataError, match="4 vectors are too few"):
        tsne(np.zeros((4, 3)))


# ---- test neighbors ----------------------------------------------------------------------------------------
# Nearest neighbors by the cosine.


def test_nearest() -> None:
    vocab = ["east", "north", "zero", "northeast"]
    vectors = np.array([[2.0, 0], [0, 1], [0, 0], [3, 3]])
    found = nearest(
        ["north", "steep"], np.array([[0, 5.0], [1, 3]]), vocab, vectors, NeighborsConfig(count=2)
    )
    assert [(row.word, row.known, row.rank, row.neighbor) for row in found] == [
        ("north", True, 1, "northeast"),
        ("north", True, 2, "east"),
        ("steep", False, 1, "north"),
        ("steep", False, 2, "northeast"),
    ]
    assert round(found[0].cosine, 6) == round(0.5**0.5, 6)
    assert list(neighbors_table(found).lines())[1] == "north\t1\t1\tnortheast\t0.7071"
    assert len(nearest(["north"], vectors[1:2], vocab, vectors, NeighborsConfig(count=9))) == 3
