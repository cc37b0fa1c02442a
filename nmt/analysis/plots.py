"""Figures drawn by matplotlib (extra `plots`): their style, and the kinds that several analyses draw."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from nmt.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


COLORS = {"source": "#1b6ca8", "reference": "#d1495b", "both": "#3c3c3c"}
CYCLE = ["#1b6ca8", "#d1495b", "#3c3c3c", "#e9a03b", "#4f9d69", "#8d5a97", "#7fb7d9", "#9a9a9a"]
MAX_LABEL = 200  # characters


def pyplot() -> ModuleType:
    """Import matplotlib.pyplot, set up to draw into files. UserError where matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError as error:
        raise UserError(
            "figures need matplotlib: pip install 'nmt-smt[plots]', or take the TSV file"
        ) from error
    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "nmt"  # the same data give the same file
    matplotlib.rcParams["svg.fonttype"] = "none"  # write text as text, not as paths
    from matplotlib import pyplot as plt
    from matplotlib.rcsetup import cycler

    matplotlib.rcParams["axes.prop_cycle"] = cycler(color=CYCLE)
    return plt


def save_figure(figure: "Figure", paths: Sequence[Path]) -> None:
    """Write a figure to each path, as PNG or SVG by its suffix, without a date, and close it. UserError for
    another suffix, and for a path that cannot be written, where no file is left."""
    for path in paths:
        if path.suffix not in (".png", ".svg"):
            raise UserError(f"{path}: expected the name of a figure to end in .png or .svg; rename it")
        part = path.with_name(f".part-{path.name}")
        try:
            figure.savefig(
                part, dpi=120, bbox_inches="tight", metadata={"Date": None} if path.suffix == ".svg" else None
            )
            part.replace(path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise UserError(f"{path}: cannot write: {error.strerror or error}") from error
    pyplot().close(figure)


def remove_frame(axes: "Axes", grid: bool = True) -> None:
    """Remove the top and right sides of the frame. `grid`: draw a grid."""
    if grid:
        axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def label_text(text: str) -> str:
    """Make a text `printable`, and escape dollar signs, with which matplotlib starts formulas."""
    return printable(text).replace("$", r"\$")


def printable(text: str) -> str:
    """Escape control characters except line breaks, and shorten a text of more than MAX_LABEL characters."""
    shortened = text if len(text) <= MAX_LABEL else f"{text[:MAX_LABEL]}..."
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in shortened)


def scatter(
    paths: Sequence[Path], x: Sequence[float], y: Sequence[float], x_label: str, y_label: str, title: str
) -> None:
    """Draw a point per pair, and the diagonal on which x = y (van Merriënboer 2018, fig. 4.3), and write the
    figure to `paths`. Pairs with an infinite number or nan are left out."""
    points = [(a, b) for a, b in zip(x, y, strict=True) if math.isfinite(a) and math.isfinite(b)]
    x, y = split_points(points)
    figure, axes = pyplot().subplots(figsize=(5.5, 5), layout="constrained")
    axes.plot(x, y, ".", markersize=2, alpha=0.35, color=COLORS["source"], rasterized=True)
    low, high = min([*x, *y, -1.0]), max([*x, *y, 0.0])
    axes.plot([low, high], [low, high], color=COLORS["both"], linewidth=0.8)
    axes.set_xlabel(label_text(x_label))
    axes.set_ylabel(label_text(y_label))
    axes.set_title(label_text(f"{title} ({len(x):,} pairs)"), fontsize=10)
    remove_frame(axes)
    save_figure(figure, paths)


def bars(
    groups: Sequence[str],
    series: Mapping[str, Sequence[float]],
    errors: Mapping[str, Sequence[float]],
    y_label: str,
    title: str,
    paths: Sequence[Path],
) -> None:
    """Draw, for each group, a bar per series, and write the figure to `paths`. `series`: name -> the height
    of its bar in each group; `errors`: name -> half-widths of intervals, for the series that have them."""
    figure, axes = pyplot().subplots(
        figsize=(max(5.0, 1.1 * len(groups) * max(1, len(series)) ** 0.6), 3.8), layout="constrained"
    )
    width = 0.8 / max(1, len(series))
    for number, (name, values) in enumerate(series.items()):
        centers = np.arange(len(groups)) - 0.4 + width * (number + 0.5)
        container = axes.bar(
            centers,
            values,
            width * 0.92,
            yerr=errors.get(name),
            capsize=3,
            label=label_text(name),
            color=CYCLE[number % len(CYCLE)],
        )
        axes.bar_label(container, fmt="%.1f", fontsize=7, padding=2)
    axes.set_xticks(range(len(groups)), [label_text(group) for group in groups], fontsize=8)
    axes.set_ylabel(y_label)
    axes.set_title(label_text(title), fontsize=10)
    if len(series) > 1:
        axes.legend(frameon=False, fontsize=8)
    axes.margins(y=0.12)
    remove_frame(axes, grid=False)
    save_figure(figure, paths)


def split_points(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in pairs], [y for _, y in pairs]
