"""Scores of groups of sentences of similar length, or with a similar number of hard words: the curves of
van Merriënboer 2018, fig. 6.4."""

import argparse
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmt.analysis.actions import Findings, ResultTable, add_title, field_values
from nmt.analysis.plots import COLORS, CYCLE, label_text, pyplot, remove_frame, save_figure
from nmt.analysis.systems import SystemOutput, TestSet, add_systems, load_systems, score_summary
from nmt.cli.arguments import positive
from nmt.cli.options import Parser
from nmt.text.scripts import line_length

log = logging.getLogger(__name__)

MIN_SENTENCES = 20  # fewest sentences of a point of a curve: BLEU of fewer is unreliable
WINDOW = 10  # number of lengths in a bucket, as in van Merriënboer 2018, section 6.5.1


@dataclass
class Bucket:
    """Scores of the sentences whose length or number of hard words is `first` to `last`, both included."""

    key: int  # where a figure draws them
    first: int
    last: int
    sentences: int
    bleu: float  # 0 to 100
    ratio: float  # words of the hypotheses over words of the references, as BLEU counts them
    chrf: float  # 0 to 100


Curves = dict[str, dict[str, list[Bucket]]]  # system -> source, reference, both -> buckets


def score_ranges(
    keys: Sequence[int], system: SystemOutput, ranges: Iterable[tuple[int, int, int]], least: int
) -> list[Bucket]:
    """Score the sentences of a system whose keys are in each range (key, first, last), bounds included.
    Ranges without sentences, or with fewer than `least`, are left out."""
    values, buckets = np.asarray(keys), []
    for key, first, last in ranges:
        mask = (values >= first) & (values <= last)
        count = int(mask.sum())
        if count >= max(1, least):
            bleu, chrf = system.bleu(mask).score, system.chrf(mask).score
            buckets.append(Bucket(key, first, last, count, bleu, system.ratio(mask), chrf))
    return buckets


