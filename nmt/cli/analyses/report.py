"""nmt-analyze report: one self-contained HTML page on runs and outputs of any system."""

import argparse
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.analysis import curves, hard_words, report
from nmt.analysis.report import ReportConfig, ReportData
from nmt.analysis.systems import System, TestSet, read_systems, unique_names
from nmt.cli import options
from nmt.cli.analyses import inputs
from nmt.cli.arguments import InputPath, OutputPath, add_setting, parse_settings
from nmt.cli.options import Parser
from nmt.errors import ConfigError
from nmt.io import files
from nmt.runs import directory as run_directory
from nmt.search.config import BeamConfig

if TYPE_CHECKING:
    from nmt.runs.checkpoint import SavedRun

log = logging.getLogger(__name__)

BLOCK = 200  # sentences translated together


@dataclass
class Page:
    """The data of the page."""

    data: ReportData

    def write(self, output: str, name: str) -> None:
        """The page, and each system's scores to stderr."""
        files.write_text(output, report.html(self.data).rstrip("\n").split("\n"))
        for row in self.data.systems:
            log.info("%s: BLEU %.2f, chrF %.2f", row["name"], row["bleu"], row["chrf"])
        log.info("%s", output)


class Report:
    """A page on systems side by side."""

    help = "One HTML page on runs and outputs: summary, curves, subsets, a browser of sentences."

    def add_options(self, parser: Parser) -> None:
        parser.add_argument(
            "systems",
            type=InputPath,
            nargs="+",
            metavar="RUN_OR_OUTPUT",
            help="run directories, which translate the source, or outputs: text or n-best lists",
        )
        inputs.add_source(parser)
        inputs.add_references(parser)
        parser.add_argument(
            "--output",
            "-o",
            type=OutputPath,
            required=True,
            metavar="FILE",
            help="the page; it needs no other file and no network",
        )
        inputs.add_names(parser, "names of the systems")
        parser.add_argument("--title", default=ReportConfig.title, help="title of the page")
        parser.add_argument(
            "--tokenized",
            action="store_true",
            help="source and references are tokenized as the runs' text was",
        )
        add_setting(parser, BeamConfig, "beam_size", "-b", help="beam size with which the runs translate")
        add_setting(parser, ReportConfig, "least")
        add_setting(parser, ReportConfig, "samples")
        inputs.add_vocabularies(parser, required=False)
        inputs.add_training(parser, required=False)
        options.add_compute(parser)

    def run(self, args: argparse.Namespace) -> Page:
        inputs.check_names(args.names, args.systems, "systems")
        vocabs = inputs.read_vocabularies(args.vocabulary) if args.vocabulary else None
        names = args.names or unique_names([path.rstrip("/") for path in args.systems])
        if len(set(names)) < len(names):
            raise ConfigError("two systems have one name; give others with --names")
        paths = dict(zip(names, args.systems, strict=True))
        runs = {name: Path(path) for name, path in paths.items() if Path(path).is_dir()}
        learned = {name: curves.read_curves(run) for name, run in runs.items() if (run / "dev.tsv").exists()}
        test, outputs = read_outputs(args, {name: path for name, path in paths.items() if name not in runs})
        hard, counts = inputs.count_hard_words(args, vocabs, test)
        systems, about, newest = list[System](), list[tuple[str, str]](), list[str | Path]()
        for name, path in paths.items():
            if name in outputs:
                systems.append(outputs[name])
                about.append((name, f"the translations in {Path(path).name}"))
                newest.append(path)
            else:
                system, member = translated(args, name, path, test)
                systems.append(system)
                about.append((name, f"{member.description}, update {member.step:,}; beam {args.beam_size}"))
                newest.append(run_directory.weights_path(member.directory, member.step))
        for run in runs.values():  # the first that cuts words; torch is set up by now
            if units := inputs.read_units(str(run), test, args.tokenized):
                hard["segmented"] = hard_words.segmented_sides(*units)
                break
        log.info("scoring %d systems, with %s samples of the sentences", len(systems), f"{args.samples:,}")
        data = report.gather(systems, hard, counts, learned, parse_settings(ReportConfig, args))
        about += [*test_facts(args, test), ("date", report.day(newest))]
        return Page(replace(data, about=about))


def read_outputs(args: argparse.Namespace, outputs: Mapping[str, str]) -> tuple[TestSet, dict[str, System]]:
    """The test set, and the systems of which there are outputs, by name."""
    # Without an output, a reference stands in: the test set is what is needed.
    given = list(outputs.values()) or args.reference[:1]
    read = read_systems(
        args.source, args.reference, given, list(outputs) or None, args.bleu_tokenize, args.lowercase
    )
    return read[0].test, {system.name: system for system in read if outputs}


def test_facts(args: argparse.Namespace, test: TestSet) -> Iterator[tuple[str, str]]:
    """The texts of the report, by their files."""
    words = sum(map(len, test.source_words))
    names = f"{Path(args.source).name} to {', '.join(Path(path).name for path in args.reference)}"
    yield "test set", f"{names}; {len(test.sources):,} sentences, {words:,} source words"
    yield "training text", " and ".join(Path(path).name for path in args.train or ())


def translated(args: argparse.Namespace, name: str, path: str, test: TestSet) -> "tuple[System, SavedRun]":
    """A run as a system: its translations of the source; and the run."""
    run = inputs.load_run(args, path)
    hypotheses: list[str] = []
    with options.progress(args, "sentences", len(test.sources), title=name) as progress:
        for at in range(0, len(test.sources), BLOCK):
            block = test.sources[at : at + BLOCK]
            hypotheses += run.translate(block, BeamConfig(args.beam_size), args.tokenized)
            progress.add(len(block))
    return System(name=name, hypotheses=hypotheses, test=test), run.members[0]
