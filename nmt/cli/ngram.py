"""nmt-ngram: estimate an n-gram model from text and write it in ARPA format, by modified Kneser-Ney (with
KenLM's lmplz where it is installed), Katz, stupid backoff or add-k; prune, compile and verify finished
models; put words into classes.
"""

import argparse
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from nmt.cli import arguments, jobs, options
from nmt.cli.arguments import InputPath, OutputPath, add_setting, add_settings, parse_settings
from nmt.config import settings
from nmt.errors import ConfigError
from nmt.io import files, mapped
from nmt.io.mapped import MEMORY, ArrayStorage
from nmt.ngram import count_models, disk_counts, estimators, pruning, trie, trie_build, word_classes
from nmt.ngram.count_models import KenLM, NgramModel
from nmt.ngram.counting import Counts, CountSettings, count_lines, count_text
from nmt.ngram.estimators import ESTIMATORS, SmoothingConfig
from nmt.ngram.word_classes import ClassConfig
from nmt.work.executors import ExecutorConfig
from nmt.work.stages import SharedFolder

log = logging.getLogger(__name__)

KNESER_NEY_PROGRAMS = ("auto", "own", "lmplz")
MEMORY_TO_COMPILE = 3  # bytes for each byte of an ARPA file


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    words = sys.argv[1:] if argv is None else [*argv]
    if words and words[0] in ACTIONS:
        ACTIONS[words[0]](words[1:])
    else:
        estimate_action(words)


def estimate_action(argv: Sequence[str]) -> None:
    args = options.parse(parser(), argv)
    discounts = args.discount_fallback  # an empty list: the option was given, without numbers
    fallback = estimators.FALLBACK_DISCOUNTS if discounts == [] else tuple(discounts)
    config = parse_settings(SmoothingConfig, args, prune=tuple(args.prune), discount_fallback=fallback)
    config.check()
    check_options(args)
    executor = parse_settings(ExecutorConfig, args)
    shared_folder = jobs.shared_folder(args, "nmt-ngram", executor)
    limit = memory_limit(args)
    needed = disk_counts.memory_to_count(args.input, args.order)
    if shared_folder and (args.input == "-" or args.estimator == "lmplz"):
        raise ConfigError("several workers cannot read stdin or use lmplz; give a file, and leave lmplz out")
    if shared_folder and args.word_classes:
        raise ConfigError("--word-classes: several workers count words; leave one of them out")
    of_words = not args.word_classes
    may_take_lmplz = args.estimator == "auto" and not args.compile and needed > limit and of_words
    if not shared_folder and (args.estimator == "lmplz" or (may_take_lmplz and shutil.which("lmplz"))):
        estimators.estimate_with_lmplz(args.input, args.output, config, limit)
        log.info("estimated by lmplz: %s", args.output)
        return
    on_disk = needed > limit or (args.input == "-" and args.memory > 0)  # the size of stdin is unknown
    clock = time.monotonic()
    with ExitStack() as stack:
        if args.compile:
            stack.enter_context(arguments.new_folder(args.output, "nmt-ngram", mapped.UNFINISHED))
        memory = limit if on_disk else 0.0
        counts, storage = count(args, config, stack, executor, shared_folder, memory, args.word_classes)
        estimate(args, config, counts, storage, clock)


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-ngram",
        "Estimate an n-gram model and write it in ARPA format: interpolated modified Kneser-Ney, with the "
        "same options and the same result as KenLM's lmplz, or one of the older estimators. A word <unk> in "
        "the text counts as the unknown word.",
        "nmt-ngram prune makes a smaller model of an ARPA file, nmt-ngram compile a mapped folder, nmt-ngram "
        "verify reads such a folder whole, nmt-ngram classes puts words into classes; each has its own "
        "--help.",
    )
    options.add_input_output(parser, "tokenized text, one sentence a line,")
    add_setting(parser, SmoothingConfig, "order")
    parser.add_argument(
        "--estimator",
        choices=(*KNESER_NEY_PROGRAMS, *ESTIMATORS),
        default="auto",
        help="auto: modified Kneser-Ney, by lmplz if it is installed and the text needs more than --memory; "
        "own, lmplz: modified Kneser-Ney by this program, or by lmplz; katz: Good-Turing discounts; "
        "stupid-backoff: relative frequencies, scores do not sum to 1; add-k: counts plus --add",
    )
    parser.add_argument(
        "--compile",
        action="store_true",
        help="write a new folder, as nmt-ngram compile makes of the ARPA file, instead of an ARPA file",
    )
    add_quantize(parser)
    parser.add_argument(
        "--word-classes",
        type=InputPath,
        default="",
        metavar="FILE",
        help="estimate a model of classes: each word is replaced by its class in a file of nmt-ngram classes "
        "or mkcls, a word without one by <unk>",
    )
    add_setting(parser, SmoothingConfig, "prune", nargs="+")
    add_setting(parser, SmoothingConfig, "interpolate_unigrams")
    add_setting(parser, SmoothingConfig, "discount_fallback", nargs="*", metavar="D")
    add_settings(parser, SmoothingConfig, "skip_symbols", "katz_cutoff", "backoff_factor", "add")
    add_memory(
        parser,
        "memory for counting; for a text that needs more, n-grams and a Kneser-Ney model lie on disk, in a "
        "folder beside the output",
    )
    jobs.add_shared_job(parser)
    options.add_quiet(parser)
    return parser


