"""Tuning around the decoder: decode the development set into n-best lists, tune on all lists so far, decode
again.

N-best lists say little about weights far from those they were decoded with, because the search might find
quite different translations with such weights. Tuning therefore starts from the best weights decoded so far
and moves towards the tuner's result: all the way at first, half as far after each decoding that is not
better, and twice as far again, at most all the way, after a better one.

Each iteration leaves one file, `NN.npz`: the weights that it decoded with, the features and BLEU statistics
of its lists, the BLEU of its best translations, and the BLEU that its weights reached on the earlier lists.
Sparse features are named when they first occur in a list, so later weights are longer; earlier ones are
filled up with zeros.
Everything that follows depends on these files alone, so a killed tuning can be resumed, and ends with the
same weights.
"""

import logging
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.errors import DataError, UserError
from nmt.io import files, manifest
from nmt.work import store
from nmt.work.executors import Executor, Lost, LostLines
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.features.protocol import StatefulFeature
from smt_bridge.decoder.system import PhraseBasedSystem
from smt_bridge.decoder.translation import PhraseTranslation
from smt_bridge.decoder.xml_input import MarkedLine
from smt_bridge.moses.ini import Weights
from smt_bridge.moses.sparse_weights import SparseWeights, feature_of
from smt_bridge.tuning import pool as pools
from smt_bridge.tuning.bleu import COLUMNS, BleuReferences, bleu
from smt_bridge.tuning.pool import Floats, HypothesisRows, Ints, Pool, feature_names, from_weights, to_weights
from smt_bridge.tuning.registry import TuneConfig
from smt_bridge.tuning.sparse_vectors import SavedVectors, SparseVectors
from smt_bridge.tuning.tuner import Tuner, TuningPoint, run_tuner

log = logging.getLogger(__name__)

# a decoding whose BLEU is lower than the best by more than this took too long a step; it does not mean that
# tuning has converged
SLUMP = 0.01
ROUNDING = 1e-4  # smaller differences of scores are rounding errors
SETTINGS = "tune.json"
SPARSE_ARRAYS = ("sparse_names", "sparse_cut", "sparse_entries")  # in files: the fields of SavedVectors
FINAL_SEED = "seed-{}.weights"  # the weights of a final seed
# files that a killed tuning may leave behind
LEFT_OVER = (
    "[0-9][0-9]*.*part*", "tune.json.part*", "manifest.json.part*", "weights.part*",
    f"{FINAL_SEED.format('*')}.part*",
)  # fmt: skip


@dataclass
class Iteration:
    """One decoding of the development set, with its weights and lists."""

    weights: Floats  # (D + F,), of this decoding
    bleu: float  # corpus BLEU of the best translations, 0 to 1
    owner: Ints  # (N,), the sentence of each hypothesis
    features: Floats  # (N, D)
    stats: NDArray[np.float64 | np.int16]  # (N, 9), see bleu.py; int16 once saved
    promised: float = 0.0  # BLEU of these weights on the earlier lists, 0 to 1; 0 for starting weights
    # (N,) vectors; (0,) without sparse features
    sparse: Ints = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass
class Tuning:
    """A tuning in progress: its folder, and the iterations finished so far."""

    folder: Path
    names: list[str]  # of the D single weights
    sentences: int  # of the development set
    config: TuneConfig
    tuner: Tuner
    threads: int = 1  # of the tuner; no result depends on them
    iterations: list[Iteration] = field(default_factory=list)
    vectors: SparseVectors | None = None  # of sparse features; None without any
    saved: tuple[int, int] = (0, 0)  # their names and vectors that are in files

    def path(self, number: int) -> Path:
        """The file of an iteration, counted from 0."""
        return self.folder / f"{number:02d}.npz"

    def load(self) -> None:
        """Read the finished iterations of the folder into `iterations`. DataError for a damaged file."""
        names: list[str] = []
        while (path := self.path(len(names))).exists():
            names.append(path.name)
        if names:
            manifest.verify(self.folder, names)
        self.iterations = [self.read(self.folder / name) for name in names]

    @property
    def size(self) -> int:
        """The number of weights so far, D + F."""
        return len(self.names) + (len(self.vectors.names) if self.vectors else 0)

    def fill(self, weights: Floats) -> Floats:
        """Weights with zeros for sparse values that were named later: (D + F,)"""
        return np.pad(weights, (0, self.size - len(weights)))

    def normalize(self, weights: Floats) -> Floats:
        """Scale weights (D + F,) to Σ |w| = 1 over those that are not sparse."""
        return pools.normalize(weights, len(self.names))

    def to_weights(self, weights: Floats) -> Weights:
        """Weights (D + F,) by feature, and by name for sparse values."""
        count = len(self.names)
        sparse = self.vectors.names if self.vectors else {}
        named = zip(sparse, self.fill(weights)[count:].tolist(), strict=True)
        return to_weights(self.names, weights[:count]) | {name: [value] for name, value in named}

    def read(self, path: Path) -> Iteration:
        """Read an iteration from its file. DataError if it is damaged."""
        try:
            with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in ("weights", "owner", "features", "stats")}
                iteration = Iteration(
                    bleu=float(archive["bleu"]), promised=float(archive["promised"]), **arrays
                )
                if self.vectors is not None:
                    iteration.sparse = archive["sparse"].astype(np.int64)
                    saved = SavedVectors(*(archive[name] for name in SPARSE_ARRAYS))
                    self.vectors.extend(saved)
                    self.saved = len(self.vectors.names), len(self.vectors.vectors)
            self.check(iteration)
        except Exception as error:  # zipfile, its decoders and numpy raise a dozen classes for damage
            raise DataError(
                f"{path}: damaged ({error}); remove it and all later ones to resume from there"
            ) from error
        return iteration

    def check(self, iteration: Iteration) -> None:
        """ValueError for arrays that do not belong to this tuning."""
        rows, width = len(iteration.owner), len(self.names)
        arrays = iteration.owner, iteration.features, iteration.stats, iteration.sparse
        shapes = tuple(array.shape for array in arrays)
        vectors = rows if self.vectors is not None else 0
        weights = len(iteration.weights) if iteration.weights.ndim == 1 else 0
        expected = (rows,), (rows, width), (rows, COLUMNS), (vectors,)
        if not width <= weights <= self.size or shapes != expected:
            raise ValueError(
                f"arrays of shapes {shapes}, expected {width} features and {COLUMNS} statistics per row"
            )
        if not all(
            np.isfinite(array).all()
            for array in (iteration.weights, iteration.bleu, iteration.features, iteration.promised)
        ):
            raise ValueError("numbers that are not finite")
        if not rows or iteration.owner.min() < 0 or iteration.owner.max() >= self.sentences:
            raise ValueError("rows of other sentences")
        if self.vectors and not 0 <= iteration.sparse.min() <= iteration.sparse.max() < self.saved[1]:
            raise ValueError("sparse values that are not stored")

    def save(self, iteration: Iteration) -> None:
        """Write the next iteration to its file atomically, and append it to `iterations`. Its statistics
        become int16, as they will be read back. Removes the weights of final seeds, which were tuned on a
        smaller pool. UserError if the file cannot be written."""
        for path in self.folder.glob(FINAL_SEED.format("*")):
            path.unlink(missing_ok=True)
        with (
            store.unfinished(self.path(len(self.iterations)), recorded=True) as part,
            open(part, "wb") as out,
        ):
            save = partial(
                np.savez_compressed,
                out,
                weights=iteration.weights,
                bleu=np.float64(iteration.bleu),
                promised=np.float64(iteration.promised),
                owner=iteration.owner,
                features=iteration.features,
                stats=iteration.stats.astype(np.int16),
            )
            if self.vectors is None:
                save()
            else:
                new = self.vectors.since(*self.saved)
                save(
                    sparse=iteration.sparse.astype(np.int32), sparse_names=new.names, sparse_cut=new.cut,
                    sparse_entries=new.entries,
                )  # fmt: skip
        if self.vectors is not None:
            self.saved = len(self.vectors.names), len(self.vectors.vectors)
        iteration.stats = iteration.stats.astype(np.int16)  # as it will be read back
        self.iterations.append(iteration)

    def pool(self) -> Pool:
        """Pool the hypotheses of all iterations so far. DataError as from `HypothesisRows.pool`."""
        lists = HypothesisRows(self.names, self.sentences, self.vectors)
        for iteration in self.iterations:
            ends = 1 + np.flatnonzero(np.diff(iteration.owner, append=-1))
            for start, end in pairwise([0, *ends.tolist()]):
                rows = slice(start, end)
                vectors = iteration.sparse[rows] if self.vectors else None
                stats = iteration.stats[rows].astype(np.float64)
                lists.add(int(iteration.owner[start]), iteration.features[rows], stats, vectors)
        return lists.pool()

    def best(self) -> int:
        """Index of the iteration with the highest BLEU; on ties the first. There must be one."""
        return max(range(len(self.iterations)), key=lambda number: (self.iterations[number].bleu, -number))

    def stop_reason(self) -> str:
        """The reason to stop before the next iteration; empty if there is none. Iterations whose step was too
        long (SLUMP) do not count towards patience."""
        count = len(self.iterations)
        if count >= self.config.iterations:
            return f"{count} iterations"
        best = self.best() if count else 0
        later = [iteration.bleu for iteration in self.iterations[best + 1 :] if iteration.promised]
        if sum(bleu > self.iterations[best].bleu - SLUMP for bleu in later) >= self.config.patience:
            return f"{self.config.patience} iterations without a better BLEU"
        return ""

    def share(self) -> float:
        """How far the next iteration moves from the best weights decoded so far towards the tuner's result,
        as a share of the way."""
        fraction = 1.0
        for number in range(1, len(self.iterations)):
            if self.iterations[number].promised:
                better = self.iterations[number].bleu > max(
                    iteration.bleu for iteration in self.iterations[:number]
                )
                fraction = min(1.0, 2 * fraction) if better else fraction / 2
        return fraction

    def tune_pool(self, pool: Pool, seed: int) -> TuningPoint:
        """Tune on a pool from the best weights decoded so far."""
        last, best = (self.fill(self.iterations[at].weights) for at in (-1, self.best()))
        others = [last, np.ones(len(last))]
        return run_tuner(self.tuner, pool, best, seed, others, self.threads)

    def next_weights(self) -> TuningPoint:
        """Tune, and return the weights to decode with next, with their BLEU on all lists so far. If the tuner
        finds nothing new, they are those of the best decoding."""
        pool, share, best = self.pool(), self.share(), self.best()
        tuned = self.tune_pool(pool, self.config.seed * 1000 + len(self.iterations)).weights
        start = self.fill(self.iterations[best].weights)
        not_best = np.delete(np.arange(len(self.iterations)), best)

        def moved_weights() -> Floats:
            return tuned if share == 1 else self.normalize(start + share * (tuned - start))

        while not self.is_same(moved_weights(), start) and any(
            self.is_same(moved_weights(), self.iterations[number].weights) for number in not_best
        ):
            share /= 2  # decoded before, and worse
        return TuningPoint(moved_weights(), pool.bleu(moved_weights()))

    def is_same(self, weights: Floats, others: Floats) -> bool:
        """Whether all weights differ by less than the setting `still`."""
        return bool(np.abs(self.fill(weights) - self.fill(others)).max() < self.config.still)

    def search_errors(self) -> tuple[int, float]:
        """Count search errors: sentences for which some list contains a translation that scores higher, under
        the weights of the best decoding, than all translations of that decoding. Returns their number, and
        the corpus BLEU, 0 to 1, with the highest-scoring translations of all lists."""
        best, pool = self.iterations[self.best()], self.pool()
        decoded = np.full(self.sentences, -np.inf)
        weights = self.fill(best.weights)
        scores = best.features @ weights[: len(self.names)]
        if self.vectors is not None:
            scores = scores + self.vectors.columns(best.sparse).dot(weights[len(self.names) :])
        np.maximum.at(decoded, best.owner, scores)
        rows = pool.best(weights)
        lost = pool.scores(weights)[rows] > decoded + ROUNDING
        return int(lost.sum()), float(bleu(pool.stats[rows].sum(0)))

    def gain_warning(self) -> str:
        """A warning if no tuned weights decode better than the initial ones; empty otherwise. It names the
        features that have weight 0 in the first of several starts, if this is the best one."""
        best = self.iterations[self.best()]
        if best.promised:
            return ""
        promised = max(iteration.promised for iteration in self.iterations)
        more = f"; its lists promised up to {100 * promised:.2f}" if promised > best.bleu else ""
        *_, whole = (iteration.weights for iteration in self.iterations if not iteration.promised)
        weights = zip(feature_names(self.names), best.weights, whole, strict=False)  # without sparse values
        absent = ", ".join(dict.fromkeys(name for name, weight, full in weights if full and not weight))
        return (
            f"the tuning gained nothing: the best BLEU, {100 * best.bleu:.2f}, is that of the initial "
            f"weights{absent and f' without {absent}'}{more}"
        )


