"""Estimators of n-gram models: interpolated modified Kneser-Ney, Katz back-off, stupid back-off, add-k, and
KenLM's lmplz."""

import logging
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.config import settings
from nmt.config.settings import number, setting
from nmt.errors import ConfigError, DataError, UserError
from nmt.io import files
from nmt.io.mapped import MEMORY, ArrayStorage, blocks
from nmt.ngram.count_models import NgramModel, NgramOrder
from nmt.ngram.counting import CountSettings, NgramCounts, count_lines, finish_model, safe_log10
from nmt.ngram.text_scorer import MINUS_ALL, Floats, Ints

# ---- kneser ney --------------------------------------------------------------------------------------------
# Interpolated modified Kneser-Ney estimation (Chen and Goodman 1998), with the numbers of KenLM's lmplz.
#
# Counts may be mapped from files (nmt/ngram/disk_counts.py), and all arrays of n-grams too. Memory then holds
# blocks of them.

log = logging.getLogger(__name__)

UNK_ID, BOS_ID = 0, 1
BLOCK = 1 << 18  # n-grams whose probabilities are computed together
LEAST = 10**MINUS_ALL  # weight of the lower order where discounts leave it nothing
FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)  # discounts of lmplz --discount_fallback


@dataclass
class KneserNeyConfig:
    """Settings of Kneser-Ney estimation: the options of nmt-ngram, which are those of lmplz."""

    order: int = number(
        5, least=1, most=20, help="length of the longest n-grams"
    )  # KenLM is built for up to 6
    prune: tuple[int, ...] = number(
        (0,),
        least=0,
        help="drop n-grams that occur at most N times, one N for each order; the last N holds for all longer "
        "ones",
    )
    interpolate_unigrams: bool = setting(
        True, help="unigrams share mass with all words, <unk> included; else <unk> alone gets it, as in SRILM"
    )
    discount_fallback: tuple[float, ...] = number(
        (),
        least=0,
        most=3,
        help="discounts D1, D2, D3+ where there is too little text for them; without D: 0.5 1 1.5",
    )
    skip_symbols: bool = setting(False, help="remove <s> and </s> from the text instead of refusing it")

    def check(self) -> None:
        """ConfigError for a value out of range."""
        settings.check(self, "--")
        if (
            not self.prune
            or self.prune[0] != 0
            or list(self.prune) != sorted(self.prune)
            or len(self.prune) > self.order
        ):
            raise ConfigError(
                f"--prune {' '.join(map(str, self.prune))}: expected at most {self.order} non-decreasing "
                "numbers, the first of them 0"
            )
        if self.discount_fallback and (
            len(self.discount_fallback) != 3
            or any(not 0 <= d <= k for k, d in enumerate(self.discount_fallback, 1))
        ):
            raise ConfigError("--discount-fallback: expected three discounts, at most 1, 2 and 3")

    def threshold(self, n: int) -> int:
        """The largest count at which n-grams of order n are dropped."""
        return self.prune[min(n, len(self.prune)) - 1]


def estimate_kneser_ney(sentences: Iterable[Sequence[str]], config: KneserNeyConfig) -> NgramModel:
    """Estimate a model from sentences. ConfigError for settings out of range; DataError for an empty corpus,
    or one too small for discounts."""
    config.check()
    counts = count_lines(map(" ".join, sentences), CountSettings(config.order, config.skip_symbols))
    return kneser_ney_model(*counts, config)


