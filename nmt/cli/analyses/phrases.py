"""nmt-analyze phrases."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from nmt import files
from nmt.analysis import plots
from nmt.analysis.phrase_choice import PhrasesConfig
from nmt.cli import options
from nmt.cli.analyses import inputs
from nmt.cli.analyses.base import Findings, add_output
from nmt.cli.arguments import Input, add_setting, settings_of
from nmt.cli.options import Parser
from nmt.errors import DataError


class Phrases:
    """Phrases as the table and the model see them."""

    help = (
        "Best targets of long phrases by table and by model, and phrases sampled from the model (Tables 4.2, "
        "4.3)."
    )

    def add_options(self, parser: Parser) -> None:
        options.add_model(parser)
        parser.add_argument(
            "--table",
            type=Input,
            required=True,
            metavar="FILE",
            help="a Moses phrase table with counts, in its usual order",
        )
        for name in ("sources", "min_words", "samples", "seed"):
            add_setting(parser, PhrasesConfig, name)
        add_output(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        files.existing([args.table])
        run = inputs.load_run(args, args.run)
        from nmt.analysis.phrases import phrases, table

        rows = phrases(run, args.table, settings_of(PhrasesConfig, args))
        if not rows:
            raise DataError(
                f"{args.table}: no source phrase of {args.min_words} words with 4 targets or more; lower "
                "--min-words"
            )

        def draw(paths: Sequence[Path]) -> None:
            known = [(row.ln_table, row.ln_model) for row in rows if row.ln_table is not None]
            x_label, y_label = "ln p(target | source) of the table", f"ln p of {run.name}"
            plots.scatter(paths, *plots.split_points(known), x_label, y_label, "phrases shown")

        summary = f"{run.name}: {len({row.source for row in rows})} source phrases"
        return Findings(table(rows), [summary], draw)
