"""The soft parse of a gated recursive convolution (Fig. 6.6): which children each node is made of, as a
picture.

A sentence of T words has T - 1 levels; node j of level t covers the words j to j + t. Its three weights sum
to 1: how much of it is a new combination of both children, a copy of the left one, a copy of the right one.
Edges below 0.1 are not drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from nmt.analysis.plots import printable
from nmt.analysis.table import Table, fields_of

LEAST = 0.1  # weight of an edge that is drawn
STEP, ROW, MARGIN = 62.0, 44.0, 40.0  # of the picture: between words, between levels, around
FONT = 14


@dataclass
class Node:
    """A node above the words, and the weights of its three candidates."""

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
    """The nodes of a sentence of T words from their weights, level by level: (T (T - 1) / 2, 3)."""
    T = round((1 + (1 + 8 * len(gates)) ** 0.5) / 2)
    assert len(gates) == T * (T - 1) // 2, f"{len(gates)} nodes are no triangle"
    places = [(level, position) for level in range(1, T) for position in range(T - level)]
    return [
        Node(level=level, first=first, last=first + level, new=new, left=left, right=right)
        for (level, first), (new, left, right) in zip(places, gates.tolist(), strict=True)
    ]


def edges(found: Sequence[Node], least: float = LEAST) -> list[Edge]:
    """Two edges for a new combination, one for a copy; only those whose weight is above `least`."""
    drawn = []
    for node in found:
        for kind, weight, children in (
            ("new", node.new, (0, 1)),
            ("left", node.left, (0,)),
            ("right", node.right, (1,)),
        ):
            if weight > least:
                drawn += [
                    Edge(
                        level=node.level,
                        position=node.first,
                        child=node.first + child,
                        kind=kind,
                        weight=weight,
                    )
                    for child in children
                ]
    return drawn


def table(units: Sequence[str], found: Sequence[Node]) -> Table:
    """One row per node, with the words that it covers."""
    columns = {"level": "", "first": "", "last": "", "new": ".6f", "left": ".6f", "right": ".6f", "words": ""}
    covered = (" ".join(units[node.first : node.last + 1]) for node in found)
    return Table(columns, [[*values, text] for values, text in zip(fields_of(found), covered, strict=True)])


def svg(
    units: Sequence[str],
    found: Sequence[Node],
    translations: Sequence[tuple[str, float]] = (),
    least: float = LEAST,
) -> str:
    """The triangle with its root on top, darker where a weight is larger, as SVG.

    Below it stand `translations`: (text, natural log p) each, shown as -log p.
    """
    T, words = len(units), [escape(printable(unit)) for unit in units]
    texts = [f"{-log_prob:.2f}   {escape(printable(text))}" for text, log_prob in translations]
    wide, high = 2 * MARGIN + STEP * max(T - 1, 6), 2 * MARGIN + ROW * (T - 1) + 24
    lines = [
        f'<line {ends(edge, T)} stroke="{COLORS[edge.kind]}" stroke-width="{4 * edge.weight:.2f}" '
        f'stroke-opacity="{edge.weight:.3f}"/>'
        for edge in edges(found, least)
    ]
    dots = [f'<circle {center(node, T)} r="3"><title>{title(words, node)}</title></circle>' for node in found]
    leaves = [
        f'<text x="{place(0, j, T)[0]:.1f}" y="{place(0, j, T)[1] + 20:.1f}" '
        f'text-anchor="middle">{word}</text>'
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


def place(level: int, position: int, T: int) -> tuple[float, float]:
    """Where a node of a sentence of T words is drawn: x, y."""
    return MARGIN + STEP * (position + level / 2), MARGIN + ROW * (T - 1 - level)


def center(node: Node, T: int) -> str:
    x, y = place(node.level, node.first, T)
    return f'cx="{x:.1f}" cy="{y:.1f}"'


def ends(edge: Edge, T: int) -> str:
    x, y = place(edge.level, edge.position, T)
    below_x, below_y = place(edge.level - 1, edge.child, T)
    return f'x1="{x:.1f}" y1="{y:.1f}" x2="{below_x:.1f}" y2="{below_y:.1f}"'


def title(words: Sequence[str], node: Node) -> str:
    covered = " ".join(words[node.first : node.last + 1])
    return f"{covered}: new {node.new:.2f}, left {node.left:.2f}, right {node.right:.2f}"
