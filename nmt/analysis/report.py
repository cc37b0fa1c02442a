"""The report on how systems differ: summary, curves, subsets, a browser of all sentences. It is a single HTML
file that needs no network."""

import argparse
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nmt import __version__
from nmt.analysis import charts
from nmt.analysis.actions import load_run
from nmt.analysis.buckets import MIN_SENTENCES, lengths
from nmt.analysis.charts import Chart, HardWordCounts, RunCurves
from nmt.analysis.curves import read_curves
from nmt.analysis.differences import NgramDifference, NgramDifferenceConfig, different_ngrams, sentence_scores
from nmt.analysis.hard_words import (
    add_training,
    add_vocabularies,
    count_hard_words,
    hard_word_subsets,
    read_units,
    read_vocabularies,
    score_subsets,
    segmented_sides,
)
from nmt.analysis.statistics import SAMPLES, bleu_scores, bootstrap_intervals, compare_bleu
from nmt.analysis.systems import (
    SystemOutput,
    TestSet,
    add_names,
    add_references,
    add_source,
    check_names,
    read_systems,
    read_test,
    unique_names,
)
from nmt.cli import options
from nmt.cli.arguments import InputPath, add_setting, add_settings, parse_settings
from nmt.cli.options import Parser
from nmt.config.settings import number
from nmt.io import files
from nmt.runs import directory as run_directory
from nmt.search.config import BeamConfig

if TYPE_CHECKING:
    from nmt.runs.checkpoint import SavedRun

log = logging.getLogger(__name__)
Json = dict[str, object]
NGRAMS = 10  # n-grams listed in each direction
BLOCK = 200  # sentences translated between two updates of the progress bar
STYLES = ("vendor/uPlot.min.css", "shared/common.css", "report.css")
SCRIPTS = (
    "shared/dom.js", "tables.js", "charts.js", "shared/subsequence.js", "words.js", "sentences.js",
)  # fmt: skip


@dataclass
class ReportConfig:
    """The title of the page, and how its numbers are computed."""

    title: str = "Translation report"
    least: int = number(MIN_SENTENCES, least=1, help="leave out points of curves with fewer sentences")
    samples: int = number(SAMPLES, least=1, most=100_000, help="samples of the paired bootstrap")


@dataclass
class Lead:
    """Sections before the comparison of systems, as smt-build's report has; that of nmt-analyze has none."""

    sections: str = ""  # HTML, in which texts are escaped
    charts: Sequence[Chart] = ()  # of `sections`, numbered from 0
    heading: str = "Summary"  # heading of the comparison
    note: str = ""  # note on the comparison's scores


@dataclass
class ReportData:
    """The contents of the page, with everything that its script reads."""

    title: str
    systems: list[Json]  # name, bleu, chrf, ratio, interval, p
    signatures: list[str]
    sentences: int
    lowercase: bool = False  # scored without regard to case
    tokenized: bool = False  # whether the words of the texts are separated by blanks
    charts: list[Chart] = field(default_factory=list)
    subsets: list[Json] = field(default_factory=list)
    ngrams: list[NgramDifference] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)  # kinds of hard words
    rows: list[Json] = field(default_factory=list)  # one per sentence
    about: Sequence[tuple[str, str]] = ()  # (name, value) of the lines under the title


def collect_report(
    systems: Sequence[SystemOutput],
    hard: HardWordCounts,
    counts: Mapping[str, int] | None,
    curves: RunCurves,
    config: ReportConfig,
) -> ReportData:
    """Compute the contents of the page. The first system is the baseline of the significance tests.

    `hard`: the counts of hard words by kind (unknown, unseen in training, segmented), side and sentence.
    `counts`: the counts of the target words in the training text, if known.
    `curves`: the learning curves of the systems that are runs.
    """
    test = systems[0].test
    comparisons, signatures = significance(systems, config.samples)
    masks: dict[str, NDArray[np.bool_]] = {}
    for kind, by_side in hard.items():
        masks |= hard_word_subsets(kind, by_side, test)
    return ReportData(
        title=config.title,
        systems=[
            {
                "name": system.name,
                "bleu": system.bleu().score,
                "chrf": system.chrf().score,
                "ratio": system.ratio(),
                **comparisons.get(system.name, {}),
            }
            for system in systems
        ],
        signatures=signatures,
        sentences=len(test.sources),
        lowercase=test.lowercase,
        tokenized=test.tokenize == "none",
        charts=charts.all_charts(systems, hard, counts, curves, config.least),
        subsets=[dict(vars(score)) for score in score_subsets(systems, masks)],
        ngrams=different_ngrams(systems, NgramDifferenceConfig(count=NGRAMS)) if len(systems) > 1 else [],
        kinds=list(hard),
        rows=sentence_rows(systems, hard),
    )


