"""The figures of analyses, drawn by matplotlib (extra `plots`)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nmt.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from nmt.analysis.buckets import Bucket
    from nmt.analysis.embeddings import Region

COLORS = {"source": "#1b6ca8", "reference": "#d1495b", "both": "#3c3c3c"}
CYCLE = ["#1b6ca8", "#d1495b", "#3c3c3c", "#e9a03b", "#4f9d69", "#8d5a97", "#7fb7d9", "#9a9a9a"]
MAX_LABEL = 200  # characters
LABELS = {"both": "the longer of both", "source": "source length", "reference": "reference length"}


def pyplot() -> ModuleType:
    """matplotlib.pyplot, set up to draw into files. UserError where matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError as error:
        raise UserError(
            "figures need matplotlib: pip install 'nmt-smt[plots]', or take the TSV file"
        ) from error
    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "nmt"  # same data, same file
    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text
    from matplotlib import pyplot as plt
    from matplotlib.rcsetup import cycler

    matplotlib.rcParams["axes.prop_cycle"] = cycler(color=CYCLE)
    return plt


def save(figure: "Figure", path: Path) -> None:
    """Write a figure as PNG or SVG, by the name, without a date inside; a failure leaves no file behind."""
    beside = path.with_name(f".part-{path.name}")
    try:
        figure.savefig(
            beside, dpi=120, bbox_inches="tight", metadata={"Date": None} if path.suffix == ".svg" else None
        )
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise UserError(f"{path}: cannot write: {error.strerror or error}") from error


def finish(figure: "Figure", paths: Sequence[Path]) -> None:
    """Write a figure under each name, and close it."""
    for path in paths:
        save(figure, path)
    pyplot().close(figure)


def plain(axes: "Axes", grid: bool = True) -> None:
    """No frame above and to the right."""
    if grid:
        axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def plain_text(text: str) -> str:
    """A text as matplotlib shows it: a dollar sign starts no formula; see `printable`."""
    return printable(text).replace("$", r"\$")


def printable(text: str) -> str:
    """A text for a label: control characters are escaped, long texts cut."""
    cut = text if len(text) <= MAX_LABEL else f"{text[:MAX_LABEL]}..."
    return "".join(one if one.isprintable() or one == "\n" else ascii(one)[1:-1] for one in cut)


def bucket_curves(
    curves: Mapping[str, "Sequence[Bucket]"],
    labels: Mapping[str, str],
    x_label: str,
    title: str,
    paths: Sequence[Path],
) -> None:
    """BLEU of each curve's buckets; below, the number of sentences of each point.

    `labels` are the curves' own names unless given.
    """
    figure, (upper, lower) = pyplot().subplots(
        2, 1, figsize=(7, 5.5), sharex=True, height_ratios=[3, 1], layout="constrained"
    )
    for number, (name, buckets) in enumerate(curves.items()):
        keys, color = [bucket.key for bucket in buckets], COLORS.get(name, CYCLE[number % len(CYCLE)])
        upper.plot(
            keys,
            [bucket.bleu for bucket in buckets],
            label=plain_text(labels.get(name, name)),
            color=color,
            linewidth=1.8,
        )
        lower.plot(keys, [bucket.sentences for bucket in buckets], color=color, linewidth=1.2)
    upper.set_ylabel("BLEU")
    upper.set_ylim(bottom=0)
    upper.set_title(plain_text(title), fontsize=10)
    upper.legend(frameon=False)
    lower.set_ylabel("n")
    lower.set_ylim(bottom=0)
    lower.set_xlabel(x_label)
    plain(upper)
    plain(lower)
    finish(figure, paths)


def scatter(
    paths: Sequence[Path], x: Sequence[float], y: Sequence[float], x_label: str, y_label: str, title: str
) -> None:
    """One point per pair, with the diagonal on which both agree (Fig. 4.3)."""
    figure, axes = pyplot().subplots(figsize=(5.5, 5), layout="constrained")
    axes.plot(x, y, ".", markersize=2, alpha=0.35, color=COLORS["source"], rasterized=True)
    low, high = min([*x, *y, -1.0]), max([*x, *y, 0.0])
    axes.plot([low, high], [low, high], color=COLORS["both"], linewidth=0.8)
    axes.set_xlabel(plain_text(x_label))
    axes.set_ylabel(plain_text(y_label))
    axes.set_title(plain_text(f"{title} ({len(x):,} pairs)"), fontsize=10)
    plain(axes)
    finish(figure, paths)


def bars(
    groups: Sequence[str],
    series: Mapping[str, Sequence[float]],
    errors: Mapping[str, Sequence[float]],
    y_label: str,
    title: str,
    paths: Sequence[Path],
) -> None:
    """For each group one bar per series; `errors` are half-widths of intervals, by series."""
    figure, axes = pyplot().subplots(
        figsize=(max(5.0, 1.1 * len(groups) * max(1, len(series)) ** 0.6), 3.8), layout="constrained"
    )
    width = 0.8 / max(1, len(series))
    for number, (name, values) in enumerate(series.items()):
        places = np.arange(len(groups)) - 0.4 + width * (number + 0.5)
        drawn = axes.bar(
            places,
            values,
            width * 0.92,
            yerr=errors.get(name),
            capsize=3,
            label=plain_text(name),
            color=CYCLE[number % len(CYCLE)],
        )
        axes.bar_label(drawn, fmt="%.1f", fontsize=7, padding=2)
    axes.set_xticks(range(len(groups)), [plain_text(group) for group in groups], fontsize=8)
    axes.set_ylabel(y_label)
    axes.set_title(plain_text(title), fontsize=10)
    if len(series) > 1:
        axes.legend(frameon=False, fontsize=8)
    axes.margins(y=0.12)
    plain(axes, grid=False)
    finish(figure, paths)


