"""One page on how systems differ: summary, curves, subsets, a browser of all sentences. It is a single file
and needs no network."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt import __version__
from nmt.analysis import markup
from nmt.analysis.buckets import LEAST, WINDOW, lengths
from nmt.analysis.charts import Chart, HardWords, Learned, all_charts
from nmt.analysis.differences import NgramConfig, NgramDifference, different_ngrams, sentence_scores
from nmt.analysis.hard_words import score_subsets, subsets_without
from nmt.analysis.statistics import SAMPLES, bleu_of, intervals, paired_bootstrap
from nmt.analysis.systems import System
from nmt.config.settings import number

Json = dict[str, object]

NGRAMS = 10  # of each direction
STYLES = ("vendor/uPlot.min.css", "shared/common.css", "report.css")
SCRIPTS = (
    "shared/dom.js", "tables.js", "charts.js", "shared/subsequence.js", "words.js", "sentences.js",
)  # fmt: skip


@dataclass
class ReportConfig:
    """What the page shows."""

    title: str = "Translation report"
    window: int = WINDOW
    least: int = number(LEAST, least=1, help="leave out points of curves with fewer sentences")
    samples: int = number(SAMPLES, least=1, most=100_000, help="samples of the paired bootstrap")


@dataclass
class Lead:
    """What another report of ours shows before the comparison of systems."""

    sections: str = ""  # HTML: whoever makes it escapes
    charts: Sequence[Chart] = ()  # of `sections`, numbered from 0
    heading: str = "Summary"  # of the comparison
    note: str = ""  # on its scores


@dataclass
class ReportData:
    """What the page shows; everything that its script reads."""

    title: str
    systems: list[Json]  # name, bleu, chrf, ratio, interval, p
    signatures: list[str]
    sentences: int
    lowercase: bool = False  # scores do not regard case
    tokenized: bool = False  # blanks separate words
    charts: list[Chart] = field(default_factory=list)
    subsets: list[Json] = field(default_factory=list)
    ngrams: list[NgramDifference] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)  # of hard words
    rows: list[Json] = field(default_factory=list)  # one per sentence
    about: Sequence[tuple[str, str]] = ()  # under the title: name and content of each line


def gather(
    systems: Sequence[System],
    hard: HardWords,
    counts: Mapping[str, int] | None,
    learned: Learned,
    config: ReportConfig,
) -> ReportData:
    """The data of the page. The first system is the baseline of the significance tests.

    `hard`: for each kind of words that are hard to translate (unknown, unseen in training, segmented) their
    number by side and sentence. `counts`: how often the training text has each word of the target; None where
    nobody knows. `learned`: the learning curves of those systems that are runs, see nmt.analysis.curves.
    """
    test = systems[0].test
    tested, signatures = tested_systems(systems, config.samples)
    masks: dict[str, NDArray[np.bool_]] = {}
    for kind, by_side in hard.items():
        masks |= subsets_without(kind, by_side, test)
    return ReportData(
        title=config.title,
        systems=[
            {
                "name": system.name,
                "bleu": system.bleu().score,
                "chrf": system.chrf().score,
                "ratio": system.ratio(),
                **tested.get(system.name, {}),
            }
            for system in systems
        ],
        signatures=signatures,
        sentences=len(test.sources),
        lowercase=test.lowercase,
        tokenized=test.tokenize == "none",
        charts=all_charts(systems, hard, counts, learned, config.window, config.least),
        subsets=[dict(vars(score)) for score in score_subsets(systems, masks)],
        ngrams=different_ngrams(systems, NgramConfig(count=NGRAMS)) if len(systems) > 1 else [],
        kinds=list(hard),
        rows=sentence_rows(systems, hard),
    )


def tested_systems(systems: Sequence[System], samples: int) -> tuple[dict[str, Json], list[str]]:
    """The interval of each system and its p against the first one, and the signatures.

    A system with the same output as the first is left out of the test.
    """
    first = systems[0]
    others = [system for system in systems[1:] if system.hypotheses != first.hypotheses]
    if not others:
        ((low, high),) = intervals(first.bleu_statistics.rows, lambda sums: bleu_of(sums)[:, None], samples)
        signatures = [f"BLEU: {first.bleu().signature}", f"chrF2: {first.chrf().signature}"]
        return {first.name: {"interval": (high - low) / 2}}, signatures
    compared = [first, *others]
    found, signatures = paired_bootstrap(
        [system.name for system in compared],
        [system.hypotheses for system in compared],
        first.test.references,
        first.test.tokenize,
        samples,
        first.test.lowercase,
    )
    return {scores.name: {"interval": scores.interval, "p": scores.p} for scores in found}, signatures


def sentence_rows(systems: Sequence[System], hard: HardWords) -> list[Json]:
    """For each sentence its texts, its length, its hard words of each kind, and each system's scores."""
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


