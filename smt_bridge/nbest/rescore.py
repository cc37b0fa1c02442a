"""n-best lists with more features: features, totals, the best of each sentence.

    union of the lists -> score each distinct pair once -> append features -> new totals -> list and 1-best

A chunk is a number of sentences; nothing of it depends on the number of workers.
"""

import logging
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from nmt.errors import ConfigError
from nmt.formats import nbest
from nmt.io import files
from nmt.search.config import MBRConfig
from nmt.work.executors import KILLED, ExecutorConfig, Lost, LostLines
from smt_bridge.features.feature_set import FeatureExecutor, FeatureSet, Task
from smt_bridge.jobs import Scores, ScoringJob, is_lost, lost_chunks_remedy, lost_scores, open_job
from smt_bridge.moses.ini import Weights
from smt_bridge.nbest.choice import (
    ByRisk,
    ByTotal,
    Chooser,
    NbestEntry,
    TunedRisk,
    beyond_features,
    check_weights,
    entry_total,
)
from smt_bridge.nbest.questions import FeatureQuestions, Way, ask, sums, way_of
from smt_bridge.nbest.union import NbestLists, NbestSentence

log = logging.getLogger(__name__)

SENTENCES = 40  # of a chunk: some thousand hypotheses
SAMPLE = 8  # sentences on which --precision is measured

Chunk = list[NbestSentence]  # its scores: (hypotheses, features), nan where it was lost on a cluster


@dataclass
class RescoreConfig:
    """Options of smt-rescore other than its lists and features."""

    output: str | None = None  # the list again
    best: str | None = None  # the best translation of each sentence
    weights: Weights | None = None  # of the new totals; without them the totals stay
    decoder_weights: Weights | None = None  # those that the lists' totals were computed with
    by_phrase: bool = False  # sum features over phrases, where they can
    limit: int = 0  # words of a sentence at most; 0: any number
    resume: bool = False
    executor: ExecutorConfig = field(default_factory=ExecutorConfig)
    mbr: MBRConfig | None = None  # how `best` is chosen, if not by the total
    references: Sequence[Sequence[str]] = ()  # texts that choose the scale of mbr
    scale_output: str | None = None  # and where it is written

    @property
    def target(self) -> str:
        """The output that the job folder lies beside."""
        return self.output or self.best or "-"


def rescore(
    lists: NbestLists, features: FeatureSet, config: RescoreConfig, progress: Callable[[int, int], None]
) -> int:
    """Write the lists with the values of the features, and new totals; returns the number of sentences.
    `progress` is called with the sentences done and all sentences. The lists have been surveyed."""
    ways = [way_of(feature, config.by_phrase) for feature in features.features]
    if config.by_phrase and Way.PHRASES not in ways:
        raise ConfigError(
            "--by-phrase needs a --feature that is summed over phrases, such as translation or inverse"
        )
    # sentences that are scored as a whole have a limit
    limit = config.limit if len(features) and not config.by_phrase else 0
    count = check_sentences(lists, features, config, ways, limit)
    if features.settings.precision != "fp32":
        sample = list(islice(lists.sentences(features.names, limit), SAMPLE))
        pairs = ask(sample, ways, lists.paths[0])[0].pairs
        log.info("%s", features.precision_error(pairs))
    chooser = make_chooser(lists, config)
    job = start_job(lists, features, config)
    with ExitStack() as stack:
        executor = stack.enter_context(features.executor(config.executor))
        nbest_list, best, scales = [
            stack.enter_context(files.Writing(path, job.folder if job and path == config.target else None))
            if path
            else None
            for path in (config.output, config.best, config.scale_output)
        ]
        compute = partial(compute_chunks, executor=executor, ways=ways, name=lists.paths[0])
        if job and config.resume:
            job.recompute_lost(blocks(lists.sentences(features.names, limit)), compute)
        done, lost = 0, LostLines()
        for chunk, values in score(blocks(lists.sentences(features.names, limit)), compute, job):
            if is_lost(values):
                lost.add(done + 1, done + len(chunk), KILLED)
                done += len(chunk)
                if not job:  # nothing is kept
                    break
                continue
            rows = iter(values.tolist())
            for sentence in chunk:
                own = list(islice(rows, len(sentence.hypotheses)))
                rescored = entries(sentence, own, lists, features.names, config)
                if nbest_list:
                    nbest_list.write_lines(entry.line for entry in rescored)
                if best:
                    best.write_lines(chooser.add(sentence.groups, rescored))
            done += len(chunk)
            progress(done, count)
        lost.check(lists.source, lost_chunks_remedy(job))
        if best:
            best.write_lines(chooser.rest())
        if scales and isinstance(chooser, TunedRisk):
            scales.write_lines([chooser.scale_line()])
    if job:
        job.remove()
    return count


