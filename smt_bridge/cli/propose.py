"""smt-propose: let an encoder-decoder propose phrase pairs, for source phrases that a table lacks or for
which it has few rows."""

import argparse
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from nmt.cli import arguments, jobs, options
from nmt.cli.arguments import InputPath, add_setting, add_settings, parse_settings
from nmt.errors import DataError
from nmt.formats import phrase_table
from nmt.io import files
from nmt.work import executors, store
from nmt.work.executors import ExecutorConfig
from smt_bridge.cli.shared_options import add_outputs, add_table, check_reordering
from smt_bridge.config import ProposeConfig
from smt_bridge.features.registry import FEATURES, FeatureSettings, FeatureSpec
from smt_bridge.moses.words import check_reads_words
from smt_bridge.tables.filter import Occurring, read_texts, write_rows

if TYPE_CHECKING:
    from nmt.compute.device import Arithmetic
    from smt_bridge.tables.propose import NetworkAnswers, NetworkExecutor, NetworkRequest, Networks

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    parser = options.Parser(
        "smt-propose",
        "Let an encoder-decoder propose translations of source phrases that a table lacks or covers thinly. "
        "The new table has one more score, exp(1) in proposed rows and 1 in others, so that tuning can weigh "
        "proposals; the reordering table gets the same rows. Add further scores afterwards.",
    )
    add_table(parser, "sorted, with Moses' four scores, and count bins if smt-train wrote them")
    options.add_model(parser)
    parser.add_argument(
        "--inverse",
        type=InputPath,
        metavar="RUN_DIR",
        help="model of the other direction, for p(source | target); default: estimated by the same model",
    )
    parser.add_argument(
        "--lexical",
        required=True,
        metavar="STEM",
        help="word translation probabilities STEM.e2f and STEM.f2e, written by smt-extract or Moses",
    )
    add_outputs(parser, "whose phrases get proposals", "reordering table with rows for the proposals")
    add_settings(parser, ProposeConfig, "options", "beam_size", "thin", "rare", "max_length")
    add_setting(parser, ProposeConfig, "least", metavar="P")
    jobs.add_executor(parser)
    options.add_quiet(parser)
    return parser


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv)
    check_options(args)
    threads = args.threads or (1 if parse_settings(ExecutorConfig, args).name != "local" else None)
    run(args, options.set_up_torch(args.device, threads, args.matmul, args.run))


def check_options(args: argparse.Namespace) -> None:
    """ConfigError for options that contradict each other; DataError for missing files."""
    check_reordering(args)
    lexicons = [f"{args.lexical}.e2f", f"{args.lexical}.f2e"]
    paths = [args.table, *args.input, *([args.reordering] if args.reordering else []), *lexicons]
    files.require_files(paths, "the table and the texts are read more than once")
    files.existing(paths)
    arguments.check_separate(
        [("--lexical", path) for path in lexicons],
        [("--output", args.output), ("--reordering-output", args.reordering_output)],
    )


def run(args: argparse.Namespace, line: str) -> None:
    """Propose rows for the phrases of the texts that the table lacks or covers thinly, and write both tables
    with them. `line`: how torch was set up, for the log. DataError for malformed tables or word translations,
    or if there are no such phrases; UserError if results were lost or an output cannot be written."""
    from smt_bridge.tables import propose

    config = arguments.parse_settings(ProposeConfig, args)
    table = propose.read_table(args.table, args.reordering)
    thin = propose.thin_sources(Occurring(read_texts(args.input)), table, config)
    if not thin:
        raise DataError(
            f"{args.input[0]}: the table covers every phrase of up to {config.max_length} words; increase "
            "--thin or --rare"
        )
    lexicons = propose.read_lexicon(f"{args.lexical}.f2e"), propose.read_lexicon(f"{args.lexical}.e2f")
    proposer = propose.Proposer(config=config, table=table, lexicons=lexicons)
    with start_networks(args) as executor:
        log.info("%s", line)
        with options.progress(args, "phrases", len(thin)) as progress:
            rows = proposer.rows(thin, executor, progress.add)
    old = files.read_byte_lines(args.reordering) if args.reordering else None
    merged = propose.merge_rows(phrase_table.read(args.table), rows, old)
    rows_written = write_rows(merged, args.output, args.reordering_output)
    log.info(
        "%s source phrases to be covered, %s proposals for %s of them; %s rows in all; "
        "moses.ini: num-features=%d (smt-ini add-feature)",
        f"{len(thin):,}", f"{len(rows):,}", f"{len({row.source for row in rows}):,}", f"{rows_written:,}",
        propose.COLUMNS + table.bins + 1,
    )  # fmt: skip


def load_networks(args: argparse.Namespace) -> "Networks":
    """Load the networks that the options name. ConfigError for one that reads raw text; also the errors of
    `TorchRun.of`."""
    from nmt.runs.torch_run import TorchRun
    from smt_bridge.features.torch_features import RunTranslation
    from smt_bridge.tables.propose import Networks

    inverse = None
    if args.inverse:
        settings = FeatureSettings(checkpoint=args.checkpoint, device=args.device)
        spec = FeatureSpec(kind="inverse", name="Inverse", path=args.inverse)
        inverse = FEATURES["inverse"].load(spec, settings)
    run = TorchRun.of(args.run, which=args.checkpoint, device=args.device)
    for member in run.members:
        check_reads_words(member.directory, source=member.source.raw, target=member.target.raw)
    search = run.for_text(tokenized=True).n_best
    direct = RunTranslation(run.members[0]) if run.members[0].target.subwords else None
    return Networks(search, inverse, args.beam_size, run.files(), direct)


def start_networks(args: argparse.Namespace) -> "NetworkExecutor":
    """Make the executor that computes with the networks, in this process or in workers that load the same
    ones. ConfigError as from `load_networks` and `executors.make`."""
    from nmt.compute import device

    networks_here = load_networks(args)
    config = parse_settings(ExecutorConfig, args)
    models = {} if config.name == "local" else store.file_digests(networks_here.files)
    load_remote = partial(
        load_in_worker,
        jobs.absolute_paths(args, []),
        device.arithmetic_in_use(),
        models,
        networks_here.identity(),
    )
    return executors.make(networks_here.compute, load_remote, config)


def load_in_worker(
    args: argparse.Namespace, arithmetic: "Arithmetic", models: Mapping[str, str], inverse: str
) -> "Callable[[NetworkRequest], NetworkAnswers]":
    """In a worker: load the networks that the command has loaded, with its number of threads and matrix back
    end. Returns the function that computes with them. `models`: checksums by path; `inverse`: identity of the
    model of the other direction; empty if there is none. DataError for models that differ."""
    store.check_digests(models)
    arithmetic.use()
    networks = load_networks(args)
    if networks.identity() != inverse:
        raise DataError(
            f"{args.inverse}: differs from the model where the job was started; copy it to every worker"
        )
    return networks.compute


if __name__ == "__main__":
    sys.exit(main())