def check_options(args: argparse.Namespace) -> None:
    """ConfigError for options that do not go together."""
    if args.quantize and not args.compile:
        raise ConfigError("--quantize: only for --compile; add that, since ARPA files are not quantized")
    if args.compile and args.output == "-":
        raise ConfigError("--compile writes a folder; name it by --output")
    if args.compile and args.estimator == "lmplz":
        raise ConfigError(
            "--compile: lmplz writes an ARPA file; leave one of them out, or use nmt-ngram compile"
        )
    if args.word_classes and args.estimator == "lmplz":
        raise ConfigError("--word-classes: lmplz reads words; leave one of them out")
    if args.estimator not in KNESER_NEY_PROGRAMS and (
        tuple(args.prune) != (0,) or not args.interpolate_unigrams
    ):
        option = "--no-interpolate-unigrams" if tuple(args.prune) == (0,) else "--prune"
        raise ConfigError(
            f"{option}: only for Kneser-Ney models, not for --estimator {args.estimator}; leave it out"
        )


def count(
    args: argparse.Namespace,
    config: SmoothingConfig,
    stack: ExitStack,
    executor: ExecutorConfig,
    shared: SharedFolder | None,
    memory: float,
    classes: str = "",
) -> tuple[Counts, ArrayStorage]:
    """Count the n-grams of --input; returns the counts (words by id, then the n-grams of each length), and
    where to estimate the model.

    `shared`: the folder in which several workers count, as `executor` says; if None, this process counts.
    `memory`: 0 to count in memory; otherwise this process counts on disk, using at most this many bytes of
    memory, in a temporary folder that `stack` removes; `classes`: file of the classes that replace words, if
    not empty; only this process does that. DataError as from `count_lines` and `read_classes`; UserError if
    the disk is full."""
    counting = CountSettings(config.order, config.skip_symbols)
    with files.naming_file(args.input):
        if shared:
            return count_text(args.input, counting, executor, shared), MEMORY
        with options.line_progress(args, args.input) as progress:
            lines: Iterable[str] = progress.over(files.read_lines(args.input))
            if classes:
                lines = word_classes.class_lines(word_classes.read_classes(classes), lines)
            if not memory:
                return count_lines(lines, counting), MEMORY
            stack.enter_context(files.parent_folders(args.output))
            return disk_counts.count_within(memory, lines, counting, args.output, stack)


def estimate(
    args: argparse.Namespace, config: SmoothingConfig, counts: Counts, storage: ArrayStorage, clock: float
) -> None:
    """Estimate a model from the words and n-grams of a text, and write it to --output. `storage`: of a
    Kneser-Ney model; `clock`: when counting began, by time.monotonic. DataError for too few counts to compute
    discounts, UserError if the disk is full."""
    with files.naming_file(args.input), files.naming_unwritten(args.output):
        if args.estimator in ESTIMATORS:
            model = estimators.smoothed_model(*counts, config, args.estimator)
        else:
            model = estimators.kneser_ney_model(*counts, config, storage)
    if args.compile:
        count_models.round_as_arpa(model)
        write_folder(args, model, args.input, storage)
    else:
        write_arpa(args, model)
    seconds = time.monotonic() - clock
    log.info("%s n-grams of order 1 to %d in %.1f s: %s", sizes(model), model.order, seconds, args.output)
    if args.estimator == "stupid-backoff":
        log.warning("%s has scores that do not sum to 1, so its perplexities mean nothing", args.output)


