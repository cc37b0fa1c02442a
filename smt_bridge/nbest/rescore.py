"""Add features to n-best lists, compute new totals, and choose the best translation of each sentence.

    union of the lists -> score each distinct pair once -> append features -> new totals -> list and 1-best

A chunk is a fixed number of sentences, which does not depend on the number of workers.
"""

import logging
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from nmt.data.affiliation import Phrase, affiliations_by_phrase
from nmt.errors import ConfigError, DataError
from nmt.formats import nbest, pharaoh
from nmt.formats.nbest import Hypothesis
from nmt.formats.pharaoh import Links
from nmt.io import files
from nmt.search.config import MBRConfig
from nmt.work.executors import KILLED, ExecutorConfig, Lost, LostLines
from smt_bridge.features.base import PairFeature, Values, WordPairs
from smt_bridge.features.feature_set import FeatureExecutor, FeatureSet, Task
from smt_bridge.jobs import (
    Scores,
    ScoringJob,
    is_lost,
    lost_chunks_remedy,
    lost_scores,
    open_job,
    resume_chunks,
)
from smt_bridge.moses.ini import Weights
from smt_bridge.nbest.choice import (
    ByRisk,
    ByTotal,
    Chooser,
    NbestEntry,
    TunedRisk,
    check_weights,
    entry_total,
    format_scales,
    unprinted_score,
)
from smt_bridge.nbest.union import NbestLists, NbestSentence
from smt_bridge.tables.score import FLOOR

log = logging.getLogger(__name__)

# ---- scoring requests --------------------------------------------------------------------------------------
# The pairs of a chunk of n-best lists that features score, each distinct one once: pairs of sentences, of
# phrases, or of sentences with their word alignment.


class ScoringForm(Enum):
    """The form in which a feature scores hypotheses."""

    SENTENCE = auto()  # its text
    PHRASES = auto()  # the phrases of its segmentation, to be summed
    ALIGNED = auto()  # its text, with the source word of each word
    INVERSE_ALIGNED = auto()  # its text, with the word of each source word


def choose_form(feature: PairFeature, by_phrase: bool) -> ScoringForm:
    """The form in which a feature scores hypotheses. `by_phrase`: summed over phrases if it can."""
    if feature.word_aligned:
        return ScoringForm.INVERSE_ALIGNED if feature.inverse_aligned else ScoringForm.ALIGNED
    return ScoringForm.PHRASES if by_phrase and feature.by_phrase else ScoringForm.SENTENCE


@dataclass
class ScoringRequest:
    """The distinct pairs of a chunk that a feature has to score, and for each hypothesis the indices of the
    pairs that make up its value."""

    pairs: WordPairs
    rows: list[list[int]]


Affiliation = Callable[[Hypothesis, int, str], list[int]]  # arguments as for `affiliation`


def sentence_request(
    chunk: Sequence[NbestSentence], name: str, aligned: Affiliation | None = None
) -> ScoringRequest:
    """Collect the distinct pairs of a source sentence and one of its hypotheses. `aligned`: computes the
    affiliations of a pair, and raises DataError for a hypothesis whose segmentation or alignment is missing
    or does not fit; None to score texts alone. `name`: name of the list, for messages."""
    targets: list[list[str]] = []
    source_of: list[int] = []
    affiliations: list[list[int]] = []
    rows = []
    for number, sentence in enumerate(chunk):
        distinct: dict[tuple[tuple[str, ...], tuple[int, ...]], int] = {}
        for hypothesis in sentence.hypotheses:
            words, positions = tuple(hypothesis.text), tuple[int, ...]()
            if aligned:
                location = f"{name}: sentence {sentence.number}"
                positions = tuple(aligned(hypothesis, len(sentence.source), location))
            if (words, positions) not in distinct:
                distinct[words, positions] = len(targets)
                targets.append(list(words))
                source_of.append(number)
                affiliations.append(list(positions))
            rows.append([distinct[words, positions]])
    sources = [sentence.source for sentence in chunk]
    pairs = WordPairs(sources, targets, source_of, True, affiliations if aligned else None)
    return ScoringRequest(pairs, rows)


def affiliation(hypothesis: Hypothesis, source: int, location: str) -> list[int]:
    """Index of the source word with which each word of a hypothesis is affiliated. As in the search, only
    links inside its phrase pair count. Parameters and errors as in `aligned_phrases`."""
    links, phrases = aligned_phrases(hypothesis, source, location)
    return affiliations_by_phrase(links, phrases, len(hypothesis.text))