def kneser_ney_model(
    vocabulary: list[str], counts: list[NgramCounts], config: KneserNeyConfig, storage: ArrayStorage = MEMORY
) -> NgramModel:
    """Estimate a model from the counts of all lengths. `vocabulary`: words by their ids; `storage`: of the
    arrays of the model. DataError for too few counts to compute discounts; OSError if the disk is full."""
    levels: list[NgramOrder] = []
    gammas: list[Floats] = []
    all_retained: list[NDArray[np.bool_]] = []  # of each order, the n-grams that are not pruned
    lower = np.zeros(0)
    for n, here in enumerate(counts, 1):
        adjusted = adjust(here, counts[n] if n < config.order else None, storage)
        if n == 1:
            adjusted = np.where(here.begins, 0, adjusted)  # <s> follows nothing
        discounts = kneser_ney_discounts(adjusted, n, config.discount_fallback)
        retained = storage.empty(len(here.raw), np.bool_)
        for rows in blocks(len(retained)):
            retained[rows] = here.raw[rows] > (config.threshold(n) if n > 1 else -1)
        lower, gamma = interpolate(
            here, adjusted, discounts, retained, lower, n, len(vocabulary), config, storage
        )
        gammas.append(gamma)
        log10 = storage.empty(len(lower), np.float64)
        for rows in blocks(len(lower)):
            log10[rows] = safe_log10(lower[rows])
        if n == 1:
            log10[1] = 0.0  # <s>, as lmplz writes it
        levels.append(NgramOrder(keys=here.keys, log10=log10, backoff=np.zeros(len(log10))))
        all_retained.append(retained)
    return finish_model(vocabulary, levels, gammas, all_retained, storage)


def adjust(here: NgramCounts, above: NgramCounts | None, storage: ArrayStorage = MEMORY) -> Ints:
    """Adjusted counts, (M,): for the highest order the number of occurrences; for lower orders the number of
    distinct preceding words, or of occurrences if no word can precede the n-gram. `storage`: of the
    counts."""
    if above is None:
        return here.raw
    preceding = storage.empty(len(here.raw), np.int64)
    preceding[:] = 0
    for rows in blocks(len(above.suffix)):
        np.add.at(preceding, above.suffix[rows], 1)
    np.copyto(preceding, here.raw, where=here.begins)
    return preceding


def kneser_ney_discounts(counts: Ints, n: int, fallback: Sequence[float]) -> Floats:
    """Modified Kneser-Ney discounts 0, D1, D2 and D3+ of the n-grams of order n with these adjusted counts
    (M,). If there is too little text to compute them, logs a warning and returns `fallback` after the 0;
    DataError if `fallback` is empty."""
    with_count = np.zeros(6, np.int64)  # n-grams with counts 0 to 4, and with larger ones
    for rows in blocks(len(counts)):
        with_count += np.bincount(np.minimum(counts[rows], 5), minlength=6)
    t: list[int] = with_count.tolist()
    if all(t[1:4]):
        y = t[1] / (t[1] + 2 * t[2])
        discounts = [k - (k + 1) * y * t[k + 1] / t[k] for k in (1, 2, 3)]
        if all(0 <= d <= k for k, d in enumerate(discounts, 1)):
            return np.array([0.0, *discounts])
        problem = f"discounts of {n}-grams are out of range ({', '.join(f'{d:.3g}' for d in discounts)})"
    else:
        missing = ("once", "twice", "three times")[[bool(k) for k in t[1:4]].index(False)]
        problem = f"no {n}-gram occurs {missing}, which discounts need"
    if not fallback:
        raise DataError(
            f"too little text: {problem}; --discount-fallback takes "
            f"{', '.join(map(str, FALLBACK_DISCOUNTS))} instead"
        )
    log.warning("%s: taking %s", problem, ", ".join(f"{d:g}" for d in fallback))
    return np.array([0.0, *fallback])