def write_arpa(args: argparse.Namespace, model: NgramModel) -> None:
    """Write a model to --output as an ARPA file, with a progress bar."""
    with options.progress(args, "n-grams", model.size) as progress:
        count_models.write_arpa(model, args.output, progress.add)


def sizes(model: NgramModel) -> str:
    """The number of n-grams of each order, for the log."""
    return ", ".join(f"{len(level.keys):,}" for level in model.levels)


def add_memory(parser: options.Parser, what: str) -> None:
    """Add --memory; `what`: the beginning of its help text."""
    parser.add_argument(
        "--memory",
        type=arguments.real(0),
        default=0,
        metavar="GB",
        help=f"{what}; 0: 60%% of the memory of this machine",
    )


def memory_limit(args: argparse.Namespace) -> float:
    """The bytes that --memory allows, by default 60% of this machine's memory."""
    machine = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return 1e9 * args.memory if args.memory else 0.6 * machine


# ---- finished models ---------------------------------------------------------------------------------------


def prune_parser() -> options.Parser:
    parser = options.Parser(
        "nmt-ngram prune",
        "Remove the n-grams that change the model little (entropy pruning, Stolcke 1998; as SRILM's ngram "
        "-prune), compute the back-off weights anew, and write an ARPA file.",
        "Prune before a system is tuned: its weights belong to the model that it was tuned with.",
    )
    add_arpa(parser)
    options.add_output(parser)
    parser.add_argument(
        "--threshold",
        type=arguments.real(0),
        required=True,
        help="remove an n-gram if that raises the model's own perplexity by less than this share: 1e-8 is "
        "one hundred-millionth; 0: remove nothing",
    )
    parser.add_argument(
        "--history-lm",
        type=InputPath,
        metavar="LM",
        help="ARPA file or folder of nmt-ngram compile that gives the probabilities of contexts; for a "
        "Kneser-Ney model, a model of --estimator katz of the same text; default: the model that is pruned",
    )
    options.add_quiet(parser)
    return parser


def prune_action(argv: Sequence[str]) -> None:
    args = options.parse(prune_parser(), argv)
    clock = time.monotonic()
    model = count_models.read_arpa(args.model)
    history = count_models.load_count_model(args.history_lm) if args.history_lm else None
    if isinstance(history, KenLM):
        raise ConfigError(f"--history-lm {args.history_lm}: a KenLM binary file; give the ARPA file")
    with files.naming_file(args.model):
        pruned = pruning.prune_by_entropy(model, args.threshold, history)
    write_arpa(args, pruned)
    log.info(
        "%s of %s n-grams stay (%s), in %.1f s: %s",
        f"{pruned.size:,}", f"{model.size:,}", sizes(pruned), time.monotonic() - clock, args.output,
    )  # fmt: skip


def compile_parser() -> options.Parser:
    parser = options.Parser(
        "nmt-ngram compile",
        "Write an n-gram model as a folder that is mapped into memory: it opens at once whatever its size, "
        "and all processes share it. Every command that reads an ARPA file reads the folder.",
    )
    add_arpa(parser)
    parser.add_argument("-o", "--output", type=OutputPath, required=True, metavar="DIR", help="new folder")
    add_quantize(parser)
    add_memory(
        parser,
        f"memory for the model, {MEMORY_TO_COMPILE} bytes for each of its ARPA file, unpacked; a model that "
        "needs more lies in files beside the output until it is written",
    )
    options.add_quiet(parser)
    return parser


def verify_parser() -> options.Parser:
    parser = options.Parser(
        "nmt-ngram verify",
        "Read a folder of nmt-ngram compile whole and verify its checksums, which other commands do once "
        "on a machine.",
    )
    parser.add_argument("folder", type=InputPath, metavar="DIR", help="folder of nmt-ngram compile")
    options.add_quiet(parser)
    return parser


def add_arpa(parser: options.Parser) -> None:
    parser.add_argument("model", type=InputPath, metavar="ARPA", help="ARPA file, also .gz")


