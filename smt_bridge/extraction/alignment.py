"""Word alignments: trained with sil-thot's models in both directions, and symmetrized; nmt/formats/pharaoh.py
reads those of any tool."""

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from nmt.errors import ConfigError, DataError, UserError
from nmt.formats.pharaoh import Links
from nmt.io import files, signals
from nmt.io.progress import Progress

# ---- symmetrization ----------------------------------------------------------------------------------------
# Symmetrization (Och and Ney 2003; Koehn et al. 2005): union, intersection, grow,
# grow-diag, and the final steps.
#
# Links are pairs (source word, target word), counted from 0, in both directions.


NEIGHBORS = ((-1, 0), (0, -1), (1, 0), (0, 1))
DIAGONALS = ((-1, -1), (-1, 1), (1, -1), (1, 1))


def grow(forward: Links, reverse: Links, around: Iterable[tuple[int, int]] = NEIGHBORS) -> Links:
    """Start from the intersection and add links of the union that are next to a link and align a word that
    has none yet.

    Candidates are visited in order, repeatedly, as in fast_align's atools; another order gives other links.
    """
    links, around = set(forward & reverse), tuple(around)
    candidates = sorted((forward | reverse) - links)
    sources, targets = {source for source, _ in links}, {target for _, target in links}
    growing = True
    while growing:
        growing = False
        for source, target in candidates:
            free = source not in sources or target not in targets
            if free and any((source + down, target + right) in links for down, right in around):
                links.add((source, target))
                sources.add(source)
                targets.add(target)
                growing = True
        candidates = [link for link in candidates if link not in links]
    return frozenset(links)


def grow_diag(forward: Links, reverse: Links) -> Links:
    """Grow along diagonals too."""
    return grow(forward, reverse, (*NEIGHBORS, *DIAGONALS))


def final(links: Links, directions: Iterable[Links], both: bool) -> Links:
    """Add the remaining links of each direction that have a word (`both`: two words) without a link so
    far."""
    found = set(links)
    sources, targets = {source for source, _ in links}, {target for _, target in links}
    for direction in directions:
        for source, target in sorted(direction):
            free = source not in sources, target not in targets
            if all(free) if both else any(free):
                found.add((source, target))
                sources.add(source)
                targets.add(target)
    return frozenset(found)


def grow_diag_final(forward: Links, reverse: Links) -> Links:
    """Grow-diag, then links with an unaligned word."""
    return final(grow_diag(forward, reverse), (forward, reverse), both=False)


def grow_diag_final_and(forward: Links, reverse: Links) -> Links:
    """Grow-diag, then links with two unaligned words."""
    return final(grow_diag(forward, reverse), (forward, reverse), both=True)


HEURISTICS: dict[str, Callable[[Links, Links], Links]] = {
    "grow-diag-final-and": grow_diag_final_and,
    "grow-diag-final": grow_diag_final,
    "grow-diag": grow_diag,
    "grow": grow,
    "intersection": frozenset.intersection,
    "union": frozenset.union,
    "forward": lambda forward, reverse: forward,
    "reverse": lambda forward, reverse: reverse,
}


# ---- aligners ----------------------------------------------------------------------------------------------


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


@runtime_checkable
class TrainsOnce(Protocol):
    """An aligner whose model, once trained, is kept in files, and aligns pairs of its text in any order."""

    def train(self, sources: Texts, targets: Texts, prefix: str) -> None:
        """Write the model of a text into files whose paths begin with `prefix`."""
        ...

    def load(self, prefix: str) -> Any:
        """The model in files."""
        ...

    def aligned(self, model: Any, sources: Texts, targets: Texts) -> list[Links]:
        """The links of sentence pairs of the text that the model was trained on: those of `align`."""
        ...


