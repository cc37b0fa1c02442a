"""The action `nmt-analyze computation`."""

import argparse

from nmt.analysis.actions import Findings, add_output
from nmt.cli import options
from nmt.cli.arguments import InputPath, add_setting, parse_settings
from nmt.cli.options import Parser, add_model
from nmt.io import files
from nmt.papers.variable import analysis
from nmt.papers.variable.analysis import ComputationConfig


class Computation:
    """Report how much of its state the model computes at each unit of a text."""

    help = "How much of its state a model of variable computation updates at each unit of a text."

    def add_options(self, parser: Parser) -> None:
        add_model(parser)
        parser.add_argument("text", type=InputPath, metavar="TEXT", help="text, one sentence a line")
        parser.add_argument("--tokenized", action="store_true", help="the text is tokenized as the run's was")
        add_setting(parser, ComputationConfig, "shown")
        add_output(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        files.existing([args.text])
        options.set_up_torch(args.device, args.threads, args.matmul, args.run)
        from nmt.papers.variable.computation import computation_steps
        from nmt.runs import checkpoint

        run = checkpoint.load_lm(args.run, args.checkpoint, args.device)
        steps = list(computation_steps(run, files.read_lines(args.text), args.tokenized))
        picture = analysis.svg(steps, parse_settings(ComputationConfig, args))
        return Findings(
            table=analysis.table(steps),
            summary=analysis.summary(steps),
            draw=lambda paths: files.write_text(paths[0], picture.split("\n")),
            formats=("svg",),
        )
