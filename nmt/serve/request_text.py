"""Split the text of a request into sentences or words for an engine, and join the translations."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from nmt.serve.engine import LineHypothesis, Segment, TranslatedLine
from nmt.text.pipeline import tag_of
from nmt.text.sentences import SplitLine, SplitText, split_text
from nmt.text.tokenize import Tokenizer, escape_raw, unescape
from nmt.text.truecase import sentence_starts


# ---- sentences ---------------------------------------------------------------------------------------------
def cut_sentences(lines: Sequence[str], languages: tuple[str, str], tags: Sequence[str] = ()) -> SplitText:
    """Split raw lines into sentences, each with the tag of its line. `languages`: source and target."""
    return split_text(lines, *languages, tagged=lambda line: tag_of(line, tags))


def join_sentences(
    text: SplitText, translations: Sequence[TranslatedLine], n_best: int
) -> list[TranslatedLine]:
    """Join the translations of each line's sentences. `n_best`: maximum number of hypotheses of a line."""
    groups = zip(text.lines, text.group(translations), strict=True)
    return [join_line(line, group, text.blank, n_best) for line, group in groups]


def join_line(line: SplitLine, parts: Sequence[TranslatedLine], blank: str, n_best: int) -> TranslatedLine:
    """Join the translations of a line's sentences. A parse is of one sentence and is left out."""
    if len(parts) == 1:
        return parts[0]
    offsets = [0, *accumulate(len(part.words) for part in parts)]
    return TranslatedLine(
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


def best_combinations(parts: Sequence[TranslatedLine], n_best: int) -> list[tuple[LineHypothesis, ...]]:
    """Combine hypotheses, one of each sentence, into those with the greatest sums of scores, best first."""
    combinations: list[tuple[float, tuple[LineHypothesis, ...]]] = [(0.0, ())]
    for part in parts:
        # Both are ordered: a pair (i, j) has (i + 1) (j + 1) - 1 pairs before it.
        sums = (
            (score + hypothesis.score, (*hypotheses, hypothesis))
            for number, (score, hypotheses) in enumerate(combinations, 1)
            for hypothesis in part.hypotheses[: n_best // number]
        )
        combinations = heapq.nlargest(n_best, sums, key=lambda combination: combination[0])
    return [hypotheses for _, hypotheses in combinations]


def join_hypothesis(
    line: SplitLine, parts: Sequence[LineHypothesis], blank: str, sources: Sequence[int]
) -> LineHypothesis:
    """Join a hypothesis of each sentence of a line.

    `sources`: the index of each sentence's first source word, and the number of all words.
    """
    targets = [0, *accumulate(len(part.words) for part in parts)]
    shifted = list(zip(parts, sources, targets, strict=False))
    log_probs = [part.log_prob for part in parts if part.log_prob is not None]
    return LineHypothesis(
        text=line.join([part.text for part in parts], blank),
        words=[word for part in parts for word in part.words],
        score=sum(part.score for part in parts),
        log_prob=sum(log_probs) if len(log_probs) == len(parts) else None,
        alignment=[(source + a, target + b) for part, source, target in shifted for a, b in part.alignment],
        attention=list(join_attention(parts, sources)),
        segments=[
            shift_segment(segment, source, target)
            for part, source, target in shifted
            for segment in part.segments
        ],
        features={
            name: [sum(values) for values in zip(*(part.features[name] for part in parts), strict=True)]
            for name in parts[0].features
            if all(name in part.features for part in parts)
        },
    )


def join_attention(parts: Sequence[LineHypothesis], sources: Sequence[int]) -> Iterator[list[float]]:
    """The attention over all source words for each target word; empty unless each sentence has it."""
    if all(part.attention or not part.words for part in parts):
        for part, start, end in zip(parts, sources, sources[1:], strict=False):
            yield from ([0.0] * start + row + [0.0] * (sources[-1] - end) for row in part.attention)


def shift_segment(segment: Segment, source: int, target: int) -> Segment:
    """Move a phrase by so many words."""
    return Segment(
        (segment.source[0] + source, segment.source[1] + source),
        (segment.target[0] + target, segment.target[1] + target),
    )


# ---- words -------------------------------------------------------------------------------------------------
# Raw text for an engine of tokenized text: Moses' rules tokenize the source and detokenize the translations.


class PlainText:
    """The text rules of an engine's two languages. Several threads may share one."""

    def __init__(self, source: str, target: str, knows: Callable[[str], bool]) -> None:
        """`source`, `target`: language codes; `knows`: does the engine know a word? Decides on its case."""
        self.source, self.target, self.knows = Tokenizer(source).rules, Tokenizer(target).rules, knows

    def line(self, text: str) -> str:
        """Tokenize a line, and choose the case of its words, since engines do not tell theirs.

        A word keeps its case if the engine knows it so. The first word of a sentence is in lower case if the
        engine knows that form.
        """
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

    def translation(self, text: str, translated: TranslatedLine) -> TranslatedLine:
        """Detokenize the translation of `line(text)`."""
        capital = next((char for char in text if char.isalpha()), "").isupper()
        return replace(
            translated,
            words=list(map(unescape, translated.words)),
            hypotheses=[self.hypothesis(hypothesis, capital) for hypothesis in translated.hypotheses],
        )

    def hypothesis(self, hypothesis: LineHypothesis, capital: bool) -> LineHypothesis:
        words = list(map(unescape, hypothesis.words))
        text = self.target.text(words)
        return replace(hypothesis, words=words, text=text[:1].upper() + text[1:] if capital else text)

    def lines(self, texts: Sequence[str]) -> list[str]:
        return list(map(self.line, texts))
