"""nmt-init: inspect a parallel text, report problems, and write a configuration for it."""

import argparse
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli import options, parallel_text
from nmt.cli.arguments import OutputPath, real
from nmt.cli.parallel_text import SIDES
from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.io.progress import duration
from nmt.runs.directory import CONFIG
from nmt.text import inspection, scripts
from nmt.text.inspection import PairReport, choose_held_out, inspect_pairs, split_held_out
from nmt.training.proposal import TRANSFORMER, ParallelTexts, Proposal, preset_file, propose

if TYPE_CHECKING:
    from nmt.training.cost import Cost

FASTER = 3  # times as many lines a second as the run itself: docs/performance.md


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-init",
        "Inspect a parallel text, report what nmt-train should know, and write "
        "DIR/config.yaml, a commented configuration for it. Without a development set, some pairs are held "
        "out as one.",
    )
    parser.add_argument("folder", type=OutputPath, metavar="DIR", help="folder to create, or an empty one")
    parallel_text.add_options(parser, dev=True)
    for side in SIDES:
        parser.add_argument(
            f"--{side}-language",
            default="",
            metavar="CODE",
            help="default: the ending of the file's name, else guessed from its words",
        )
    parser.add_argument(
        "--sample-corpus",
        action="store_true",
        help="write into DIR a small English-French corpus, to try things with: train, dev and test .en "
        "and .fr with their word alignment, and a phrase table",
    )
    parser.add_argument(
        "--preset",
        default="",
        metavar="NAME",
        help="preset of settings; default: by the number of pairs",
    )
    parser.add_argument(
        "--fast",
        action="store_true",
        help=f"for the fastest translations: the preset {TRANSFORMER}, whose trained model nmt-export "
        "converts to CTranslate2",
    )
    parser.add_argument(
        "--minutes",
        type=real(above=0),
        metavar="N",
        help="time limit of the training, over which the learning rate falls to 0; default: no limit",
    )
    parser.add_argument(
        "--no-measure",
        action="store_true",
        help="skip the few seconds of training that measure the speed of this machine",
    )
    options.add_quiet(parser)
    return parser


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv)
    if os.path.lexists(args.folder) and not (os.path.isdir(args.folder) and not os.listdir(args.folder)):
        raise ConfigError(f"{args.folder}: exists and is not overwritten; name a new folder")
    if args.sample_corpus:
        make_sample_corpus(args)
        return
    check_options(args)
    with parallel_text.read_documents(args):
        init(args)


def init(args: argparse.Namespace) -> None:
    """Inspect the texts, report on them, and write the new folder."""
    train = inspect_text(args, "", "training text")
    dev = inspect_text(args, "dev_", "development set") if args.dev_source else None
    report = list(inspection.survey_sections(train, dev))
    for section in report:
        for line in section.lines():
            print(line)
    if mistakes := inspection.count_mistakes(report):
        raise DataError(
            f"{train.source.path}, {train.target.path}: {mistakes} of the findings above would stop the "
            "training; correct the files first. Nothing was written"
        )
    from nmt.runs.text import data_settings, parse_yaml

    with new_folder(args.folder) as part:
        texts = choose_texts(args, train, part)
        proposal = propose_config(args, train, texts)
        lines = list(proposal.lines())
        data_settings(parse_yaml("\n".join(lines), Path(CONFIG)), Path(CONFIG))
        files.write_text(part / CONFIG, lines)
    print(f"wrote {Path(args.folder, CONFIG)}")
    if not args.no_measure:
        measure_training(args, train, proposal)
    folder = shlex.quote(args.folder)
    print(f"next: nmt-train {folder}, then nmt-translate {folder}")
    if args.fast:
        print(
            f"fast: then nmt-export {folder} --format ctranslate2 --quantization int8 --output FOLDER, which "
            f"translates about {FASTER} times as fast"
        )


def check_options(args: argparse.Namespace) -> None:
    """Check options and files before the texts are read. ConfigError or DataError for wrong ones."""
    parallel_text.check_options(args)
    texts = [args.source, args.target, args.dev_source, args.dev_target, *args.parallel, *args.dev_parallel]
    for path in filter(None, texts):
        files.existing([path])
        if not os.path.isfile(path):
            raise DataError(f"{files.name_of(path)}: expected a file; it is read more than once")
    if args.fast and args.preset not in ("", TRANSFORMER):
        raise ConfigError(f"--fast: is the preset {TRANSFORMER}; leave out --preset {args.preset}")
    if args.preset:
        preset_file(args.preset)
    for side in SIDES:
        if language := getattr(args, f"{side}_language"):
            scripts.check_language_code(language, f"--{side}-language")


def inspect_text(args: argparse.Namespace, prefix: str, title: str) -> PairReport:
    """Read both files of a text and report on their pairs, with a progress bar. `prefix`: of its options,
    empty or `dev_`; `title`: of the bar. DataError for a file that cannot be read."""
    source, target = (getattr(args, f"{prefix}{side}") for side in SIDES)
    names = parallel_text.names(args, prefix, (source, target))
    with options.progress(args, "pairs", lambda: files.number_of_lines(source), title=title) as progress:
        return inspect_pairs(source, target, progress.add, names)


def make_sample_corpus(args: argparse.Namespace) -> None:
    """Write the sample corpus. ConfigError if options speak of other texts or of a configuration."""
    from nmt.sample_corpus.corpus import write_sample_corpus

    unset = vars(parser().parse_args([args.folder, "--sample-corpus"]))
    for name, value in vars(args).items():
        if value != unset[name] and name not in ("folder", "no_measure", "quiet", "log"):
            raise ConfigError(f"{options.flags([name])}: cannot be combined with --sample-corpus")
    with new_folder(args.folder) as part:
        sizes = write_sample_corpus(part)
    pairs = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
    print(f"wrote {args.folder}: {pairs} sentence pairs")
    folder = shlex.quote(args.folder)
    print(f"next: nmt-init NEW --source {folder}/train.en --target {folder}/train.fr")


