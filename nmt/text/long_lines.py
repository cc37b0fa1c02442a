"""Lines that are too long to translate as one sentence: a search over 10,000 words would take days and find
nothing good.

Plain translation cuts them into parts, at the ends of sentences where it can, and joins the translations.
What belongs to a whole sentence (n-best lists, alignments, scores) cannot be joined: for those, such a line
is refused.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from nmt.errors import DataError

MAX_LINE_WORDS = 250  # by default
COMFORTABLE = 5  # a part ends with the first sentence beyond this fraction of the limit

QUOTES = "\"'»”’)\\]"
SENTENCE_END = re.compile(rf"[.!?…。！？][{QUOTES}]*$")
CLAUSE_END = re.compile(rf"[,;:–—，；：、][{QUOTES}]*$")
# Raw text by blanks; Chinese and Japanese have none, so their punctuation ends a piece too.
PIECE = re.compile(r"[ \t]*(?:[^ \t。！？，；：、]+[。！？，；：、]*|[。！？，；：、]+)")


def pieces(line: str) -> list[str]:
    """A raw line as the pieces between which it may be cut; joined they are the line, without blanks at its
    end."""
    return PIECE.findall(line)


def parts(words: Sequence[str], limit: int, size: Callable[[str], int] = lambda word: 1) -> list[list[str]]:
    """Words in parts whose sizes add up to at most `limit` each. A larger word is itself cut, into pieces of
    `limit` characters."""
    words = [piece for word in words for piece in ([word] if size(word) <= limit else sliced(word, limit))]
    sizes = [size(word) for word in words]
    found, begin = list[list[str]](), 0
    while begin < len(words):
        end = end_of_part(words, sizes, begin, limit)
        found.append(list(words[begin:end]))
        begin = end
    return found


def sliced(word: str, size: int) -> list[str]:
    """A word in pieces of at most `size` characters."""
    return [word[at : at + size] for at in range(0, len(word), size)]


def end_of_part(words: Sequence[str], sizes: Sequence[int], begin: int, limit: int) -> int:
    """Where the part that starts at `begin` ends: after the first sentence that makes it long enough, else
    after the last sentence or clause that fits, else where the limit is reached."""
    total, sentence, clause = 0, 0, 0
    for place, (word, size) in enumerate(
        zip(islice(words, begin, None), islice(sizes, begin, None), strict=True), begin
    ):
        total += size
        if total > limit and place > begin:
            return sentence or clause or place
        if SENTENCE_END.search(word):
            sentence = place + 1
            if total * COMFORTABLE >= limit:
                return sentence
        elif CLAUSE_END.search(word):
            clause = place + 1
    return len(words)


@dataclass(frozen=True)
class Limit:
    """The most words of a line, and the name of a line in messages: NAME:NUMBER, or `line NUMBER` without a
    name."""

    words: int = MAX_LINE_WORDS
    name: str = ""
    first: int = 0  # index of the first of the lines in the text
    numbers: Sequence[int] = ()  # of sentences: the index of the line that each is of

    def where(self, index: int) -> str:
        """The name of the line with that index, or of that of the sentence with that index."""
        number = self.first + (self.numbers[index] if self.numbers else index) + 1
        return f"{self.name}:{number}" if self.name else f"line {number}"

    def refuse(self, sizes: Iterable[int], what: str) -> None:
        """DataError for the first line that is too long for `what`: a score, an n-best list ..."""
        for index, size in enumerate(sizes):
            if size > self.words:
                raise refusal(self.where(index), size, self.words, what)


def warning(where: str, words: int, limit: int) -> str:
    """The message on the first line of a text that is cut."""
    return (
        f"{where}: {words:,} words, more than --max-line-words {limit:,}: translated in parts, cut at "
        "punctuation where there is some, as are all such lines"
    )


def refusal(where: str, words: int, limit: int, what: str) -> DataError:
    """The error for a line that is too long for `what`: an n-best list, a score ..."""
    return DataError(
        f"{where}: {words:,} words, more than --max-line-words {limit:,}: too long for {what}; split the "
        "line, or raise that limit"
    )
