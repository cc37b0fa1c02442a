"""What analyses read: a test set and the outputs of systems, vocabularies, a trained run, a line of text."""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nmt import files
from nmt.analysis import systems
from nmt.analysis.systems import System
from nmt.cli import options
from nmt.cli.analyses.base import add_output
from nmt.cli.arguments import Input, positive
from nmt.cli.options import Parser
from nmt.errors import ConfigError
from nmt.runs import directory as run_directory
from nmt.text import subwords
from nmt.text.vocab import Vocab

if TYPE_CHECKING:
    from nmt.runs.run import Run

log = logging.getLogger(__name__)

# ---- outputs of systems ------------------------------------------------------------------------------------


def add_systems(parser: Parser) -> None:
    """A test set, the outputs of one or more systems, and --output."""
    add_source(parser)
    add_references(parser)
    add_hypotheses(parser, "output of one or more systems: text, or an n-best list")
    add_names(parser, "names of the systems; file names unless given")
    add_output(parser)


def add_source(parser: Parser) -> None:
    """--source"""
    parser.add_argument("--source", "-s", type=Input, required=True, metavar="FILE", help="source text")


def add_references(parser: Parser) -> None:
    """--reference and the tokenizer that BLEU uses."""
    parser.add_argument(
        "--reference",
        "-r",
        type=Input,
        required=True,
        nargs="+",
        metavar="FILE",
        help="one or more reference translations",
    )
    parser.add_argument(
        "--bleu-tokenize", default="13a", metavar="NAME", help="sacreBLEU tokenizer; none for tokenized text"
    )


def add_hypotheses(parser: Parser, text: str) -> None:
    """--hypothesis, with its help text."""
    parser.add_argument("--hypothesis", type=Input, required=True, nargs="+", metavar="FILE", help=text)
    parser.renamed["-t"] = "--hypothesis"


def add_names(parser: Parser, text: str) -> None:
    """--names, with its help text."""
    parser.add_argument("--names", nargs="+", default=None, metavar="NAME", help=text)


def add_least(parser: Parser) -> None:
    """--least, of curves."""
    parser.add_argument("--least", type=positive, default=1, help="leave out points with fewer sentences")


def read_systems(args: argparse.Namespace) -> list[System]:
    """The systems that the options of `add_systems` name."""
    return systems.read_systems(args.source, args.reference, args.hypothesis, args.names, args.bleu_tokenize)


def scores_of(found: Sequence[System]) -> list[str]:
    """The summary of systems: BLEU and chrF with their signatures."""
    one = len(found) == 1
    return [
        f"{'' if one else system.name + ': '}{score}"
        for system in found
        for score in (system.bleu(), system.chrf())
    ]


def check_names(names: Sequence[str] | None, given: Sequence[str], what: str) -> None:
    """ConfigError unless --names has a name for each of the given `what`."""
    if names and len(names) != len(given):
        raise ConfigError(f"--names: {len(names)} names for {len(given)} {what}; give one for each")


# ---- vocabularies ------------------------------------------------------------------------------------------


def add_vocabularies(parser: Parser, required: bool) -> None:
    """--vocabulary"""
    parser.add_argument(
        "--vocabulary",
        type=Input,
        nargs="+",
        required=required,
        default=None,
        metavar="RUN_OR_FILE",
        help="a run directory, or two files of nmt-vocab: source, target",
    )


def read_vocabularies(given: Sequence[str]) -> tuple[Vocab, Vocab]:
    """The vocabularies of source and target, which say what words are unknown.

    Unknown is a word of the text, so vocabularies of subword units are refused.
    """
    if len(given) == 2:
        return Vocab.load(given[0]), Vocab.load(given[1])
    run = Path(given[0])
    if len(given) > 2 or not run.is_dir():
        raise ConfigError(
            "--vocabulary: expected a run directory, or a source and a target vocabulary, found "
            f"{' '.join(given)}"
        )
    run_directory.verify(run)
    if subwords.stored(run, "source") or subwords.stored(run, "target"):
        raise ConfigError(
            f"{run}: its vocabularies hold subword units, which are never unknown; make word vocabularies "
            "with nmt-vocab"
        )
    return Vocab.load(run / "source.vocab"), Vocab.load(run / "target.vocab")


# ---- runs and lines ----------------------------------------------------------------------------------------


def load_run(args: argparse.Namespace, path: str) -> "Run":
    """The run in a directory, ready to compute as the options of options.add_compute say."""
    set_up = options.set_up_torch(args.device, args.threads, args.matmul, path)
    from nmt.runs.run import Run

    run = Run.of(path, which=args.checkpoint, device=args.device)
    log.info("%s: %s", run.name, set_up)
    return run


def add_line(parser: Parser) -> None:
    """A run, and the sentence that is looked at."""
    options.add_model(parser)
    parser.add_argument(
        "--line", default="", metavar="TEXT", help="the source sentence; else the first line of --input"
    )
    parser.add_argument("--input", "-i", type=Input, default="-", metavar="FILE", help="source text")
    parser.add_argument("--tokenized", action="store_true", help="the text is tokenized as the run's was")
    add_output(parser)


def read_line(args: argparse.Namespace) -> str:
    """The sentence that the options of `add_line` give."""
    return str(args.line or next(files.read_lines(args.input), ""))