def check_sentences(
    lists: NbestLists, features: FeatureSet, config: RescoreConfig, ways: Sequence[Way], limit: int
) -> int:
    """Go through the lists once, as if the features were computed already, so that nothing about them turns
    out wrong in the middle of the work; returns the number of sentences. DataError, ConfigError for what does
    not fit: text, segmentation, alignment, features, weights."""
    count, zeros = 0, [0.0] * len(features)
    for sentence in lists.sentences(features.names, limit):
        count += 1
        if zeros:
            ask([sentence], [way for way in ways if way is not Way.SENTENCE], lists.paths[0])
            entries(sentence, [zeros] * len(sentence.hypotheses), lists, features.names, config)
    return count


def make_chooser(lists: NbestLists, config: RescoreConfig) -> Chooser:
    """Choose by total or by minimum Bayes risk. ConfigError for scales that do not fit the lists."""
    if config.mbr is None:
        return ByTotal()
    risk = ByRisk(config.mbr, of_totals=config.weights is not None)
    scaled = 1 if risk.of_totals else len(lists.paths)
    config.mbr.list_scales(scaled)
    return TunedRisk(risk, scaled, config.references) if config.references else risk


def start_job(lists: NbestLists, features: FeatureSet, config: RescoreConfig) -> ScoringJob | None:
    """The job folder beside the output; None for a stream, and where nothing is computed."""
    if not len(features) or config.target == "-":
        return None
    paths = [*lists.paths, lists.source]
    states = [Path(path).stat() for path in paths]
    settings = {
        "lists": [
            [os.path.realpath(path), state.st_size, state.st_mtime_ns]
            for path, state in zip(paths, states, strict=True)
        ],
        "features": features.identities(),
        "back_end": features.settings.back_end,
        "threads": features.settings.threads,
        "by_phrase": config.by_phrase,
        "chunk": SENTENCES,
        "escape": lists.escape,
        **config.executor.recorded(),
    }
    return open_job(config.target, settings, len(features), config.resume)


def blocks(stream: Iterator[NbestSentence]) -> Iterator[Chunk]:
    """Split a stream into chunks of SENTENCES sentences; the last may be shorter."""
    while block := list(islice(stream, SENTENCES)):
        yield block


# ---- values ------------------------------------------------------------------------------------------------


def score(
    chunks: Iterator[Chunk],
    compute: Callable[[Iterator[Chunk]], Iterator[tuple[Chunk, Scores]]],
    job: ScoringJob | None = None,
) -> Iterator[tuple[Chunk, Scores]]:
    """Each chunk with the values of its hypotheses: those of a resumed job as they were."""
    if job:
        for values in job.finished():
            chunk = next(chunks, [])
            job.check_rows(values, sum(len(sentence.hypotheses) for sentence in chunk))
            yield chunk, values
    for chunk, values in compute(chunks):
        if job:
            job.add(values)
        yield chunk, values


def compute_chunks(
    chunks: Iterator[Chunk], executor: FeatureExecutor, ways: Sequence[Way], name: str
) -> Iterator[tuple[Chunk, Scores]]:
    """Each chunk with the values of its hypotheses, nan for those that were lost. `ways`: what each feature
    is asked."""
    waiting: deque[tuple[Chunk, list[FeatureQuestions]]] = deque()

    def tasks() -> Iterator[Task]:
        for chunk in chunks:
            questions = ask(chunk, ways, name)
            waiting.append((chunk, questions))
            yield [feature.pairs for feature in questions]

    for results in executor.map(tasks()):
        chunk, questions = waiting.popleft()
        rows = sum(len(sentence.hypotheses) for sentence in chunk)
        if isinstance(results, Lost):
            yield chunk, lost_scores(rows, len(ways))
            continue
        if not ways:  # no feature at all
            yield chunk, np.zeros((rows, 0))
            continue
        columns = [
            sums(feature, scores, way) for feature, scores, way in zip(questions, results, ways, strict=True)
        ]
        yield chunk, np.stack(columns, 1)


# ---- totals ------------------------------------------------------------------------------------------------


def entries(
    sentence: NbestSentence,
    values: Sequence[list[float]],
    lists: NbestLists,
    names: Sequence[str],
    config: RescoreConfig,
) -> list[NbestEntry]:
    """The entries of a sentence with their new features `names`, and new totals where there are weights: then
    the best first. `values`: (hypotheses, features)"""
    rescored = []
    weights, several = config.weights, len(lists.paths) > 1
    for hypothesis, holders, row in zip(sentence.hypotheses, sentence.lists, values, strict=True):
        beyond = beyond_features(hypothesis, config.decoder_weights)
        new = {name: [value] for name, value in zip(names, row, strict=True)}
        if several:
            beyond = 0.0  # entries of other lists do not have it, so that it would decide between lists
            lists.complete(hypothesis, new, holders)
            new = {name: value for name, value in new.items() if name not in lists.sizes}
        features = {**hypothesis.features, **new}
        score = hypothesis.total
        if weights is not None:
            check_weights(features, weights)
            score = entry_total(features, weights) + beyond
        line = nbest.extended(hypothesis, new, None if weights is None else score)
        rescored.append(NbestEntry(total=score, line=line, text=hypothesis.text))
    if weights is not None:
        rescored.sort(key=lambda entry: -entry.total)  # stable: of equals the first stays first
    return rescored