def inverse_affiliation(hypothesis: Hypothesis, source: int, location: str) -> list[int]:
    """Index of the word of a hypothesis with which each source word is affiliated; parameters and errors as
    in `aligned_phrases`. Also DataError unless the phrases cover each source word once."""
    links, phrases = aligned_phrases(hypothesis, source, location)
    read = sorted(word for (first, last), _ in phrases for word in range(first, last + 1))
    if read != list(range(source)):
        raise DataError(
            f"{location}: the segmentation does not cover each of {source} source words once; is --source "
            "the text of this list?"
        )
    return affiliations_by_phrase(((b, a) for a, b in links), ((t, s) for s, t in phrases), source)


def aligned_phrases(hypothesis: Hypothesis, source: int, location: str) -> tuple[Links, list[Phrase]]:
    """Alignment points of a hypothesis, and its phrases in target order; the last target word of an empty
    phrase is the one before its first. `source`: number of source words. DataError, beginning with
    `location`, if the alignment or the segmentation is missing, unless the phrases cover each target word
    once, and for a position outside the sentences."""
    target = len(hypothesis.text)
    links = nbest.alignment(hypothesis, location)
    pharaoh.check_points(links, source, target, location)
    segments = nbest.segmentation(hypothesis, location)
    phrases = []
    covered = 0
    for number, ((first, last), (start, end)) in enumerate(segments, 1):
        before_next = segments[number][1][0] - 1 if number < len(segments) else target - 1
        if not (first <= last < source and start == covered and start <= end):
            raise DataError(
                f"{location}: segmentation {first}-{last}={start}-{end} does not fit the sentence; "
                "is --source the text of this list?"
            )
        end = min(end, before_next)  # in the list an empty phrase has the position of the next word
        phrases.append(((first, last), (start, end)))
        covered = end + 1
    if covered != target:
        raise DataError(
            f"{location}: the segmentation covers {covered} of {target} words; was the list changed?"
        )
    return links, phrases


def phrase_request(chunk: Sequence[NbestSentence], name: str) -> ScoringRequest:
    """Collect the distinct phrase pairs that the segmentations of all hypotheses use. DataError, with the
    `name` of the list, for a segmentation that is missing or points outside its sentence."""
    sources: dict[tuple[str, ...], int] = {}
    distinct: dict[tuple[int, tuple[str, ...]], int] = {}
    rows = []
    for sentence in chunk:
        location = f"{name}: sentence {sentence.number}"
        for hypothesis in sentence.hypotheses:
            text, row = hypothesis.text, []
            for (first, last), (start, end) in nbest.segmentation(hypothesis, location):
                if not (first <= last < len(sentence.source) and start <= end < len(text)):
                    raise DataError(
                        f"{location}: segmentation {first}-{last}={start}-{end} points outside the sentence; "
                        "is --source the text of this list?"
                    )
                source = sources.setdefault(tuple(sentence.source[first : last + 1]), len(sources))
                row.append(distinct.setdefault((source, tuple(text[start : end + 1])), len(distinct)))
            rows.append(row)
    pairs = WordPairs(
        sources=list(map(list, sources)),
        targets=[list(target) for _, target in distinct],
        source_of=[source for source, _ in distinct],
    )
    return ScoringRequest(pairs, rows)


REQUESTS: dict[ScoringForm, Callable[[Sequence[NbestSentence], str], ScoringRequest]] = {
    ScoringForm.SENTENCE: sentence_request,
    ScoringForm.PHRASES: phrase_request,
    ScoringForm.ALIGNED: partial(sentence_request, aligned=affiliation),
    ScoringForm.INVERSE_ALIGNED: partial(sentence_request, aligned=inverse_affiliation),
}


def make_requests(
    chunk: Sequence[NbestSentence], forms: Sequence[ScoringForm], name: str
) -> list[ScoringRequest]:
    """Collect the pairs that each feature has to score; features that score hypotheses in the same form share
    them. `name`: of the list, for messages. DataError for a segmentation or alignment that a form needs and
    that is missing or does not fit."""
    requests = {form: REQUESTS[form](chunk, name) for form in dict.fromkeys(forms)}
    return [requests[form] for form in forms]


# of a sentence: with the logarithm of 0 totals would be infinite or nan; Moses' tuners read neither -inf nor
# -1e+06
LEAST = -1e5


