"""Lengths of lines in the units of one or several runs, and what happens to lines that are too long."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from nmt import files
from nmt.text import long_lines
from nmt.text.long_lines import MAX_LINE_WORDS, Limit
from nmt.text.pipeline import TextPipeline

# As a multiple of the limit: a word of more characters is not segmented into subwords, which would take
# forever, but cut into pieces.
GIANT = 4


class LineLengths:
    """Lines of one side of the runs. A line has as many units as in the run that segments it finest."""

    def __init__(self, pipelines: Sequence[TextPipeline], max_length: int) -> None:
        """`max_length`: the longest sentence seen in training, in units."""
        self.pipelines, self.max_length = pipelines, max_length

    def limit(self, words: int | None = None, name: str = "", first: int = 0) -> Limit:
        """How long lines may be; None: 250 words, or what the training allowed if that is more."""
        return Limit(words=words or max(MAX_LINE_WORDS, self.max_length), name=name, first=first)

    def of(self, line: str, tokenized: bool, limit: Limit) -> int:
        """Units of a line; 0 for one that cannot be too long."""
        if len(line) <= limit.words:
            return 0
        words = files.split_words(line) if tokenized else long_lines.pieces(line)
        return sum(map(self.sizes(tokenized, limit), words))

    def refuse(self, lines: Iterable[str], tokenized: bool, limit: Limit, what: str) -> None:
        """DataError for the first line that is too long; `what` it is too long for."""
        limit.refuse((self.of(line, tokenized, limit) for line in lines), what)

    def parts(self, line: str, tokenized: bool, limit: Limit) -> list[str]:
        """The line, or the parts of one that is too long, each with its tag."""
        if self.of(line, tokenized, limit) <= limit.words:
            return [line]
        tag, line = self.pipelines[0].tagged(line)
        words = files.split_words(line) if tokenized else long_lines.pieces(line)
        found = long_lines.parts(words, limit.words, self.sizes(tokenized, limit))
        texts = [(" " if tokenized else "").join(part).strip(" \t") for part in found]
        return [f"{tag} {text}" for text in texts] if tag else texts

    def sizes(self, tokenized: bool, limit: Limit) -> Callable[[str], int]:
        """Units of a word; of one with thousands of characters their number will do."""
        cutting = any(pipeline.subwords or pipeline.characters for pipeline in self.pipelines)

        @cache
        def size(word: str) -> int:
            if cutting and len(word) > GIANT * limit.words:
                return len(word)
            return max(len(pipeline.units(word, tokenized)) for pipeline in self.pipelines)

        return size
