"""The soft parse of a gated recursive convolution (van Merriënboer 2018, fig. 6.6).

A sentence of T words has T - 1 levels of nodes; node j of level t covers the words j to j + t. The three
weights of a node sum to 1: the shares of a new combination of both children, of a copy of the left child,
and of a copy of the right child.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from nmt.analysis.actions import Findings, ResultTable, add_sentence, field_values, load_run, read_sentence
from nmt.analysis.plots import printable
from nmt.cli.arguments import integer
from nmt.cli.options import Parser
from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.search.config import BeamConfig

if TYPE_CHECKING:
    from nmt.runs.torch_run import TorchRun

MIN_WEIGHT = 0.1  # edges of at most this weight are not drawn
STEP, ROW, MARGIN = 62.0, 44.0, 40.0  # pixels: between words, between levels, around
CHILDREN = {"new": (0, 1), "left": (0,), "right": (1,)}  # kind -> the children used: 0 left, 1 right
COLORS = {"new": "#1b6ca8", "left": "#3c3c3c", "right": "#3c3c3c"}


@dataclass
class MergeNode:
    """A node of a soft parse, and the weights of its three candidates."""

    level: int  # 1: covers two words
    first: int  # first word that it covers, from 0
    last: int  # last word that it covers
    new: float
    left: float
    right: float


@dataclass
class MergeEdge:
    """An edge from a node down to one of its children."""

    level: int
    position: int  # of the node in its level
    child: int  # position of the child in the level below
    kind: str  # new (a combination), left or right (a copy)
    weight: float


def parse_nodes(gates: NDArray[np.floating]) -> list[MergeNode]:
    """Convert the weights of a sentence's nodes (T (T - 1) / 2, 3), ordered level by level, to nodes."""
    T = round((1 + (1 + 8 * len(gates)) ** 0.5) / 2)
    assert len(gates) == T * (T - 1) // 2, f"{len(gates)} nodes do not form a triangle"
    positions = [(level, position) for level in range(1, T) for position in range(T - level)]
    return [
        MergeNode(level=level, first=first, last=first + level, new=new, left=left, right=right)
        for (level, first), (new, left, right) in zip(positions, gates.tolist(), strict=True)
    ]


def visible_edges(nodes: Sequence[MergeNode]) -> list[MergeEdge]:
    """List the edges with a weight above MIN_WEIGHT: two for a new combination, one for a copy."""
    return [
        MergeEdge(level=node.level, position=node.first, child=node.first + child, kind=kind, weight=weight)
        for node in nodes
        for kind, children in CHILDREN.items()
        if (weight := getattr(node, kind)) > MIN_WEIGHT
        for child in children
    ]


def node_position(level: int, position: int, T: int) -> tuple[float, float]:
    """The coordinates (x, y) of a node of a sentence of T words."""
    return MARGIN + STEP * (position + level / 2), MARGIN + ROW * (T - 1 - level)


def edge_line(edge: MergeEdge, T: int) -> str:
    """A line of an edge, in a sentence of T words: wider and darker for a larger weight."""
    x, y = node_position(edge.level, edge.position, T)
    below_x, below_y = node_position(edge.level - 1, edge.child, T)
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{below_x:.1f}" y2="{below_y:.1f}" '
        f'stroke="{COLORS[edge.kind]}" stroke-width="{4 * edge.weight:.2f}" '
        f'stroke-opacity="{edge.weight:.3f}"/>'
    )


def node_circle(words: Sequence[str], node: MergeNode) -> str:
    """A circle, with the words that the node covers and its weights as a tooltip."""
    x, y = node_position(node.level, node.first, len(words))
    covered = " ".join(words[node.first : node.last + 1])
    weights = f"new {node.new:.2f}, left {node.left:.2f}, right {node.right:.2f}"
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{covered}: {weights}</title></circle>'