def sum_scores(request: ScoringRequest, scores: Values, form: ScoringForm) -> Values:
    """Compute the value of each hypothesis (H,): the sum of the scores of its pairs. `scores`: of all pairs
    of the request (pairs,), natural logarithms. Scores of phrases have the same floor as a column of the
    phrase table, so that both give the same number; those of sentences are at least LEAST."""
    scores = np.maximum(scores, math.log(FLOOR) if form is ScoringForm.PHRASES else LEAST)
    return np.array([math.fsum(scores[row] for row in rows) for rows in request.rows])


# ---- rescore -----------------------------------------------------------------------------------------------


SENTENCES = 40  # of a chunk: a few thousand hypotheses
SAMPLE = 8  # sentences on which --precision is measured

Chunk = list[NbestSentence]  # its Scores: (hypotheses, features), all nan if it was lost on a cluster


@dataclass
class RescoreConfig:
    """Options of smt-rescore other than its lists and features."""

    output: str | None = None  # path of the list with new features and totals
    best: str | None = None  # path of the best translation of each sentence
    weights: Weights | None = None  # of the new totals; None: keep the totals
    decoder_weights: Weights | None = None  # those that the lists' totals were computed with
    by_phrase: bool = False  # sum features over phrases, where they can
    limit: int = 0  # maximum number of words of a sentence; 0: no limit
    resume: bool = False
    executor: ExecutorConfig = field(default_factory=ExecutorConfig)
    mbr: MBRConfig | None = None  # how `best` is chosen, if not by the total
    references: Sequence[Sequence[str]] = ()  # texts on which the scale of mbr is chosen
    scale_output: str | None = None  # path of the chosen scale

    @property
    def target(self) -> str:
        """The output beside which the job folder is created."""
        return self.output or self.best or "-"


def rescore(
    lists: NbestLists, features: FeatureSet, config: RescoreConfig, progress: Callable[[int, int], None]
) -> int:
    """Write the lists with the values of the features and new totals, and the best translations, as `config`
    says; returns the number of sentences. `lists` must have been surveyed. `progress`: called with the
    numbers of finished and of all sentences.

    With features, finished chunks are recorded in a job folder beside the output file until it is complete.
    UserError for lists, features and weights that do not fit, before any feature is computed, and at the end
    if chunks were lost; output to a stream ends at the first lost chunk."""
    forms = [choose_form(feature, config.by_phrase) for feature in features.features]
    if config.by_phrase and ScoringForm.PHRASES not in forms:
        raise ConfigError(
            "--by-phrase needs a --feature that is summed over phrases, such as translation or inverse"
        )
    limit = config.limit if len(features) and not config.by_phrase else 0  # of sentences scored as a whole
    sentences = partial(lists.sentences, features.names, limit)
    count = check_sentences(sentences(), lists, features, config, forms)
    if features.settings.precision != "fp32":
        sample = make_requests(list(islice(sentences(), SAMPLE)), forms, lists.paths[0])
        log.info("%s", features.precision_error(sample[0].pairs))
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
        compute = partial(compute_chunks, executor=executor, forms=forms, name=lists.paths[0])
        if job and config.resume:
            job.recompute_lost(split_chunks(sentences()), compute)
        done, lost = 0, LostLines()
        for chunk, values in resume_chunks(split_chunks(sentences()), compute, job, hypothesis_count):
            if is_lost(values):
                lost.add(done + 1, done + len(chunk), KILLED)
                done += len(chunk)
                if not job:  # the rest could not be kept for a resumed job
                    break
                continue
            rows = iter(values.tolist())
            for sentence in chunk:
                sentence_rows = list(islice(rows, len(sentence.hypotheses)))
                rescored = entries(sentence, sentence_rows, lists, features.names, config)
                if nbest_list:
                    nbest_list.write_lines(entry.line for entry in rescored)
                if best:
                    best.write_lines(chooser.add(sentence.groups, rescored))
            done += len(chunk)
            progress(done, count)
        lost.check(lists.source, lost_chunks_remedy(job))
        if best:
            best.write_lines(chooser.finish())
        if scales:
            scales.write_lines([format_scales(chooser.scales)])
    if job:
        job.remove()
    return count


