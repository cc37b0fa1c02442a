"""nmt-analyze compare."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from nmt.analysis import plots, significance
from nmt.analysis.systems import read_systems
from nmt.cli.analyses import inputs
from nmt.cli.analyses.base import Findings, add_output, add_title
from nmt.cli.arguments import Input, integer
from nmt.cli.options import Parser


class Compare:
    """Paired bootstrap resampling against a baseline."""

    help = "Paired bootstrap: are systems different from a baseline? Intervals and p-values."

    def add_options(self, parser: Parser) -> None:
        inputs.add_references(parser)
        parser.add_argument(
            "--baseline",
            "-b",
            type=Input,
            required=True,
            metavar="FILE",
            help="output of the system to compare with: text, or an n-best list",
        )
        inputs.add_hypotheses(parser, "outputs of the other systems")
        inputs.add_names(parser, "names of the systems, the baseline first; paths unless given")
        parser.add_argument(
            "--samples",
            type=integer(1, 100_000),
            default=significance.SAMPLES,
            help="samples drawn from the test set",
        )
        add_output(parser)
        add_title(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        paths = [args.baseline, *args.hypothesis]
        systems = read_systems("", args.reference, paths, args.names or paths, args.bleu_tokenize)
        names = [system.name for system in systems]
        found, signatures = significance.paired_bootstrap(
            names,
            [system.hypotheses for system in systems],
            systems[0].test.references,
            args.bleu_tokenize,
            args.samples,
        )

        def draw(figures: Sequence[Path]) -> None:
            labels = [Path(row.name).name + ("" if row.p is None else f"\np = {row.p:.3f}") for row in found]
            series, errors = {"BLEU": [row.bleu for row in found]}, {"BLEU": [row.interval for row in found]}
            title = args.title or f"against {Path(names[0]).name}"
            plots.bars(labels, series, errors, "BLEU, 95% interval", title, figures)

        return Findings(significance.table(found), signatures, draw)