def interpolate(
    here: NgramCounts,
    adjusted: Ints,
    discounts: Floats,
    retained: NDArray[np.bool_],
    lower: Floats,
    n: int,
    V: int,
    config: KneserNeyConfig,
    storage: ArrayStorage,
) -> tuple[Floats, Floats]:
    """p of each n-gram of order n, (M,), pruned ones among them, and the weight of the lower order after each
    context, (C,).

    `adjusted`, `retained` (M,): see `adjust` and `keep_ngrams`; `discounts` (4,): of counts 0, 1, 2 and more;
    `lower`: p of the n-grams of the order below.

    p(w | h) = (a(hw) - D) / Σ a(h·) + γ(h) p(w | h'), where γ(h) is the mass of the discounts and of the
    pruned n-grams.
    """
    contexts = int(here.keys[-1]) // V + 1 if len(here.keys) else 0
    gamma, probs = storage.empty(contexts, np.float64), storage.empty(len(here.keys), np.float64)
    gamma[:] = 0
    for rows in context_blocks(here.keys, V):
        keys, counts = here.keys[rows], adjusted[rows]
        first = int(keys[0]) // V
        parent = keys // V - first
        taken = np.where(retained[rows], discounts[np.minimum(counts, 3)], counts)
        total = np.maximum(np.bincount(parent, counts), 1)
        gammas = np.bincount(parent, taken) / total
        if n > 1:
            below = lower[here.suffix[rows]]
        elif config.interpolate_unigrams:
            below = np.where(keys == BOS_ID, 0.0, 1 / (V - 1))
        else:
            below = np.where(keys == UNK_ID, 1.0, 0.0)
        probs[rows] = (counts - taken) / total[parent] + gammas[parent] * below
        # A weight of 0 would stand for a context without n-grams, which leaves all to the lower order.
        gamma[first : first + len(gammas)] = np.where(np.bincount(parent) > 0, np.maximum(gammas, LEAST), 0)
    return probs, gamma


