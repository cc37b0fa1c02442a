"""Nearest neighbors by the cosine."""

import numpy as np

from nmt.analysis.neighbors import NeighborsConfig, nearest, table


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
    assert list(table(found).lines())[1] == "north\t1\t1\tnortheast\t0.7071"
    assert len(nearest(["north"], vectors[1:2], vocab, vectors, NeighborsConfig(count=9))) == 3
