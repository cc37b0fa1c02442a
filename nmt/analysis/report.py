"""One page that tells how systems differ: summary, curves, subsets, a browser of all sentences. A single
file, no network."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from importlib import resources
from typing import Any

from nmt import __version__, files
from nmt.analysis import by_length, significance, unknown
from nmt.analysis.buckets import Bucket
from nmt.analysis.systems import System
from nmt.data.vocab import Vocab


@dataclass
class ReportConfig:
    title: str = "Translation report"
    window: int = by_length.WINDOW
    least: int = 20  # sentences of a point of a curve
    samples: int = significance.SAMPLES  # of the bootstrap


@dataclass
class ReportData:
    """What the page shows; everything that its script reads."""

    title: str
    systems: list[dict[str, Any]]  # name, bleu, interval, chrf, ratio, p
    signatures: list[str]
    sentences: int
    charts: list[dict[str, Any]] = field(
        default_factory=list
    )  # title, x, y, series: name, points [x, y, n or null]
    subsets: list[dict[str, Any]] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)  # one a sentence
    version: str = __version__


def gather(
    systems: Sequence[System],
    vocabs: tuple[Vocab, Vocab] | None,
    curves: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
    config: ReportConfig,
) -> ReportData:
    """`curves`: learning curves of those systems that are runs, see nmt.analysis.curves. Without vocabularies
    no word is unknown."""
    test = systems[0].test
    tested, signatures = tested_systems(systems, config.samples)
    summary = [
        {
            "name": system.name,
            "bleu": system.bleu().score,
            "chrf": system.chrf().score,
            "ratio": system.ratio(),
            **tested.get(system.name, {}),
        }
        for system in systems
    ]
    data = ReportData(config.title, summary, signatures, len(test.sources))
    by = by_length.by_length(systems, config.window, config.least)
    for side, label in (("source", "source"), ("reference", "reference"), ("both", "longer side")):
        data.charts.append(
            bucket_chart(
                f"BLEU by {label} length", "words", {name: sides[side] for name, sides in by.items()}
            )
        )
    if vocabs:
        cumulative = unknown.by_unknown(systems, *vocabs, config.least)
        chart = {name: sides["source"] for name, sides in cumulative.items()}
        data.charts.append(bucket_chart("BLEU by unknown words of the source", "at most this many", chart))
        data.subsets = [asdict(row) for row in unknown.score_subsets(systems, unknown.subsets(test, *vocabs))]
    for kind in ("dev cost", "dev BLEU"):
        series = [
            {"name": name, "points": [[x, y, None] for x, y in found[kind]]}
            for name, found in curves.items()
            if found[kind]
        ]
        if series:
            data.charts.append(
                {"title": f"Learning curves: {kind}", "x": "updates", "y": kind, "series": series}
            )
    data.rows = sentence_rows(systems, vocabs)
    return data


def tested_systems(
    systems: Sequence[System], samples: int
) -> tuple[dict[str, dict[str, float | None]], list[str]]:
    """Intervals, and p against the first system; a system that says the same is left out of the test."""
    first = systems[0]
    others = [system for system in systems[1:] if system.hypotheses != first.hypotheses]
    if not others:
        return {}, [f"BLEU: {first.bleu().signature}", f"chrF2: {first.chrf().signature}"]
    compared = [first, *others]
    rows, signatures = significance.paired_bootstrap(
        [system.name for system in compared],
        [system.hypotheses for system in compared],
        first.test.references,
        first.test.tokenize,
        samples,
    )
    return {row.name: {"interval": row.interval, "p": row.p} for row in rows}, signatures


def bucket_chart(title: str, x: str, curves: Mapping[str, Sequence[Bucket]]) -> dict[str, Any]:
    series = [
        {"name": name, "points": [[b.key, round(b.bleu, 3), b.sentences] for b in buckets]}
        for name, buckets in curves.items()
    ]
    return {"title": title, "x": x, "y": "BLEU", "series": series}


def sentence_rows(systems: Sequence[System], vocabs: tuple[Vocab, Vocab] | None) -> list[dict[str, Any]]:
    test = systems[0].test
    in_source = unknown.counts(test, *vocabs)["both"] if vocabs else [0] * len(test.sources)
    scores = [system.characters.by_sentence() for system in systems]
    return [
        {
            "line": row + 1,
            "words": len(files.split_words(source)),
            "unknown": in_source[row],
            "source": source,
            "references": [reference[row] for reference in test.references],
            "hypotheses": [system.hypotheses[row] for system in systems],
            "chrf": [round(values[row], 1) for values in scores],
        }
        for row, source in enumerate(test.sources)
    ]


def html(data: ReportData) -> str:
    """The page. What it shows stands in it as JSON; `<` is written so that no text can end a script."""
    folder = resources.files("nmt.analysis") / "page"
    page, style, script = (
        (folder / name).read_text(encoding="utf-8") for name in ("report.html", "report.css", "report.js")
    )
    embedded = (
        json.dumps(asdict(data), ensure_ascii=False)
        .replace("<", "\\u003c")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )
    parts = {"title": escape(data.title), "style": style, "script": script, "data": embedded}
    return re.sub(
        r"\{\{(title|style|script|data)\}\}", lambda place: parts[place[1]], page
    )  # once: what is put in may hold such a mark