def make_references(texts: Sequence[Sequence[str]]) -> list[BleuReferences]:
    """Prepare the references of each sentence. `texts`: the lines of each reference translation of the
    development set. ValueError if they differ in length."""
    return [BleuReferences([files.split_words(line) for line in row]) for row in zip(*texts, strict=True)]


Decode = Callable[[Weights], Generator[PhraseTranslation]]  # translates the development set with weights
Refine = Callable[[Pool, Floats], Floats]  # lists so far, weights to start from (D,) -> better ones (D,)


def run(
    tuning: Tuning,
    starts: Sequence[Floats],
    decode: Decode,
    references: Sequence[BleuReferences],
    refine: Refine = lambda pool, weights: weights,
) -> str:
    """Decode with the weights `starts`, (D,) each, then tune and decode in turns until a stopping rule
    applies; returns the reason to stop. Reads finished iterations from the folder of the tuning first, and
    writes each new one. UserError if no weights change BLEU or a file cannot be written; DataError for a
    damaged file, or as from `HypothesisRows.pool`. `references`: of each sentence; `refine`: changes all
    starts but the first by the lists of those before."""
    pools.warn_of_few(tuning.sentences, len(tuning.names))
    tuning.load()
    if tuning.iterations:
        log.info(
            "resuming: %d iterations finished, the best with BLEU %.2f",
            len(tuning.iterations),
            100 * tuning.iterations[tuning.best()].bleu,
        )
    cache: list[dict[str, list[int]]] = [{} for _ in references]
    while not (reason := tuning.stop_reason()):
        if len(tuning.iterations) < len(starts):
            start = starts[len(tuning.iterations)]
            start = refine(tuning.pool(), start) if tuning.iterations else start
            point = TuningPoint(tuning.normalize(start), 0.0)
        else:
            point = tuning.next_weights()
            if not np.any(point.weights):
                raise UserError(
                    "every weight is 0: no direction changes BLEU on these lists; increase --n-best, or is a "
                    "setting of the tuner too large, such as --min-difference?"
                )
            if tuning.is_same(point.weights, tuning.iterations[tuning.best()].weights):
                reason = "the weights have converged"
                break
        start_time = time.monotonic()
        with closing(decode(tuning.to_weights(point.weights))) as translations:
            tuning.save(collect(translations, point, references, cache, tuning.vectors))
        latest = tuning.iterations[-1]
        seconds = time.monotonic() - start_time
        log.info(
            "iteration %d: BLEU %.2f%s, %s hypotheses, %.0f s (%.1f sentences a second)",
            len(tuning.iterations), 100 * latest.bleu,
            f" (on the lists {100 * point.bleu:.2f})" if point.bleu else "", f"{len(latest.owner):,}",
            seconds, tuning.sentences / seconds,
        )  # fmt: skip
    lost, bleu_of_lists = tuning.search_errors()
    if lost:
        log.info(
            "with the best weights the search missed a higher-scoring translation in %d of %d sentences; "
            "BLEU with these translations is %.2f",
            lost,
            tuning.sentences,
            100 * bleu_of_lists,
        )
    return reason


