"""Sentences of the lines of a request, and translations of sentences joined to those of lines."""

import heapq
from collections.abc import Iterator, Sequence
from itertools import accumulate

from nmt.serve.engine import Hypothesis, Segment, Translated
from nmt.text.pipeline import tag_of
from nmt.text.sentences import SplitLine, SplitText, split_text


def cut(lines: Sequence[str], languages: tuple[str, str], tags: Sequence[str] = ()) -> SplitText:
    """The sentences of raw lines, each with the tag of its line. `languages`: source and target."""
    return split_text(lines, *languages, tagged=lambda line: tag_of(line, tags))


def joined(text: SplitText, translations: Sequence[Translated], n_best: int) -> list[Translated]:
    """The translation of each line, from those of its sentences. `n_best`: hypotheses of a line, at most."""
    groups = zip(text.lines, text.group(translations), strict=True)
    return [joined_line(line, group, text.blank, n_best) for line, group in groups]


def joined_line(line: SplitLine, parts: Sequence[Translated], blank: str, n_best: int) -> Translated:
    """The translations of the sentences of a line as one. It has no parse, which is that of a sentence."""
    if len(parts) == 1:
        return parts[0]
    offsets = [0, *accumulate(len(part.words) for part in parts)]
    return Translated(
        words=[word for part in parts for word in part.words],
        hypotheses=[
            joined_hypothesis(line, hypotheses, blank, offsets) for hypotheses in best(parts, n_best)
        ],
        unknown=[
            offset + word for offset, part in zip(offsets, parts, strict=False) for word in part.unknown
        ],
        parts=max(part.parts for part in parts),
    )


def best(parts: Sequence[Translated], n_best: int) -> list[tuple[Hypothesis, ...]]:
    """The combinations of a hypothesis of each sentence that have the greatest sums of scores, best first."""
    combinations: list[tuple[float, tuple[Hypothesis, ...]]] = [(0.0, ())]
    for part in parts:
        # Both are ordered: a pair (i, j) has (i + 1) (j + 1) - 1 pairs before it.
        sums = (
            (score + other.score, (*rest, other))
            for number, (score, rest) in enumerate(combinations, 1)
            for other in part.hypotheses[: n_best // number]
        )
        combinations = heapq.nlargest(n_best, sums, key=lambda combination: combination[0])
    return [hypotheses for _, hypotheses in combinations]


def joined_hypothesis(
    line: SplitLine, parts: Sequence[Hypothesis], blank: str, sources: Sequence[int]
) -> Hypothesis:
    """The hypotheses of the sentences of a line as one. `sources`: the first source word of each, and
    the number of all."""
    targets = [0, *accumulate(len(part.words) for part in parts)]
    placed = list(zip(parts, sources, targets, strict=False))
    log_probs = [part.log_prob for part in parts if part.log_prob is not None]
    return Hypothesis(
        text=line.join([part.text for part in parts], blank),
        words=[word for part in parts for word in part.words],
        score=sum(part.score for part in parts),
        log_prob=sum(log_probs) if len(log_probs) == len(parts) else None,
        alignment=[(source + a, target + b) for part, source, target in placed for a, b in part.alignment],
        attention=list(joined_attention(parts, sources)),
        segments=[
            shifted(segment, source, target) for part, source, target in placed for segment in part.segments
        ],
        features={
            name: [sum(values) for values in zip(*(part.features[name] for part in parts), strict=True)]
            for name in parts[0].features
            if all(name in part.features for part in parts)
        },
    )


def joined_attention(parts: Sequence[Hypothesis], sources: Sequence[int]) -> Iterator[list[float]]:
    """A row over all source words for each target word; none unless each sentence has them."""
    if all(part.attention or not part.words for part in parts):
        for part, begin, end in zip(parts, sources, sources[1:], strict=False):
            yield from ([0.0] * begin + row + [0.0] * (sources[-1] - end) for row in part.attention)


def shifted(segment: Segment, source: int, target: int) -> Segment:
    """A phrase so many words further on."""
    return Segment(
        (segment.source[0] + source, segment.source[1] + source),
        (segment.target[0] + target, segment.target[1] + target),
    )