def check_sentences(
    sentences: Iterable[NbestSentence],
    lists: NbestLists,
    features: FeatureSet,
    config: RescoreConfig,
    forms: Sequence[ScoringForm],
) -> int:
    """Check all sentences of the lists before any feature is computed, so that no error interrupts the work
    later; returns the number of sentences. UserError if text, segmentation, alignment, features or weights do
    not fit. Without features only the sentences themselves are checked. `forms`: of each feature."""
    count, zeros = 0, [0.0] * len(features)
    for sentence in sentences:
        count += 1
        if zeros:
            make_requests(
                [sentence], [form for form in forms if form is not ScoringForm.SENTENCE], lists.paths[0]
            )
            entries(sentence, [zeros] * len(sentence.hypotheses), lists, features.names, config)
    return count


def make_chooser(lists: NbestLists, config: RescoreConfig) -> Chooser:
    """Make the chooser of the best translations, by total or by minimum Bayes risk. ConfigError if the number
    of scales does not fit that of the lists, and for too many lists to tune their scales."""
    if config.mbr is None:
        return ByTotal()
    risk = ByRisk(config.mbr, of_totals=config.weights is not None)
    scaled = 1 if risk.of_totals else len(lists.paths)
    config.mbr.list_scales(scaled)
    return TunedRisk(risk, scaled, config.references) if config.references else risk


def start_job(lists: NbestLists, features: FeatureSet, config: RescoreConfig) -> ScoringJob | None:
    """Create or resume the job folder beside the output; None for a stream, or if there is nothing to
    compute. Errors as in `open_job`."""
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


def split_chunks(stream: Iterator[NbestSentence]) -> Iterator[Chunk]:
    """Split a stream into chunks of SENTENCES sentences; the last may be shorter."""
    while block := list(islice(stream, SENTENCES)):
        yield block


def hypothesis_count(chunk: Chunk) -> int:
    return sum(len(sentence.hypotheses) for sentence in chunk)


def compute_chunks(
    chunks: Iterator[Chunk], executor: FeatureExecutor, forms: Sequence[ScoringForm], name: str
) -> Iterator[tuple[Chunk, Scores]]:
    """Yield each chunk with the values of its hypotheses (hypotheses, features), all nan if the chunk was
    lost. `forms`: the form in which each feature scores hypotheses; `name`: name of the list, for
    messages."""
    waiting: deque[tuple[Chunk, list[ScoringRequest]]] = deque()

    def tasks() -> Iterator[Task]:
        for chunk in chunks:
            requests = make_requests(chunk, forms, name)
            waiting.append((chunk, requests))
            yield [request.pairs for request in requests]

    for results in executor.map(tasks()):
        chunk, requests = waiting.popleft()
        rows = hypothesis_count(chunk)
        if isinstance(results, Lost):
            yield chunk, lost_scores(rows, len(forms))
            continue
        if not forms:  # no feature at all
            yield chunk, np.zeros((rows, 0))
            continue
        columns = [
            sum_scores(request, scores, form)
            for request, scores, form in zip(requests, results, forms, strict=True)
        ]
        yield chunk, np.stack(columns, 1)


def entries(
    sentence: NbestSentence,
    values: Sequence[list[float]],
    lists: NbestLists,
    names: Sequence[str],
    config: RescoreConfig,
) -> list[NbestEntry]:
    """Make the output entries of a sentence, with their new features `names`, whose values are `values`
    (hypotheses, features). With `config.weights` they also get new totals, and the best comes first;
    otherwise totals and order stay. Of several lists, the hypotheses themselves are changed by
    `NbestLists.complete`. ConfigError for weights that do not fit the features or, as decoder weights, the
    totals."""
    rescored = []
    weights, several = config.weights, len(lists.paths) > 1
    for hypothesis, holders, row in zip(sentence.hypotheses, sentence.lists, values, strict=True):
        unprinted = unprinted_score(hypothesis, config.decoder_weights)
        new = {name: [value] for name, value in zip(names, row, strict=True)}
        if several:
            unprinted = 0.0  # entries of other lists lack it, so it would favor one list over another
            lists.complete(hypothesis, new, holders)
            new = {name: value for name, value in new.items() if name not in lists.sizes}
        features = {**hypothesis.features, **new}
        score = hypothesis.total
        if weights is not None:
            check_weights(features, weights)
            score = entry_total(features, weights) + unprinted
        line = nbest.extend_line(hypothesis, new, None if weights is None else score)
        rescored.append(NbestEntry(total=score, line=line, text=hypothesis.text))
    if weights is not None:
        rescored.sort(key=lambda entry: -entry.total)  # stable: of equals the first stays first
    return rescored
