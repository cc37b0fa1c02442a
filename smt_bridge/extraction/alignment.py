"""Word alignments, trained with sil-thot's models; nmt/formats/pharaoh.py reads those of any tool."""

import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from nmt import files
from nmt.errors import ConfigError, DataError
from nmt.formats.pharaoh import Links
from nmt.progress import Progress
from smt_bridge.extraction.symmetrize import HEURISTICS

log = logging.getLogger(__name__)

LONGEST = 1024  # words: sil-thot reads no longer sentences
Texts = list[list[str]]


def thot() -> Any:
    """The package sil-thot. ConfigError if it is not installed.

    It runs with one thread: several add floating-point numbers in varying order, so that now and then a link
    differs from run to run. Its OpenMP reads the variable when it is loaded.
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


class Aligner(Protocol):
    """A way to align the words of a parallel text."""

    def check(self) -> None:
        """ConfigError when it cannot run here."""
        ...

    def align(self, sources: Texts, targets: Texts) -> list[Links]:
        """One direction: the links of each sentence pair, none where a side is empty."""
        ...


@dataclass(frozen=True)
class Thot:
    """Models of sil-thot, each initialized by the one before it, and how many iterations each is trained for.
    0: as many as the model schedules."""

    stages: tuple[tuple[str, int], ...]
    sampled: bool = False  # the alignment is the last sample of training, as in eflomal

    def check(self) -> None:
        thot()

    def trained(self, package: Any, pairs: Sequence[tuple[list[str], list[str]]]) -> Any:
        """The last model, trained on these pairs; a line a minute says how far it has come."""
        model: Any = None
        with Progress(sum(count for _, count in self.stages), "iterations", title="aligning") as progress:
            for name, iterations in self.stages:
                kind = getattr(package, name)
                if model is None:
                    model = kind()
                    for source, target in pairs:
                        model.add_sentence_pair(source, target, 1)
                else:
                    model = kind(model)
                if self.sampled:
                    model.emit_training_alignments = True
                model.start_training()
                for _ in progress.over(range(iterations or model.scheduled_iterations)):
                    model.train()
                model.end_training()
        return model

    def align(self, sources: Texts, targets: Texts) -> list[Links]:
        """Each target word gets at most one source word, except for eflomal and IBM 4."""
        package = thot()
        usable = [
            number
            for number, pair in enumerate(zip(sources, targets, strict=True))
            if all(0 < len(side) <= LONGEST for side in pair)
        ]
        model = self.trained(package, [(sources[number], targets[number]) for number in usable])
        if self.sampled:
            found = [model.get_training_alignment(place)[1] for place in range(len(usable))]
        else:
            texts = [sources[number] for number in usable], [targets[number] for number in usable]
            found = [matrix for _, matrix in model.get_best_alignments(*texts)]
        links: list[Links] = [frozenset()] * len(sources)
        for number, matrix in zip(usable, found, strict=True):
            axes = (axis.tolist() for axis in matrix.to_numpy().nonzero())
            links[number] = frozenset(zip(*axes, strict=True))
        return links


HMM = (("Ibm1AlignmentModel", 5), ("HmmAlignmentModel", 5))
ALIGNERS: dict[str, Aligner] = {
    "fast_align": Thot((("FastAlignModel", 4),)),
    "eflomal": Thot((("EflomalAlignmentModel", 0),), sampled=True),
    "hmm": Thot(HMM),
    "ibm4": Thot((*HMM, ("Ibm3AlignmentModel", 5), ("Ibm4AlignmentModel", 5))),
}


def read_texts(source: str | Path, target: str | Path) -> tuple[Texts, Texts]:
    """The words of a parallel corpus. DataError for unequal numbers of lines, or no words."""
    sources, targets = [], []
    for left, right in files.parallel(source, target):
        sources.append(files.split_words(left))
        targets.append(files.split_words(right))
    if not any(left and right for left, right in zip(sources, targets, strict=True)):
        raise DataError(f"{source}: no pair of two lines with words, nothing to align")
    return sources, targets


def both(sources: Texts, targets: Texts, method: str) -> tuple[list[Links], list[Links]]:
    """Both directions, each with the source word first. `method`: a name in ALIGNERS."""
    aligner = ALIGNERS[method]
    forward = aligner.align(sources, targets)
    log.info("source to target aligned")
    return forward, swapped(aligner.align(targets, sources))


def swapped(links: Iterable[Links]) -> list[Links]:
    """The same links with the other side first."""
    return [frozenset((b, a) for a, b in one) for one in links]


def symmetrized(forward: Sequence[Links], reverse: Sequence[Links], heuristic: str) -> list[Links]:
    """Both directions combined. `heuristic`: a name in HEURISTICS."""
    combine = HEURISTICS[heuristic]
    return [combine(a, b) for a, b in zip(forward, reverse, strict=True)]


def line_of(links: Links) -> str:
    """Links as a line such as `0-0 1-2`, sorted."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))
