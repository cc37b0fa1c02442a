"""nmt-analyze: reports on the output of any translation system."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nmt import files
from nmt.cli import options
from nmt.errors import DataError, UserError

log = logging.getLogger("nmt.analyze")


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser("nmt-analyze", "Reports on the output of any translation system: TSV, a figure, BLEU with its signature.")
    kinds = parser.add_subparsers(dest="kind", required=True, parser_class=options.Action)
    length = kinds.add_parser("by-length", description="BLEU by length of source, reference and the longer of both.")
    length.add_argument("--source", "-s", required=True, metavar="FILE", help="source text")
    length.add_argument("--reference", "-r", required=True, nargs="+", metavar="FILE", help="one or more reference translations")
    length.add_argument("--hypothesis", "-t", required=True, metavar="FILE", help="output of the system")
    length.add_argument("--output", "-o", default="", metavar="DIR", help="folder for by-length.tsv, .png and .svg; without it the TSV goes to stdout")
    length.add_argument("--bleu-tokenize", default="13a", metavar="NAME", help="sacreBLEU tokenizer; none for tokenized text")
    length.add_argument("--window", type=options.positive, default=10, help="neighbouring lengths that are scored together")
    length.add_argument("--least", type=options.positive, default=1, help="leave out points with fewer sentences")
    length.add_argument("--title", default="", help="title of the figure")
    options.add_quiet(length)
    compare = kinds.add_parser("compare", description="Paired bootstrap: are systems different from a baseline? TSV with intervals and p-values.")
    compare.add_argument("--reference", "-r", required=True, nargs="+", metavar="FILE", help="one or more reference translations")
    compare.add_argument("--baseline", "-b", required=True, metavar="FILE", help="output of the system to compare with")
    compare.add_argument("--hypothesis", "-t", required=True, nargs="+", metavar="FILE", help="outputs of the other systems")
    compare.add_argument("--bleu-tokenize", default="13a", metavar="NAME", help="sacreBLEU tokenizer; none for tokenized text")
    compare.add_argument("--samples", type=options.positive, default=1000, help="draws of the test set")
    options.add_quiet(compare)
    args = parser.parse_args(argv)
    options.start_log("nmt-analyze", args.quiet)
    {"by-length": by_length, "compare": compare_systems}[args.kind](args)


def compare_systems(args: Any) -> None:
    from nmt.analysis import significance

    systems = [args.baseline, *args.hypothesis]
    rows = list(files.parallel(*systems, *args.reference))
    if not rows:
        raise DataError(f"{args.baseline}: empty file, expected one sentence a line")
    columns = [list(column) for column in zip(*rows, strict=True)]
    texts, references = columns[: len(systems)], columns[len(systems) :]
    result, signature = significance.paired_bootstrap(systems, texts, references, args.bleu_tokenize, args.samples)
    files.write_text("-", significance.to_tsv(result))
    log.info("%s", signature)


def by_length(args: Any) -> None:
    from nmt.analysis import by_length as report

    rows = list(files.parallel(args.source, args.hypothesis, *args.reference))
    if not rows:
        raise DataError(f"{args.source}: empty file, expected one sentence a line")
    sources, hypotheses, *references = map(list, zip(*rows, strict=True))
    result = report.by_length(sources, references, hypotheses, args.bleu_tokenize, args.window, args.least)
    lines = list(report.to_tsv(result.curves))
    if not args.output:
        files.write_text("-", lines)
        log.info("%s", result.bleu)
        return
    directory = Path(args.output)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise files.cannot_write(directory, error) from error
    files.write_text(directory / "by-length.tsv", lines)
    written = [directory / "by-length.tsv"]
    try:
        from nmt.analysis import plots

        figures = [directory / "by-length.png", directory / "by-length.svg"]
        plots.by_length(result.curves, args.title or f"{Path(args.hypothesis).name}   {result.bleu}", figures)
        written += figures
    except UserError as error:
        log.warning("no figure: %s", error)
    print(result.bleu)
    for path in written:
        print(path)


if __name__ == "__main__":
    sys.exit(main())
