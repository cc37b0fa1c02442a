"""One page on how systems differ: summary, curves, subsets, a browser of all sentences. It is a single file
and needs no network."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from nmt import __version__, files
from nmt.analysis.buckets import LEAST, Curves, by_count
from nmt.analysis.curves import LearningCurve
from nmt.analysis.lengths import WINDOW, by_length
from nmt.analysis.significance import SAMPLES, paired_bootstrap
from nmt.analysis.systems import System
from nmt.analysis.unknown import score_subsets, subsets_without
from nmt.settings import number

Json = dict[str, object]
HardWords = Mapping[str, Mapping[str, Sequence[int]]]  # kind -> source, reference, both -> by sentence


@dataclass
class ReportConfig:
    """What the page shows."""

    title: str = "Translation report"
    window: int = WINDOW
    least: int = number(LEAST, least=1, help="leave out points of curves with fewer sentences")
    samples: int = number(SAMPLES, least=1, most=100_000, help="samples of the paired bootstrap")


@dataclass
class ReportData:
    """What the page shows; everything that its script reads."""

    title: str
    systems: list[Json]  # name, bleu, chrf, ratio, interval, p
    signatures: list[str]
    sentences: int
    charts: list[Json] = field(default_factory=list)  # title, x, y, series: name, points [x, y, n or null]
    subsets: list[Json] = field(default_factory=list)
    rows: list[Json] = field(default_factory=list)  # one per sentence
    version: str = __version__


def gather(
    systems: Sequence[System],
    hard: HardWords,
    learned: Mapping[str, Mapping[str, LearningCurve]],
    config: ReportConfig,
) -> ReportData:
    """The data of the page. The first system is the baseline of the significance tests.

    `hard`: for each kind of words that are hard to translate (unknown, unseen in training, segmented) their
    number by side and sentence. `learned`: the learning curves of those systems that are runs, see
    nmt.analysis.curves.
    """
    test = systems[0].test
    tested, signatures = tested_systems(systems, config.samples)
    masks: dict[str, NDArray[np.bool_]] = {}
    for kind, counts in hard.items():
        masks |= subsets_without(kind, counts, test)
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
        charts=[*bucket_charts(systems, hard, config), *learning_charts(learned)],
        subsets=[dict(vars(score)) for score in score_subsets(systems, masks)],
        rows=sentence_rows(systems, hard),
    )


def tested_systems(systems: Sequence[System], samples: int) -> tuple[dict[str, Json], list[str]]:
    """The interval of each system and its p against the first one, and the signatures.

    A system with the same output as the first is left out of the test.
    """
    first = systems[0]
    others = [system for system in systems[1:] if system.hypotheses != first.hypotheses]
    if not others:
        return {}, [f"BLEU: {first.bleu().signature}", f"chrF2: {first.chrf().signature}"]
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


def bucket_charts(systems: Sequence[System], hard: HardWords, config: ReportConfig) -> Iterator[Json]:
    """BLEU by the length of each side, and by the hard words of the source."""
    lengths = by_length(systems, config.window, config.least)
    for side, label in (("source", "source"), ("reference", "reference"), ("both", "longer side")):
        yield bucket_chart(f"BLEU by {label} length", "words", lengths, side)
    for kind, counts in hard.items():
        cumulative = by_count(systems, counts, config.least)
        yield bucket_chart(f"BLEU by {kind} words of the source", "at most this many", cumulative, "source")


def bucket_chart(title: str, x: str, curves: Curves, side: str) -> Json:
    """One series per system."""
    series = [
        {"name": name, "points": [[b.key, round(b.bleu, 3), b.sentences] for b in sides[side]]}
        for name, sides in curves.items()
    ]
    return {"title": title, "x": x, "y": "BLEU", "series": series}


def learning_charts(learned: Mapping[str, Mapping[str, LearningCurve]]) -> Iterator[Json]:
    """Dev cost and dev BLEU by updates, of the runs that measured them."""
    for kind in ("dev cost", "dev BLEU"):
        series = [
            {"name": name, "points": [[x, y, None] for x, y in curves[kind]]}
            for name, curves in learned.items()
            if curves[kind]
        ]
        if series:
            yield {"title": f"Learning curves: {kind}", "x": "updates", "y": kind, "series": series}


def sentence_rows(systems: Sequence[System], hard: HardWords) -> list[Json]:
    """For each sentence its texts, its length, its hard words (of the first kind) and each system's chrF."""
    test = systems[0].test
    unknowns = next(iter(hard.values()))["both"] if hard else [0] * len(test.sources)
    scores = [system.chrf_statistics.by_sentence() for system in systems]
    return [
        {
            "line": row + 1,
            "words": len(files.split_words(source)),
            "unknown": unknowns[row],
            "source": source,
            "references": [reference[row] for reference in test.references],
            "hypotheses": [system.hypotheses[row] for system in systems],
            "chrf": [round(values[row], 1) for values in scores],
        }
        for row, source in enumerate(test.sources)
    ]


def html(data: ReportData) -> str:
    """The page, with its data inside as JSON. `<` is escaped, so that no text can end the script."""
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
    # In one pass: what is put in may itself contain such a mark.
    return re.sub(r"\{\{(title|style|script|data)\}\}", lambda place: parts[place[1]], page)
