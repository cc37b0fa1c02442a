"""n-best lists with more features: union of the lists, features, totals.

    group by sentence -> union of lists -> score each distinct pair once -> append features -> new totals ->
    list and 1-best

A chunk is a number of sentences; nothing of it depends on the number of workers.
"""

import math
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt import files, nbest
from nmt.data import long_lines
from nmt.errors import ConfigError, DataError
from nmt.nbest import Hypothesis
from nmt.text.escapes import unescape
from smt_bridge.features.base import Pairs
from smt_bridge.features.spec import NETWORKS, Spec
from smt_bridge.job import Job
from smt_bridge.score_table import FLOOR
from smt_bridge.weights import Weights, tuned
from smt_bridge.workers import Crew, Task

SENTENCES = 40  # of a chunk: some thousand hypotheses
WORD_PENALTY = "WordPenalty"
UNKNOWN_WORD = -100.0  # what Moses adds for each, with weight 1, and does not print (UnknownWordPenalty0)
CLOSE = 0.01  # printed totals have six digits


@dataclass
class Sentence:
    """The hypotheses of one source line; `lists[i]` tells which of the lists hold hypothesis i."""

    number: int
    source: list[str]
    hypotheses: list[Hypothesis]
    lists: list[frozenset[int]]


def sentences(paths: Sequence[str], sources: str) -> Iterator[Sentence]:
    """The lists of a text, side by side. DataError where a sentence is missing from all lists, or lies beyond
    the text."""
    streams = [nbest.by_sentence(path) for path in paths]
    heads = [next(stream, None) for stream in streams]
    number = -1
    for number, line in enumerate(files.read_lines(sources)):
        groups = [head[1] if head and head[0] == number else [] for head in heads]
        if not any(groups):
            raise DataError(
                f"{', '.join(map(files.name_of, paths))}: no entry for sentence {number} (line {number + 1} "
                f"of {sources}); is this the list of another text?"
            )
        yield Sentence(number, files.split_words(line), *union(groups))
        heads = [
            next(stream, None) if group else head
            for head, group, stream in zip(heads, groups, streams, strict=True)
        ]
    for head, path in zip(heads, paths, strict=True):
        if head is not None:
            raise DataError(
                f"{files.name_of(path)}: entries for sentence {head[0]}, but {sources} has {number + 1} "
                "lines (ids count from 0)"
            )


def refuse_long(sentence: Sentence, limit: int, sources: str, paths: Sequence[str]) -> None:
    """DataError where the source or a hypothesis is too long for a score of the whole sentence."""
    what = "a score of the whole sentence"
    if len(sentence.source) > limit:
        raise long_lines.refusal(f"{sources}:{sentence.number + 1}", len(sentence.source), limit, what)
    for hypothesis, lists in zip(sentence.hypotheses, sentence.lists, strict=True):
        if len(hypothesis.text) > limit:
            raise long_lines.refusal(
                f"{files.name_of(paths[min(lists)])}: sentence {sentence.number}",
                len(hypothesis.text),
                limit,
                what,
            )


def union(groups: Sequence[list[Hypothesis]]) -> tuple[list[Hypothesis], list[frozenset[int]]]:
    """All entries of the lists; a text that several lists hold gets the features of each, and is one entry
    for each derivation."""
    if len(groups) == 1:
        return groups[0], [frozenset([0])] * len(groups[0])
    holders: dict[tuple[str, ...], dict[int, Hypothesis]] = {}
    for number, group in enumerate(groups):
        for hypothesis in group:
            holders.setdefault(key(hypothesis), {}).setdefault(number, hypothesis)
    entries, lists = [], []
    for number, group in enumerate(groups):
        for hypothesis in group:
            held = holders[key(hypothesis)]
            if number != min(held):
                continue  # an entry of the first list that has this text stands for it
            for other in sorted(set(held) - {number}):
                for name, values in held[other].features.items():
                    hypothesis.features.setdefault(name, values)
            entries.append(hypothesis)
            lists.append(frozenset(held))
    return entries, lists


def key(hypothesis: Hypothesis) -> tuple[str, ...]:
    """The text as a reader sees it: nmt-translate writes no escapes, Moses does."""
    return tuple(map(unescape, hypothesis.text))


def add_word_penalty(sentence: Sentence) -> None:
    """The one feature of Moses that the text alone tells: minus the number of words, for entries of lists
    that lack it."""
    names = {
        name
        for hypothesis in sentence.hypotheses
        for name in hypothesis.features
        if name.startswith(WORD_PENALTY)
    }
    for hypothesis in sentence.hypotheses:
        for name in names:
            hypothesis.features.setdefault(name, [-float(len(hypothesis.text))])


def missing(sentence: Sentence, computed: Collection[str]) -> tuple[int, list[str]]:
    """A list of which some entries lack features that other entries have, and those features; (0, []) when
    all have all.

    `computed` are not missed: a --feature of that name fills them in.
    """
    names = list(
        dict.fromkeys(
            name for hypothesis in sentence.hypotheses for name in hypothesis.features if "_" not in name
        )
    )
    for hypothesis, lists in zip(sentence.hypotheses, sentence.lists, strict=True):
        lacking = [name for name in names if name not in hypothesis.features and name not in computed]
        if lacking:
            return min(lists), lacking
    return 0, []


@dataclass
class Asked:
    """The distinct pairs of a chunk, and for each hypothesis the rows of them that make up its value."""

    pairs: Pairs
    rows: list[list[int]]