def sliding_buckets(keys: Sequence[int], system: SystemOutput, window: int, least: int = 1) -> list[Bucket]:
    """Score a sliding window: for each key from the smallest to the largest, the sentences with one of the
    `window` keys from key - window // 2 on.

    `keys` has one number per sentence. Buckets of fewer than `least` sentences are left out.
    """
    centers = range(min(keys, default=0), max(keys, default=-1) + 1)
    firsts = [key - window // 2 for key in centers]
    ranges = [(key, first, first + window - 1) for key, first in zip(centers, firsts, strict=True)]
    return score_ranges(keys, system, ranges, least)


def cumulative_buckets(keys: Sequence[int], system: SystemOutput, least: int = 1) -> list[Bucket]:
    """Score all sentences with a key of at most 0, 1, 2 ... (van Merriënboer 2018, fig. 6.4c).

    Buckets of fewer than `least` sentences are left out.
    """
    return score_ranges(keys, system, [(key, 0, key) for key in range(max(keys, default=-1) + 1)], least)


def by_side(source: list[int], reference: list[int]) -> dict[str, list[int]]:
    """Label counts, one per sentence, by side: source, reference, and the larger of the two ("both", which
    van Merriënboer 2018, fig. 6.4, plots without defining it).
    """
    return {"source": source, "reference": reference, "both": list(map(max, source, reference))}


def by_count(systems: Sequence[SystemOutput], counts: Mapping[str, Sequence[int]], least: int) -> Curves:
    """Score, for each system, the sentences with a count of at most 0, 1, 2 ...

    `counts` has, for each side, one number per sentence.
    """
    return {
        system.name: {side: cumulative_buckets(values, system, least) for side, values in counts.items()}
        for system in systems
    }


def lengths(test: TestSet) -> dict[str, list[int]]:
    """The number of words (`line_length`) of each source, of its first reference, and of the longer one; see
    `by_side`."""
    return by_side(list(map(line_length, test.sources)), list(map(line_length, test.references[0])))


def by_length(systems: Sequence[SystemOutput], window: int = WINDOW, least: int = MIN_SENTENCES) -> Curves:
    """BLEU and chrF by sentence length: system -> source, reference, both -> buckets of `window` lengths.

    Buckets of fewer than `least` sentences are left out. `systems` share one test set.
    """
    keys = lengths(systems[0].test)
    return {
        system.name: {side: sliding_buckets(values, system, window, least) for side, values in keys.items()}
        for system in systems
    }


def curve_table(curves: Curves, key: str) -> ResultTable:
    """Build a table with one row per bucket; `key` names the column of the keys."""
    columns = {"by": "", key: "", "first": "", "last": "", "sentences": ""}
    columns |= {"bleu": ".4f", "length_ratio": ".4f", "chrf": ".4f", "system": ""}
    return ResultTable(
        columns,
        [
            [side, *values, system]
            for system, sides in curves.items()
            for side, buckets in sides.items()
            for values in field_values(buckets)
        ],
    )


def plot_buckets(
    curves: Mapping[str, Sequence[Bucket]],
    labels: Mapping[str, str],
    x_label: str,
    title: str,
    paths: Sequence[Path],
) -> None:
    """Draw BLEU of each curve's buckets and, below, the number of sentences in each bucket, and write the
    figure to `paths`.

    `labels`: by curve; a curve without one is labeled by its name.
    """
    figure, (upper, lower) = pyplot().subplots(
        2, 1, figsize=(7, 5.5), sharex=True, height_ratios=[3, 1], layout="constrained"
    )
    for number, (name, buckets) in enumerate(curves.items()):
        keys, color = [bucket.key for bucket in buckets], COLORS.get(name, CYCLE[number % len(CYCLE)])
        upper.plot(
            keys,
            [bucket.bleu for bucket in buckets],
            label=label_text(labels.get(name, name)),
            color=color,
            linewidth=1.8,
        )
        lower.plot(keys, [bucket.sentences for bucket in buckets], color=color, linewidth=1.2)
    upper.set_ylabel("BLEU")
    upper.set_ylim(bottom=0)
    upper.set_title(label_text(title), fontsize=10)
    upper.legend(frameon=False)
    lower.set_ylabel("n")
    lower.set_ylim(bottom=0)
    lower.set_xlabel(x_label)
    remove_frame(upper)
    remove_frame(lower)
    save_figure(figure, paths)


# ---- action ------------------------------------------------------------------------------------------------


def add_curves(parser: Parser, by_help: str) -> None:
    """Add the options for curves and their figure. `by_help`: the help of --by."""
    parser.add_argument("--by", choices=("source", "reference", "both"), default="source", help=by_help)
    parser.add_argument(
        "--least", type=positive, default=MIN_SENTENCES, help="leave out points with fewer sentences"
    )
    add_title(parser)


def curve_findings(
    args: argparse.Namespace,
    systems: Sequence[SystemOutput],
    curves: Curves,
    key: str,
    x_label: str,
    both: str,
) -> Findings:
    """Build the table of the curves, with their figure.

    The figure of one system has curves by source, reference and both; that of several systems has one curve
    each, by the side that --by names. `key` names the column of the keys; `both` describes the side with the
    larger count. Logs a warning if there are no points.
    """
    if not any(buckets for sides in curves.values() for buckets in sides.values()):
        log.warning("no point has %d sentences; lower --least", args.least)

    def draw(paths: Sequence[Path]) -> None:
        first = systems[0]
        if len(systems) == 1:
            title = args.title or f"{first.name}   {first.bleu()}"
            plot_buckets(curves[first.name], {"both": both}, x_label, title, paths)
        else:
            by_name = {name: sides[args.by] for name, sides in curves.items()}
            side = both if args.by == "both" else args.by
            plot_buckets(by_name, {}, f"{x_label}, {side}", args.title or first.bleu().signature, paths)

    return Findings(curve_table(curves, key), score_summary(systems), draw)


class LengthAnalysis:
    help = "BLEU and chrF by length of source, reference and the longer of both."

    def add_options(self, parser: Parser) -> None:
        add_systems(parser)
        parser.add_argument(
            "--window", type=positive, default=WINDOW, help="number of neighboring lengths scored together"
        )
        add_curves(parser, "which length the figure of several systems shows")

    def run(self, args: argparse.Namespace) -> Findings:
        systems = load_systems(args)
        curves = by_length(systems, args.window, args.least)
        x_label = "sentence length in words (each point: a window of lengths)"
        return curve_findings(args, systems, curves, "length", x_label, "the longer side")