@dataclass(frozen=True)
class MergeTriangle:
    """The soft parse of a sentence of T units. In a notebook it is the triangle of its nodes, darker where a
    weight is larger.

    >>> import numpy as np
    >>> parse = MergeTriangle(["le", "chat"], np.array([[0.7, 0.2, 0.1]]))
    >>> [node.left for node in parse.nodes]
    [0.2]
    """

    units: list[str]  # without the end symbol
    weights: NDArray[np.floating]  # (T (T - 1) / 2, 3): new, left, right of each node, level by level

    @property
    def nodes(self) -> list[MergeNode]:
        return parse_nodes(self.weights)

    def table(self) -> ResultTable:
        """A row for each node: the words that it covers, and its weights."""
        columns = {"level": "", "first": "", "last": "", "new": ".6f", "left": ".6f", "right": ".6f"}
        covered = (" ".join(self.units[node.first : node.last + 1]) for node in self.nodes)
        return ResultTable(
            columns | {"words": ""},
            [[*values, text] for values, text in zip(field_values(self.nodes), covered, strict=True)],
        )

    def draw(self, translations: Sequence[tuple[str, float]] = ()) -> str:
        """Draw the triangle as SVG, root on top, with darker edges for larger weights; edges of at most
        MIN_WEIGHT are left out. `translations`, (text, natural log p) each, are written below the triangle
        with their -log p."""
        T, words = len(self.units), [escape(printable(unit)) for unit in self.units]
        texts = [f"{-log_prob:.2f}   {escape(printable(text))}" for text, log_prob in translations]
        width, height = 2 * MARGIN + STEP * max(T - 1, 6), 2 * MARGIN + ROW * (T - 1) + 24
        lines = [edge_line(edge, T) for edge in visible_edges(self.nodes)]
        dots = [node_circle(words, node) for node in self.nodes]
        leaves = [
            f'<text x="{x:.1f}" y="{y + 20:.1f}" text-anchor="middle">{word}</text>'
            for (x, y), word in zip((node_position(0, j, T) for j in range(T)), words, strict=True)
        ]
        below = [
            f'<text x="{MARGIN}" y="{height + 22 * row:.1f}">{text}</text>'
            for row, text in enumerate(texts, 1)
        ]
        total = height + 22 * len(translations) + (MARGIN if translations else 0)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{total:.0f}" '
            'font-family="sans-serif" font-size="14">'
        )
        return "\n".join(
            [
                head,
                '<rect width="100%" height="100%" fill="white"/>',
                *lines,
                *dots,
                *leaves,
                *below,
                "</svg>",
            ]
        )

    def _repr_html_(self) -> str:
        return self.draw()


def parse_line(run: "TorchRun", line: str) -> MergeTriangle:
    """Compute the soft parse of a line by a run's first model. ConfigError for a model whose encoder is not a
    grconv, DataError for a line of fewer than two units."""
    member = run.members[0]
    units = member.source.units(line)
    gates = member.model.merge_gates([member.source_words.encode(units)])
    if gates is None:
        raise ConfigError(
            f"{member.directory}: its encoder is not a grconv, so it has no parse; train with "
            "model.encoder=grconv"
        )
    if len(units) < 2:
        raise DataError(f"{line[:40]!r}: a parse needs two words or more; give a longer sentence")
    return MergeTriangle(units, gates[0].cpu().numpy())


class ParseAnalysis:
    help = "The soft parse of a gated recursive convolution, with its best translations."

    def add_options(self, parser: Parser) -> None:
        add_sentence(parser)
        parser.add_argument(
            "--translations",
            type=integer(0, 1000),
            default=10,
            metavar="N",
            help="best translations shown below, with their -log p",
        )

    def run(self, args: argparse.Namespace) -> Findings:
        line = read_sentence(args)
        run = load_run(args, args.run).for_text(args.tokenized)
        parse = parse_line(run, line)
        config = BeamConfig(max(1, args.translations))
        translations = run.n_best([line], config)[0][: args.translations]
        best = [(" ".join(translation.words), translation.log_prob) for translation in translations]

        return Findings(
            table=parse.table(),
            summary=[f"{-log_prob:.2f}  {text}" for text, log_prob in best],
            draw=lambda paths: files.write_text(paths[0], parse.draw(best).split("\n")),
            formats=("svg",),
        )
