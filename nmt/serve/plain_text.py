"""Text in and out for an engine that reads and writes words between blanks: Moses' rules cut the text into
words before, and join the words of its translations after."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from nmt.serve.engine import Hypothesis, Translated
from nmt.text.escapes import escape_raw, unescape
from nmt.text.tokenize import Tokenizer
from nmt.text.truecase import sentence_starts


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
