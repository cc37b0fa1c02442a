"""Tuning around the decoder: decode the development set into n-best lists, tune on all lists so far, decode
again.

One file an iteration, `NN.npz`: features and BLEU statistics of its lists; beside it the weights it decoded
with and the BLEU of its best translations. What comes next follows from these files alone, so a killed tuning
goes on, and ends with the same weights.
"""

import logging
import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nmt import files, locks, manifest
from nmt.errors import ConfigError, DataError, UserError
from smt_bridge import begun
from smt_bridge.config import TuneConfig
from smt_bridge.decoder.decoder import Translation
from smt_bridge.tuning import pool as pools
from smt_bridge.tuning.bleu import COLUMNS, References, bleu
from smt_bridge.tuning.kbmira import kbmira
from smt_bridge.tuning.mert import Point, mert
from smt_bridge.tuning.pool import Floats, Pool
from smt_bridge.tuning.pro import pro
from smt_bridge.weights import Weights

log = logging.getLogger("nmt.tune")

SETTINGS = "tune.json"
LEFT_OVER = (
    "[0-9][0-9].part*",
    "tune.json.part*",
    "manifest.json.part*",
    "weights.part*",
    "seed-*.weights.part*",
)  # of a killed start


@dataclass
class Iteration:
    """One decoding of the development set."""

    weights: Floats
    bleu: float  # of the best translations, 0 to 1
    owner: Any  # (N,) sentence of each hypothesis
    features: Floats  # (N, D)
    stats: Floats  # (N, 9)


@dataclass
class Tuning:
    """The folder of a tuning and what it holds so far."""

    folder: Path
    names: list[str]  # of single weights
    sentences: int
    config: TuneConfig
    iterations: list[Iteration] = field(default_factory=list)

    def path(self, number: int) -> Path:
        return self.folder / f"{number:02d}.npz"

    def load(self) -> None:
        """The finished iterations. DataError for a damaged file."""
        names: list[str] = []
        while (path := self.path(len(names))).exists():
            names.append(path.name)
        if names and not manifest.verify(self.folder, names):
            log.info(
                "%s: begun by version 0.5, which wrote no checksums; its iterations get them now", self.folder
            )
            manifest.write(self.folder, names)
        self.iterations = [self.read(self.folder / name) for name in names]

    def read(self, path: Path) -> Iteration:
        try:
            with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as held:
                found = Iteration(
                    held["weights"], float(held["bleu"]), held["owner"], held["features"], held["stats"]
                )
            self.check(found)
        except (
            Exception
        ) as error:  # a damaged archive makes zipfile, its decoders and numpy raise a dozen classes
            raise DataError(
                f"{path}: damaged ({error}); remove it and the later ones to go on from there"
            ) from error
        return found

    def check(self, found: Iteration) -> None:
        """ValueError for arrays that are not those of this tuning."""
        rows, width = len(found.owner), len(self.names)
        shapes = found.weights.shape, found.owner.shape, found.features.shape, found.stats.shape
        if shapes != ((width,), (rows,), (rows, width), (rows, COLUMNS)):
            raise ValueError(
                f"arrays of shapes {shapes}, expected {width} features and {COLUMNS} statistics a row"
            )
        if not all(np.isfinite(array).all() for array in (found.weights, found.bleu, found.features)):
            raise ValueError("numbers that are not finite")
        if not rows or found.owner.min() < 0 or found.owner.max() >= self.sentences:
            raise ValueError("rows of other sentences")

    def save(self, made: Iteration) -> None:
        path = self.path(len(self.iterations))
        beside = path.with_suffix(".part.npz")
        try:
            np.savez_compressed(
                beside,
                weights=made.weights,
                bleu=np.float64(made.bleu),
                owner=made.owner,
                features=made.features,
                stats=made.stats.astype(np.int16),
            )
            with open(beside, "rb") as written:
                os.fsync(written.fileno())
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise files.cannot_write(path, error) from error
        manifest.publish(self.folder, {path.name: beside})
        made.stats = made.stats.astype(np.int16)  # as it will be read back
        self.iterations.append(made)

    def pool(self) -> Pool:
        """All hypotheses so far."""
        rows: pools.Rows = {}
        for iteration in self.iterations:
            cuts = np.flatnonzero(np.diff(iteration.owner)) + 1
            parts = [
                np.split(array, cuts)
                for array in (iteration.owner, iteration.features, iteration.stats.astype(np.float64))
            ]
            for owner, features, stats in zip(*parts, strict=True):
                held = rows.setdefault(int(owner[0]), ([], []))
                held[0].append(features)
                held[1].append(stats)
        return pools.make(self.names, rows, self.sentences)

    def best(self) -> int:
        """The iteration whose weights decode best."""
        return max(range(len(self.iterations)), key=lambda number: (self.iterations[number].bleu, -number))

    def finished(self) -> str:
        """Why there is nothing more to do before the next weights are known; empty when there is."""
        count = len(self.iterations)
        if count >= self.config.iterations:
            return f"{count} iterations"
        if count and count - 1 - self.best() >= self.config.patience:
            return f"{self.config.patience} iterations without a better BLEU"
        return ""

    def next_weights(self, seed: int | None = None) -> Point:
        """What the tuner makes of all lists."""
        pool, config = self.pool(), self.config
        last, best = self.iterations[-1].weights, self.iterations[self.best()].weights
        seed = config.seed * 1000 + len(self.iterations) if seed is None else seed
        if config.method == "mert":
            return mert(pool, [last, best, np.ones(len(last))], seed, config.restarts, config.threads)
        if config.method == "kbmira":
            return kbmira(pool, last, seed)
        return pro(pool, seed)


