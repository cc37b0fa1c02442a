"""What features are asked about the hypotheses of n-best lists: each distinct pair once, of sentences, of
phrases, or of sentences with their word alignment."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial

import numpy as np

from nmt.data.affiliation import Phrase, affiliations_by_phrase
from nmt.errors import DataError
from nmt.formats import nbest, pharaoh
from nmt.formats.nbest import Hypothesis
from nmt.formats.pharaoh import Links
from smt_bridge.features.base import PairFeature, Values, WordPairs
from smt_bridge.nbest.union import NbestSentence
from smt_bridge.tables.chunks import FLOOR


class Way(Enum):
    """Form in which a feature scores a hypothesis."""

    SENTENCE = auto()  # its text
    PHRASES = auto()  # the phrases of its segmentation, to be summed
    ALIGNED = auto()  # its text, with the source word of each word
    INVERSE_ALIGNED = auto()  # its text, with the word of each source word


def way_of(feature: PairFeature, by_phrase: bool) -> Way:
    """`by_phrase`: features are summed over phrases where they can."""
    if feature.word_aligned:
        return Way.INVERSE_ALIGNED if feature.inverse_aligned else Way.ALIGNED
    return Way.PHRASES if by_phrase and feature.by_phrase else Way.SENTENCE


@dataclass
class FeatureQuestions:
    """The distinct pairs of a chunk, and for each hypothesis the rows of them that make up its value."""

    pairs: WordPairs
    rows: list[list[int]]


Affiliation = Callable[[Hypothesis, int, str], list[int]]


def sentences(
    chunk: Sequence[NbestSentence], name: str, aligned: Affiliation | None = None
) -> FeatureQuestions:
    """Each hypothesis with its source sentence. `aligned`: and with its affiliations; DataError, with the
    `name` of the list, for one without segmentation and alignment, or whose do not fit."""
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
    return FeatureQuestions(pairs, rows)


def affiliation(hypothesis: Hypothesis, source: int, location: str) -> list[int]:
    """The source word, of `source` ones, that each word of a hypothesis belongs to; looked for within
    phrases, as in the search. DataError for a segmentation or an alignment that does not fit."""
    links, phrases = phrases_of(hypothesis, source, location)
    return affiliations_by_phrase(links, phrases, len(hypothesis.text))


def inverse_affiliation(hypothesis: Hypothesis, source: int, location: str) -> list[int]:
    """The word of a hypothesis that each of `source` words of its source belongs to; likewise."""
    links, phrases = phrases_of(hypothesis, source, location)
    read = sorted(word for (first, last), _ in phrases for word in range(first, last + 1))
    if read != list(range(source)):
        raise DataError(f"{location}: the segmentation does not cover each of {source} source words once")
    return affiliations_by_phrase(((b, a) for a, b in links), ((t, s) for s, t in phrases), source)


def phrases_of(hypothesis: Hypothesis, source: int, location: str) -> tuple[Links, list[Phrase]]:
    """The alignment points and the phrases, in the order of the target, of a hypothesis. DataError for those
    that do not fit."""
    target = len(hypothesis.text)
    links = nbest.alignment(hypothesis, location)
    pharaoh.check_points(links, source, target, location)
    segments = nbest.segmentation(hypothesis, location)
    phrases = []
    covered = 0
    for number, ((first, last), (start, end)) in enumerate(segments, 1):
        most = segments[number][1][0] - 1 if number < len(segments) else target - 1
        if not (first <= last < source and start == covered and start <= end):
            raise DataError(
                f"{location}: segmentation {first}-{last}={start}-{end} does not fit the sentence; "
                "is --source the text of this list?"
            )
        end = min(end, most)  # a phrase without words has the place of the next one
        phrases.append(((first, last), (start, end)))
        covered = end + 1
    if covered != target:
        raise DataError(f"{location}: the segmentation covers {covered} of {target} words")
    return links, phrases


def phrases(chunk: Sequence[NbestSentence], name: str) -> FeatureQuestions:
    """The phrase pairs of the segmentations. DataError for a segmentation that points outside its sentence;
    `name`: of the list, for it."""
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
    return FeatureQuestions(pairs, rows)


ASKING: dict[Way, Callable[[Sequence[NbestSentence], str], FeatureQuestions]] = {
    Way.SENTENCE: sentences,
    Way.PHRASES: phrases,
    Way.ALIGNED: partial(sentences, aligned=affiliation),
    Way.INVERSE_ALIGNED: partial(sentences, aligned=inverse_affiliation),
}


def ask(chunk: Sequence[NbestSentence], ways: Sequence[Way], name: str) -> list[FeatureQuestions]:
    """Collect the pairs that each feature has to score; features of the same way share one object. `name` is
    that of the list, for error messages."""
    questions = {way: ASKING[way](chunk, name) for way in dict.fromkeys(ways)}
    return [questions[way] for way in ways]


def sums(questions: FeatureQuestions, scores: Values, way: Way) -> Values:
    """One value for each hypothesis. Phrases are floored as the column of a table is, so that both give the
    same number."""
    if way is Way.PHRASES:
        scores = np.maximum(scores, math.log(FLOOR))
    return np.array([math.fsum(scores[row] for row in rows) for rows in questions.rows])
