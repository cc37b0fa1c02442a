"""nmt-ngram: estimate an n-gram model from text in ARPA format, by modified Kneser-Ney (with KenLM's lmplz
where it is installed), Katz, stupid backoff or add-k."""

import argparse
import logging
import os
import sys
import time
from collections.abc import Sequence

from nmt.cli import arguments, jobs, options
from nmt.cli.arguments import add_setting, parse_settings
from nmt.cli.ngram_models import ACTIONS
from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.ngram import count_models, estimators
from nmt.ngram.counting import CountSettings, count_ngrams, count_text, number_text
from nmt.ngram.estimators import ESTIMATORS, SmoothingConfig
from nmt.work.executors import ExecutorConfig
from nmt.work.stages import SharedFolder

log = logging.getLogger(__name__)

OF_KNESER_NEY = ("auto", "own", "lmplz")


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    words = sys.argv[1:] if argv is None else [*argv]
    if words and words[0] in ACTIONS:
        ACTIONS[words[0]](words[1:])
    else:
        estimate_action(words)


def estimate_action(argv: Sequence[str]) -> None:
    """Estimate a model from text."""
    args = parser().parse_args(argv)
    options.start_log("nmt-ngram", args)
    discounts = args.discount_fallback
    fallback = estimators.FALLBACK_DISCOUNTS if discounts == [] else tuple(discounts)
    config = parse_settings(SmoothingConfig, args, prune=tuple(args.prune), discount_fallback=fallback)
    config.check()
    check_options(args)
    executor = parse_settings(ExecutorConfig, args)
    shared_folder = jobs.shared_folder(args, "nmt-ngram", executor)
    limit = (args.memory or 0.6 * total_memory()) * 1e9
    words = text_size(args.input) / 5  # a word and its blank: 5 bytes or more
    needed = words * args.order * estimators.BYTES_PER_NGRAM
    if shared_folder and (args.input == "-" or args.estimator == "lmplz"):
        raise ConfigError("several workers cannot read stdin or use lmplz; give a file, and leave lmplz out")
    if not shared_folder and (
        args.estimator == "lmplz" or (args.estimator == "auto" and needed > limit and estimators.find_lmplz())
    ):
        estimators.estimate_with_lmplz(args.input, args.output, config, limit)
        log.info("estimated by lmplz: %s", args.output)
        return
    if needed > limit:
        raise ConfigError(
            f"{files.name_of(args.input)}: estimating in memory takes about {needed / 1e9:.0f} GB, "
            f"{limit / 1e9:.0f} GB are allowed (--memory); install KenLM's lmplz, which works on disk"
        )
    estimate(args, config, executor, shared_folder)


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-ngram",
        "Estimate an n-gram model and write it in ARPA format: interpolated modified Kneser-Ney, with the "
        "same options and the same result as KenLM's lmplz, or one of the older estimators. A word <unk> in "
        "the text counts as the unknown word.",
        "nmt-ngram compile makes a mapped folder of an ARPA file, nmt-ngram verify reads one whole; each has "
        "its own --help.",
    )
    options.add_input_output(parser, "tokenized text, one sentence a line,")
    add_setting(parser, SmoothingConfig, "order")
    parser.add_argument(
        "--estimator",
        choices=(*OF_KNESER_NEY, *ESTIMATORS),
        default="auto",
        help="auto: modified Kneser-Ney, by lmplz if it is installed and the text needs more than --memory; "
        "own, lmplz: modified Kneser-Ney by this program, or by lmplz; katz: Good-Turing discounts; "
        "stupid-backoff: relative frequencies, scores do not sum to 1; add-k: counts plus --add",
    )
    add_setting(parser, SmoothingConfig, "prune", nargs="+")
    add_setting(parser, SmoothingConfig, "interpolate_unigrams")
    add_setting(parser, SmoothingConfig, "discount_fallback", nargs="*", metavar="D")
    add_setting(parser, SmoothingConfig, "skip_symbols")
    for name in ("katz_cutoff", "backoff_factor", "add"):
        add_setting(parser, SmoothingConfig, name)
    parser.add_argument(
        "--memory",
        type=arguments.real(0),
        default=0,
        metavar="GB",
        help="memory that may be used; 0: 60%% of the memory of this machine",
    )
    jobs.add_shared_job(parser)
    options.add_quiet(parser)
    return parser


def check_options(args: argparse.Namespace) -> None:
    """ConfigError for options that apply to Kneser-Ney models only, with another estimator."""
    if args.estimator not in OF_KNESER_NEY and (tuple(args.prune) != (0,) or not args.interpolate_unigrams):
        option = "--no-interpolate-unigrams" if tuple(args.prune) == (0,) else "--prune"
        raise ConfigError(f"{option}: only for Kneser-Ney models, not for --estimator {args.estimator}")


def estimate(
    args: argparse.Namespace, config: SmoothingConfig, executor: ExecutorConfig, shared: SharedFolder | None
) -> None:
    """Estimate a model in memory and write the ARPA file. `shared`: the folder in which several workers count
    the n-grams; if None, this process counts."""
    clock, output = time.monotonic(), args.output
    try:
        if shared:
            settings = CountSettings(config.order, config.skip_symbols)
            words, counts = count_text(args.input, settings, executor, shared)
        else:
            with options.line_progress(args, args.input) as progress:
                text = number_text(progress.over(files.read_lines(args.input)), config.skip_symbols)
            words, counts = text.words, count_ngrams(text, config.order)
        if args.estimator in ESTIMATORS:
            model = estimators.smoothed_model(words, counts, config, args.estimator)
        else:
            model = estimators.kneser_ney_model(words, counts, config)
    except DataError as error:
        name = files.name_of(args.input)
        raise DataError(f"{name}: {error}" if not str(error).startswith(name) else str(error)) from error
    grams = sum(len(level.keys) for level in model.levels)
    with options.progress(args, "n-grams", grams) as progress:
        count_models.write_arpa(model, output, progress.add)
    sizes = ", ".join(f"{len(level.keys):,}" for level in model.levels)
    seconds = time.monotonic() - clock
    log.info("%s n-grams of order 1 to %d in %.1f s: %s", sizes, config.order, seconds, output)
    if args.estimator == "stupid-backoff":
        log.warning("%s has scores that do not sum to 1, so its perplexities mean nothing", output)


def text_size(path: str) -> float:
    """Estimate the size of a text in bytes: four times that of a compressed file; 0 for stdin."""
    if path == "-":
        return 0.0
    files.existing([path])
    return os.path.getsize(path) * (4 if path.endswith(".gz") else 1)


def total_memory() -> float:
    """Memory of this machine in GB."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


if __name__ == "__main__":
    sys.exit(main())
