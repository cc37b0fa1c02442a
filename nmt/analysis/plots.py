"""Figures of the analyses, with matplotlib (extra `plots`)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.analysis.buckets import Bucket
from nmt.errors import UserError

COLORS = {"source": "#1b6ca8", "reference": "#d1495b", "both": "#3c3c3c"}


def load() -> Any:
    """matplotlib without a screen. UserError when it is not installed."""
    try:
        import matplotlib
    except ImportError as error:
        raise UserError("figures need matplotlib: pip install 'nmt-smt[plots]', or take the TSV file") from error
    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "nmt"  # same data, same file
    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text
    from matplotlib import pyplot

    return pyplot


def save(figure: Any, path: Path) -> None:
    """PNG or SVG by the name; no date inside."""
    beside = path.with_name(f".part-{path.name}")
    try:
        figure.savefig(beside, dpi=120, bbox_inches="tight", metadata={"Date": None} if path.suffix == ".svg" else None)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise UserError(f"{path}: cannot write: {error.strerror or error}") from error


def by_length(curves: Mapping[str, Sequence[Bucket]], title: str, paths: Sequence[Path]) -> None:
    """BLEU over length for each way of counting it; below, how many sentences each point stands on."""
    pyplot = load()
    figure, (upper, lower) = pyplot.subplots(2, 1, figsize=(7, 5.5), sharex=True, height_ratios=[3, 1], layout="constrained")
    for name, buckets in curves.items():
        keys = [bucket.key for bucket in buckets]
        label = {"both": "the longer of both"}.get(name, f"{name} length")
        upper.plot(keys, [bucket.bleu for bucket in buckets], label=label, color=COLORS.get(name), linewidth=1.8)
        lower.plot(keys, [bucket.sentences for bucket in buckets], color=COLORS.get(name), linewidth=1.2)
    upper.set_ylabel("BLEU")
    upper.set_ylim(bottom=0)
    upper.set_title(title, fontsize=10)
    upper.legend(frameon=False)
    lower.set_ylabel("n")
    lower.set_ylim(bottom=0)
    lower.set_xlabel("sentence length in words (each point: a window of lengths)")
    for axes in (upper, lower):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    for path in paths:
        save(figure, path)
    pyplot.close(figure)


def scatter(path: Path, x: Sequence[float], y: Sequence[float], x_label: str, y_label: str, title: str) -> None:
    """One point a pair, with the diagonal on which both agree (figure 4.3)."""
    pyplot = load()
    figure, axes = pyplot.subplots(figsize=(5.5, 5), layout="constrained")
    axes.plot(x, y, ".", markersize=2, alpha=0.35, color=COLORS["source"], rasterized=True)
    low, high = min([*x, *y, -1.0]), max([*x, *y, 0.0])
    axes.plot([low, high], [low, high], color=COLORS["both"], linewidth=0.8)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.set_title(f"{title} ({len(x):,} pairs)", fontsize=10)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, path)
    pyplot.close(figure)