def whole_sentences(chunk: Sequence[Sentence]) -> Asked:
    targets: list[list[str]] = []
    source_of: list[int] = []
    rows = []
    for number, sentence in enumerate(chunk):
        distinct: dict[tuple[str, ...], int] = {}
        for hypothesis in sentence.hypotheses:
            words = tuple(hypothesis.text)
            if words not in distinct:
                distinct[words] = len(targets)
                targets.append(list(words))
                source_of.append(number)
            rows.append([distinct[words]])
    return Asked(Pairs([sentence.source for sentence in chunk], targets, source_of, whole=True), rows)


def phrases(chunk: Sequence[Sentence], name: str) -> Asked:
    """The phrase pairs of the segmentations. DataError for a segmentation that points outside its
    sentence."""
    sources: dict[tuple[str, ...], int] = {}
    distinct: dict[tuple[int, tuple[str, ...]], int] = {}
    rows = []
    for sentence in chunk:
        for hypothesis in sentence.hypotheses:
            where = f"{name}: sentence {sentence.number}"
            text, row = hypothesis.text, []
            for (first, last), (start, end) in nbest.segmentation(hypothesis, where):
                if not (first <= last < len(sentence.source) and start <= end < len(text)):
                    raise DataError(
                        f"{where}: segmentation {first}-{last}={start}-{end} points outside the sentence; "
                        "is "
                        "--source the text of this list?"
                    )
                source = sources.setdefault(tuple(sentence.source[first : last + 1]), len(sources))
                row.append(distinct.setdefault((source, tuple(text[start : end + 1])), len(distinct)))
            rows.append(row)
    return Asked(
        Pairs(
            list(map(list, sources)),
            [list(target) for _, target in distinct],
            [source for source, _ in distinct],
        ),
        rows,
    )


def score(
    chunks: Iterator[list[Sentence]], crew: Crew, by_phrase: bool, name: str, job: Job | None = None
) -> Iterator[tuple[list[Sentence], NDArray[np.float64]]]:
    """Each chunk with the values of its hypotheses (hypotheses, features): those of a resumed job as they
    were."""
    if job:
        for values in job.finished():
            chunk = next(chunks, [])
            job.check(values, sum(len(sentence.hypotheses) for sentence in chunk))
            yield chunk, values
    waiting: deque[tuple[list[Sentence], list[Asked]]] = deque()

    def tasks() -> Iterator[Task]:
        for chunk in chunks:
            asked = ask(chunk, crew.specs, by_phrase, name)
            waiting.append((chunk, asked))
            yield Task([one.pairs for one in asked])

    for found in crew.map(tasks()):
        chunk, asked = waiting.popleft()
        values = np.stack(
            [
                sums(one, scores, by_phrase and spec.kind in NETWORKS)
                for one, scores, spec in zip(asked, found, crew.specs, strict=True)
            ],
            1,
        )
        if job:
            job.add(values)
        yield chunk, values


def ask(chunk: Sequence[Sentence], specs: Sequence[Spec], by_phrase: bool, name: str) -> list[Asked]:
    """What each feature has to score; features of like needs share it."""
    whole = whole_sentences(chunk)
    parts = phrases(chunk, name) if by_phrase and any(spec.kind in NETWORKS for spec in specs) else whole
    return [parts if spec.kind in NETWORKS else whole for spec in specs]


def sums(asked: Asked, scores: NDArray[np.float64], floor: bool) -> NDArray[np.float64]:
    """One value a hypothesis. Phrases are floored as the column of a table is, so that both give the same
    number."""
    if floor:
        scores = np.maximum(scores, math.log(FLOOR))
    return np.array([math.fsum(scores[row] for row in rows) for rows in asked.rows])


def total(features: dict[str, list[float]], weights: Weights) -> float:
    """Σ weight x feature; a feature that a hypothesis lacks (a sparse one) counts 0."""
    return math.fsum(
        weight * value
        for name, values in features.items()
        for weight, value in zip(weights[name], values, strict=True)
    )


def unknown_words(hypothesis: Hypothesis, weights: Weights) -> float:
    """What the decoder's total holds beyond the printed features: -100 for each unknown word.

    `weights` are those of the decoder. ConfigError when the rest is no multiple of that: these are not its
    weights.
    """
    try:
        rest = hypothesis.total - total(
            {name: values for name, values in hypothesis.features.items() if name in weights}, weights
        )
    except ValueError as error:
        raise ConfigError(
            "the decoder's weights have another number of values than the list's features"
        ) from error
    count = round(rest / UNKNOWN_WORD)
    if abs(rest - count * UNKNOWN_WORD) > CLOSE or count < 0:
        raise ConfigError(
            f"sentence {hypothesis.sentence}: weights x features give {hypothesis.total - rest:.6g}, but the "
            f"list says {hypothesis.total:.6g}; "
            "these are not the weights that its decoder used"
        )
    return count * UNKNOWN_WORD


def check_weights(features: dict[str, list[float]], weights: Weights) -> None:
    """ConfigError when weights and features do not match."""
    for name, values in features.items():
        if name not in weights:
            raise ConfigError(
                f"no weight for feature {name}; tune with it (smt-tune-nbest), or write '{name}= "
                f"{'0 ' * len(values)}'"
            )
        if len(weights[name]) != len(values):
            raise ConfigError(f"feature {name} has {len(values)} values, but {len(weights[name])} weights")
    for name in sorted(tuned(weights)):
        if name not in features:
            raise ConfigError(f"a weight for {name}, which no list has and no --feature computes")
