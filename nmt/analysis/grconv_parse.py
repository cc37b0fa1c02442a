"""The soft parse of a gated recursive convolution (Fig. 6.6): which children each node is made of, as a
picture.

A sentence of T words has T - 1 levels; node j of level t covers the words j to j + t. Its weights say how
much it is a new
combination of both children, a copy of the left, a copy of the right; they sum to 1. Edges below 0.1 are not
drawn.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from nmt.analysis.plots import printable

LEAST = 0.1  # weight of an edge that is drawn
STEP, ROW, MARGIN = 62.0, 44.0, 40.0  # of the picture: between words, between levels, around
FONT = 14


@dataclass
class Node:
    level: int  # 1: made of two words
    first: int  # word, from 0
    last: int
    new: float
    left: float
    right: float


@dataclass
class Edge:
    """From a node down to a child. `kind`: new (both children), left or right (a copy)."""

    level: int
    position: int
    child: int  # position in the level below
    kind: str
    weight: float


def nodes(gates: NDArray[np.floating]) -> list[Node]:
    """Weights (T (T - 1) / 2, 3) level by level -> nodes with what they cover"""
    words = round((1 + (1 + 8 * len(gates)) ** 0.5) / 2)
    assert words * (words - 1) // 2 == len(gates), f"{len(gates)} nodes are no triangle"
    found, row = [], 0
    for level in range(1, words):
        for position in range(words - level):
            new, left, right = (float(value) for value in gates[row])
            found.append(Node(level, position, position + level, new, left, right))
            row += 1
    return found


def edges(found: Sequence[Node], least: float = LEAST) -> list[Edge]:
    """Two edges for a new combination, one for a copy; only those of a weight above `least`."""
    drawn = []
    for node in found:
        for kind, weight, children in (
            ("new", node.new, (0, 1)),
            ("left", node.left, (0,)),
            ("right", node.right, (1,)),
        ):
            if weight > least:
                drawn += [
                    Edge(node.level, node.first, node.first + child, kind, weight) for child in children
                ]
    return drawn


def to_tsv(words: Sequence[str], found: Sequence[Node]) -> Iterator[str]:
    yield "\t".join(["level", "first", "last", "new", "left", "right", "words"])
    for node in found:
        covered = " ".join(words[node.first : node.last + 1])
        yield "\t".join(
            [
                str(node.level),
                str(node.first),
                str(node.last),
                f"{node.new:.6f}",
                f"{node.left:.6f}",
                f"{node.right:.6f}",
                covered,
            ]
        )


def svg(
    words: Sequence[str],
    found: Sequence[Node],
    translations: Sequence[tuple[str, float]] = (),
    least: float = LEAST,
) -> str:
    """The triangle, root on top, darker where a weight is larger; below it translations with their -log p."""
    T, words = len(words), [escape(printable(word)) for word in words]
    texts = [f"{-log_prob:.2f}   {escape(printable(text))}" for text, log_prob in translations]
    wide, high = 2 * MARGIN + STEP * max(T - 1, 6), 2 * MARGIN + ROW * (T - 1) + 24
    lines = [
        (
            f'<line {ends(edge, T)} stroke="{COLORS[edge.kind]}" stroke-width="{4 * edge.weight:.2f}" '
            f'stroke-opacity="{edge.weight:.3f}"/>'
        )
        for edge in edges(found, least)
    ]
    dots = [f'<circle {center(node, T)} r="3"><title>{title(words, node)}</title></circle>' for node in found]
    leaves = [
        (
            f'<text x="{place(0, j, T)[0]:.1f}" y="{place(0, j, T)[1] + 20:.1f}" '
            f'text-anchor="middle">{word}</text>'
        )
        for j, word in enumerate(words)
    ]
    below = [
        f'<text x="{MARGIN}" y="{high + 22 * row:.1f}">{text}</text>' for row, text in enumerate(texts, 1)
    ]
    total = high + 22 * len(translations) + (MARGIN if translations else 0)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0f}" height="{total:.0f}" '
        f'font-family="sans-serif" font-size="{FONT}">'
    )
    return "\n".join(
        [head, '<rect width="100%" height="100%" fill="white"/>', *lines, *dots, *leaves, *below, "</svg>"]
    )


COLORS = {"new": "#1b6ca8", "left": "#3c3c3c", "right": "#3c3c3c"}


def place(level: int, position: int, words: int) -> tuple[float, float]:
    return MARGIN + STEP * (position + level / 2), MARGIN + ROW * (words - 1 - level)


def center(node: Node, words: int) -> str:
    x, y = place(node.level, node.first, words)
    return f'cx="{x:.1f}" cy="{y:.1f}"'


def ends(edge: Edge, words: int) -> str:
    (x, y), (below_x, below_y) = (
        place(edge.level, edge.position, words),
        place(edge.level - 1, edge.child, words),
    )
    return f'x1="{x:.1f}" y1="{y:.1f}" x2="{below_x:.1f}" y2="{below_y:.1f}"'


def title(words: Sequence[str], node: Node) -> str:
    return (
        f"{' '.join(words[node.first : node.last + 1])}: new {node.new:.2f}, left {node.left:.2f}, right "
        f"{node.right:.2f}"
    )
