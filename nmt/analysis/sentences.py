"""Analyses of a model on one sentence: how the words of a translation attend to the source words (Bahdanau et
al. 2015, fig. 3), and the soft parse of a gated recursive convolution (van Merriënboer 2018, fig. 6.6)."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from nmt.analysis.actions import Findings, ResultTable, add_output, field_values, load_run
from nmt.analysis.plots import label_text, printable, pyplot, save_figure
from nmt.cli import options
from nmt.cli.arguments import InputPath, integer
from nmt.cli.options import Parser
from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.search.config import BeamConfig
from nmt.text.vocab import EOS, SPECIALS

if TYPE_CHECKING:
    from nmt.runs.torch_run import TorchRun


def add_line(parser: Parser) -> None:
    """Add the options of a run and of one source sentence, which `read_line` reads, and --output."""
    options.add_model(parser)
    parser.add_argument(
        "--line", default="", metavar="TEXT", help="the source sentence; default: the first line of --input"
    )
    parser.add_argument("--input", "-i", type=InputPath, default="-", metavar="FILE", help="source text")
    parser.add_argument(
        "--tokenized", action="store_true", help="the text is tokenized like the training text of the run"
    )
    add_output(parser)


def read_line(args: argparse.Namespace) -> str:
    """Return --line, or the first line of --input; empty if that has no line."""
    return str(args.line or next(files.read_lines(args.input), ""))


# ---- attention ---------------------------------------------------------------------------------------------


END = SPECIALS[EOS]


@dataclass(frozen=True)
class Attention:
    """The source units that each unit of a translation attends to. In a notebook it is a table, darker
    where a weight is larger.

    >>> import numpy as np
    >>> attention = Attention(["le", "</s>"], ["the", "</s>"], np.array([[0.9, 0.1], [0.2, 0.8]]))
    >>> attention.source[attention.weights[0].argmax()]
    'le'
    """

    source: list[str]  # units, with the end symbol
    target: list[str]
    weights: NDArray[np.float64]  # (target, source); rows sum to 1

    def table(self) -> ResultTable:
        """Build a table with one row per weight: positions from 0, units, weight."""
        return ResultTable(
            {"target": "", "source": "", "target_word": "", "source_word": "", "weight": ".6f"},
            [
                [i, j, self.target[i], self.source[j], weight]
                for i, row in enumerate(self.weights)
                for j, weight in enumerate(row)
            ],
        )

    def _repr_html_(self) -> str:
        """The weights as an HTML table: a row for each target unit, a column for each source unit."""
        head = "".join(f"<th>{escape(unit)}</th>" for unit in self.source)
        rows = "".join(
            f"<tr><th>{escape(unit)}</th>"
            + "".join(
                f'<td style="background: rgba(27, 108, 168, {share:.3f})">{share:.2f}</td>' for share in row
            )
            + "</tr>"
            for unit, row in zip(self.target, self.weights, strict=True)
        )
        return f"<table><tr><th></th>{head}</tr>{rows}</table>"


def attend(run: "TorchRun", line: str, target: str = "") -> Attention:
    """Compute the attention of a run's first model in a translation of a line: `target` if given, else the
    run's own. ConfigError for a model without attention, DataError for an empty line."""
    import torch

    from nmt.runs.run import TranslationRequest

    member = run.members[0]
    source = member.source.units(line)
    if not source:
        raise DataError("an empty sentence has no words to attend to; give a sentence with words")
    if not member.model.attends:
        raise ConfigError(f"{member.directory}: has no attention; train with model.attention")
    if target:
        ids = run.target_ids(target)
    else:
        ids = run.search(TranslationRequest([line]), BeamConfig())[0][0].words
    with torch.no_grad():
        state, words, rows = member.model.start([member.source_words.encode(source)]), None, []
        for word in [*ids, EOS]:
            _, state = member.model.step(state, words)
            weights = member.model.attention(state)
            assert weights is not None
            rows.append(weights[0].double().cpu().numpy())
            words = torch.tensor([word], device=member.model.device)
    units = member.target.units(target) if target else member.target_words.decode(ids)
    return Attention([*source, END], [*units, END], np.stack(rows))