def context_blocks(keys: Ints, V: int) -> Iterator[slice]:
    """Cut n-grams, sorted by key, into blocks of whole contexts, of about BLOCK n-grams each."""
    start = 0
    while start < len(keys):
        last = int(keys[min(start + BLOCK, len(keys)) - 1])
        stop = int(np.searchsorted(keys, (last // V + 1) * V))
        yield slice(start, stop)
        start = stop


# ---- smoothing ---------------------------------------------------------------------------------------------
# Other estimates from counts than Kneser-Ney's: Katz back-off, stupid back-off, add-k. All of them are
# written as ARPA files.
#
# c counts, h a context, h' the context without its first word, V words that can follow (with <unk> and </s>,
# without <s>). Arrays are of the M n-grams of one length.

NOTHING = 1e-12  # mass below which a context leaves nothing to its lower order


@dataclass
class SmoothingConfig(KneserNeyConfig):
    """Settings of Katz, stupid back-off and add-k estimation, and those that all estimators share."""

    katz_cutoff: int = number(5, least=2, most=100, help="katz: counts above this are not discounted")
    backoff_factor: float = number(
        0.4, above=0, most=1, help="stupid-backoff: factor of each step to a shorter context"
    )
    add: float = number(1.0, above=0, help="add-k: what is added to each count; 1 is Laplace's rule")


@dataclass
class Estimate:
    """The probabilities and back-off weights of a model: one array per order, unigrams first."""

    log10: list[Floats]  # log10 p of each n-gram
    gammas: list[Floats]  # weight of the next lower order after each context of n - 1 words


Estimator = Callable[[list[NgramCounts], SmoothingConfig], Estimate]


def smoothed_model(
    vocabulary: list[str], counts: list[NgramCounts], config: SmoothingConfig, kind: str
) -> NgramModel:
    """Estimate a back-off model from the counts of all lengths. `vocabulary`: words by their ids; `config`:
    `prune` and `interpolate_unigrams` are ignored; `kind`: a name in ESTIMATORS. DataError for too few counts
    for Good-Turing's discounts."""
    estimate = ESTIMATORS[kind](counts, config)
    estimate.log10[0][BOS_ID] = 0.0  # <s>, as lmplz writes it
    levels = [
        NgramOrder(keys=here.keys, log10=log10, backoff=np.zeros(len(log10)))
        for here, log10 in zip(counts, estimate.log10, strict=True)
    ]
    retained = [np.ones(len(here.keys), bool) for here in counts]
    return finish_model(vocabulary, levels, estimate.gammas, retained)


def context_counts(here: NgramCounts, n: int) -> tuple[Ints, Ints, Floats]:
    """Counts of the n-grams, (M,), their contexts as nodes of the order below, (M,), and c(h ·) of each
    context. The unigram <s> counts 0, since <s> never follows a word."""
    raw = here.raw.copy()
    if n == 1:
        raw[BOS_ID] = 0
    parent = here.parents
    return raw, parent, np.bincount(parent, raw).astype(np.float64)


# ---- Katz --------------------------------------------------------------------------------------------------


def katz(counts: list[NgramCounts], config: SmoothingConfig) -> Estimate:
    """Back-off by Katz (1987): p(w | h) = d c(hw) / c(h) for an n-gram of the text, α(h) p(w | h') for
    others, where α(h) normalizes the sum to 1. d is Good-Turing's discount of counts up to `katz_cutoff`. If
    all counts of a context exceed the cutoff, one is added to c(h), as in SRILM, so that some mass is left.
    The mass that the unigrams leave goes to <unk>."""
    estimate, lower = Estimate([], []), np.zeros(0)
    for n, here in enumerate(counts, 1):
        raw, parent, total = context_counts(here, n)
        probs = discount(raw, n, config) / total[parent]
        seen = np.bincount(parent, probs)
        probs *= np.where(seen > 1 - NOTHING, total / (total + 1), 1.0)[parent]
        seen = np.bincount(parent, probs)
        if n == 1:
            probs[0] += 1 - seen[0]
            estimate.gammas.append(np.zeros(1))
        else:
            left = 1 - np.bincount(parent, lower[here.suffix])  # of the lower order, for words not seen here
            none = left < NOTHING
            probs /= np.where(none, seen, 1.0)[parent]
            estimate.gammas.append(np.where(none, 0.0, (1 - seen) / np.where(none, 1.0, left)))
        estimate.log10.append(safe_log10(probs))
        lower = probs
    return estimate


def discount(counts: Ints, n: int, config: SmoothingConfig) -> Floats:
    """Discount the counts of all n-grams of order n: (M,) -> (M,). Uses Good-Turing discounts or, if the text
    is too small for them, subtracts the absolute discounts of --discount-fallback. Without a fallback,
    unigrams keep their counts; DataError for longer n-grams. Logs a warning if fewer counts than wanted are
    discounted."""
    occurring, remaining = counts[counts > 0], counts.astype(np.float64)
    if not len(occurring):
        return remaining
    for cutoff in range(config.katz_cutoff, 1, -1):
        factors = good_turing(occurring, cutoff)
        if factors is not None:
            if cutoff < config.katz_cutoff:
                log.warning("%d-grams: counts above %d are not discounted", n, cutoff)
            return remaining * factors[np.minimum(counts, cutoff + 1)]
    if not config.discount_fallback:
        if n == 1:  # a vocabulary without rare words
            log.warning("1-grams: counts are not discounted, too few words are rare")
            return remaining
        raise DataError(
            f"too little text for Good-Turing's discounts of {n}-grams; --discount-fallback subtracts "
            f"{', '.join(map(str, FALLBACK_DISCOUNTS))} instead, --estimator add-k needs none"
        )
    log.warning("%d-grams: subtracting %s", n, ", ".join(f"{d:g}" for d in config.discount_fallback))
    discounts: Floats = np.array([0.0, *config.discount_fallback])
    return remaining - discounts[np.minimum(counts, 3)]


def good_turing(counts: Ints, cutoff: int) -> Floats | None:
    """Discount factors of the counts 0 .. cutoff + 1, the last one 1, or None where they are not between 0
    and 1:  d_r = (r* / r - A) / (1 - A),  r* = (r + 1) t_{r+1} / t_r,  A = (cutoff + 1) t_{cutoff+1} / t_1,
    where t_r n-grams occur r times."""
    t = np.bincount(np.minimum(counts, cutoff + 2), minlength=cutoff + 3).astype(np.float64)
    if not t[1 : cutoff + 2].all():
        return None
    r = np.arange(1, cutoff + 1)
    above = (cutoff + 1) * t[cutoff + 1] / t[1]
    if above == 1:
        return None
    factors = ((r + 1) * t[r + 1] / t[r] / r - above) / (1 - above)
    ratios: Floats = np.array([1.0, *factors, 1.0])
    return ratios if ((ratios > 0) & (ratios <= 1)).all() else None


# ---- without discounts -------------------------------------------------------------------------------------


def stupid_backoff(counts: list[NgramCounts], config: SmoothingConfig) -> Estimate:
    """Scores of Brants et al. (2007): c(hw) / c(h) for an n-gram of the text, else `backoff_factor` times the
    score after h'. They do not sum to 1. A context that is not in the text costs nothing, since ARPA files
    have no weight for it; the unknown word has p = 0 unless the text has it."""
    estimate = Estimate([], [np.zeros(1)])
    for n, here in enumerate(counts, 1):
        raw, parent, total = context_counts(here, n)
        estimate.log10.append(safe_log10(raw / total[parent]))
        estimate.gammas.append(np.full(len(raw), config.backoff_factor))
    return estimate


def add_k(counts: list[NgramCounts], config: SmoothingConfig) -> Estimate:
    """p(w | h) = (c(hw) + k) / (c(h) + k V), for the highest order only, or at the beginning of a sentence
    for the longest order that fits. Unseen n-grams back off to 1 / V with weight k V / (c(h) + k V), which
    gives the same formula, so that all shorter n-grams are written as 1 / V."""
    V, order = len(counts[0].keys) - 1, len(counts)
    estimate = Estimate([], [np.zeros(1)])
    estimated = np.zeros(1, bool)  # whether the formula holds after each context; elsewhere p is 1 / V
    for n, here in enumerate(counts, 1):
        raw, parent, total = context_counts(here, n)
        full = estimated if n > 1 else np.array([order == 1])
        probs = np.where(full[parent], (raw + config.add) / (total + config.add * V)[parent], 1 / V)
        if n > 1:
            weight = config.add * V / (total + config.add * V)
            estimate.gammas.append(np.where(full[: len(weight)], weight, 1.0))
        estimate.log10.append(safe_log10(probs))
        estimated = here.begins | (n == order - 1)
    return estimate


ESTIMATORS: dict[str, Estimator] = {"katz": katz, "stupid-backoff": stupid_backoff, "add-k": add_k}


# ---- lmplz -------------------------------------------------------------------------------------------------
# KenLM's own estimator, where it is installed. It works on disk, so text may be larger than memory.


def lmplz_arguments(program: str, config: KneserNeyConfig, memory: float, folder: str) -> list[str]:
    """The lmplz command line for the same settings. `memory`: bytes; `folder`: for temporary files."""
    arguments = [
        program, "--order", str(config.order), "--memory", f"{int(memory / 1e6)}M",
        "--temp_prefix", f"{folder}/", "--prune", *map(str, config.prune),
        "--interpolate_unigrams", str(int(config.interpolate_unigrams)),
    ]  # fmt: skip
    if config.discount_fallback:
        arguments += [
            "--discount_fallback",
            *([] if config.discount_fallback == FALLBACK_DISCOUNTS else map(str, config.discount_fallback)),
        ]
    return arguments + (["--skip_symbols"] if config.skip_symbols else [])


def estimate_with_lmplz(text: str, output: str, config: KneserNeyConfig, memory: float) -> None:
    """Estimate a model of the file `text` by lmplz, and write its ARPA file to `output`. Temporary files lie
    beside the output. `memory`: bytes that lmplz may use. ConfigError if lmplz is not installed, UserError
    with its last line of output if it fails."""
    program = shutil.which("lmplz")
    if not program:
        raise ConfigError(
            "--estimator lmplz: there is no lmplz on the PATH; install KenLM, or use --estimator own"
        )
    beside = None if output == "-" else Path(output).resolve().parent
    with files.parent_folders(output), tempfile.TemporaryDirectory(dir=beside) as folder:
        plain, arpa = f"{folder}/text", f"{folder}/lm.arpa"
        with files.Writing(plain) as out:
            out.write_lines(files.read_lines(text))
        done = subprocess.run(
            [*lmplz_arguments(program, config, memory, folder), "--text", plain, "--arpa", arpa],
            capture_output=True,
            check=False,
        )
        if done.returncode:
            last = [line for line in done.stderr.decode(errors="replace").split("\n") if line.strip()]
            raise UserError(f"lmplz failed: {last[-1].strip() if last else f'exit status {done.returncode}'}")
        with files.Writing(output) as out:
            out.write_lines(files.read_lines(arpa))