Decode = Callable[[Weights], Generator[Translation]]


def run(tuning: Tuning, start: Floats, decode: Decode, references: Sequence[References]) -> str:
    """Iterate until a stop rule says so; returns it. UserError when the tuner has nothing to go by."""
    tuning.load()
    if tuning.iterations:
        log.info(
            "%d finished iterations, the best one %.2f BLEU",
            len(tuning.iterations),
            100 * tuning.iterations[tuning.best()].bleu,
        )
    cache: list[dict[str, list[int]]] = [{} for _ in references]
    while not (reason := tuning.finished()):
        weights = pools.normalize(start)
        projected = 0.0
        if tuning.iterations:
            point = tuning.next_weights()
            weights, projected = point.weights, point.bleu
            if not np.any(weights):
                raise UserError(
                    "every weight is 0: no direction changes BLEU; are the references of this text, "
                    "tokenized and escaped like the model?"
                )
            if np.abs(weights - tuning.iterations[-1].weights).max() < tuning.config.still:
                return "no weight moves any more"
        begin = time.monotonic()
        with closing(decode(pools.to_weights(tuning.names, weights))) as translations:
            tuning.save(collect(translations, weights, references, cache))
        here = tuning.iterations[-1]
        seconds = time.monotonic() - begin
        log.info(
            "iteration %d: BLEU %.2f%s, %s hypotheses, %.0f s (%.1f sentences a second)",
            len(tuning.iterations), 100 * here.bleu,
            f" (on the lists {100 * projected:.2f})" if projected else "", f"{len(here.owner):,}", seconds,
            tuning.sentences / seconds,
        )  # fmt: skip
    return reason


def collect(
    translations: Iterator[Translation],
    weights: Floats,
    references: Sequence[References],
    cache: list[dict[str, list[int]]],
) -> Iteration:
    """Features and statistics of what the decoder finds."""
    owner, features, stats, tops = [], [], [], []
    for number, translation in enumerate(translations):
        known = cache[number]
        for derivation in translation.derivations:
            text = " ".join(derivation.text)
            row = known.get(text)
            if row is None:
                row = known[text] = references[number].statistics(derivation.text)
            owner.append(number)
            features.append(derivation.features)
            stats.append(row)
        tops.append(known[" ".join(translation.text)])
    return Iteration(
        weights,
        float(bleu(np.array(tops, np.float64).sum(0))),
        np.array(owner),
        np.array(features),
        np.array(stats, np.float64),
    )


def check_folder(folder: Path) -> None:
    """ConfigError for a folder with files in it that no tuning began."""
    if not locks.is_empty(folder) and not (folder / SETTINGS).exists():
        raise ConfigError(
            f"{folder}: is not empty and no tuning that smt-tune began; name another --work folder"
        )


def open_folder(folder: Path, settings: dict[str, Any], config: TuneConfig) -> None:
    """Tell in the folder, which the caller holds, what is tuned, or check that it is the same. ConfigError
    when it is not."""
    told = asdict(config)
    for name in ("threads", "iterations", "patience"):
        told.pop(name)  # more of them may be asked for later
    settings = {**settings, **told}
    before = begun.read(folder / SETTINGS)
    if before is None:
        begun.write(folder / SETTINGS, settings)
    elif changed := begun.changed(before, settings):
        raise ConfigError(
            f"{folder}: was begun with another {', '.join(changed)}; name another --work folder, or remove "
            "it to start anew"
        )
    try:
        for left in [left for name in LEFT_OVER for left in folder.glob(name)]:
            left.unlink()
    except OSError as error:
        raise files.cannot_write(folder, error) from error