# ---- writing -----------------------------------------------------------------------------------------------


@contextmanager
def new_folder(folder: str) -> Iterator[Path]:
    """Yield a new folder with a temporary name. If the block succeeds, it is renamed to `folder`, or its
    files are moved there if that is an empty folder; if it fails, it is removed. UserError for an OSError,
    also one from the block."""
    part = Path(f"{os.path.realpath(folder)}.part{os.getpid()}")
    with files.naming_unwritten(folder):
        created = files.make_parents(part)
        part.mkdir()
    try:
        with files.naming_unwritten(folder):
            yield part
            if os.path.isdir(folder):  # perhaps the working folder of a shell, or a mounted one: it stays
                for path in sorted(part.iterdir(), key=lambda path: path.name == CONFIG):
                    shutil.move(path, folder)
            else:
                os.replace(part, os.path.realpath(folder))
    finally:
        shutil.rmtree(part, ignore_errors=True)
        files.remove_empty_folders(created)


def choose_texts(args: argparse.Namespace, train: PairReport, part: Path) -> ParallelTexts:
    """Choose the files that the configuration names. With a development set, the line files of documents
    (--parallel, --dev-parallel) are moved to the folder `part`. Without one, the text is split into a
    training part and a held-out part, which are written to `part`, and the number of held-out pairs is
    printed. Files in `part` are returned by their paths after it is renamed. `train`: the report on the text.
    DataError if the text has too few pairs to hold some out, UserError if a file cannot be written."""
    texts = (args.source, args.target)
    languages = tuple(
        getattr(args, f"{side}_language") or scripts.language_of_file(path) or report.guess().language
        for side, path, report in zip(SIDES, texts, train.sides, strict=True)
    )
    named = (languages[0], languages[1])
    endings = named if all(named) and named[0] != named[1] else SIDES
    if args.dev_source:
        dev = (args.dev_source, args.dev_target)
        if args.parallel:
            texts = keep_texts(args, texts, part, [f"train.{ending}" for ending in endings])
        if args.dev_parallel:
            dev = keep_texts(args, dev, part, [f"dev.{ending}" for ending in endings])
        return ParallelTexts(texts, dev, named)
    rows = choose_held_out(train)
    packed = [".gz" if path.endswith(".gz") else "" for path in texts]
    train_names, dev_names = (
        [f"{name}.{ending}{gz}" for ending, gz in zip(endings, packed, strict=True)]
        for name in ("train", "dev")
    )
    split_held_out(texts, [part / name for name in train_names], [part / name for name in dev_names], rows)
    print(f"{len(rows):,} pairs are held out as a development set; the others are the training text")
    train_paths, dev_paths = (
        (os.path.join(args.folder, names[0]), os.path.join(args.folder, names[1]))
        for names in (train_names, dev_names)
    )
    return ParallelTexts(train_paths, dev_paths, named)


def keep_texts(
    args: argparse.Namespace, texts: tuple[str, str], part: Path, names: Sequence[str]
) -> tuple[str, str]:
    """Move the line files `texts` to `names` in the new folder `part`; returns their later paths."""
    for text, name in zip(texts, names, strict=True):
        shutil.move(text, part / name)
    return os.path.join(args.folder, names[0]), os.path.join(args.folder, names[1])


def propose_config(args: argparse.Namespace, train: PairReport, texts: ParallelTexts) -> Proposal:
    """Propose a configuration. Its run is named after the languages, or the folder if one is unknown."""
    source, target = texts.languages
    name = f"{source}-{target}" if source and target else Path(args.folder).resolve().name
    preset = TRANSFORMER if args.fast else args.preset
    return propose(train, texts, os.path.join(args.folder, name), preset, args.minutes or 0.0)


def measure_training(args: argparse.Namespace, train: PairReport, proposal: Proposal) -> None:
    """Train for some seconds, and print how long the training will take. A warm-up that is too long for
    --minutes is shortened in the configuration file."""
    from nmt.training import config_file
    from nmt.training.cost import measure

    path = Path(args.folder, CONFIG)
    config = config_file.load(str(path))
    with tempfile.TemporaryDirectory() as folder:
        cost = measure(config, train.sides, Path(folder))
    show_cost(cost, config.training.max_epochs)
    if args.minutes and proposal.fit_warmup(config.training.warmup, cost.planned_updates):
        files.write_text(path, list(proposal.lines()))


def show_cost(cost: "Cost", epochs: int) -> None:
    """Print the measured speed, and how long a training of at most `epochs` epochs will take."""
    print(
        f"{cost.parameters:,} parameters; {cost.per_thousand:.2g} seconds per thousand target words or "
        f"subwords, measured over {cost.updates} updates in {cost.seconds:.0f} s ({cost.device})"
    )
    if not cost.epochs and not cost.minutes:
        print("the training has no limit, so its duration is unknown")
        return
    of_total = f" of {epochs}" if epochs > cost.planned_epochs else ""
    print(
        f"planned: {cost.planned_epochs:.3g}{of_total} epochs, {cost.planned_updates:,} updates and "
        f"{cost.planned_validations} validations of about {duration(cost.validation_seconds)}: about "
        f"{duration(cost.planned_seconds)}"
    )
    if cost.planned_epochs < 1:
        print("  there is not enough time for one epoch: part of the text would never be read")


if __name__ == "__main__":
    sys.exit(main())
