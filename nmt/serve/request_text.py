"""The text of a request as an engine reads it, cut into sentences or words; and what comes back, joined."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from nmt.serve.engine import Hypothesis, Segment, Translated
from nmt.text.pipeline import tag_of
from nmt.text.sentences import SplitLine, SplitText, split_text
from nmt.text.tokenize import Tokenizer, escape_raw, unescape
from nmt.text.truecase import sentence_starts

# ---- sentences ---------------------------------------------------------------------------------------------
# Sentences of the lines of a request, and translations of sentences joined to those of lines.


def cut_sentences(lines: Sequence[str], languages: tuple[str, str], tags: Sequence[str] = ()) -> SplitText:
    """The sentences of raw lines, each with the tag of its line. `languages`: source and target."""
    return split_text(lines, *languages, tagged=lambda line: tag_of(line, tags))


def join_sentences(text: SplitText, translations: Sequence[Translated], n_best: int) -> list[Translated]:
    """The translation of each line, from those of its sentences. `n_best`: hypotheses of a line, at most."""
    groups = zip(text.lines, text.group(translations), strict=True)
    return [join_line(line, group, text.blank, n_best) for line, group in groups]


def join_line(line: SplitLine, parts: Sequence[Translated], blank: str, n_best: int) -> Translated:
    """The translations of the sentences of a line as one. It has no parse, which is that of a sentence."""
    if len(parts) == 1:
        return parts[0]
    offsets = [0, *accumulate(len(part.words) for part in parts)]
    return Translated(
        words=[word for part in parts for word in part.words],
        hypotheses=[
            join_hypothesis(line, hypotheses, blank, offsets)
            for hypotheses in best_combinations(parts, n_best)
        ],
        unknown=[
            offset + word for offset, part in zip(offsets, parts, strict=False) for word in part.unknown
        ],
        parts=max(part.parts for part in parts),
    )


def best_combinations(parts: Sequence[Translated], n_best: int) -> list[tuple[Hypothesis, ...]]:
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


def join_hypothesis(
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
        attention=list(join_attention(parts, sources)),
        segments=[
            shift_segment(segment, source, target)
            for part, source, target in placed
            for segment in part.segments
        ],
        features={
            name: [sum(values) for values in zip(*(part.features[name] for part in parts), strict=True)]
            for name in parts[0].features
            if all(name in part.features for part in parts)
        },
    )


def join_attention(parts: Sequence[Hypothesis], sources: Sequence[int]) -> Iterator[list[float]]:
    """A row over all source words for each target word; none unless each sentence has them."""
    if all(part.attention or not part.words for part in parts):
        for part, begin, end in zip(parts, sources, sources[1:], strict=False):
            yield from ([0.0] * begin + row + [0.0] * (sources[-1] - end) for row in part.attention)


def shift_segment(segment: Segment, source: int, target: int) -> Segment:
    """A phrase so many words further on."""
    return Segment(
        (segment.source[0] + source, segment.source[1] + source),
        (segment.target[0] + target, segment.target[1] + target),
    )


# ---- words -------------------------------------------------------------------------------------------------
# Text in and out for an engine that reads and writes words between blanks: Moses' rules cut the text into
# words before, and join the words of its translations after.


class PlainText:
    """The text rules of an engine's two languages. Several threads may share one."""

    def __init__(self, source: str, target: str, knows: Callable[[str], bool]) -> None:
        """Codes of the languages; `knows`: whether the engine knows a word, which decides on its case."""
        self.source, self.target, self.knows = Tokenizer(source).rules, Tokenizer(target).rules, knows

    def line(self, text: str) -> str:
        """A line as the engine reads it. Nobody says in which case that is, so a word keeps its case where
        the engine knows it so; the first word of a sentence is in lower case where that is known."""
        words = self.source.words(text)
        starts = sentence_starts(words)
        return " ".join(
            self.cased(escape_raw(word), start) for word, start in zip(words, starts, strict=True)
        )

    def cased(self, word: str, start: bool) -> str:
        lower = word.lower()
        if lower == word or (not start and self.knows(word)):
            return word
        return lower if self.knows(lower) else word

    def translation(self, text: str, translated: Translated) -> Translated:
        """The translation of `line(text)` as people read it."""
        capital = next((char for char in text if char.isalpha()), "").isupper()
        return replace(
            translated,
            words=list(map(unescape, translated.words)),
            hypotheses=[self.hypothesis(hypothesis, capital) for hypothesis in translated.hypotheses],
        )

    def hypothesis(self, hypothesis: Hypothesis, capital: bool) -> Hypothesis:
        words = list(map(unescape, hypothesis.words))
        text = self.target.text(words)
        return replace(hypothesis, words=words, text=text[:1].upper() + text[1:] if capital else text)

    def lines(self, texts: Sequence[str]) -> list[str]:
        return list(map(self.line, texts))
