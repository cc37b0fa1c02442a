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
    {"learn": learn, "table": write_table, "segment": segment, "arcs": count_arcs}[args.action](args)


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-dictionary",
        "Dictionaries of multi-symbol tokens for multiscale language models, learned by adapted byte-pair "
        "encoding. A text is symbols separated by spaces; with --characters, every character is a symbol, "
        "and a space becomes _.",
    )
    actions = parser.add_subparsers(
        dest="action", required=True, parser_class=options.ActionParser, metavar="ACTION"
    )
    learn_action = actions.add_parser(
        "learn", help="learn a dictionary", description="Learn a dictionary from text."
    )
    learn_action.add_argument(
        "--size", type=positive, default=2048, help="number of tokens, single symbols included"
    )
    learn_action.add_argument(
        "--removals",
        choices=dictionary.REMOVALS,
        default=dictionary.REMOVALS[0],
        help="which tokens are removed when they become rarer than a new token: only its parts; all, as "
        "published, which may never end; none, which is plain BPE",
    )
    table_action = actions.add_parser(
        "table", help="list a dictionary", description="List the rank, the text and the count of each token."
    )
    segment_action = actions.add_parser(
        "segment", help="segment text", description="Cut each line into the fewest possible tokens."
    )
    arcs_action = actions.add_parser(
        "arcs",
        help="count arcs",
        description="Count the arcs of a text: the tokens that end at a symbol, on average, which is the "
        "cost of a multiscale model.",
    )
    for action in (table_action, segment_action, arcs_action):
        action.add_argument(
            "dictionary",
            type=InputPath,
            metavar="FILE|RUN_DIR",
            help="a dictionary, or the run directory of a multiscale model",
        )
    options.add_input_output(learn_action)
    options.add_output(table_action)
    options.add_input_output(segment_action)
    options.add_input_output(arcs_action)
    segment_action.add_argument("--mark", default=" ", help="separator between tokens; default: a space")
    for action in (learn_action, segment_action, arcs_action):
        action.add_argument(
            "--characters", action="store_true", help="every character is a symbol, a space becomes _"
        )
    for action in (learn_action, table_action, segment_action, arcs_action):
        options.add_quiet(action)
    return parser


def split_symbols(line: str, characters: bool) -> list[str]:
    """The symbols of a line: its words, or its characters with _ for a space."""
    return list(line.replace(" ", "_")) if characters else files.split_words(line)


def learn(args: argparse.Namespace) -> None:
    """Learn a dictionary from the input and write it; a smaller one than --size logs a warning. DataError for
    a text without symbols."""
    lines = (split_symbols(line, args.characters) for line in files.read_lines(args.input))
    with files.Writing(args.output) as out:
        with files.naming_file(args.input), options.progress(args, "tokens", None) as progress:
            learned = dictionary.learn(
                lines, args.size, args.removals, lambda tokens: progress.reach(tokens, args.size)
            )
        out.write_lines(learned.lines())
    if len(learned) < args.size:
        log.warning(
            "%d tokens, fewer than --size %d: no remaining pair occurs twice, or the same tokens were added "
            "and removed again and again",
            len(learned),
            args.size,
        )
    log.info("%s tokens, the longest of %d symbols", f"{len(learned):,}", learned.longest)


def load_dictionary(path: str) -> Dictionary:
    """Read a dictionary from its own file or from a run directory. DataError for a file that is not a
    dictionary, CheckpointError for a damaged run."""
    if not Path(path).is_dir():
        return Dictionary.load(path)
    run_directory.verify(Path(path))
    return Dictionary.load(Path(path) / FILE)


def write_table(args: argparse.Namespace) -> None:
    with files.Writing(args.output) as out:
        out.write("rank\ttoken\tcount\n")
        out.write_lines(
            f"{rank}\t{token}\t{count}"
            for rank, token, count in dictionary.table(load_dictionary(args.dictionary))
        )


def segment(args: argparse.Namespace) -> None:
    """Write each line as tokens separated by --mark."""
    tokens = load_dictionary(args.dictionary)
    with files.Writing(args.output) as out, options.line_progress(args, args.input) as progress:
        for line in progress.over(files.read_lines(args.input)):
            parts = dictionary.segment(tokens, split_symbols(line, args.characters))
            out.write(args.mark.join(map("".join, parts)) + "\n")


def count_arcs(args: argparse.Namespace) -> None:
    """Write the numbers of symbols and arcs of a text, and their ratio. Arcs do not cross ends of lines."""
    tokens = load_dictionary(args.dictionary)
    symbols, arcs = 0, 0
    with options.line_progress(args, args.input) as progress:
        for line in progress.over(files.read_lines(args.input)):
            text = tuple(split_symbols(line, args.characters))
            symbols += len(text)
            arcs += sum(
                text[end - length : end] in tokens.known
                for end in range(1, len(text) + 1)
                for length in range(1, min(end, tokens.longest) + 1)
            )
    with files.Writing(args.output) as out:
        out.write(f"symbols\tarcs\tarcs per symbol\n{symbols}\t{arcs}\t{arcs / max(1, symbols):.4f}\n")


if __name__ == "__main__":
    sys.exit(main())
