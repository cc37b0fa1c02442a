"""Align words with sil-thot's models in both directions, and symmetrize the links.

nmt/formats/pharaoh.py reads the links of any tool.
"""

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
# Union, intersection, grow, grow-diag and the final steps (Och and Ney 2003; Koehn et al. 2005).
# Links are pairs (source word, target word), counted from 0, in both directions.


NEIGHBORS = ((-1, 0), (0, -1), (1, 0), (0, 1))
DIAGONALS = ((-1, -1), (-1, 1), (1, -1), (1, 1))


def grow(forward: Links, reverse: Links, around: Iterable[tuple[int, int]] = NEIGHBORS) -> Links:
    """Extend the intersection by links of the union that are next to a link and align an unaligned word.

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
    """Grow along diagonals as well."""
    return grow(forward, reverse, (*NEIGHBORS, *DIAGONALS))


def final(links: Links, directions: Iterable[Links], both: bool) -> Links:
    """Add remaining links of each direction with an unaligned word; `both`: with two of them."""
    result = set(links)
    sources, targets = {source for source, _ in links}, {target for _, target in links}
    for direction in directions:
        for source, target in sorted(direction):
            free = source not in sources, target not in targets
            if all(free) if both else any(free):
                result.add((source, target))
                sources.add(source)
                targets.add(target)
    return frozenset(result)


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
    """Import the package sil-thot. ConfigError if it is not installed.

    It runs with one thread: several add floating-point numbers in varying order, so that now and then a link
    differs from run to run. Its OpenMP reads the variable when it is loaded.
    """
    previous = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        import thot.alignment
    except ImportError as error:
        raise ConfigError(
            "no alignment tool: the package sil-thot is not installed; install it with: pip install "
            "'nmt-smt[smt]', or give alignments of another tool"
        ) from error
    finally:
        if previous is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = previous
    return thot.alignment


class Aligner(Protocol):
    """Align the words of a parallel text."""

    def check(self) -> None:
        """ConfigError if the aligner cannot run on this machine."""
        ...

    def align(self, sources: Texts, targets: Texts) -> list[Links]:
        """Align one direction: links of each sentence pair, none if a side is empty."""
        ...


@runtime_checkable
class TrainsOnce(Protocol):
    """An aligner whose trained model is saved in files, and aligns pairs of its text in any order."""

    def train(self, sources: Texts, targets: Texts, prefix: str) -> None:
        """Train on a text; write the model into files whose paths begin with `prefix`."""
        ...

    def load(self, prefix: str) -> Any:
        """Load a model from its files."""
        ...

    def aligned(self, model: Any, sources: Texts, targets: Texts) -> list[Links]:
        """Align pairs of the text that the model was trained on; same links as `align`."""
        ...


@dataclass(frozen=True)
class Stages:
    """Models of sil-thot, each initialized by the previous one, and their iterations; 0: as scheduled by
    the model."""

    stages: tuple[tuple[str, int], ...]

    def check(self) -> None:
        thot()

    def trained(self, package: Any, sources: Texts, targets: Texts, sampled: bool = False) -> Any:
        """Train the models and return the last one; logs progress once a minute. `sampled`: keep its last
        training sample."""
        model: Any = None
        with Progress(sum(count for _, count in self.stages), "iterations", title="aligning") as progress:
            for name, iterations in self.stages:
                kind = getattr(package, name)
                if model is None:
                    model = kind()
                    for number in alignable_pairs(sources, targets):
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
    """Viterbi alignment of the last model; except for IBM 4, a target word gets at most one source word."""

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
        numbers = alignable_pairs(sources, targets)
        texts = [sources[number] for number in numbers], [targets[number] for number in numbers]
        alignments = model.get_best_alignments(*texts) if numbers else []
        return all_links(len(sources), numbers, (matrix for _, matrix in alignments))


class Sampled(Stages):
    """Alignment of the last sample of training, as in eflomal."""

    def align(self, sources: Texts, targets: Texts) -> list[Links]:
        model, numbers = (
            self.trained(thot(), sources, targets, sampled=True),
            alignable_pairs(sources, targets),
        )
        matrices = (model.get_training_alignment(index)[1] for index in range(len(numbers)))
        return all_links(len(sources), numbers, matrices)


def alignable_pairs(sources: Texts, targets: Texts) -> list[int]:
    """Indices of pairs without an empty side or one that is too long."""
    pairs = enumerate(zip(sources, targets, strict=True))
    return [number for number, pair in pairs if all(0 < len(side) <= LONGEST for side in pair)]


def all_links(pairs: int, numbers: Sequence[int], matrices: Iterable[Any]) -> list[Links]:
    """Links of all pairs, from sil-thot's matrices of those that could be aligned."""
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
    """Read the words of a parallel corpus. DataError for unequal numbers of lines, or no words."""
    sources, targets = [], []
    for left, right in files.parallel(source, target):
        sources.append(files.split_words(left))
        targets.append(files.split_words(right))
    if not any(left and right for left, right in zip(sources, targets, strict=True)):
        raise no_words_error(source)
    return sources, targets


def no_words_error(source: str | Path) -> DataError:
    """DataError for a parallel text without words."""
    return DataError(f"{source}: no pair of two lines with words, nothing to align")


def align_direction(aligner: Aligner, sources: Texts, targets: Texts, reverse: bool) -> list[Links]:
    """Align one direction, with the source word first. `reverse`: train from target to source."""
    return swap_sides(aligner.align(targets, sources)) if reverse else aligner.align(sources, targets)


def align_both_directions(sources: Texts, targets: Texts, method: str) -> tuple[list[Links], list[Links]]:
    """Align both directions, with the source word first. `method`: a name in ALIGNERS."""
    aligner = ALIGNERS[method]
    forward = align_direction(aligner, sources, targets, reverse=False)
    log.info("source to target aligned")
    return forward, align_direction(aligner, sources, targets, reverse=True)


def swap_sides(links: Iterable[Links]) -> list[Links]:
    """Swap the sides of each link."""
    return [frozenset((b, a) for a, b in sentence_links) for sentence_links in links]


def symmetrize(forward: Sequence[Links], reverse: Sequence[Links], heuristic: str) -> list[Links]:
    """Combine both directions. `heuristic`: a name in HEURISTICS."""
    combine = HEURISTICS[heuristic]
    return [combine(a, b) for a, b in zip(forward, reverse, strict=True)]


def format_links(links: Links) -> str:
    """Links as a line such as `0-0 1-2`, sorted."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))