def collect(
    translations: Iterator[PhraseTranslation],
    point: TuningPoint,
    references: Sequence[BleuReferences],
    cache: list[dict[str, list[int]]],
    vectors: SparseVectors | None = None,
) -> Iteration:
    """Make an iteration from the decoder's n-best lists. `point`: the weights of the decoding, and their BLEU
    on the earlier lists. `cache`: for each sentence, the BLEU statistics of texts seen before, by text;
    `vectors`: of sparse features, if there are any. New ones are added to both."""
    owner, features, stats, tops, sparse = [], [], [], [], list[int]()
    for number, translation in enumerate(translations):
        sentence_cache = cache[number]
        for derivation in translation.derivations:
            text = " ".join(derivation.text)
            row = sentence_cache.get(text)
            if row is None:
                row = sentence_cache[text] = references[number].statistics(derivation.text)
            owner.append(number)
            features.append(derivation.features)
            if vectors is not None:
                sparse.append(vectors.add(derivation.sparse))
            stats.append(row)
        tops.append(sentence_cache[" ".join(translation.text)])
    return Iteration(
        weights=point.weights,
        promised=point.bleu,
        bleu=float(bleu(np.array(tops, np.float64).sum(0))),
        owner=np.array(owner),
        features=np.array(features),
        stats=np.array(stats, np.float64),
        sparse=np.array(sparse, np.int64),
    )