@dataclass(frozen=True)
class Stages:
    """Models of sil-thot, each initialized by the one before it, and how many iterations each is trained for.
    0: as many as the model schedules."""

    stages: tuple[tuple[str, int], ...]

    def check(self) -> None:
        thot()

    def trained(self, package: Any, sources: Texts, targets: Texts, sampled: bool = False) -> Any:
        """The last model, trained on these pairs; a line a minute says how far it has come. `sampled`: it
        keeps the last sample of the training."""
        model: Any = None
        with Progress(sum(count for _, count in self.stages), "iterations", title="aligning") as progress:
            for name, iterations in self.stages:
                kind = getattr(package, name)
                if model is None:
                    model = kind()
                    for number in usable(sources, targets):
                        model.add_sentence_pair(sources[number], targets[number], 1)
                else:
                    model = kind(model)
                if sampled:
                    model.emit_training_alignments = True
                model.start_training()
                for _ in progress.over(range(iterations or model.scheduled_iterations)):
                    with signals.at_once():
                        model.train()
                model.end_training()
        return model


class Thot(Stages):
    """The best alignment by the last model: each target word gets at most one source word, but for IBM 4."""

    def align(self, sources: Texts, targets: Texts) -> list[Links]:
        return self.aligned(self.trained(thot(), sources, targets), sources, targets)

    def train(self, sources: Texts, targets: Texts, prefix: str) -> None:
        if not self.trained(thot(), sources, targets).print(prefix):
            raise UserError(f"{prefix}: sil-thot cannot write its model there; is the disk full?")

    def load(self, prefix: str) -> Any:
        model = getattr(thot(), self.stages[-1][0])()
        if not model.load(prefix):
            raise UserError(f"{prefix}: sil-thot cannot read its model there")
        return model

    def aligned(self, model: Any, sources: Texts, targets: Texts) -> list[Links]:
        numbers = usable(sources, targets)
        texts = [sources[number] for number in numbers], [targets[number] for number in numbers]
        found = model.get_best_alignments(*texts) if numbers else []
        return placed(len(sources), numbers, (matrix for _, matrix in found))


class Sampled(Stages):
    """The alignment is the last sample of training, as in eflomal."""

    def align(self, sources: Texts, targets: Texts) -> list[Links]:
        model, numbers = self.trained(thot(), sources, targets, sampled=True), usable(sources, targets)
        matrices = (model.get_training_alignment(place)[1] for place in range(len(numbers)))
        return placed(len(sources), numbers, matrices)


def usable(sources: Texts, targets: Texts) -> list[int]:
    """The numbers of the pairs that can be aligned: no side is empty, or too long."""
    pairs = enumerate(zip(sources, targets, strict=True))
    return [number for number, pair in pairs if all(0 < len(side) <= LONGEST for side in pair)]


def placed(pairs: int, numbers: Sequence[int], matrices: Iterable[Any]) -> list[Links]:
    """The links of all pairs, from sil-thot's matrices of those that could be aligned."""
    links: list[Links] = [frozenset()] * pairs
    for number, matrix in zip(numbers, matrices, strict=True):
        axes = (axis.tolist() for axis in matrix.to_numpy().nonzero())
        links[number] = frozenset(zip(*axes, strict=True))
    return links


HMM = (("Ibm1AlignmentModel", 5), ("HmmAlignmentModel", 5))
ALIGNERS: dict[str, Aligner] = {
    "fast_align": Thot((("FastAlignModel", 4),)),
    "eflomal": Sampled((("EflomalAlignmentModel", 0),)),
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
        raise no_words(source)
    return sources, targets


def no_words(source: str | Path) -> DataError:
    """The error for a parallel text without words."""
    return DataError(f"{source}: no pair of two lines with words, nothing to align")


def one_way(aligner: Aligner, sources: Texts, targets: Texts, reverse: bool) -> list[Links]:
    """One direction, or the other, with the source word first."""
    return swapped(aligner.align(targets, sources)) if reverse else aligner.align(sources, targets)


def both(sources: Texts, targets: Texts, method: str) -> tuple[list[Links], list[Links]]:
    """Both directions, each with the source word first. `method`: a name in ALIGNERS."""
    aligner = ALIGNERS[method]
    forward = one_way(aligner, sources, targets, reverse=False)
    log.info("source to target aligned")
    return forward, one_way(aligner, sources, targets, reverse=True)


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
