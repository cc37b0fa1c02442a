"""What analyses read: a test set and the outputs of systems, vocabularies, a trained run, a line of text."""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.analysis import hard_words, systems
from nmt.analysis.buckets import LEAST
from nmt.analysis.systems import System, TestSet
from nmt.cli import options
from nmt.cli.analyses.base import add_output
from nmt.cli.arguments import InputPath, integer, positive
from nmt.cli.options import Parser
from nmt.errors import ConfigError
from nmt.io import files
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
    parser.add_argument("--source", "-s", type=InputPath, required=True, metavar="FILE", help="source text")


def add_references(parser: Parser) -> None:
    """--reference, the tokenizer that BLEU uses, and --lowercase."""
    parser.add_argument(
        "--reference",
        "-r",
        type=InputPath,
        required=True,
        nargs="+",
        metavar="FILE",
        help="one or more reference translations",
    )
    parser.add_argument(
        "--bleu-tokenize", default="13a", metavar="NAME", help="sacreBLEU tokenizer; none for tokenized text"
    )
    parser.add_argument(
        "--lowercase", "-lc", action="store_true", help="score without regard to case (case:lc in signatures)"
    )


def add_hypotheses(parser: Parser, text: str) -> None:
    """--hypothesis, with its help text."""
    parser.add_argument("--hypothesis", type=InputPath, required=True, nargs="+", metavar="FILE", help=text)
    parser.renamed["-t"] = "--hypothesis"


def add_names(parser: Parser, text: str) -> None:
    """--names, with its help text."""
    parser.add_argument("--names", nargs="+", default=None, metavar="NAME", help=text)


def add_least(parser: Parser) -> None:
    """--least, of curves."""
    parser.add_argument("--least", type=positive, default=LEAST, help="leave out points with fewer sentences")


def read_systems(args: argparse.Namespace) -> list[System]:
    """The systems that the options of `add_systems` name."""
    return systems.read_systems(
        args.source, args.reference, args.hypothesis, args.names, args.bleu_tokenize, args.lowercase
    )


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
        type=InputPath,
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
    if has_subwords(run):
        raise ConfigError(
            f"{run}: its vocabularies hold subword units, which are never unknown; take --train for words "
            "unseen in training, by-segmented for words of several units, or word vocabularies of nmt-vocab"
        )
    return Vocab.load(run / "source.vocab"), Vocab.load(run / "target.vocab")


def check_vocabularies(given: Sequence[str], vocabs: tuple[Vocab, Vocab], test: TestSet) -> None:
    """ConfigError, or a warning, where the vocabularies are not of the form of the test set."""
    source, target = vocabs[0].ids, vocabs[1].ids
    names = given if len(given) == 2 else [f"{given[0]}/{side}.vocab" for side in ("source", "target")]
    hard_words.check_coverage(map(files.split_words, test.sources), source, target, names[0])
    hard_words.check_coverage(map(files.split_words, test.references[0]), target, source, names[1])


# ---- training text -----------------------------------------------------------------------------------------


def add_training(parser: Parser, required: bool) -> None:
    """--train and --rare"""
    parser.add_argument(
        "--train",
        type=InputPath,
        nargs=2,
        required=required,
        default=None,
        metavar="FILE",
        help="the training text, source and target, in the form of the test set; or files of nmt-vocab",
    )
    parser.add_argument(
        "--rare",
        type=integer(0),
        default=0,
        metavar="N",
        help="words are rare that the training text has at most N times; 0: never",
    )


def read_training(given: Sequence[str], test: TestSet) -> tuple[hard_words.Counts, hard_words.Counts]:
    """How often the training text has each word of source and target; they must be of the form of the test
    set."""
    source, target = (hard_words.read_counts(path, test) for path in given)
    hard_words.check_coverage(test.source_words, source, target, given[0])
    hard_words.check_coverage(test.reference_words[0], target, source, given[1])
    return source, target


def read_counts(path: str, test: TestSet) -> hard_words.Counts:
    """How often the training text has each word of the target, whose form must be the references'."""
    counts = hard_words.read_counts(path, test)
    hard_words.check_coverage(test.reference_words[0], counts, (), path)
    return counts


def rare_name(most: int) -> str:
    """What words are called that the training text has at most `most` times."""
    return f"seen at most {most} times" if most else "unseen"


def count_hard_words(
    args: argparse.Namespace, vocabs: tuple[Vocab, Vocab] | None, test: TestSet
) -> tuple[dict[str, dict[str, list[int]]], hard_words.Counts | None]:
    """For each kind of words that --vocabulary and --train define, their number by side and sentence; and how
    often the training text has each word of the target, None where neither says it."""
    found, counts = {}, None
    if vocabs:
        check_vocabularies(args.vocabulary, vocabs, test)
        found["unknown"] = hard_words.unknown_words(test, *vocabs)
        counts = hard_words.cased_counts(vocabs[1].counts, test)
    if args.train:
        training = read_training(args.train, test)
        found[rare_name(args.rare)] = hard_words.rare_words(test, *training, args.rare)
        counts = training[1]
    return found, counts


# ---- runs and lines ----------------------------------------------------------------------------------------


def load_run(args: argparse.Namespace, path: str) -> "Run":
    """The run in a directory, ready to compute as the options of options.add_compute say."""
    set_up = options.set_up_torch(args.device, args.threads, args.matmul, path)
    from nmt.runs.run import Run

    run = Run.of(path, which=args.checkpoint, device=args.device)
    log.info("%s: %s", run.name, set_up)
    return run


def has_subwords(run: Path) -> bool:
    """Does a run cut words into units?"""
    return any(subwords.stored(run, side) for side in ("source", "target"))


def read_units(path: str, test: TestSet, tokenized: bool) -> tuple[list[list[str]], list[list[str]]] | None:
    """The units of source and first reference in a run's pipeline. None where no word is cut: the run has
    whole words, or its source has no blanks between words."""
    from nmt.runs import checkpoint

    run = Path(path)
    data = checkpoint.checked_config(run).data
    source, target = (checkpoint.load_side(run, side, data)[0] for side in ("source", "target"))
    if source.spaceless or not (source.subwords or target.subwords):
        return None
    return (
        [source.units(line, tokenized) for line in test.sources],
        [target.units(line, tokenized) for line in test.references[0]],
    )


def add_line(parser: Parser) -> None:
    """A run, and the sentence that is looked at."""
    options.add_model(parser)
    parser.add_argument(
        "--line", default="", metavar="TEXT", help="the source sentence; else the first line of --input"
    )
    parser.add_argument("--input", "-i", type=InputPath, default="-", metavar="FILE", help="source text")
    parser.add_argument("--tokenized", action="store_true", help="the text is tokenized as the run's was")
    add_output(parser)


def read_line(args: argparse.Namespace) -> str:
    """The sentence that the options of `add_line` give."""
    return str(args.line or next(files.read_lines(args.input), ""))