OTHER = "another --work folder"


def check_folder(folder: Path) -> None:
    """ConfigError for a folder that is not empty and was not created by smt-tune."""
    store.check_ours(folder, SETTINGS, "a folder of smt-tune", OTHER)


def open_folder(folder: Path, settings: Mapping[str, object], config: TuneConfig, tuner: Tuner) -> None:
    """Record in the folder what is tuned and how, or check that a resumed tuning has the same settings,
    except for `iterations` and `patience`. Removes unfinished files. The caller holds the lock of the folder.
    ConfigError if the settings differ, DataError if the recorded ones are damaged."""
    same = {**settings, **asdict(config), **asdict(tuner)}
    for name in ("iterations", "patience"):
        same.pop(name)  # a resumed tuning may ask for more
    if not store.is_started(folder / SETTINGS, same, folder, OTHER):
        store.write_settings(folder / SETTINGS, same)
    store.remove_unfinished(folder, LEFT_OVER)


# ---- decoding ----------------------------------------------------------------------------------------------
# Decoding the development set with other weights, by threads or by an executor, and converting between the
# weights that are tuned and all weights of a system.


BLOCK = 20  # lines that an executor decodes together
NO_OPTIONS = np.zeros(0, np.int32)


@dataclass(frozen=True)
class DecodingBlock:
    """Lines of the development set, and the weights to decode them with."""

    lines: list[MarkedLine]
    weights: Weights


DecodingExecutor = Executor[DecodingBlock, list[PhraseTranslation]]


def with_weights(decoder: Decoder, weights: Weights) -> Decoder:
    """A decoder with new weights that shares the loaded networks."""
    return Decoder(decoder.system, decoder.config, weights, decoder.features)


