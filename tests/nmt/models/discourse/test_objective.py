"""Paragraphs of a text."""

import pytest

from tests.nmt.models.discourse.texts import paragraphs_of

A = ["a"]


@pytest.mark.parametrize(
    ("lines", "spans"),
    [
        ([A, A, [], A], [[0, 2], [3, 4]]),
        ([[], A, A, A, [], [], A, []], [[1, 4], [6, 7]]),
        ([[], []], []),
    ],
)
def test_paragraphs_are_what_empty_lines_part(lines: list[list[str]], spans: list[list[int]]) -> None:
    assert paragraphs_of(lines).spans.tolist() == spans


def test_neighbors_are_of_one_paragraph() -> None:
    assert paragraphs_of([A, A, A, [], A, [], A, A]).neighbors().tolist() == [0, 1, 6]