def html(data: ReportData, lead: Lead | None = None) -> str:
    """The page, with its data inside as JSON. `lead` comes first."""
    lead = lead or Lead()
    sections = filled(
        "sections.html",
        {
            "lead": lead.sections,
            "heading": escape(lead.heading),
            "note": escape(lead.note),
            "no-note": "" if lead.note else "hidden",
            "systems": markup.systems_table(data.systems),
            "signatures": markup.signature_list(data.signatures),
            "subsets": markup.subsets_table(data.subsets),
            "charts": markup.figures(data.charts, len(lead.charts)),
            "ngrams": markup.ngram_tables(data.ngrams),
            "no-subsets": "" if data.subsets else "hidden",
            "no-ngrams": "" if data.ngrams else "hidden",
        },
    )
    return filled(
        "report.html",
        {
            "title": escape(data.title),
            "about": markup.facts([*data.about, ("made with", f"nmt-smt {__version__}")]),
            "contents": markup.contents(sections),
            "sections": sections,
            "license": part("vendor/LICENSE"),
            "style": "".join(map(part, STYLES)),
            "library": part("vendor/uPlot.iife.min.js"),
            "script": "".join(map(part, SCRIPTS)),
            "data": embedded(page_data(data, [*lead.charts, *data.charts])),
        },
    )


def day(paths: Iterable[str | Path]) -> str:
    """The day (UTC) on which the newest of some files was written: a report of the same files has the same
    date, whenever it is made. Files that are streams are left out."""
    times = [Path(path).stat().st_mtime for path in paths if Path(path).is_file()]
    return datetime.fromtimestamp(max(times), UTC).date().isoformat() if times else ""


def filled(name: str, parts: Mapping[str, str]) -> str:
    """A template with its marks replaced, in one pass: what is put in may itself contain such a mark."""
    return re.sub(r"\{\{([a-z-]+)\}\}", lambda mark: parts[mark[1]], part(name))


def embedded(data: Json) -> str:
    """JSON that no text in it can end, as the content of a script element."""
    return (
        json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        .replace("<", "\\u003c")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )


def part(name: str) -> str:
    """A file of the page."""
    return (resources.files("nmt.analysis") / "page" / name).read_text(encoding="utf-8")


def page_data(data: ReportData, charts: Sequence[Chart]) -> Json:
    """What the script reads."""
    return {
        "systems": [system["name"] for system in data.systems],
        "lowercase": data.lowercase,
        "tokenized": data.tokenized,
        "kinds": data.kinds,
        "charts": [chart_data(chart) for chart in charts],
        "rows": data.rows,
    }


def chart_data(chart: Chart) -> Json:
    """A chart; its points are lists: x, y, count, low, high, at."""
    series = [
        {"name": name, "points": [[p.x, p.y, p.count, *(p.interval or (None, None)), p.at] for p in points]}
        for name, points in chart.series.items()
    ]
    return vars(chart) | {"series": series}
