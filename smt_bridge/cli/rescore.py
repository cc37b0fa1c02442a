"""smt-rescore: add features to n-best lists, recompute totals, write the lists or the best translations."""

import argparse
import logging
import sys
from collections.abc import Sequence
from contextlib import nullcontext

from nmt.cli import arguments, options
from nmt.cli.arguments import InputPath, OutputPath, parse_settings
from nmt.errors import ConfigError
from nmt.io import files
from nmt.search.config import MBRConfig
from nmt.text.sentences import MAX_LINE_WORDS
from nmt.work import store
from nmt.work.executors import ExecutorConfig
from smt_bridge.cli import shared_options
from smt_bridge.features.registry import FeatureSettings, FeatureSpec, parse_features
from smt_bridge.moses import ini
from smt_bridge.nbest.union import NbestLists

OUTPUTS = {"output": "--output", "best": "--best", "mbr_scale_output": "--mbr-scale-output"}

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    own_parser = parser()
    args = options.parse(own_parser, argv)
    check_options(args)
    if not args.feature:
        options.refuse_alone(own_parser, args, ("resume",), "--feature NAME=MODEL")
    # Minimum Bayes risk alone, without weights and without a list to write, needs only texts and totals.
    texts_only = args.mbr and not args.weights and not args.output and not args.feature
    lists = NbestLists(
        paths=args.nbest,
        source=args.source,
        fill_missing=args.fill_missing or bool(texts_only),
        escape=args.escape,
    )
    specs = parse_features(args.feature, lists.survey())
    outputs = [(name, getattr(args, dest)) for dest, name in OUTPUTS.items()]
    shared_options.check_models_separate(args, specs, [], outputs)
    main_output = args.output or args.best  # the job folder is beside it
    with store.lock_job(main_output, "smt-rescore") if specs and main_output != "-" else nullcontext():
        run(args, lists, specs)


def parser() -> options.Parser:
    parser = options.Parser(
        "smt-rescore",
        "Add features to n-best lists, recompute the totals, and write the lists and the best translations.",
    )
    parser.add_argument(
        "nbest",
        type=InputPath,
        nargs="+",
        metavar="NBEST",
        help="n-best lists of a text, written by Moses, smt-decode or nmt-translate; of several lists, the "
        "union is rescored",
    )
    parser.add_argument(
        "--source",
        "-s",
        type=InputPath,
        required=True,
        metavar="FILE",
        help="the text that was translated, tokenized as it was for the decoder",
    )
    shared_options.add_features(parser, required=False)
    parser.add_argument(
        "--by-phrase",
        action="store_true",
        help="sum the features translation and inverse over the phrases of the segmentation, as a column of "
        "a phrase table would",
    )
    add_weights(parser)
    parser.add_argument(
        "--fill-missing",
        action="store_true",
        help="use 0 for a feature that some of the lists lack; features named List... tell the lists apart",
    )
    parser.add_argument(
        "--escape", action="store_true", help="escape words as Moses does, for lists written by nmt-translate"
    )
    add_outputs(parser)
    add_mbr(parser)
    options.add_max_line_words(parser, "are refused by features of whole sentences")
    options.add_quiet(parser)
    return parser


def add_weights(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--weights",
        "-w",
        type=InputPath,
        metavar="FILE",
        help="weights of the totals: lines 'Name= v v', or a moses.ini; without weights the totals stay",
    )
    parser.add_argument(
        "--decoder-weights",
        type=InputPath,
        metavar="FILE",
        help="weights that the decoder used, to check its totals and to keep its -100 for unknown words",
    )


def add_outputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output",
        "-o",
        type=OutputPath,
        metavar="NBEST",
        help="write the list with the new features; - is stdout",
    )
    parser.add_argument(
        "--best",
        type=OutputPath,
        metavar="FILE",
        help="write the best translation of each sentence, line by line; - is stdout",
    )


def add_mbr(parser: argparse.ArgumentParser) -> None:
    arguments.add_setting(parser, MBRConfig, "mbr", default=None)
    help_text = (
        "with --mbr: the probability of a hypothesis is exp(A x total), normalized; default: 1. For several "
        "lists with totals of their own, one A for all or one for each"
    )
    arguments.add_setting(
        parser, MBRConfig, "mbr_scale", nargs="+", default=None, metavar="A", help=help_text
    )
    parser.add_argument(
        "--mbr-tune",
        type=InputPath,
        nargs="+",
        default=[],
        metavar="REF",
        help="choose the scale by the metric of --mbr on these references, tokenized like the lists",
    )
    parser.add_argument(
        "--mbr-scale-output",
        type=OutputPath,
        metavar="FILE",
        help="with --mbr-tune: write the chosen scale, for later use with --mbr-scale",
    )


def check_options(args: argparse.Namespace) -> None:
    """ConfigError unless there is --output or --best, and for a list or a text that can be read only once;
    DataError for a missing file; both also as from `check_mbr`."""
    if args.output is None and args.best is None:
        raise ConfigError("nothing to write; give --output, --best or both")
    check_mbr(args)
    files.existing([*args.nbest, args.source])
    files.require_files((*args.nbest, args.source), "lists and text are read twice")


def check_mbr(args: argparse.Namespace) -> None:
    """ConfigError for options of minimum Bayes risk decoding that exclude each other; DataError for
    references that are missing or have another number of lines than the source text."""
    if not args.mbr and (args.mbr_scale or args.mbr_tune or args.mbr_scale_output):
        raise ConfigError("--mbr-scale, --mbr-tune and --mbr-scale-output go with --mbr bleu or --mbr chrf")
    if args.mbr and not args.best:
        raise ConfigError("--mbr chooses what --best writes; give --best FILE")
    if args.mbr_scale and args.mbr_tune:
        raise ConfigError("--mbr-tune chooses the scale; leave --mbr-scale out")
    if args.mbr_scale_output and not args.mbr_tune:
        raise ConfigError("--mbr-scale-output writes what --mbr-tune has chosen; give --mbr-tune REF")
    if args.mbr_tune:
        files.check_parallel(args.source, *args.mbr_tune)


def run(args: argparse.Namespace, lists: NbestLists, specs: Sequence[FeatureSpec]) -> None:
    """Load the features of `specs`, rescore the lists, and write the outputs. Errors as from
    `set_up_features`, `FeatureSet` and `rescore`."""
    settings, opening = FeatureSettings(), ""
    if specs:
        settings, opening = shared_options.set_up_features(args, specs, args.output or args.best)
    from smt_bridge.features.feature_set import FeatureSet
    from smt_bridge.nbest.rescore import RescoreConfig, rescore

    config = RescoreConfig(
        output=args.output,
        best=args.best,
        weights=ini.read_weights(args.weights) if args.weights else None,
        decoder_weights=ini.read_weights(args.decoder_weights) if args.decoder_weights else None,
        by_phrase=args.by_phrase,
        limit=args.max_line_words or MAX_LINE_WORDS,
        resume=args.resume,
        executor=parse_settings(ExecutorConfig, args) if specs else ExecutorConfig(),
        mbr=MBRConfig(args.mbr, args.mbr_scale or MBRConfig().mbr_scale) if args.mbr else None,
        references=[list(files.read_lines(path)) for path in args.mbr_tune],
        scale_output=args.mbr_scale_output,
    )
    with options.progress(args, "sentences", None, opening) as progress:
        count = rescore(lists, FeatureSet(specs, settings), config, progress.reach)
    log.info("%s sentences rescored with %d new features", f"{count:,}", len(specs))


if __name__ == "__main__":
    sys.exit(main())