def points_by_length(
    points: Mapping[str, tuple[Sequence[int], Sequence[float]]],
    marked: Mapping[str, tuple[Sequence[int], Sequence[float]]],
    paths: Sequence[Path],
) -> None:
    """chrF of every sentence over its length, (lengths, scores) by system, with circles around `marked`."""
    figure, axes = pyplot().subplots(figsize=(6.5, 3.8), layout="constrained")
    for number, (name, (x, y)) in enumerate(points.items()):
        axes.plot(
            x, y, ".", markersize=3, alpha=0.3, color=CYCLE[number % len(CYCLE)], label=plain_text(name)
        )
        axes.plot(*marked[name], "o", markersize=7, fillstyle="none", color=CYCLE[number % len(CYCLE)])
    axes.set_xlabel("source length in words (circles: the sentences shown)")
    axes.set_ylabel("chrF of the sentence")
    axes.legend(frameon=False, fontsize=8)
    plain(axes)
    finish(figure, paths)


def map_of(
    labels: Sequence[str],
    points: NDArray[np.floating],
    zoomed: "Sequence[Region]",
    title: str,
    paths: Sequence[Path],
) -> None:
    """The whole map, points (n, 2), and beside it each enlarged region with its texts."""
    panels = 1 + len(zoomed)
    figure, axes = pyplot().subplots(
        1, panels, figsize=(5.2 * panels, 5.2), layout="constrained", squeeze=False
    )
    whole, *others = axes[0]
    whole.plot(points[:, 0], points[:, 1], ".", markersize=2.5, alpha=0.5, color=CYCLE[0], rasterized=True)
    whole.set_title(plain_text(f"{title} ({len(points):,})"), fontsize=10)
    for number, (region, panel) in enumerate(zip(zoomed, others, strict=True), 1):
        left, low, size = region.x - region.half, region.y - region.half, 2 * region.half
        whole.add_patch(pyplot().Rectangle((left, low), size, size, fill=False, color=CYCLE[1], linewidth=1))
        whole.annotate(str(number), (left, low + size), color=CYCLE[1], fontsize=9, va="bottom")
        panel.set_xlim(left, left + size)
        panel.set_ylim(low, low + size)
        for member in region.members:
            panel.plot(*points[member], ".", markersize=3, color=CYCLE[0])
            panel.annotate(plain_text(labels[member]), points[member], fontsize=7, clip_on=True)
        panel.set_title(f"region {number}", fontsize=10)
    for panel in axes[0]:
        panel.set_xticks([])
        panel.set_yticks([])
    finish(figure, paths)


def heat_map(
    weights: NDArray[np.floating],
    columns: Sequence[str],
    rows: Sequence[str],
    title: str,
    paths: Sequence[Path],
) -> None:
    """Weights (rows, columns) from white (0) to blue (1), columns named above."""
    figure, axes = pyplot().subplots(
        figsize=(max(3.0, 0.42 * len(columns) + 1.6), max(2.4, 0.34 * len(rows) + 1.4)), layout="constrained"
    )
    axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.xaxis.tick_top()
    axes.set_xticks(
        range(len(columns)), [plain_text(word) for word in columns], rotation=60, ha="left", fontsize=8
    )
    axes.set_yticks(range(len(rows)), [plain_text(word) for word in rows], fontsize=8)
    if title:
        axes.set_xlabel(plain_text(title), fontsize=9)
    finish(figure, paths)


def learning_curves(
    runs: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]], paths: Sequence[Path]
) -> None:
    """For each run its training cost (thin), dev cost and, where it was measured, dev BLEU over updates."""
    panels = 2 if any(curves["dev BLEU"] for curves in runs.values()) else 1  # language models have no BLEU
    figure, grid = pyplot().subplots(
        1, panels, figsize=(5 * panels, 3.8), layout="constrained", squeeze=False
    )
    left, right = grid[0][0], grid[0][-1]
    for number, (name, curves) in enumerate(runs.items()):
        color = CYCLE[number % len(CYCLE)]
        left.plot(*split_points(curves["train cost"]), color=color, linewidth=0.8, alpha=0.5)
        left.plot(
            *split_points(curves["dev cost"]), color=color, marker="o", markersize=3, label=plain_text(name)
        )
        if panels == 2:
            right.plot(
                *split_points(curves["dev BLEU"]),
                color=color,
                marker="o",
                markersize=3,
                label=plain_text(name),
            )
    left.set_ylabel("-log p a word (nats): dev; thin: training")
    if panels == 2:
        right.set_ylabel("dev BLEU")
    for axes in grid[0]:
        axes.set_xlabel("updates")
        axes.set_ylim(bottom=0)
        plain(axes)
    right.legend(frameon=False, fontsize=8)
    finish(figure, paths)


def split_points(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in pairs], [y for _, y in pairs]
