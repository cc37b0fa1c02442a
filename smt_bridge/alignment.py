"""Word alignments: by sil-thot's models, or read from any tool; as lines `0-0 1-2`, source word first, words
from 0."""

import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from nmt import files
from nmt.errors import ConfigError, DataError
from smt_bridge.symmetrize import HEURISTICS, Links

log = logging.getLogger(__name__)

METHODS = ("fast_align", "eflomal", "hmm", "ibm4")
POINT = re.compile(r"[0-9]{1,9}-[0-9]{1,9}")
LONGEST = 1024  # words: sil-thot looks at no longer sentence

# What is trained, one model on top of the other, and how many passes each takes.
STAGES = {
    "fast_align": (("FastAlignModel", 4),),
    "eflomal": (("EflomalAlignmentModel", 0),),  # 0: as many as the model schedules
    "hmm": (("Ibm1AlignmentModel", 5), ("HmmAlignmentModel", 5)),
    "ibm4": (
        ("Ibm1AlignmentModel", 5),
        ("HmmAlignmentModel", 5),
        ("Ibm3AlignmentModel", 5),
        ("Ibm4AlignmentModel", 5),
    ),
}
Texts = list[list[str]]


def thot() -> Any:
    """The package sil-thot. ConfigError without it.

    With one thread: several add up floating-point numbers in an order of their own, so that now and then a
    link differs from run to run. Its OpenMP reads the variable when it is loaded.
    """
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        import thot.alignment
    except ImportError as error:
        raise ConfigError(
            "no alignment tool: the package sil-thot is not installed; install it with: pip install "
            "'nmt-smt[smt]', or give alignments of another tool"
        ) from error
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before
    return thot.alignment


def read_texts(source: str | Path, target: str | Path) -> tuple[Texts, Texts]:
    """A parallel corpus. DataError for unequal numbers of lines, or without any words."""
    sources, targets = [], []
    for left, right in files.parallel(source, target):
        sources.append(files.split_words(left))
        targets.append(files.split_words(right))
    if not any(left and right for left, right in zip(sources, targets, strict=True)):
        raise DataError(f"{source}: no pair of two lines with words, nothing to align")
    return sources, targets


def align(sources: Texts, targets: Texts, method: str) -> list[Links]:
    """One direction: each target word has at most one source word, except for what eflomal and IBM 4 sample
    or reach otherwise."""
    package = thot()
    usable = [
        number
        for number, pair in enumerate(zip(sources, targets, strict=True))
        if all(0 < len(side) <= LONGEST for side in pair)
    ]
    model: Any = None
    for name, passes in STAGES[method]:
        kind = getattr(package, name)
        if model is None:
            model = kind()
            for number in usable:
                model.add_sentence_pair(sources[number], targets[number], 1)
        else:
            model = kind(model)
        if method == "eflomal":
            model.emit_training_alignments = True
        model.start_training()
        for _ in range(passes or model.scheduled_iterations):
            model.train()
        model.end_training()
    if method == "eflomal":
        found = [model.get_training_alignment(place)[1] for place in range(len(usable))]
    else:
        found = [
            matrix
            for _, matrix in model.get_best_alignments(
                [sources[number] for number in usable], [targets[number] for number in usable]
            )
        ]
    links: list[Links] = [frozenset()] * len(sources)
    for number, matrix in zip(usable, found, strict=True):
        links[number] = frozenset(zip(*(axis.tolist() for axis in matrix.to_numpy().nonzero()), strict=True))
    return links


def both(sources: Texts, targets: Texts, method: str) -> tuple[list[Links], list[Links]]:
    """Both directions, source word first in each."""
    forward = align(sources, targets, method)
    log.info("source to target aligned")
    return forward, turned(align(targets, sources, method))


def turned(links: Iterable[Links]) -> list[Links]:
    """The other side first."""
    return [frozenset((b, a) for a, b in one) for one in links]


def symmetrized(forward: Sequence[Links], reverse: Sequence[Links], heuristic: str) -> list[Links]:
    combine = HEURISTICS[heuristic]
    return [combine(a, b) for a, b in zip(forward, reverse, strict=True)]


def line_of(links: Links) -> str:
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def parse(line: str, where: str) -> Links:
    """DataError for anything but points i-j. Points of possible alignments, i?j or ipj, are refused too."""
    words = files.split_words(line)
    for word in words:
        if not POINT.fullmatch(word):
            raise DataError(
                f"{where}: {word[:30]!r} is no alignment point, expected source-target such as 0-0 1-2 "
                "(words count from 0)"
            )
    return frozenset(
        (int(source), int(target)) for source, _, target in (word.partition("-") for word in words)
    )


def read(path: str | Path) -> Iterator[Links]:
    for number, line in enumerate(files.read_lines(path), 1):
        yield parse(line, f"{files.name_of(path)}:{number}")


def check_points(links: Links, source: int, target: int, where: str) -> None:
    """DataError for a point outside a sentence pair of these lengths."""
    for a, b in links:
        if a >= source or b >= target:
            raise DataError(
                f"{where}: point {a}-{b} is outside the sentence pair ({source} and {target} words); is the "
                "source side first, does the text match?"
            )