def add_quantize(parser: options.Parser) -> None:
    parser.add_argument(
        "--quantize",
        type=arguments.integer(0, trie_build.MOST_BITS),
        default=0,
        metavar="BITS",
        help="bits of each log p and back-off of two words and more, which then are one of 2^BITS values for "
        "each length: 8 halves the size; 0: exact",
    )


def compile_action(argv: Sequence[str]) -> None:
    args = options.parse(compile_parser(), argv)
    clock = time.monotonic()
    in_memory = MEMORY_TO_COMPILE * disk_counts.text_size(args.model) <= memory_limit(args)
    storage = MEMORY if in_memory else ArrayStorage(Path(args.output).resolve().parent)
    with arguments.new_folder(args.output, "nmt-ngram compile", mapped.UNFINISHED):
        with files.naming_unwritten(args.output):
            model = count_models.read_arpa(args.model, storage)
        write_folder(args, model, args.model, storage)
    size = sum(path.stat().st_size for path in Path(args.output).iterdir())
    log.info(
        "%s n-grams, %s bytes, %.1f each, in %.1f s: %s",
        f"{model.size:,}", f"{size:,}", size / model.size, time.monotonic() - clock, args.output,
    )  # fmt: skip


def write_folder(args: argparse.Namespace, model: NgramModel, source: str, storage: ArrayStorage) -> None:
    """Compile a model, write it to the existing folder --output, and verify it. `source`: the file that it
    was made from; `storage`: of temporary arrays. UserError if the disk is full."""
    with files.naming_unwritten(args.output):
        compiled = trie_build.compile_model(model, args.quantize, storage)
    mapped.write_record(Path(args.output), compiled, [str(source)])
    trie.load_trie(args.output, verify=True)  # on this machine it is verified from now on


def verify_action(argv: Sequence[str]) -> None:
    args = options.parse(verify_parser(), argv)
    if not mapped.is_mapped(args.folder):
        raise ConfigError(f"{args.folder}: not a folder of nmt-ngram compile; name one that it wrote")
    model = trie.load_trie(args.folder, verify=True)
    log.info("%s: sound, n-grams of order 1 to %d", args.folder, model.trie.order)


# ---- word classes ------------------------------------------------------------------------------------------


def classes_parser() -> options.Parser:
    parser = options.Parser(
        "nmt-ngram classes",
        "Put the words of a text into classes whose words have similar neighbors, by the exchange algorithm "
        "(Kneser and Ney 1993, as mkcls does), and write 'word<TAB>class', sorted by word. The same text "
        "gives the same classes.",
        "nmt-ngram --word-classes estimates a model of classes instead of words.",
    )
    options.add_input_output(parser, "tokenized text, one sentence a line,")
    add_settings(parser, ClassConfig, "classes", "rounds")
    add_memory(parser, "memory for counting bigrams; for a text that needs more, they lie on disk")
    jobs.add_shared_job(parser)
    options.add_quiet(parser)
    return parser


def classes_action(argv: Sequence[str]) -> None:
    args = options.parse(classes_parser(), argv)
    config, executor = parse_settings(ClassConfig, args), parse_settings(ExecutorConfig, args)
    settings.check(config)
    shared_folder = jobs.shared_folder(args, "nmt-ngram", executor)
    if shared_folder and args.input == "-":
        raise ConfigError("several workers cannot read stdin; give a file")
    clock, limit = time.monotonic(), memory_limit(args)
    pairs = SmoothingConfig(order=word_classes.PAIRS.order)
    memory = limit if disk_counts.memory_to_count(args.input, pairs.order) > limit else 0.0
    with ExitStack() as stack, files.naming_file(args.input):
        counts, _ = count(args, pairs, stack, executor, shared_folder, memory)
        classes = word_classes.learn_classes(counts, config)
    word_classes.write_classes(args.output, classes)
    log.info(
        "%s words in %d classes in %.1f s: %s",
        f"{len(classes):,}", len(set(classes.values())), time.monotonic() - clock, args.output,
    )  # fmt: skip


ACTIONS: dict[str, Callable[[Sequence[str]], None]] = {
    "prune": prune_action,
    "compile": compile_action,
    "verify": verify_action,
    "classes": classes_action,
}


if __name__ == "__main__":
    sys.exit(main())