def significance(systems: Sequence[SystemOutput], samples: int) -> tuple[dict[str, Json], list[str]]:
    """Test each system against the first; returns, by system, half the width of BLEU's 95% confidence
    interval (`interval`) and the p-value of the difference in BLEU (`p`, None for the first), and the
    signatures of the scores. `samples`: number of test sets drawn.

    A system with the same output as the first is left out of the test.
    """
    first = systems[0]
    others = [system for system in systems[1:] if system.hypotheses != first.hypotheses]
    if not others:
        ((low, high),) = bootstrap_intervals(
            first.bleu_statistics.rows, lambda sums: bleu_scores(sums)[:, None], samples
        )
        signatures = [f"BLEU: {first.bleu().signature}", f"chrF2: {first.chrf().signature}"]
        return {first.name: {"interval": (high - low) / 2}}, signatures
    rows, signatures = compare_bleu([first, *others], samples)
    return {scores.name: {"interval": scores.interval, "p": scores.p} for scores in rows}, signatures


def sentence_rows(systems: Sequence[SystemOutput], hard: HardWordCounts) -> list[Json]:
    """Collect each sentence's texts, source length in words, number of hard words of each kind on the side
    with more, and scores, 0 to 100."""
    test = systems[0].test
    words = lengths(test)["source"]
    chrf, bleu = (
        [sentence_scores(system, metric).round(1).tolist() for system in systems]
        for metric in ("chrf", "bleu")
    )
    return [
        {
            "line": row + 1,
            "words": words[row],
            "hard": [counts["both"][row] for counts in hard.values()],
            "source": source,
            "references": [reference[row] for reference in test.references],
            "hypotheses": [system.hypotheses[row] for system in systems],
            "chrf": [values[row] for values in chrf],
            "bleu": [values[row] for values in bleu],
        }
        for row, source in enumerate(test.sources)
    ]


def report_html(data: ReportData, lead: Lead | None = None) -> str:
    """Render the page, which contains its data as JSON. `lead`: sections that come first."""
    lead = lead or Lead()
    sections = fill_template(
        "sections.html",
        {
            "lead": lead.sections,
            "heading": escape(lead.heading),
            "note": escape(lead.note),
            "no-note": "" if lead.note else "hidden",
            "systems": charts.systems_table(data.systems),
            "signatures": charts.signature_list(data.signatures),
            "subsets": charts.subsets_table(data.subsets),
            "charts": charts.figures_html(data.charts, len(lead.charts)),
            "ngrams": charts.ngram_tables(data.ngrams),
            "no-subsets": "" if data.subsets else "hidden",
            "no-ngrams": "" if data.ngrams else "hidden",
        },
    )
    return fill_template(
        "report.html",
        {
            "title": escape(data.title),
            "about": charts.facts_html([*data.about, ("made with", f"nmt-smt {__version__}")]),
            "contents": charts.contents_html(sections),
            "sections": sections,
            "license": read_page_file("vendor/LICENSE"),
            "style": "".join(map(read_page_file, STYLES)),
            "library": read_page_file("vendor/uPlot.iife.min.js"),
            "script": "".join(map(read_page_file, SCRIPTS)),
            "data": script_json(page_data(data, [*lead.charts, *data.charts])),
        },
    )


def newest_date(paths: Iterable[str | Path]) -> str:
    """The date (UTC) on which the newest of some files was written, as YYYY-MM-DD; "" without files. Streams
    and missing files are ignored.

    A report is dated by its files, so that the same files always give the same report.
    """
    times = [Path(path).stat().st_mtime for path in paths if Path(path).is_file()]
    return datetime.fromtimestamp(max(times), UTC).date().isoformat() if times else ""


def fill_template(name: str, parts: Mapping[str, str]) -> str:
    """Replace the marks {{name}} of a template of the page by `parts`, in one pass, since a value may contain
    such a mark. KeyError for a mark without a value."""
    return re.sub(r"\{\{([a-z-]+)\}\}", lambda mark: parts[mark[1]], read_page_file(name))


def script_json(data: Json) -> str:
    """Encode JSON as the content of a script element, such that no string in it ends the element."""
    return (
        json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        .replace("<", "\\u003c")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )


def read_page_file(name: str) -> str:
    return (resources.files("nmt.analysis") / "page" / name).read_text(encoding="utf-8")


def page_data(data: ReportData, all_charts: Sequence[Chart]) -> Json:
    """Collect what the script of the page reads: the sentences, and all charts, also those of the lead."""
    return {
        "systems": [system["name"] for system in data.systems],
        "lowercase": data.lowercase,
        "tokenized": data.tokenized,
        "kinds": data.kinds,
        "charts": [chart_data(chart) for chart in all_charts],
        "rows": data.rows,
    }


def chart_data(chart: Chart) -> Json:
    """Encode a chart; its points become lists: x, y, count, low, high, at."""
    series = [
        {"name": name, "points": [[p.x, p.y, p.count, *(p.interval or (None, None)), p.at] for p in points]}
        for name, points in chart.series.items()
    ]
    return vars(chart) | {"series": series}


