"""Text processing for one side of a hybrid system: converts raw lines to Moses' words (tokenized, cased,
escaped) and back."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, count, product
from pathlib import Path
from string import ascii_uppercase

from nmt.text import scripts, truecase
from nmt.text.pipeline import SideConfig
from nmt.text.tokenize import Tokenizer, escape_raw, unescape
from nmt.text.truecase import Truecaser

# ---- protected text ----------------------------------------------------------------------------------------
# Text that tokenization must not split and casing must not change.
#
# Tags, URLs, e-mail addresses and entities are copied into the translation. Times and dates (10:30, 1/2/2024)
# are kept as single words, which the tables may translate. While a line is tokenized or detokenized, all of
# these are replaced by placeholders: words of capital letters, which none of Moses' rules changes.


# Characters that a URL does not contain, including letters of scripts without blanks
NO_URL = '\\s<>"\u0e00-\u109f\u1780-\u17ff\u3000-\u9fff\uff00-\uffef'
NO_END = f"{NO_URL}'.,;:!?)\\]}}»”…"  # characters with which a URL does not end
MAIL = "A-Za-z0-9_.+-"
TAG = r"</?[A-Za-z][^<>]*>"
COPIED = "|".join(
    (
        TAG,
        rf"(?i:(?:https?|ftp)://|www\.)[^{NO_URL}]*[^{NO_END}]",
        rf"(?<![{MAIL}])[{MAIL}]{{1,64}}@[A-Za-z0-9-]++(?:\.[A-Za-z0-9-]++)+",
        r"&(?:[A-Za-z]+|\#[0-9]+|\#x[0-9A-Fa-f]+);",
    )
)
TIMES_AND_DATES = r"(?<![A-Za-z0-9:/])\d++(?:[:/]\d++)++(?![A-Za-z:/])"
ELISION = re.compile(r"[^\W\d_]['’]$")  # l'<b>homme</b>: the tokenizer has to see the letter after it

LETTERS = ascii_uppercase.replace("Z", "")  # of placeholders, after their first letter

is_tag = re.compile(TAG).fullmatch
is_copied = re.compile(COPIED).fullmatch
PROTECTED = re.compile(f"{COPIED}|{TIMES_AND_DATES}")


class Placeholders:
    """The placeholders for protected text in one line."""

    def __init__(self, text: str) -> None:
        """`text`: the line; placeholders are chosen so that it contains none."""
        upper, endings = text.upper(), (product(LETTERS, repeat=size) for size in count())
        # Z only at the start, so that no stem begins inside another
        stems = (f"ZQ{''.join(letters)}" for letters in chain.from_iterable(endings))
        stem = next(stem for stem in stems if stem not in upper)
        self.stem, self.hidden = stem, dict[str, str]()  # placeholder -> text
        self.pattern = re.compile(f"({stem}[A-Z]{{4}})")

    def add(self, text: str) -> str:
        """Add a placeholder for `text`, and return it."""
        word = self.word(len(self.hidden))
        self.hidden[word] = text
        return word

    def word(self, number: int) -> str:
        """The placeholder with this number: ZQAAAA, ZQAAAB, ..."""
        letters = ""
        for _ in range(4):
            number, rest = divmod(number, len(ascii_uppercase))
            letters = ascii_uppercase[rest] + letters
        return self.stem + letters

    def split(self, words: Sequence[str]) -> list[str]:
        """Split words so that every placeholder is a separate word."""
        return [part for word in words for part in self.pattern.split(word) if part]

    def original(self, word: str) -> str:
        """The text that a placeholder stands for; any other word is returned unchanged."""
        return self.hidden.get(word, word)


def hide_protected(line: str, blank: str = " ") -> tuple[str, Placeholders]:
    """Replace protected text in a raw line by placeholders; returns the line and the placeholders. `blank`:
    text that is inserted around each placeholder, but not after an elided word such as l'; empty for scripts
    in which a blank would be a word."""
    placeholders = Placeholders(line)
    parts, end = list[str](), 0
    for match in PROTECTED.finditer(line):
        preceding = line[end : match.start()]
        parts += [preceding, "" if ELISION.search(preceding) else blank, placeholders.add(match[0]), blank]
        end = match.end()
    return "".join(parts) + line[end:], placeholders


def tag_pairs(words: Sequence[str]) -> list[tuple[int, int]]:
    """Positions (opening, closing) of pairs of tags, innermost first. A closing tag belongs to the last open
    tag of its name; tags opened in between, and all others without a partner, are left out."""
    pairs, waiting, names = list[tuple[int, int]](), list[tuple[str, int]](), Counter[str]()
    for position, word in enumerate(words):
        if not is_tag(word) or word.endswith("/>"):
            continue
        name = re.split(r"[\s\u00a0>]", word.removeprefix("<").removeprefix("/"), maxsplit=1)[0].lower()
        if not word.startswith("</"):
            waiting.append((name, position))
            names[name] += 1
        elif names[name]:
            while waiting[-1][0] != name:
                names[waiting.pop()[0]] -= 1
            names[name] -= 1
            pairs.append((waiting.pop()[1], position))
    return pairs


def sentence_starts(words: Sequence[str]) -> list[bool]:
    """Whether each word starts a sentence. Tags do not count as words."""
    starts = truecase.sentence_starts(word for word in words if not is_tag(word))
    return [not is_tag(word) and next(starts) for word in words]


# ---- side --------------------------------------------------------------------------------------------------


Span = tuple[int, int]  # start and end (exclusive), in words
BLANK = "\u00a0"  # replaces blanks inside tags, as words of a tokenized line contain none


class TextSide:
    """The text processing of one side. `words(line)` converts raw text to what tables and networks read, and
    `text(words)` converts it back.

    >>> from nmt.text.pipeline import SideConfig
    >>> from smt_bridge.hybrid.side import TextSide
    >>> english = TextSide(SideConfig(language="en"))
    >>> english.words("See <b>it</b> at https://example.org/a?b=1&c.")
    ['See', '&lt;b&gt;', 'it', '&lt;/b&gt;', 'at', 'https://example.org/a?b=1&amp;c', '.']
    >>> english.text(["I", "don", "&apos;t", "see", "&lt;b&gt;", "it", "&lt;/b&gt;", "."])
    "I don't see <b>it</b>."
    """

    def __init__(self, config: SideConfig, truecaser: Truecaser | None = None) -> None:
        """`truecaser`: must have been trained on the output of `split`; without one, truecased text keeps its
        case. ConfigError for a segmentation that the language does not support."""
        self.case, self.truecaser = config.case, truecaser
        self.language, self.blank = config.language, "" if scripts.is_spaceless(config.language) else " "
        self.rules = Tokenizer(
            config.language, config.normalize, config.tokenize, segment=config.segment
        ).rules

    def split(self, line: str) -> list[str]:
        """Tokenize a raw line, keeping its case and without escapes. Protected text is not split."""
        hidden, placeholders = hide_protected(line, self.blank)
        words = placeholders.split(self.rules.words(hidden))
        return [placeholders.original(word).replace(" ", BLANK).replace("\t", BLANK) for word in words]

    def apply_case(self, words: Sequence[str]) -> list[str]:
        """Convert words of a line, as `split` returns them, to the system's case. Tags, URLs and other words
        that are copied stay unchanged."""
        text_words = iter(self.in_text_case([word for word in words if not is_tag(word)]))
        cased = [word if is_tag(word) else next(text_words) for word in words]
        return [old if is_copied(old) else new for old, new in zip(words, cased, strict=True)]

    def in_text_case(self, words: list[str]) -> list[str]:
        """Convert words to the system's case. None of them may be a tag."""
        if self.case == "lower":
            return [word.lower() for word in words]
        return self.truecaser.apply(words) if self.case == "truecase" and self.truecaser else words

    def phrase(self, text: str) -> list[str]:
        """Split part of a sentence into words without escapes. They are lower-cased in a lower-cased system,
        and otherwise keep their case, even the first."""
        words = self.split(text)
        return self.apply_case(words) if self.case == "lower" else words

    def words(self, line: str) -> list[str]:
        """Convert a raw line to words as tables and networks read them."""
        return escape_words(self.apply_case(self.split(line)))

    def text(self, words: Sequence[str], exact: Mapping[Span, str] | None = None) -> str:
        """Convert words to raw text. `exact`: span -> raw text that replaces its words verbatim; spans must
        not overlap. ValueError for an empty span."""
        if empty := [span for span in exact or () if span[0] >= span[1]]:
            raise ValueError(f"exact: the span {empty[0]} has no words")
        spans = {start: (end, replacement) for (start, end), replacement in (exact or {}).items()}
        placeholders = Placeholders(" ".join([*words, *(replacement for _, replacement in spans.values())]))
        shown, position = list[str](), 0
        while position < len(words):
            word = unescape(words[position])
            if position in spans:
                position, replacement = spans[position]
                shown.append(placeholders.add(replacement))
            else:
                shown.append(placeholders.add(word.replace(BLANK, " ")) if is_copied(word) else word)
                position += 1
        return restore_text(self.rules.text(self.in_sentence_case(shown, placeholders)), placeholders)

    def in_sentence_case(self, words: list[str], placeholders: Placeholders) -> list[str]:
        """Capitalize the starts of sentences if the system is truecased. Tags do not count as words."""
        if self.case != "truecase" or not self.truecaser:
            return words
        tags = [bool(is_tag(placeholders.original(word))) for word in words]
        text_words = iter(
            self.truecaser.undo([word for word, tag in zip(words, tags, strict=True) if not tag])
        )
        return [word if tag else next(text_words) for word, tag in zip(words, tags, strict=True)]


def escape_words(words: Sequence[str]) -> list[str]:
    """Escape words as Moses does in the files of a model."""
    return [escape_raw(word) for word in words]


def restore_text(text: str, placeholders: Placeholders) -> str:
    """Replace the placeholders in a detokenized line by the original text. Also removes a blank after an
    opening and before a closing tag, and those at both ends of the line."""
    parts = placeholders.pattern.split(text)  # text, placeholder, text ...
    restored = [placeholders.original(part) for part in parts]
    for first, last in tag_pairs(restored):
        restored[first + 1] = restored[first + 1].removeprefix(" ")
        restored[last - 1] = restored[last - 1].removesuffix(" ")
    return "".join(restored).strip(" ")


def load(config: SideConfig, path: Path) -> TextSide:
    """Create a side's text processing. `path`: its truecase model, which is read only if text is truecased.
    DataError for a file that is missing or not a truecase model; ConfigError for a segmentation that the
    language does not support."""
    return TextSide(config, truecase.load(path) if config.case == "truecase" else None)
