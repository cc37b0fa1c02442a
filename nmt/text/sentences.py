"""Splits lines into sentences by the rules of Moses' split-sentences: a full stop, a question or exclamation
mark or an ellipsis ends a sentence if a capital follows, except after an abbreviation, an initial, an ordinal
or a bracket.

When in doubt, a line is not split: translating two sentences together costs a little quality, translating
half a sentence costs much. The lists of abbreviations are those of Moses, from sacremoses.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import TypeVar

import regex

from nmt.errors import DataError
from nmt.text import moses
from nmt.text.scripts import is_spaceless

# ---- sentences of lines ------------------------------------------------------------------------------------

Item = TypeVar("Item")
Span = tuple[int, int]  # start and end of a part of a line, in characters

# Languages that write an ordinal as a number with a full stop: 3. května, am 5. November.
ORDINALS = frozenset(
    ["", *"bs cs da de dsb et eu fi fo hr hsb hu is lb lt lv nb nds nn no pl sk sl sr tr".split()]
)
NOUN_CAPITALS = frozenset(["", *"de lb nds".split()])  # after an ellipsis a capital says nothing here
# What Moses' lists lack. A sentence may end with some of these; in doubt there is no cut.
ABBREVIATIONS = {
    "cs": """arch bl bří kap mgr nám nár obr odst pan pí příp sl st svob tel ul vel voj voz zn""",
    "de": """
        Abb Abs Abt Aufl Bd bspw bez Bez Dir Dipl einschl exkl Fa Fr gest geb Hg Hrn Hrsg Hr inkl int Jh Kap
        Med Min Mill Mr Nr Pfr Red Reg Str Tel Univ verh Verf zzgl""",
    "en": """
        Apt approx Ave Blvd Bd Cie Co Cf cf Dept Dist ed eds Est est etc Ex Fig fig Ft Inc Jr Lieut Ltd Mt Mts
        Nat Pres Pt Rd Sept Secy Univ Vol vol""",
    "fr": """
        Cie Dr Drs Dir Gén Jr Me Mes Mgr Mlle Mlles Mme Mmes MM Pr Prof St Ste Sté Cdt Col Cap Lt adj bd boul
        tél janv févr juill sept oct nov déc p par""",
}
CZECH = {"cz": "cs"}  # Moses' code

END_MARKS = ".!?…؟۔।॥։።"
TAG_PATTERN = r"<[A-Za-z/!][^<>]*+>"
CLOSING = r"""(?:[ \u00a0\u202f]?[»›]|["'”’“‘«‹)\]}]|</[^<>]*+>)*+"""
OPENING = r"""(?:[«‹][ \u00a0\u202f]?|["'“”„‚‘’»›(\[¿¡{]|<[A-Za-z][^<>]*+>)*+"""
BOUNDARY = regex.compile(
    rf"(?<![{END_MARKS}])(?P<end>[{END_MARKS}]++)(?P<closing>{CLOSING})(?P<gap>\s++)"
    rf"(?={OPENING}(?P<next>[\p{{Lu}}\p{{Lt}}\p{{Lo}}]|\p{{Nd}}.{{0,30}}?\p{{L}}{{2}}))"
)
# Chinese and Japanese need no blank after the mark.
WIDE = "。！？｡"
WIDE_BOUNDARY = regex.compile(
    rf"""(?<![{WIDE}])(?P<end>[{WIDE}]++)(?P<closing>[」』）】》〉”’"]*+)(?P<gap>\s*+)(?=[^\s…])"""
)
WIDE_OPENING = "「『（【《〈“‘"
QUOTATIVE = ("と", "って", "、", "，")  # 本当？と聞いた: the sentence goes on
PAIRS = {")": "(", "]": "[", "}": "{", "）": "（", "」": "「", "』": "『", "】": "【", "》": "《", "〉": "〈"}
ENCLOSING = regex.compile(rf"{TAG_PATTERN}|[{regex.escape(''.join([*PAIRS, *PAIRS.values()]))}]")

LONGEST_WORD = 40  # characters before a full stop that are searched for its word
BEFORE = regex.compile(r"[^\s\"'“”„‚‘’«»‹›()\[\]{}<>/–—]*$")
LETTERS = regex.compile(r"\p{L}{2}|\p{Lo}")
ACRONYM = regex.compile(r"(?:\p{L}{1,2}\.-?)+\p{L}{1,4}")  # U.S, z.B, s.r.o, J.-P, Ph.D
ROMAN = regex.compile(r"[IVXLC]+")
STREET = regex.compile(r"\wstr$")  # Bahnhofstr. 5
PRONOUN = regex.compile(r"I\b")  # a capital also inside of a sentence
NUMBER = regex.compile(r"\p{Nd}[\p{Nd}.]*")
SYLLABIC = frozenset("bs cs hr sk sl sr".split())  # krk, prst, vlk: r and l are vowels
VOWELS = frozenset("aeiouyæœøı")


@dataclass(frozen=True)
class SplitLine:
    """A line cut into sentences. `line.join(line.sentences)` is the line itself, byte for byte.

    >>> line = split_line("Mr. Smith sleeps.  A dog runs.", "en")
    >>> line.sentences
    ['Mr. Smith sleeps.', 'A dog runs.']
    >>> line.join(["M. Smith dort.", "Un chien court."])
    'M. Smith dort.  Un chien court.'
    """

    sentences: list[str]
    gaps: list[str]  # the text between consecutive sentences

    def join(self, translations: Sequence[str], blank: str = "") -> str:
        """Join translations, one for each sentence, into a line. `blank`: the separator where the line has
        none between two sentences."""
        gaps = [*(gap or blank for gap in self.gaps), ""]
        return "".join(text + gap for text, gap in zip(translations, gaps, strict=True))


@dataclass(frozen=True)
class SplitText:
    """The sentences of several lines."""

    lines: list[SplitLine]
    blank: str = ""  # separator in the target language, if the source has none between two sentences

    @property
    def sentences(self) -> list[str]:
        """The sentences of all lines, in order."""
        return [sentence for line in self.lines for sentence in line.sentences]

    @property
    def numbers(self) -> list[int]:
        """The index of each sentence's line."""
        return [index for index, line in enumerate(self.lines) for _ in line.sentences]

    def group(self, items: Iterable[Item]) -> Iterator[list[Item]]:
        """Group items, one per sentence, by line."""
        remaining = iter(items)
        return (list(islice(remaining, len(line.sentences))) for line in self.lines)

    def join(self, translations: Iterable[str]) -> list[str]:
        """Join translations of all sentences into lines."""
        groups = zip(self.lines, self.group(translations), strict=True)
        return [line.join(group, self.blank) for line, group in groups]


def whole_lines(lines: Iterable[str]) -> SplitText:
    """Treat each line as a single sentence."""
    return SplitText([SplitLine([line], []) for line in lines])


def split_text(
    lines: Iterable[str],
    source: str,
    target: str,
    split_tag: Callable[[str], tuple[str, str]] = lambda line: ("", line),
) -> SplitText:
    """Split raw lines into sentences, for translation from the language `source` into `target` (codes).
    `split_tag` splits a line into its leading tag and the rest; the tag is repeated before each sentence."""
    split_lines = list[SplitLine]()
    for line in lines:
        tag, text = split_tag(line)
        parts = split_line(text, source)
        if not parts.gaps:
            parts = SplitLine([line], [])
        elif tag:
            parts = SplitLine([f"{tag} {sentence.lstrip()}" for sentence in parts.sentences], parts.gaps)
        split_lines.append(parts)
    return SplitText(split_lines, sentence_separator(target))


def split_line(line: str, language: str = "") -> SplitLine:
    """Split a raw line into sentences; the first one starts with the line, the last one ends with it. A
    language without a list of abbreviations uses the English one, as in Moses; an empty language uses the
    rules of all. Time is linear in the length of the line."""
    code = regex.split("[-_]", language.lower())[0]
    cuts = boundaries(line, CZECH.get(code, code))
    starts, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(line)]
    return SplitLine(
        [line[start:end] for start, end in zip(starts, ends, strict=True)], [line[a:b] for a, b in cuts]
    )


def sentence_separator(language: str) -> str:
    """The text between sentences where the source has nothing: a blank, unless the script has none."""
    return "" if is_spaceless(language) else " "


def boundaries(line: str, language: str) -> list[Span]:
    """The gaps between the sentences of a line, in order. `language`: a code; empty: the rules of all."""
    candidates = [(match.span("gap"), ends_sentence(match, language)) for match in BOUNDARY.finditer(line)]
    if not line.isascii():
        candidates += [
            (match.span("gap"), ends_wide_sentence(match)) for match in WIDE_BOUNDARY.finditer(line)
        ]
    if not any(certain for _, certain in candidates):
        return []
    words = (match.end() for match in LETTERS.finditer(line))
    covered = iter([*enclosed_spans(line), (len(line), len(line))])
    cuts, word = list[Span](), next(words, len(line) + 1)
    span = next(covered)
    for gap, certain in sorted(candidates):
        while span[1] <= gap[0]:
            span = next(covered)
        if certain and gap[0] <= span[0] and word <= gap[0]:  # not after 1. or (a)
            word = next((end for end in words if end > gap[1]), 0)
            if not word:
                break
            cuts.append(gap)
    return cuts


def enclosed_spans(line: str) -> Iterator[Span]:
    """Yield the outermost spans between matching brackets, and those of tags, in order without overlap."""
    opened, spans = list[tuple[str, int]](), list[Span]()
    depths: dict[str, int] = {}
    for match in ENCLOSING.finditer(line):
        sign = match[0]
        if len(sign) > 1:
            spans.append(match.span())
        elif sign not in PAIRS:
            opened.append((sign, match.start()))
            depths[sign] = depths.get(sign, 0) + 1
        elif depths.get(PAIRS[sign]):
            while opened[-1][0] != PAIRS[sign]:
                depths[opened.pop()[0]] -= 1
            depths[PAIRS[sign]] -= 1
            spans.append((opened.pop()[1], match.end()))
    reach = 0
    for span in sorted(spans):
        if span[0] >= reach:
            yield span
            reach = span[1]


# ---- rules -------------------------------------------------------------------------------------------------


def ends_sentence(match: "regex.Match[str]", language: str) -> bool:
    """Whether a sentence surely ends at a mark that is followed by a blank and a capital or number. `match`:
    of BOUNDARY; `language`: its code, empty for the rules of all."""
    end = match["end"]
    if end != ".":
        if end.strip(".") in ("", "…"):  # an ellipsis
            return language not in NOUN_CAPITALS and not PRONOUN.match(match.string, match.start("next"))
        # "Stop!" Peter said.
        return not (language in ("", "en") and regex.search(r"[\"'”’]", match["closing"]) and "." not in end)
    word = BEFORE.search(match.string, max(0, match.start() - LONGEST_WORD), match.start())[0]
    if match["next"][0].isdigit():
        return len(word) > 3 and word.isalpha() and not may_be_abbreviation(word, language, number=True)
    if NUMBER.fullmatch(word):
        year = word.isdigit() and len(word) > 3
        return year or not (language in ORDINALS or "." in word)
    return not may_be_abbreviation(word, language, number=False)


def ends_wide_sentence(match: "regex.Match[str]") -> bool:
    """Whether a sentence surely ends at a full-width mark: 「はい。」と言った continues after its mark."""
    text, end = match.string, match.end()
    if match["gap"]:
        return not text.startswith(QUOTATIVE, end)
    if match["closing"]:
        return text[end] in WIDE_OPENING
    return "。" in match["end"] or "｡" in match["end"] or not text.startswith(QUOTATIVE, end)


def may_be_abbreviation(word: str, language: str, number: bool) -> bool:
    """Whether a full stop after this word may be of an abbreviation. `number`: whether a number follows."""
    if len(word) == 1 or ACRONYM.fullmatch(word) or ROMAN.fullmatch(word) or STREET.search(word):
        return True
    always, before_numbers = abbreviation_lists(language)
    if not {word, word.lower()}.isdisjoint(always) or (number and word in before_numbers):
        return True
    letters = {unicodedata.normalize("NFD", letter)[0] for letter in word.lower() if letter.isalpha()}
    latin = bool(letters) and all(letter < "\u0250" for letter in letters)
    syllable = bool(letters & VOWELS) or (language in SYLLABIC and not letters.isdisjoint("rl"))
    return latin and not syllable and len(word) < 5


@cache
def abbreviation_lists(language: str) -> tuple[frozenset[str], frozenset[str]]:
    """The abbreviations of a language, and those that are abbreviations only before a number."""
    words = set(moses.abbreviations(language or None))  # those of all languages where it is unknown
    numeric = {word.split()[0] for word in words if "#NUMERIC_ONLY#" in word}
    own = ABBREVIATIONS.get(language, "" if language else " ".join(ABBREVIATIONS.values())).split()
    last = {
        word.replace(". ", " ").split()[-1] for word in words - numeric if " " in word and "#" not in word
    }
    return frozenset({word for word in words if " " not in word} | last | set(own)), frozenset(numeric)


# ---- parts of long lines -----------------------------------------------------------------------------------
# Lines that are too long to translate as one sentence: a search over 10,000 words would take days and find
# nothing good.
#
# Plain translation cuts them into parts, at the ends of sentences where it can, and joins the translations.
# What belongs to a whole sentence (n-best lists, alignments, scores) cannot be joined: for those, such a line
# is refused.

MAX_LINE_WORDS = 250  # by default
COMFORTABLE_SHARE = 5  # a part ends with the first sentence beyond this fraction of the limit

CLOSING_QUOTES = "\"'»”’)\\]"
SENTENCE_END = re.compile(rf"[.!?…。！？][{CLOSING_QUOTES}]*$")
CLAUSE_END = re.compile(rf"[,;:–—，；：、][{CLOSING_QUOTES}]*$")
# Raw text by blanks; Chinese and Japanese have none, so their punctuation ends a piece too.
RAW_PIECE = re.compile(r"[ \t]*(?:[^ \t。！？，；：、]+[。！？，；：、]*|[。！？，；：、]+)")


def raw_pieces(line: str) -> list[str]:
    """Split a raw line into pieces between which it may be cut. Joined, they are the line without trailing
    blanks, which would take time by the square of their number."""
    return RAW_PIECE.findall(line.rstrip(" \t"))


def line_parts(
    words: Sequence[str], limit: int, size: Callable[[str], int] = lambda word: 1
) -> list[list[str]]:
    """Group words into parts of total size at most `limit`, cut at punctuation where possible. `size`: that
    of a word, 1 by default. A word larger than `limit` is cut into pieces of at most `limit` characters."""
    words = [piece for word in words for piece in ([word] if size(word) <= limit else slices(word, limit))]
    sizes = [size(word) for word in words]
    parts, start = list[list[str]](), 0
    while start < len(words):
        end = part_end(words, sizes, start, limit)
        parts.append(list(words[start:end]))
        start = end
    return parts


def slices(word: str, size: int) -> list[str]:
    """Cut a word into pieces of at most `size` characters."""
    return [word[first : first + size] for first in range(0, len(word), size)]


def part_end(words: Sequence[str], sizes: Sequence[int], start: int, limit: int) -> int:
    """The end (exclusive) of the part that starts at word `start`: after the first sentence that makes it
    long enough, else after the last sentence or clause that fits, else at the limit. `sizes`: the size of
    each word."""
    total, sentence, clause = 0, 0, 0
    for position in range(start, len(words)):
        total += sizes[position]
        if total > limit and position > start:
            return sentence or clause or position
        if SENTENCE_END.search(words[position]):
            sentence = position + 1
            if total * COMFORTABLE_SHARE >= limit:
                return sentence
        elif CLAUSE_END.search(words[position]):
            clause = position + 1
    return len(words)


@dataclass(frozen=True)
class LineLimit:
    """The most words of a line, and how messages name lines: NAME:NUMBER, or `line NUMBER` without a name."""

    words: int = MAX_LINE_WORDS
    name: str = ""
    first: int = 0  # index of the first of the lines in the text
    numbers: Sequence[int] = ()  # if lines were split into sentences: the index of the line of each

    def location(self, index: int) -> str:
        """The name of the line with this index, or of the line of the sentence with this index."""
        number = self.first + (self.numbers[index] if self.numbers else index) + 1
        return f"{self.name}:{number}" if self.name else f"line {number}"

    def refuse(self, sizes: Iterable[int], what: str) -> None:
        """DataError for the first line that is too long. `sizes`: the number of words of each line; `what`:
        what is asked for, such as a score or an n-best list."""
        for index, size in enumerate(sizes):
            if size > self.words:
                raise long_line_error(self.location(index), size, self.words, what)


def long_line_warning(location: str, words: int, limit: int) -> str:
    """The warning for the first line of a text that is cut."""
    return (
        f"{location}: {words:,} words, more than --max-line-words {limit:,}: translated in parts, cut at "
        "punctuation where there is some, as are all such lines"
    )


def long_line_error(location: str, words: int, limit: int, what: str) -> DataError:
    """The error for a line that is too long for `what`: an n-best list, a score ..."""
    return DataError(
        f"{location}: {words:,} words, more than --max-line-words {limit:,}: too long for {what}; split the "
        "line, or raise that limit"
    )