# ---- action ------------------------------------------------------------------------------------------------


class ReportAnalysis:
    help = "One HTML page on runs and outputs: summary, curves, subsets, a browser of sentences."

    def add_options(self, parser: Parser) -> None:
        parser.add_argument(
            "systems",
            type=InputPath,
            nargs="+",
            metavar="RUN_OR_OUTPUT",
            help="run directories, which translate the source, or outputs: text or n-best lists",
        )
        add_source(parser)
        add_references(parser)
        options.add_required_output(parser, "FILE", "the page; it needs no other file and no network")
        add_names(parser, "names of the systems")
        parser.add_argument("--title", default=ReportConfig.title, help="title of the page")
        parser.add_argument(
            "--tokenized",
            action="store_true",
            help="source and references are tokenized like the training text of the runs",
        )
        add_setting(parser, BeamConfig, "beam_size", "-b", help="beam size for the translations of the runs")
        add_settings(parser, ReportConfig, "least", "samples")
        add_vocabularies(parser, required=False)
        add_training(parser, required=False)
        options.add_compute(parser)

    def run(self, args: argparse.Namespace) -> None:
        system_paths = [path.rstrip("/") for path in args.systems]
        check_names(args.names, system_paths, "systems")
        vocabs = read_vocabularies(args.vocabulary) if args.vocabulary else None
        names = args.names or unique_names(system_paths)
        paths = dict(zip(names, args.systems, strict=True))
        runs = {name: Path(path) for name, path in paths.items() if Path(path).is_dir()}
        curves = {name: read_curves(run) for name, run in runs.items() if (run / "dev.tsv").exists()}
        test, outputs = read_outputs(args, {name: path for name, path in paths.items() if name not in runs})
        hard, counts = count_hard_words(args, vocabs, test)
        systems, about, dated_files = list[SystemOutput](), list[tuple[str, str]](), list[str | Path]()
        for name, path in paths.items():
            if name in outputs:
                systems.append(outputs[name])
                about.append((name, f"the translations in {Path(path).name}"))
                dated_files.append(path)
            else:
                system, member = translate_test(args, name, path, test)
                systems.append(system)
                about.append((name, f"{member.description}, update {member.step:,}; beam {args.beam_size}"))
                dated_files.append(run_directory.weights_path(member.directory, member.step))
        for run in runs.values():  # use the first run that splits words; torch is set up by now
            if units := read_units(str(run), test, args.tokenized):
                hard["segmented"] = segmented_sides(*units)
                break
        log.info("scoring %d systems, with %s samples of the sentences", len(systems), f"{args.samples:,}")
        data = collect_report(systems, hard, counts, curves, parse_settings(ReportConfig, args))
        about += [*test_facts(args, test), ("date", newest_date(dated_files))]
        page = report_html(replace(data, about=about))
        files.write_text(args.output, page.rstrip("\n").split("\n"))
        for row in data.systems:
            log.info("%s: BLEU %.2f, chrF %.2f", row["name"], row["bleu"], row["chrf"])
        log.info("%s", args.output)


def read_outputs(
    args: argparse.Namespace, outputs: Mapping[str, str]
) -> tuple[TestSet, dict[str, SystemOutput]]:
    """Read and return the test set, and the outputs of systems by name. `outputs`: name -> path of a text or
    n-best list. Errors as from `read_systems`."""
    scoring = args.bleu_tokenize, args.lowercase
    if not outputs:
        return read_test(args.source, args.reference, *scoring), {}
    systems = read_systems(args.source, args.reference, list(outputs.values()), list(outputs), *scoring)
    return systems[0].test, {system.name: system for system in systems}


def test_facts(args: argparse.Namespace, test: TestSet) -> Iterator[tuple[str, str]]:
    """Yield (name, value) pairs with the names of the files of the test set and the training text."""
    words = sum(map(len, test.source_words))
    names = f"{Path(args.source).name} to {', '.join(Path(path).name for path in args.reference)}"
    yield "test set", f"{names}; {len(test.sources):,} sentences, {words:,} source words"
    yield "training text", " and ".join(Path(path).name for path in args.train or ())


def translate_test(
    args: argparse.Namespace, name: str, path: str, test: TestSet
) -> "tuple[SystemOutput, SavedRun]":
    """Translate the source with the run at `path`, with a progress bar. Returns the output under `name`, and
    the run itself. Errors as from `load_run`."""
    run = load_run(args, path).for_text(args.tokenized)
    hypotheses: list[str] = []
    with options.progress(args, "sentences", len(test.sources), title=name) as progress:
        for start in range(0, len(test.sources), BLOCK):
            block = test.sources[start : start + BLOCK]
            hypotheses += run.translate(block, BeamConfig(args.beam_size))
            progress.add(len(block))
    return SystemOutput(name=name, hypotheses=hypotheses, test=test), run.members[0]
