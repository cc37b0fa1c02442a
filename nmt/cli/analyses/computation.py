"""The analysis `computation`: how much a language model of cells vcrnn or vcgru computes at each unit."""

import argparse

from nmt import files
from nmt.analysis import computation
from nmt.analysis.computation import ComputationConfig
from nmt.cli import options
from nmt.cli.analyses.base import Findings, add_output
from nmt.cli.arguments import Input, add_setting, settings_of
from nmt.cli.options import Parser, add_model


class Computation:
    """What is computed at each unit of a text."""

    help = "How much of its state a model of variable computation updates at each unit of a text."

    def add_options(self, parser: Parser) -> None:
        add_model(parser)
        parser.add_argument("text", type=Input, metavar="TEXT", help="text, one sentence a line")
        parser.add_argument("--tokenized", action="store_true", help="the text is tokenized as the run's was")
        add_setting(parser, ComputationConfig, "shown")
        add_output(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        files.existing([args.text])
        options.set_up_torch(args.device, args.threads, args.matmul, args.run)
        from nmt.analysis.computation_steps import steps
        from nmt.runs import checkpoint

        run = checkpoint.load_lm(args.run, args.checkpoint, args.device)
        found = list(steps(run, files.read_lines(args.text), args.tokenized))
        picture = computation.svg(found, settings_of(ComputationConfig, args))
        return Findings(
            table=computation.table(found),
            summary=computation.summary(found),
            draw=lambda paths: files.write_text(paths[0], picture.split("\n")),
            formats=("svg",),
        )
