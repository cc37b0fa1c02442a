"""Learning curves of runs, read from the tables that training writes."""

import argparse
import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.analysis.actions import Findings, ResultTable, add_output
from nmt.analysis.plots import CYCLE, label_text, pyplot, remove_frame, save_figure, split_points
from nmt.analysis.systems import add_names, check_names, unique_names
from nmt.cli.arguments import InputPath
from nmt.cli.options import Parser
from nmt.errors import DataError, UserError
from nmt.io import files

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nmt.runs.run import Run

LearningCurve = list[tuple[float, float]]  # (update, value)


def read_curves(run: Path) -> dict[str, LearningCurve]:
    """Read a run's training cost, dev cost and dev BLEU by update, and dev chrF if the run measured it. Costs
    are -log p per word, natural.

    Updates without a value are left out. DataError for a file that is missing, or not a training log.
    """
    curves = {
        "train cost": read_column(run / "train.tsv", "cost"),
        "dev cost": read_column(run / "dev.tsv", "cost"),
        "dev BLEU": read_column(run / "dev.tsv", "bleu"),
    }
    chrf = read_column(run / "dev.tsv", "chrf")
    return {**curves, "dev chrF": chrf} if chrf else curves


def read_column(path: Path, name: str) -> LearningCurve:
    """Read a column of a training log as (update, value), without nan.

    DataError for a file that is missing or has no such column, and for a row with anything but numbers.
    """
    lines = files.read_lines(path)
    header = next(lines, "").split("\t")
    if not {"step", name} <= set(header):
        raise DataError(f"{path}:1: no columns 'step' and '{name}'; is this a log of nmt-train?")
    curve = []
    for number, line in enumerate(lines, 2):
        fields = line.split("\t")
        try:
            step, value = float(fields[header.index("step")]), float(fields[header.index(name)])
        except (ValueError, IndexError) as error:
            raise DataError(
                f"{path}:{number}: expected {len(header)} columns of numbers; was the log changed by hand?"
            ) from error
        if not math.isnan(value):  # nan: BLEU was not measured
            curve.append((step, value))
    return curve


def curves_figure(runs: Mapping[str, Mapping[str, LearningCurve]]) -> "Figure":
    """Draw each run's training cost (thin), dev cost and, where it was measured, dev BLEU over updates."""
    panels = 2 if any(curves["dev BLEU"] for curves in runs.values()) else 1  # language models have no BLEU
    figure, grid = pyplot().subplots(
        1, panels, figsize=(5 * panels, 3.8), layout="constrained", squeeze=False
    )
    left, right = grid[0][0], grid[0][-1]
    for number, (name, curves) in enumerate(runs.items()):
        color, label = CYCLE[number % len(CYCLE)], label_text(name)
        left.plot(*split_points(curves["train cost"]), color=color, linewidth=0.8, alpha=0.5)
        left.plot(*split_points(curves["dev cost"]), color=color, marker="o", markersize=3, label=label)
        if panels == 2:
            right.plot(*split_points(curves["dev BLEU"]), color=color, marker="o", markersize=3, label=label)
    left.set_ylabel("-log p per word (nats): dev; thin lines: training")
    if panels == 2:
        right.set_ylabel("dev BLEU")
    for axes in grid[0]:
        axes.set_xlabel("updates")
        axes.set_ylim(bottom=0)
        remove_frame(axes)
    right.legend(frameon=False, fontsize=8)
    drawn: Figure = figure
    return drawn


@dataclass
class TrainingHistory:
    """The learning curves of runs: `curves[run][name]` are the points (update, value) of `train cost`, `dev
    cost`, `dev BLEU` and, where it was measured, `dev chrF`. A notebook shows them as a figure."""

    curves: dict[str, dict[str, LearningCurve]]

    def table(self) -> ResultTable:
        """All points, a row each: run, curve, update, value."""
        rows = [
            [run, name, update, value]
            for run, curves in self.curves.items()
            for name, points in curves.items()
            for update, value in points
        ]
        return ResultTable({"run": "", "curve": "", "update": ".0f", "value": ".6f"}, rows)

    def plot(self, *paths: str | Path) -> None:
        """Write the figure to each path, as PNG or SVG by its suffix. UserError if that fails, and where
        matplotlib is not installed."""
        save_figure(curves_figure(self.curves), list(map(Path, paths)))

    def _repr_html_(self) -> str:
        """The figure as SVG; without matplotlib the table."""
        try:
            figure = curves_figure(self.curves)
        except UserError:
            rows = ("".join(f"<td>{escape(field)}</td>" for field in line.split("\t"))
                    for line in self.table().lines())  # fmt: skip
            return "<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"
        drawing = StringIO()
        figure.savefig(drawing, format="svg", metadata={"Date": None})
        save_figure(figure, [])
        return drawing.getvalue()[drawing.getvalue().index("<svg") :]


def history(*runs: "Run | str | Path") -> TrainingHistory:
    """Read the learning curves of runs, given as a loaded run or its directory:
    `history("runs/first").plot("curves.svg")`. DataError as from `read_curves`."""
    paths = [str(run if isinstance(run, str | Path) else run.members[0].directory) for run in runs]
    return TrainingHistory(
        {name: read_curves(Path(path)) for name, path in zip(unique_names(paths), paths, strict=True)}
    )


class CurvesAnalysis:
    help = "Learning curves of runs: training cost, dev cost, dev BLEU."

    def add_options(self, parser: Parser) -> None:
        parser.add_argument("runs", nargs="+", type=InputPath, metavar="RUN_DIR", help="runs of nmt-train")
        add_names(parser, "names of the runs; default: paths")
        add_output(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        check_names(args.names, args.runs, "runs")
        names = args.names or args.runs
        runs = TrainingHistory(
            {name: read_curves(Path(path)) for name, path in zip(names, args.runs, strict=True)}
        )
        summary = []
        for name, curves in runs.curves.items():
            if curves["dev BLEU"]:
                update, bleu = max(curves["dev BLEU"], key=lambda point: point[1])
                summary.append(f"{name}: best dev BLEU {bleu:.2f} at update {update:.0f}")
        return Findings(runs.table(), summary, lambda paths: runs.plot(*paths))
