"""The source words that the words of a translation attend to (Bahdanau et al. 2015, fig. 3)."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from nmt.analysis.actions import Findings, ResultTable, add_sentence, load_run, read_sentence
from nmt.analysis.plots import label_text, pyplot, save_figure
from nmt.cli.options import Parser
from nmt.errors import ConfigError, DataError
from nmt.search.config import BeamConfig
from nmt.text.vocab import EOS, SPECIALS

if TYPE_CHECKING:
    from nmt.runs.torch_run import TorchRun

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

    def plot(self, title: str, paths: Sequence[Path]) -> None:
        """Draw the weights from white (0) to blue (1), with the target units on the left, the source units
        above and the title below, and write the figure to `paths`. UserError for a path that cannot be
        written, and where matplotlib is not installed."""
        rows, columns = self.weights.shape
        figure, axes = pyplot().subplots(
            figsize=(max(3.0, 0.42 * columns + 1.6), max(2.4, 0.34 * rows + 1.4)), layout="constrained"
        )
        axes.imshow(self.weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        axes.xaxis.tick_top()
        axes.set_xticks(range(columns), map(label_text, self.source), rotation=60, ha="left", fontsize=8)
        axes.set_yticks(range(rows), map(label_text, self.target), fontsize=8)
        axes.set_xlabel(label_text(title), fontsize=9)
        save_figure(figure, paths)

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


class AttentionAnalysis:
    help = "The source words that each word of a translation attends to: a heat map."

    def add_options(self, parser: Parser) -> None:
        add_sentence(parser)
        parser.add_argument(
            "--target", default="", metavar="TEXT", help="its translation; default: the run's own"
        )

    def run(self, args: argparse.Namespace) -> Findings:
        line = read_sentence(args)
        run = load_run(args, args.run).for_text(args.tokenized)
        attention = attend(run, line, args.target)
        return Findings(
            table=attention.table(),
            summary=[" ".join(attention.target[:-1])],
            draw=lambda paths: attention.plot(run.name, paths),
        )
