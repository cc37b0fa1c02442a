"""The options for parallel text in one file: --parallel, --languages and --columns. The command reads it as
two line files in a temporary folder."""

import argparse
import logging
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from nmt.cli import options
from nmt.cli.arguments import InputPath, positive
from nmt.errors import ConfigError
from nmt.formats.parallel_text import FORMATS, Wanted, choose_reader, primary_subtag, write_pairs

log = logging.getLogger(__name__)

SIDES = ("source", "target")


def add_options(parser: options.Parser, dev: bool = False) -> None:
    """Add the options for a text in two line files or in documents. `dev`: also for a development set."""
    documents = f"files that hold both sides: {', '.join(FORMATS)}, also with .gz"
    for prefix, what in (("", ""), ("dev-", " of a development set"))[: 1 + dev]:
        for side, letter in zip(SIDES, "st", strict=True):
            parser.add_argument(
                f"--{prefix}{side}",
                *([] if prefix else [f"-{letter}"]),
                type=InputPath,
                metavar="FILE",
                help=f"{side} text{what}, a sentence a line; plain or gzip",
            )
        parser.add_argument(
            f"--{prefix}parallel",
            type=InputPath,
            nargs="+",
            default=[],
            metavar="FILE",
            help=f"instead of --{prefix}source and --{prefix}target: {documents}",
        )
    parser.add_argument(
        "--languages",
        nargs=2,
        default=[],
        metavar=("SOURCE", "TARGET"),
        help="the languages to read from --parallel, as en fr; en is also en-US",
    )
    parser.add_argument(
        "--columns",
        type=positive,
        nargs=2,
        default=[],
        metavar=("SOURCE", "TARGET"),
        help="the columns to read from a .tsv file, from 1; default: those that its first line names by "
        "language, else the only two",
    )


def check_options(args: argparse.Namespace, dev_required: bool = False) -> None:
    """ConfigError unless each text is given by one kind of option. `dev_required`: also a development set."""
    for prefix in ("", "dev_"):
        if prefix and not hasattr(args, "dev_parallel"):
            continue
        dashed = prefix.replace("_", "-")
        sides = [getattr(args, f"{prefix}{side}") for side in SIDES]
        names = f"--{dashed}source, --{dashed}target"
        if documents(args, prefix):
            if any(sides):
                raise ConfigError(f"{names}, --{dashed}parallel: give either the first two or the last")
            for path in documents(args, prefix):
                choose_reader(path)
        elif any(sides) != all(sides):
            raise ConfigError(f"{names}: give both or neither")
        elif not any(sides) and (not prefix or dev_required):
            raise ConfigError(
                f"{names}: missing; give two line files, or --{dashed}parallel with --languages for one of "
                f"{', '.join(FORMATS)}"
            )
    if bool(args.languages) != any(documents(args, prefix) for prefix in ("", "dev_")):
        raise ConfigError(
            "--languages: is for --parallel; leave it out"
            if args.languages
            else "--languages: missing; name the languages of both sides in --parallel, as en fr"
        )
    if len(set(args.languages)) == 1 or len(set(args.columns)) == 1:
        raise ConfigError("--languages, --columns: source and target are the same; name two")
    if args.columns and not args.languages:
        raise ConfigError("--columns: is for a .tsv file given with --parallel; leave it out")


def documents(args: argparse.Namespace, prefix: str = "") -> list[str]:
    """The files given with --parallel; with the prefix `dev_`, those given with --dev-parallel."""
    return list(getattr(args, f"{prefix}parallel", []))


@contextmanager
def read_documents(args: argparse.Namespace) -> Iterator[None]:
    """Read the files given with --parallel and --dev-parallel, write each as two line files, which exist
    until the end of the block, and set --source and --target, --dev-source and --dev-target to them.

    ConfigError and DataError as from `nmt.formats.parallel_text.write_pairs`."""
    with tempfile.TemporaryDirectory(prefix="parallel-") as folder:
        for prefix, title in (("", "training text"), ("dev_", "development set")):
            if paths := documents(args, prefix):
                parts = Path(folder, title.replace(" ", "-"))
                parts.mkdir()
                for side, path in zip(SIDES, convert(args, paths, parts, title), strict=True):
                    setattr(args, f"{prefix}{side}", InputPath(path))
        yield


def convert(args: argparse.Namespace, paths: Sequence[str], folder: Path, title: str) -> list[str]:
    """Write files as two line files to a folder, and log how many pairs they have. The names of the line
    files end in the codes of the languages."""
    source, target = args.languages
    endings = [primary_subtag(source), primary_subtag(target)]
    if endings[0] == endings[1]:
        endings = list(SIDES)
    outputs = [folder / f"{Path(paths[0]).name}.{ending}" for ending in endings]
    wanted = Wanted((source, target), (args.columns[0], args.columns[1]) if args.columns else None)
    with options.progress(args, "units", 0, title=title) as progress:
        counts = write_pairs(paths, wanted, (outputs[0], outputs[1]), progress.add)
    skipped = {f"lack {source} or {target}": counts.missing, "empty": counts.empty}
    log.info(
        "%s: %s units, %s pairs%s",
        " ".join(paths), f"{counts.units:,}", f"{counts.pairs:,}",
        "".join(f"; skipped: {count:,} {reason}" for reason, count in skipped.items() if count),
    )  # fmt: skip
    return list(map(str, outputs))


def names(args: argparse.Namespace, prefix: str, paths: tuple[str, str]) -> tuple[str, str]:
    """The names of line files for messages: without the temporary folder if they were made of --parallel."""
    if not documents(args, prefix):
        return paths
    return Path(paths[0]).name, Path(paths[1]).name
