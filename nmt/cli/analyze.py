"""nmt-analyze: reports on the output of any translation system, and on what a trained model has learned."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from nmt.cli import analyze_models, analyze_report, analyze_text, options

KINDS: dict[str, tuple[str, Callable[[options.Parser], None], Callable[[Any], None]]] = {
    **analyze_text.KINDS,
    **analyze_models.KINDS,
    **analyze_report.KINDS,
}


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser(
        "nmt-analyze",
        (
            "Reports on the output of any translation system and on trained runs: TSV, figures, BLEU and "
            "chrF "
            "with signatures."
        ),
    )
    kinds = parser.add_subparsers(dest="kind", required=True, parser_class=options.Action, metavar="KIND")
    for name, (description, add_arguments, _) in KINDS.items():
        kind = kinds.add_parser(name, description=description, help=description)
        add_arguments(kind)
        options.add_quiet(kind)
    args = parser.parse_args(argv)
    options.start_log("nmt-analyze", args.quiet)
    if "bleu_tokenize" in args:
        from nmt import metrics

        metrics.check_tokenizer(args.bleu_tokenize)
    KINDS[args.kind][2](args)


if __name__ == "__main__":
    sys.exit(main())