def decode(
    decoder: Decoder, weights: Weights, sources: Sequence[str], workers: int, name: str
) -> Generator[PhraseTranslation]:
    """Translate lines with new weights, by `workers` threads. `name`: of the text, for error messages."""
    return with_weights(decoder, weights).translate_all(iter(sources), workers, name)


def decode_by_executor(
    executor: DecodingExecutor, decoder: Decoder, weights: Weights, sources: Sequence[str], name: str
) -> Generator[PhraseTranslation]:
    """Translate lines with other weights by an executor whose workers run `Redecoder.compute`; the
    translations have only texts, features and totals. `name`: name of the text, for messages. UserError that
    names the lines whose workers died, once all others are translated."""
    marked, lost, first = decoder.parse_lines(sources, name), LostLines(), 0

    def blocks() -> Iterator[DecodingBlock]:
        while lines := list(islice(marked, BLOCK)):
            yield DecodingBlock(lines, weights)

    for result in executor.map(blocks()):
        end = min(first + BLOCK, len(sources))
        if isinstance(result, Lost):
            lost.add(first + 1, end, result)
        else:
            yield from result
        first = end
    lost.check(name, "start the tuning again, and it goes on after the last iteration")


class Redecoder:
    """Decodes blocks with the weights that come with each."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.weights: Weights = {}

    def compute(self, block: DecodingBlock) -> list[PhraseTranslation]:
        """Translate a block with its weights. The translations have only texts, features and totals, without
        what explanations need."""
        if block.weights != self.weights:
            self.decoder, self.weights = with_weights(self.decoder, block.weights), block.weights
        return [strip_details(self.decoder.translate_line(line)) for line in block.lines]


def strip_details(translation: PhraseTranslation) -> PhraseTranslation:
    """A copy with only texts, features and totals, which is cheap to send to another process."""
    return PhraseTranslation(
        None, [replace(derivation, options=NO_OPTIONS, shares=None) for derivation in translation.derivations]
    )


def sparse_vectors(system: PhraseBasedSystem) -> SparseVectors | None:
    """The vectors of a tuning: none yet, with the names of values that have a weight already; None without
    sparse features to tune."""
    tuned = set(system.sparse)
    names = [name for name in system.sparse_weights if feature_of(name) in tuned]
    return SparseVectors({name: column for column, name in enumerate(names)}) if tuned else None


def starting_weights(decoder: Decoder, names: Sequence[str]) -> list[Floats]:
    """The weights (D + F,) to decode with before the first tuning: first those of the system without its
    stateful features, then those of the whole system; only the latter if there are no stateful features, or
    no others. F are the sparse values that have a weight already.

    A search with networks gives short lists of similar texts. On these alone, almost any weight looks right
    for a feature that the networks can compensate for. But the search prunes by that feature, so a wrong
    weight leads it astray; lists of a search without networks prevent this.
    """
    vectors = sparse_vectors(decoder.system)
    sparse = [decoder.system.sparse_weights[name] for name in vectors.names] if vectors else []
    own = np.concatenate([from_weights(names, decoder.system.tuneable_weights()), sparse])
    stateful = {feature.name for feature in decoder.features if isinstance(feature, StatefulFeature)}
    without = own.copy()
    without[[at for at, name in enumerate(feature_names(names)) if name in stateful]] = 0.0
    return [own] if (without == own).all() or not without.any() else [without, own]


def whole_weights(system: PhraseBasedSystem, names: Sequence[str], values: Floats) -> Weights:
    """All weights of the tuned features by name, including those of scores that are not tuneable, but without
    sparse ones. `values`: (D + F,), of which the first are of `names`."""
    weights = system.with_weights(to_weights(names, values[: len(names)]))
    return {name: weights[name] for name in system.sizes}


def whole_sparse_weights(system: PhraseBasedSystem, tuning: Tuning, values: Floats) -> SparseWeights:
    """All weights of sparse values by name, also of features that are not tuneable. `values`: (D + F,)"""
    return system.with_sparse_weights(tuning.to_weights(values))
