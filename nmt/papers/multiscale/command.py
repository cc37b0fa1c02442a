"""nmt-dictionary: learn a dictionary of multi-symbol tokens, show it, segment text, count its arcs."""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.cli import options
from nmt.cli.arguments import InputPath, positive
from nmt.io import files
from nmt.papers.multiscale import dictionary
from nmt.papers.multiscale.dictionary import FILE, Dictionary
from nmt.runs import directory as run_directory

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = parser().parse_args(argv)
    options.start_log("nmt-dictionary", args)
    {"learn": learn, "table": show, "segment": segment, "arcs": count_arcs}[args.action](args)


def parser() -> options.Parser:
    found = options.Parser(
        "nmt-dictionary",
        "Dictionaries of multi-symbol tokens by adapted byte-pair encoding, for multiscale language models. "
        "Text is symbols separated by blanks; with --characters every character is a symbol, a blank is _.",
    )
    actions = found.add_subparsers(
        dest="action", required=True, parser_class=options.ActionParser, metavar="ACTION"
    )
    make = actions.add_parser("learn", help="make a dictionary", description="Learn a dictionary from text.")
    make.add_argument("--size", type=positive, default=2048, help="tokens, single symbols included")
    make.add_argument(
        "--removals",
        choices=dictionary.REMOVALS,
        default=dictionary.REMOVALS[0],
        help="tokens dropped when rarer than a new one: parts of it; all, as the algorithm is printed, which "
        "may go in circles; none: plain BPE",
    )
    table = actions.add_parser(
        "table",
        help="show a dictionary",
        description="Rank, token and count of each token (van Merriënboer 2018, table 8.1).",
    )
    cut = actions.add_parser(
        "segment", help="segment text", description="Cut each line into the fewest possible tokens."
    )
    arcs = actions.add_parser(
        "arcs",
        help="count arcs",
        description="Tokens that end at each symbol of a text, on average: the cost of a multiscale model.",
    )
    for part in (table, cut, arcs):
        part.add_argument(
            "dictionary",
            type=InputPath,
            metavar="FILE|RUN_DIR",
            help="a dictionary, or the run directory of a multiscale model",
        )
    options.add_input_output(make)
    options.add_output(table)
    options.add_input_output(cut)
    options.add_input_output(arcs)
    cut.add_argument("--mark", default=" ", help="what is written between tokens; default: a space")
    for part in (make, cut, arcs):
        part.add_argument(
            "--characters", action="store_true", help="every character is a symbol, a blank is _"
        )
    for part in (make, table, cut, arcs):
        options.add_quiet(part)
    return found


def symbols(line: str, characters: bool) -> list[str]:
    """The symbols of a line."""
    return list(line.replace(" ", "_")) if characters else files.split_words(line)


def learn(args: argparse.Namespace) -> None:
    """Learn a dictionary and write it."""
    lines = (symbols(line, args.characters) for line in files.read_lines(args.input))
    with options.progress(args, "tokens", None) as progress:
        found = dictionary.learn(
            lines, args.size, args.removals, lambda tokens: progress.reach(tokens, args.size)
        )
    found.save(args.output)
    if len(found) < args.size:
        log.warning(
            "%d tokens, fewer than --size %d: no pair is left that occurs twice, or tokens came and went in "
            "circles",
            len(found),
            args.size,
        )
    log.info("%s tokens, the longest of %d symbols", f"{len(found):,}", found.longest)


def opened(path: str) -> Dictionary:
    """A dictionary from its file or a run directory."""
    if not Path(path).is_dir():
        return Dictionary.load(path)
    run_directory.verify(Path(path))
    return Dictionary.load(Path(path) / FILE)


def show(args: argparse.Namespace) -> None:
    """Write the table of a dictionary."""
    with files.Writing(args.output) as out:
        out.write("rank\ttoken\tcount\n")
        out.write_lines(
            f"{rank}\t{token}\t{count}" for rank, token, count in dictionary.table(opened(args.dictionary))
        )


def segment(args: argparse.Namespace) -> None:
    """Segment text."""
    tokens = opened(args.dictionary)
    with files.Writing(args.output) as out, options.line_progress(args, args.input) as progress:
        for line in progress.over(files.read_lines(args.input)):
            parts = dictionary.segment(tokens, symbols(line, args.characters))
            out.write(args.mark.join(map("".join, parts)) + "\n")


def count_arcs(args: argparse.Namespace) -> None:
    """Count the arcs of a text."""
    tokens = opened(args.dictionary)
    known = set(tokens.tokens)
    count, total = 0, 0
    with options.line_progress(args, args.input) as progress:
        for line in progress.over(files.read_lines(args.input)):
            text = tuple(symbols(line, args.characters))
            count += len(text)
            total += sum(
                text[max(0, end - length) : end] in known
                for end in range(1, len(text) + 1)
                for length in range(1, min(end, tokens.longest) + 1)
            )
    with files.Writing(args.output) as out:
        out.write(f"symbols\tarcs\tarcs a symbol\n{count}\t{total}\t{total / max(1, count):.4f}\n")


if __name__ == "__main__":
    sys.exit(main())