def heat_map(
    weights: NDArray[np.floating],
    columns: Sequence[str],
    rows: Sequence[str],
    title: str,
    paths: Sequence[Path],
) -> None:
    """Draw weights (rows, columns) from white (0) to blue (1), with the labels `rows` on the left and
    `columns` above and the title below, and write the figure to `paths`. UserError for a path that cannot be
    written, and where matplotlib is not installed."""
    figure, axes = pyplot().subplots(
        figsize=(max(3.0, 0.42 * len(columns) + 1.6), max(2.4, 0.34 * len(rows) + 1.4)), layout="constrained"
    )
    axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.xaxis.tick_top()
    axes.set_xticks(
        range(len(columns)), [label_text(word) for word in columns], rotation=60, ha="left", fontsize=8
    )
    axes.set_yticks(range(len(rows)), [label_text(word) for word in rows], fontsize=8)
    if title:
        axes.set_xlabel(label_text(title), fontsize=9)
    save_figure(figure, paths)


class AttentionAnalysis:
    help = "The source words that each word of a translation attends to: a heat map."

    def add_options(self, parser: Parser) -> None:
        add_line(parser)
        parser.add_argument(
            "--target", default="", metavar="TEXT", help="its translation; default: the run's own"
        )

    def run(self, args: argparse.Namespace) -> Findings:
        line = read_line(args)
        run = load_run(args, args.run).for_text(args.tokenized)
        attention = attend(run, line, args.target)
        return Findings(
            table=attention.table(),
            summary=[" ".join(attention.target[:-1])],
            draw=lambda paths: heat_map(
                attention.weights, attention.source, attention.target, run.name, paths
            ),
        )


# ---- soft parse --------------------------------------------------------------------------------------------
# A sentence of T words has T - 1 levels of nodes; node j of level t covers the words j to j + t. The three
# weights of a node sum to 1: the shares of a new combination of both children, of a copy of the left child,
# and of a copy of the right child.


MIN_WEIGHT = 0.1  # edges of smaller weights are not drawn
STEP, ROW, MARGIN = 62.0, 44.0, 40.0  # pixels: between words, between levels, around
FONT = 14
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
    position: int
    child: int  # position in the level below
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
    edges = []
    for node in nodes:
        for kind, weight, children in (
            ("new", node.new, (0, 1)),
            ("left", node.left, (0,)),
            ("right", node.right, (1,)),
        ):
            if weight > MIN_WEIGHT:
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
    """Build a table with one row per node and the words that it covers."""
    columns = {"level": "", "first": "", "last": "", "new": ".6f", "left": ".6f", "right": ".6f", "words": ""}
    covered = (" ".join(units[node.first : node.last + 1]) for node in nodes)
    return ResultTable(
        columns, [[*values, text] for values, text in zip(field_values(nodes), covered, strict=True)]
    )


def draw_parse(
    units: Sequence[str], nodes: Sequence[MergeNode], translations: Sequence[tuple[str, float]]
) -> str:
    """Draw the triangle of nodes as SVG, root on top, with darker edges for larger weights; see
    `visible_edges`. `translations`, (text, natural log p) each, are written below the triangle with their
    -log p."""
    T, words = len(units), [escape(printable(unit)) for unit in units]
    texts = [f"{-log_prob:.2f}   {escape(printable(text))}" for text, log_prob in translations]
    width, height = 2 * MARGIN + STEP * max(T - 1, 6), 2 * MARGIN + ROW * (T - 1) + 24
    lines = [
        f'<line {line_ends(edge, T)} stroke="{COLORS[edge.kind]}" stroke-width="{4 * edge.weight:.2f}" '
        f'stroke-opacity="{edge.weight:.3f}"/>'
        for edge in visible_edges(nodes)
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
        return parse_table(self.units, self.nodes)

    def draw(self, translations: Sequence[tuple[str, float]] = ()) -> str:
        """The triangle as SVG, with translations and their -log p below; see `draw_parse`."""
        return draw_parse(self.units, self.nodes, translations)

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
