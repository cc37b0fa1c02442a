"""The soft parse of a gated recursive convolution (van Merriënboer 2018, fig. 6.6): how much of each node
comes from which child.

A sentence of T words has T - 1 levels; node j of level t covers the words j to j + t. Its three weights sum
to 1: the shares of a new combination of both children, of a copy of the left one, and of the right one.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from nmt.analysis.actions import Findings, ResultTable, field_values
from nmt.analysis.plots import printable
from nmt.analysis.trained_runs import add_line, load_run, read_line
from nmt.cli.arguments import integer
from nmt.cli.options import Parser
from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.search.config import BeamConfig

MIN_WEIGHT = 0.1  # of an edge that is drawn
STEP, ROW, MARGIN = 62.0, 44.0, 40.0  # pixels: between words, between levels, around
FONT = 14


@dataclass
class MergeNode:
    """A node above the words, and the weights of its three candidates."""

    level: int  # 1: made of two words
    first: int  # words that it covers, from 0
    last: int
    new: float
    left: float
    right: float


@dataclass
class MergeEdge:
    """An edge from a node down to one of its children."""

    level: int
    position: int
    child: int  # position in the level below
    kind: str  # new (a combination), left or right (a copy)
    weight: float


def parse_nodes(gates: NDArray[np.floating]) -> list[MergeNode]:
    """Label the weights of a sentence's nodes, which are given level by level: (T (T - 1) / 2, 3)."""
    T = round((1 + (1 + 8 * len(gates)) ** 0.5) / 2)
    assert len(gates) == T * (T - 1) // 2, f"{len(gates)} nodes are no triangle"
    positions = [(level, position) for level in range(1, T) for position in range(T - level)]
    return [
        MergeNode(level=level, first=first, last=first + level, new=new, left=left, right=right)
        for (level, first), (new, left, right) in zip(positions, gates.tolist(), strict=True)
    ]


def visible_edges(nodes: Sequence[MergeNode], least: float = MIN_WEIGHT) -> list[MergeEdge]:
    """List the edges of a weight above `least`: two for a new combination, one for a copy."""
    edges = []
    for node in nodes:
        for kind, weight, children in (
            ("new", node.new, (0, 1)),
            ("left", node.left, (0,)),
            ("right", node.right, (1,)),
        ):
            if weight > least:
                edges += [
                    MergeEdge(
                        level=node.level,
                        position=node.first,
                        child=node.first + child,
                        kind=kind,
                        weight=weight,
                    )
                    for child in children
                ]
    return edges


def parse_table(units: Sequence[str], nodes: Sequence[MergeNode]) -> ResultTable:
    """One row per node, with the words that it covers."""
    columns = {"level": "", "first": "", "last": "", "new": ".6f", "left": ".6f", "right": ".6f", "words": ""}
    covered = (" ".join(units[node.first : node.last + 1]) for node in nodes)
    return ResultTable(
        columns, [[*values, text] for values, text in zip(field_values(nodes), covered, strict=True)]
    )


def draw_parse(
    units: Sequence[str],
    nodes: Sequence[MergeNode],
    translations: Sequence[tuple[str, float]] = (),
    least: float = MIN_WEIGHT,
) -> str:
    """Draw the triangle of nodes as SVG, root on top, with edges that are darker the larger their weight.

    Below it stand `translations`: (text, natural log p) each, shown as -log p.
    """
    T, words = len(units), [escape(printable(unit)) for unit in units]
    texts = [f"{-log_prob:.2f}   {escape(printable(text))}" for text, log_prob in translations]
    width, height = 2 * MARGIN + STEP * max(T - 1, 6), 2 * MARGIN + ROW * (T - 1) + 24
    lines = [
        f'<line {line_ends(edge, T)} stroke="{COLORS[edge.kind]}" stroke-width="{4 * edge.weight:.2f}" '
        f'stroke-opacity="{edge.weight:.3f}"/>'
        for edge in visible_edges(nodes, least)
    ]
    dots = [
        f'<circle {circle_center(node, T)} r="3"><title>{node_title(words, node)}</title></circle>'
        for node in nodes
    ]
    leaves = [
        f'<text x="{node_position(0, j, T)[0]:.1f}" y="{node_position(0, j, T)[1] + 20:.1f}" '
        f'text-anchor="middle">{word}</text>'
        for j, word in enumerate(words)
    ]
    below = [
        f'<text x="{MARGIN}" y="{height + 22 * row:.1f}">{text}</text>' for row, text in enumerate(texts, 1)
    ]
    total = height + 22 * len(translations) + (MARGIN if translations else 0)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{total:.0f}" '
        f'font-family="sans-serif" font-size="{FONT}">'
    )
    return "\n".join(
        [head, '<rect width="100%" height="100%" fill="white"/>', *lines, *dots, *leaves, *below, "</svg>"]
    )


COLORS = {"new": "#1b6ca8", "left": "#3c3c3c", "right": "#3c3c3c"}


def node_position(level: int, position: int, T: int) -> tuple[float, float]:
    """The coordinates (x, y) of a node of a sentence of T words."""
    return MARGIN + STEP * (position + level / 2), MARGIN + ROW * (T - 1 - level)


def circle_center(node: MergeNode, T: int) -> str:
    x, y = node_position(node.level, node.first, T)
    return f'cx="{x:.1f}" cy="{y:.1f}"'


def line_ends(edge: MergeEdge, T: int) -> str:
    x, y = node_position(edge.level, edge.position, T)
    below_x, below_y = node_position(edge.level - 1, edge.child, T)
    return f'x1="{x:.1f}" y1="{y:.1f}" x2="{below_x:.1f}" y2="{below_y:.1f}"'


def node_title(words: Sequence[str], node: MergeNode) -> str:
    covered = " ".join(words[node.first : node.last + 1])
    return f"{covered}: new {node.new:.2f}, left {node.left:.2f}, right {node.right:.2f}"


class ParseAnalysis:
    help = "The soft parse of a gated recursive convolution, with its best translations."

    def add_options(self, parser: Parser) -> None:
        add_line(parser)
        parser.add_argument(
            "--translations",
            type=integer(0, 1000),
            default=10,
            metavar="N",
            help="best translations shown below, with their -log p",
        )

    def run(self, args: argparse.Namespace) -> Findings:
        line = read_line(args)
        run = load_run(args, args.run)
        from nmt.models.protocols import MergeGates

        member = run.members[0]
        units = member.source.units(line, args.tokenized)
        source = [member.source_words.encode(units)]
        gates = member.model.merge_gates(source) if isinstance(member.model, MergeGates) else None
        if gates is None:
            raise ConfigError(
                f"{args.run}: its encoder is not a grconv, so it has no parse; train with "
                "model.encoder=grconv"
            )
        if len(units) < 2:
            raise DataError(f"{line[:40]!r}: a parse needs two words or more")
        nodes = parse_nodes(gates[0].cpu().numpy())
        config = BeamConfig(max(1, args.translations))
        translations = run.n_best([line], config, args.tokenized)[0][: args.translations]
        best = [(" ".join(translation.words), translation.log_prob) for translation in translations]

        return Findings(
            table=parse_table(units, nodes),
            summary=[f"{-log_prob:.2f}  {text}" for text, log_prob in best],
            draw=lambda paths: files.write_text(paths[0], draw_parse(units, nodes, best).split("\n")),
            formats=("svg",),
        )
