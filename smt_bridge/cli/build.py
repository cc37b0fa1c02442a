"""smt-build: build a hybrid system from a parallel text."""

import argparse
import logging
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.cli import options, parallel_text
from nmt.cli.arguments import InputPath, add_setting, add_settings, parse_settings
from nmt.errors import ConfigError
from nmt.io import files
from smt_bridge.build.config import BuildConfig
from smt_bridge.extraction.alignment import ALIGNERS

log = logging.getLogger(__name__)

UNITS = {"h": 3600, "m": 60, "s": 1}
BUDGET = re.compile(r"(?:\d+(?:\.\d+)?[hms])+")
LONGEST = 100_000_000  # seconds of a budget
STUDENT = ("student", "student_minutes", "student_references")
STUDENT_OPTIONS = ("monolingual_source", *STUDENT[1:])  # have no effect without --student


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    parser = options.Parser(
        "smt-build",
        "Build a hybrid system from raw text: a tuned phrase-based model with neural models inside its "
        "search, in one folder for smt-decode. An interrupted build resumes when it is started again.",
    )

    parallel_text.add_options(parser, dev=True)
    options.add_required_output(parser, "DIR", "the folder of the system")
    for name in ("monolingual", "glossary", "plan", "monolingual_source"):
        add_setting(parser, BuildConfig, name, type=InputPath, metavar="FILE")
    for name in ("source_language", "target_language"):
        add_setting(parser, BuildConfig, name, metavar="CODE")
    parser.add_argument(
        "--budget",
        type=parse_seconds,
        default=f"{BuildConfig.budget // 60}m",  # in the form that the help should show
        metavar="TIME",
        help="approximate time for the build, such as 90m or 1h30m, by which the networks and their training "
        "are chosen",
    )
    add_settings(parser, BuildConfig, "phrase_features", "workers", "seed")
    add_setting(parser, BuildConfig, "keep_plan", action="store_true")
    add_settings(parser, BuildConfig, *STUDENT)
    parser.add_argument("--dry-run", action="store_true", help="print the plan and exit")
    options.add_quiet(parser)
    return parser


def parse_seconds(text: str) -> int:
    """Argument type: a time such as 90m, 1h30m, 1.5h or 300s, in seconds: a minute to LONGEST."""
    if not BUDGET.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time, expected e.g. 90m, 1h30m or 300s")
    total = sum(float(part[:-1]) * UNITS[part[-1]] for part in re.findall(r"[\d.]+[hms]", text))
    if not 60 <= total <= LONGEST:
        raise argparse.ArgumentTypeError(f"{text} is out of range, expected 1m to {LONGEST // 3600}h")
    return round(total)


def command(argv: Sequence[str] | None) -> None:
    own_parser = parser()
    args = options.parse(own_parser, argv, times=True)
    if not args.student:
        options.refuse_alone(own_parser, args, STUDENT_OPTIONS, "--student")
    parallel_text.check_options(args, dev_required=True)
    with parallel_text.read_documents(args):
        build(args)


def build(args: argparse.Namespace) -> None:
    """Print the plan for the texts, and build the system unless this is a dry run."""
    from smt_bridge.build import corpus, evaluation, pipeline, plan, student
    from smt_bridge.build.config import Build

    config = parse_settings(BuildConfig, args)
    check_texts(config)
    corpus.sides(config)
    corpus.check_glossary(config)
    pipeline.check_output_folder(Path(config.output))
    if not pipeline.is_started(config):
        if config.plan:
            pipeline.load_or_make_plan(config)  # a mistake in it is reported before the texts are read
        print_survey(args, config)
    if args.dry_run:
        build_plan = pipeline.load_or_make_plan(config)
        print("\n".join(plan.plan_lines(build_plan, config.workers, config.budget)))
        for line in student.plan_lines(Build(config, build_plan)):
            print(line)
        return
    default_aligner = next(iter(ALIGNERS))
    ALIGNERS[default_aligner].check()  # fail now, not in the middle of the build
    built = pipeline.build(config, print, options.shows_bar(args))
    results = evaluation.read_evaluation(built)
    log.info(
        "%s: built, %s, BLEU %.2f on the development set; next: smt-decode %s < TEXT",
        config.output, results.chosen, 100 * results.bleu[results.chosen], config.output,
    )  # fmt: skip


def print_survey(args: argparse.Namespace, config: BuildConfig) -> None:
    """Inspect the training text and the development set, and print what stands out, as nmt-init does."""
    from nmt.text.inspection import PairReport, inspect_pairs, survey_sections
    from smt_bridge.build import corpus

    reports: list[PairReport] = []
    for prefix, title, source_text, target_text in (
        ("", "training text", config.source, config.target),
        ("dev_", "development set", config.dev_source, config.dev_target),
    ):
        names = parallel_text.names(args, prefix, (source_text, target_text))
        with options.line_progress(args, source_text, unit="pairs", title=title) as progress:
            reports.append(inspect_pairs(source_text, target_text, progress.add, names))
    source, target = (side.language for side in corpus.sides(config))
    train, dev = reports
    for section in survey_sections(train, dev, (source, target), raw=True):
        for line in section.lines():
            print(line)
    print()


def check_texts(config: BuildConfig) -> None:
    """ConfigError for the standard input, and for a text inside the output folder; DataError for a missing
    text, bytes that are not UTF-8, and parallel texts of unequal length."""
    texts = config.texts()
    files.require_files(texts, "the texts are read more than once")
    files.existing(texts)
    folder = Path(config.output).resolve()
    for path in texts:
        if folder in Path(path).resolve().parents:
            raise ConfigError(f"{path}: lies in the output folder {config.output}; name another folder")
    files.check_parallel(config.source, config.target)
    files.check_parallel(config.dev_source, config.dev_target)


if __name__ == "__main__":
    sys.exit(main())
