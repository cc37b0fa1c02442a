"""nmt-analyze parse."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from nmt import files
from nmt.analysis import grconv_parse
from nmt.cli.analyses import inputs
from nmt.cli.analyses.base import Findings
from nmt.cli.arguments import integer
from nmt.cli.options import Parser
from nmt.errors import ConfigError, DataError


class Parse:
    """The soft parse of a sentence."""

    help = "The soft parse of a gated recursive convolution (Fig. 6.6), with its best translations."

    def add_options(self, parser: Parser) -> None:
        inputs.add_line(parser)
        parser.add_argument(
            "--translations",
            type=integer(0, 1000),
            default=10,
            metavar="N",
            help="best translations shown below, with their -log p",
        )

    def run(self, args: argparse.Namespace) -> Findings:
        line = inputs.read_line(args)
        run = inputs.load_run(args, args.run)
        from nmt.models.encoders import GrConvEncoder
        from nmt.search.config import BeamConfig

        member = run.members[0]
        units = member.source.units(line, args.tokenized)
        if not isinstance(member.model.encoder, GrConvEncoder):
            raise ConfigError(
                f"{args.run}: its encoder is not a grconv, so it has no parse; train with "
                "model.encoder=grconv"
            )
        if len(units) < 2:
            raise DataError(f"{line[:40]!r}: a parse needs two words or more")
        gates = member.model.encoder.gates([member.source_words.encode(units)])[0].cpu().numpy()
        nodes = grconv_parse.nodes(gates)
        config = BeamConfig(max(1, args.translations))
        found = run.n_best([line], config, args.tokenized)[0][: args.translations]
        best = [(" ".join(translation.words), translation.log_prob) for translation in found]

        def draw(paths: Sequence[Path]) -> None:
            files.write_text(paths[0], grconv_parse.svg(units, nodes, best).split("\n"))

        summary = [f"{-log_prob:.2f}  {text}" for text, log_prob in best]
        return Findings(grconv_parse.table(units, nodes), summary, draw, formats=("svg",))
