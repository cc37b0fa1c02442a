"""How much of its state a language model of cells vcrnn or vcgru computes at each unit of a text: table,
summary and figure (Jernite 2018, figures 2.5 and 2.7)."""

import argparse
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from nmt.analysis.actions import Findings, ResultTable, add_output, field_values
from nmt.analysis.plots import printable
from nmt.cli import options
from nmt.cli.arguments import InputPath, add_setting, parse_settings
from nmt.cli.options import Parser, add_model
from nmt.config.settings import number
from nmt.io import files

if TYPE_CHECKING:  # it loads torch
    from nmt.papers.variable.computation import ComputationStep

WIDE = 80  # units in a row of the picture, at most
# In the figure, in pixels: width of a letter, height of a row and of a curve, margin.
LETTER, ROW, HIGH, MARGIN = 9.0, 64.0, 30.0, 12.0
COLOR = "#1b6ca8"


@dataclass
class ComputationConfig:
    """Options of the figure of computation."""

    shown: int = number(12, least=1, help="lines of the text in the figure")


def table(steps: Sequence["ComputationStep"]) -> ResultTable:
    """Build a table with a row for each unit and layer."""
    columns = {"line": "", "position": "", "unit": "", "layer": "", "m": ".4f", "dimensions": "",
               "equivalent": ".1f"}  # fmt: skip
    return ResultTable(columns, field_values(steps))


def equivalent(steps: Sequence["ComputationStep"]) -> float:
    """The units of an Elman layer that does as many operations on average: √ of the mean square."""
    return math.sqrt(mean(step.equivalent**2 for step in steps))


def summary(steps: Sequence["ComputationStep"]) -> list[str]:
    """Summarize steps as lines to print. For each layer: the mean of m (the share of its state that it
    computes, 0 to 1), and the size of an Elman layer with as many operations. For the first layer: the 8
    units of text with the highest and the 8 with the lowest mean m."""
    lines = []
    for layer in sorted({step.layer for step in steps}):
        own = [step for step in steps if step.layer == layer]
        m, dimensions = mean(step.m for step in own), mean(step.dimensions for step in own)
        lines.append(
            f"layer {layer}: mean m {m:.3f}, {dimensions:.1f} dimensions computed; as many operations as an "
            f"Elman layer of {equivalent(own):.0f}"
        )
    by_unit = defaultdict(list)
    for step in steps:
        if step.layer == 1:
            by_unit[step.unit].append(step.m)
    ranked = sorted(by_unit, key=lambda unit: (-mean(by_unit[unit]), unit))
    for name, units in (("highest", ranked[:8]), ("lowest", ranked[::-1][:8])):
        values = ", ".join(f"{printable(unit)} {mean(by_unit[unit]):.2f}" for unit in units)
        lines.append(f"{name} mean m: {values}")
    return lines


def svg(steps: Sequence["ComputationStep"], config: ComputationConfig) -> str:
    """Draw the first `config.shown` lines of a text as SVG. Above each unit, a curve shows m of the first
    layer; the unit is darker where more is computed."""
    drawn = [step for step in steps if step.layer == 1 and step.line <= config.shown]
    rows: list[list[ComputationStep]] = []
    for step in drawn:
        if not step.position or len(rows[-1]) == WIDE:
            rows.append([])
        rows[-1].append(step)
    parts, widest = [], 0.0
    for index, row in enumerate(rows):
        x, bottom, points = MARGIN, MARGIN + ROW * index + HIGH, []
        for step in row:
            text = printable(step.unit)
            width = LETTER * (len(text) + 1)
            points.append(f"{x + width / 2:.1f},{bottom - HIGH * step.m:.1f}")
            parts.append(
                f'<g><title>{escape(text)}: m {step.m:.3f}, {step.dimensions} units</title><rect x="{x:.1f}" '
                f'y="{bottom + 2:.1f}" width="{width:.1f}" height="20" fill="{COLOR}" '
                f'fill-opacity="{0.85 * step.m:.3f}"/><text x="{x + width / 2:.1f}" y="{bottom + 16:.1f}" '
                f'text-anchor="middle">{escape(text)}</text></g>'
            )
            x += width
        widest = max(widest, x)
        parts.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{COLOR}"/>')
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{widest + MARGIN:.0f}" '
        f'height="{2 * MARGIN + ROW * len(rows):.0f}" font-family="monospace" font-size="13">'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>"])


class Computation:
    """Report how much of its state the model computes at each unit of a text."""

    help = "How much of its state a model of variable computation updates at each unit of a text."

    def add_options(self, parser: Parser) -> None:
        add_model(parser)
        parser.add_argument("text", type=InputPath, metavar="TEXT", help="text, one sentence a line")
        parser.add_argument(
            "--tokenized", action="store_true", help="the text is tokenized like the training text of the run"
        )
        add_setting(parser, ComputationConfig, "shown")
        add_output(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        files.existing([args.text])
        options.set_up_torch(args.device, args.threads, args.matmul, args.run)
        from nmt.papers.variable.computation import computation_steps
        from nmt.runs import checkpoint

        run = checkpoint.load_lm(args.run, args.checkpoint, args.device).for_text(args.tokenized)
        with files.naming_file(args.text):
            steps = list(computation_steps(run, files.read_lines(args.text)))
        picture = svg(steps, parse_settings(ComputationConfig, args))
        return Findings(
            table=table(steps),
            summary=summary(steps),
            draw=lambda paths: files.write_text(paths[0], picture.split("\n")),
            formats=("svg",),
        )
