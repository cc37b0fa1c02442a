"""Options that commands share: parallel texts, phrase tables, compiled models, memory of extraction,
features."""

import argparse
from collections.abc import Sequence

from nmt.cli import arguments, jobs, options
from nmt.cli.arguments import InputPath, OutputPath, add_setting, add_settings
from nmt.config.settings import Range
from nmt.errors import ConfigError
from nmt.io import numbers
from nmt.runs import directory as run_directory
from nmt.work import store
from smt_bridge.decoder.config import CompileConfig
from smt_bridge.extraction.config import LEAST_MEMORY, ExtractConfig, PruneConfig, significance_threshold
from smt_bridge.features.registry import FEATURES, FeatureSettings, FeatureSpec, need_torch

# ---- parallel texts ----------------------------------------------------------------------------------------


def add_texts(parser: argparse.ArgumentParser, source: str, target: str) -> None:
    """Add --source and --target. `source`, `target`: their help texts."""
    for name, short, text in (("--source", "-s", source), ("--target", "-t", target)):
        parser.add_argument(name, short, type=InputPath, required=True, metavar="FILE", help=text)


# ---- phrase tables -----------------------------------------------------------------------------------------


def add_table(parser: argparse.ArgumentParser, what: str = "plain, gzip, or -") -> None:
    """Add the argument TABLE. `what`: end of its help text."""
    parser.add_argument("table", type=InputPath, metavar="TABLE", help=f"phrase table; {what}")


def add_unsorted(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Add --unsorted. `more`: end of its help text."""
    parser.add_argument(
        "--unsorted", action="store_true", help=f"accept a table that is not in LC_ALL=C order{more}"
    )


def add_outputs(parser: argparse.ArgumentParser, texts: str, rows: str, required: bool = True) -> None:
    """Add --input and the options of the output tables. `texts`: end of the help text of --input; `rows`:
    help text of --reordering-output; `required`: whether --input is."""
    parser.add_argument(
        "--input",
        "-i",
        type=InputPath,
        nargs="+",
        default=[],
        required=required,
        metavar="TEXT",
        help=f"texts that will be translated, {texts}",
    )
    options.add_output(parser)
    parser.add_argument(
        "--reordering", type=InputPath, metavar="TABLE", help="lexical reordering table of the same pairs"
    )
    parser.add_argument("--reordering-output", type=OutputPath, metavar="FILE", help=rows)


def check_reordering(args: argparse.Namespace) -> None:
    """ConfigError for one option of the reordering table without the other."""
    if bool(args.reordering) != bool(args.reordering_output):
        raise ConfigError("--reordering and --reordering-output go together")


def add_pruning(parser: argparse.ArgumentParser) -> None:
    add_setting(parser, PruneConfig, "prune_significance", type=significance_setting, metavar="a+e|a-e|X")
    add_settings(parser, PruneConfig, "prune_count", "prune_entropy")


def significance_setting(text: str) -> str:
    """Argument type: a threshold of significance; "" (the default) for none."""
    try:
        if text:
            significance_threshold(text, 1)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error).partition(": ")[2]) from error
    return text


def add_compilation(parser: argparse.ArgumentParser) -> None:
    add_setting(parser, CompileConfig, "quantize", type=numbers.integer, metavar="BITS")
    add_setting(parser, CompileConfig, "quantize_lm", metavar="BITS")


# ---- memory of extraction ----------------------------------------------------------------------------------


GB = {"G": 1.0, "M": 1e-3}  # GB of each unit


def add_memory(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Add --memory. `more`: what else the memory is for, such as ", and for counting", in the help text."""
    parser.add_argument(
        "--memory",
        type=parse_gigabytes,
        default=ExtractConfig.memory,
        metavar="GB",
        help=f"memory for phrase extraction of each worker{more}, such as 1.5 or 800M; data beyond it is "
        "written to temporary files beside the output",
    )


def parse_gigabytes(text: str) -> float:
    """Argument type: memory for phrase extraction in GB, or with a unit as in 800M."""
    amount, unit = (text[:-1], text[-1]) if text[-1:] in GB else (text, "")
    try:
        value = numbers.real(amount)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}, expected GB, such as 1.5 or 800M") from error
    value *= GB.get(unit, 1.0)
    if value not in Range(least=LEAST_MEMORY):
        raise argparse.ArgumentTypeError(f"{value:g} GB is out of range, expected {LEAST_MEMORY:g} or more")
    return value


# ---- features ----------------------------------------------------------------------------------------------


def add_features(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Add --feature, the settings of features, and the options of how they are computed."""
    kinds = "; ".join(f"{name}: {kind.help}" for name, kind in FEATURES.items()).replace("%", "%%")
    parser.add_argument(
        "--feature",
        "-f",
        action="append",
        required=required,
        default=None if required else [],
        metavar="TYPE[:NAME]=PATH",
        help=f"feature to compute; may be repeated. Types: {kinds}",
    )
    add_settings(parser, FeatureSettings, "unknown", "side", "assume_normalized", "precision")
    parser.add_argument(
        "--backoff",
        type=InputPath,
        default=FeatureSettings.backoff,
        metavar="ARPA",
        help="neural-lm: divide its p(UNK) among unknown words in the proportions of this n-gram model",
    )
    jobs.add_executor(parser)
    jobs.add_resume(parser)
    options.add_compute(parser, "default: 1 for each worker")


def check_models_separate(
    args: argparse.Namespace,
    specs: Sequence[FeatureSpec],
    inputs: Sequence[tuple[str, str]],
    outputs: Sequence[tuple[str, str | None]],
) -> None:
    """ConfigError if an output is an input or a model of a feature. `inputs`, `outputs`: (option, path)."""
    models = [(f"--feature {spec.kind}", spec.path) for spec in specs]
    arguments.check_separate([*inputs, *models, ("--backoff", args.backoff)], outputs)


def set_up_features(
    args: argparse.Namespace, specs: Sequence[FeatureSpec], output: str
) -> tuple[FeatureSettings, str]:
    """Prepare to compute features: if one needs torch, choose its threads and back end for this process; a
    resumed job keeps its back end. Returns the settings of features, and a line for the log. `output`: path
    beside which the job folder is. ConfigError for a missing device; DataError for a damaged job folder."""
    if not need_torch(specs):
        settings = arguments.parse_settings(FeatureSettings, args, threads=args.threads or 1)
        return settings, jobs.describe_workers(args)
    run = next((spec.path for spec in specs if run_directory.is_trained(spec.path)), None)
    recorded = store.recorded_settings(output) if args.resume else {}
    back_end = str(recorded.get("back_end") or args.matmul)
    threads = args.threads or 1
    line = options.set_up_torch(args.device, threads, back_end, run)
    from nmt.compute import device

    settings = arguments.parse_settings(
        FeatureSettings, args, threads=threads, back_end=device.back_end_in_use()
    )
    return settings, f"{line}, {jobs.describe_workers(args)}"
