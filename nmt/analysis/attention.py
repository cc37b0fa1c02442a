"""The source words that each word of a translation attends to (Bahdanau et al. 2015, fig. 3)."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nmt.analysis.actions import Findings, ResultTable
from nmt.analysis.plots import label_text, pyplot, save_figure
from nmt.analysis.trained_runs import add_line, load_run, read_line
from nmt.cli.options import Parser
from nmt.errors import ConfigError, DataError
from nmt.search.config import BeamConfig
from nmt.text.vocab import EOS, SPECIALS

if TYPE_CHECKING:
    from nmt.runs.run import Run

END = SPECIALS[EOS]


def attention_weights(
    run: "Run", line: str, target: str = "", tokenized: bool = False
) -> tuple[list[str], list[str], NDArray[np.float64]]:
    """Compute the attention of a translation, the run's own unless `target` is given.

    Returns source units and target units, each with the end symbol, and weights (target, source) whose rows
    sum to 1. ConfigError for a model without attention, DataError for an empty line.
    """
    import torch

    member = run.members[0]
    source = member.source.units(line, tokenized)
    if not source:
        raise DataError("an empty sentence has no words to attend to")
    if not member.model.attends:
        raise ConfigError(f"{member.directory}: has no attention; train with model.attention")
    ids = (
        run.target_ids(target, tokenized)
        if target
        else run.search([line], BeamConfig(), tokenized)[0][0].words
    )
    with torch.no_grad():
        state, words, rows = member.model.start([member.source_words.encode(source)]), None, []
        for word in [*ids, EOS]:
            _, state = member.model.step(state, words)
            weights = member.model.attention(state)
            assert weights is not None
            rows.append(weights[0].double().cpu().numpy())
            words = torch.tensor([word], device=member.model.device)
    units = member.target.units(target, tokenized) if target else member.target_words.decode(ids)
    return [*source, END], [*units, END], np.stack(rows)


def attention_table(
    source: Sequence[str], target: Sequence[str], weights: NDArray[np.floating]
) -> ResultTable:
    """One row per weight: positions from 0, units, weight."""
    return ResultTable(
        {"target": "", "source": "", "target_word": "", "source_word": "", "weight": ".6f"},
        [
            [i, j, target[i], source[j], weight]
            for i, row in enumerate(weights)
            for j, weight in enumerate(row)
        ],
    )


def heat_map(
    weights: NDArray[np.floating],
    columns: Sequence[str],
    rows: Sequence[str],
    title: str,
    paths: Sequence[Path],
) -> None:
    """Draw weights (rows, columns) from white (0) to blue (1), with the names of columns above."""
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
            "--target", default="", metavar="TEXT", help="its translation; else the run's own"
        )

    def run(self, args: argparse.Namespace) -> Findings:
        line = read_line(args)
        run = load_run(args, args.run)
        source, target, weights = attention_weights(run, line, args.target, args.tokenized)
        return Findings(
            table=attention_table(source, target, weights),
            summary=[" ".join(target[:-1])],
            draw=lambda paths: heat_map(weights, source, target, run.name, paths),
        )
