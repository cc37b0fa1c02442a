"""nmt-ngram: estimate an n-gram model from text, in ARPA format: modified Kneser-Ney, with KenLM's lmplz
where it is installed, Katz, stupid back-off, add-k."""

import argparse
import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

from nmt.cli import arguments, jobs, options
from nmt.cli.arguments import add_setting, parse_settings
from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.ngram import arpa, estimators
from nmt.ngram.arpa import NgramModel
from nmt.ngram.counting import Counted, CountSettings, count_text
from nmt.ngram.estimators import ESTIMATORS, SmoothingConfig
from nmt.work.config import ExecutorConfig

log = logging.getLogger(__name__)

CountText = Callable[[CountSettings], tuple[list[str], list[Counted]]]
OF_KNESER_NEY = ("auto", "own", "lmplz")


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = parser().parse_args(argv)
    options.start_log("nmt-ngram", args)
    fallback = (
        estimators.FALLBACK_DISCOUNTS if args.discount_fallback == [] else tuple(args.discount_fallback)
    )
    config = parse_settings(SmoothingConfig, args, prune=tuple(args.prune), discount_fallback=fallback)
    config.check()
    check(args)
    executor = parse_settings(ExecutorConfig, args)
    place = jobs.shared_folder(args, "nmt-ngram", executor)
    limit = (args.memory or 0.6 * memory()) * 1e9
    needed = (
        size(args.input) / 5 * args.order * estimators.BYTES_PER_NGRAM
    )  # a word and its blank: 5 bytes or more
    if place and (args.input == "-" or args.estimator == "lmplz"):
        raise ConfigError("several workers read a file, not stdin, and count without lmplz")
    if not place and (
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
    shared = partial(count_text, args.input, executor=executor, where=place) if place else None
    estimate(args, config, shared)


def parser() -> options.Parser:
    found = options.Parser(
        "nmt-ngram",
        "Estimate an n-gram model and write it in ARPA format: interpolated modified Kneser-Ney, the same "
        "n-grams and numbers as KenLM's lmplz, whose options it has, or one of the older estimators. A word "
        "<unk> of the text is the unknown word.",
    )
    options.add_input_output(found, "tokenized text, one sentence a line,")
    add_setting(found, SmoothingConfig, "order")
    found.add_argument(
        "--estimator",
        choices=(*OF_KNESER_NEY, *ESTIMATORS),
        default="auto",
        help="auto: modified Kneser-Ney, by lmplz for texts that need more than --memory, where it is "
        "installed; own, lmplz: modified Kneser-Ney by one of them; katz: Good-Turing's discounts; "
        "stupid-backoff: relative frequencies, scores that do not sum to 1; add-k: counts plus --add",
    )
    add_setting(found, SmoothingConfig, "prune", nargs="+")
    add_setting(found, SmoothingConfig, "interpolate_unigrams")
    add_setting(found, SmoothingConfig, "discount_fallback", nargs="*", metavar="D")
    add_setting(found, SmoothingConfig, "skip_symbols")
    for name in ("katz_cutoff", "backoff_factor", "add"):
        add_setting(found, SmoothingConfig, name)
    found.add_argument(
        "--memory",
        type=arguments.real(0),
        default=0,
        metavar="GB",
        help="memory that may be used; 0: 60%% of this machine's",
    )
    jobs.add_shared_job(found)
    options.add_quiet(found)
    return found


def check(args: argparse.Namespace) -> None:
    """ConfigError for options of Kneser-Ney models beside another estimator."""
    if args.estimator not in OF_KNESER_NEY and (tuple(args.prune) != (0,) or not args.interpolate_unigrams):
        option = "--no-interpolate-unigrams" if tuple(args.prune) == (0,) else "--prune"
        raise ConfigError(f"{option}: for Kneser-Ney models only, not for --estimator {args.estimator}")


def estimate(args: argparse.Namespace, config: SmoothingConfig, shared: CountText | None = None) -> None:
    """Estimate in memory, and write the ARPA file. `shared`: what counts the n-grams by several workers."""
    clock, output = time.monotonic(), args.output
    try:
        if shared:
            counted = shared(CountSettings(config.order, config.skip_symbols))
            if args.estimator in ESTIMATORS:
                model = estimators.smoothed_model(*counted, config, args.estimator)
            else:
                model = estimators.kneser_ney_model(*counted, config)
        else:
            model = estimated(args, config)
    except DataError as error:
        name = files.name_of(args.input)
        raise DataError(f"{name}: {error}" if not str(error).startswith(name) else str(error)) from error
    grams = sum(len(level.keys) for level in model.levels)
    with options.progress(args, "n-grams", grams) as progress:
        arpa.write(model, output, progress.over)
    counts = ", ".join(f"{len(level.keys):,}" for level in model.levels)
    seconds = time.monotonic() - clock
    log.info("%s n-grams of order 1 to %d in %.1f s: %s", counts, config.order, seconds, output)
    if args.estimator == "stupid-backoff":
        log.warning("%s has scores that do not sum to 1: perplexities by it mean nothing", output)


def estimated(args: argparse.Namespace, config: SmoothingConfig) -> NgramModel:
    """The model, from counts of this process."""
    with options.line_progress(args, args.input) as progress:
        lines = progress.over(files.read_lines(args.input))
        sentences = map(files.split_words, lines)
        if args.estimator in ESTIMATORS:
            return estimators.estimate_smoothed(sentences, config, args.estimator)
        return estimators.estimate_kneser_ney(sentences, config)


def size(path: str) -> float:
    """Bytes of text; a compressed file is taken to hold four times its size. 0 for stdin, whose size is
    unknown."""
    if path == "-":
        return 0.0
    files.existing([path])
    return os.path.getsize(path) * (4 if path.endswith(".gz") else 1)


def memory() -> float:
    """GB of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


if __name__ == "__main__":
    sys.exit(main())
