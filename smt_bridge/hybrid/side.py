"""Text processing of one language of a hybrid system: raw lines to Moses' words (tokenized, cased, escaped),
and back."""

import re
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_uppercase

from nmt.text import scripts, truecase
from nmt.text.pipeline import SideConfig
from nmt.text.tokenize import Tokenizer, escape_raw, unescape
from nmt.text.truecase import Truecaser

# ---- protect -----------------------------------------------------------------------------------------------
# Text that tokenization must not split and casing must not change.
#
# Tags, URLs, e-mail addresses and entities are copied into the translation. Times and dates (10:30, 1/2/2024)
# are one word each, which the tables may translate. While a line is tokenized or detokenized, placeholders
# stand for them: words of capital letters, which all of Moses' rules leave alone.


# A URL does not contain these, letters of scripts without blanks among them, ...
NO_URL = '\\s<>"\u0e00-\u109f\u1780-\u17ff\u3000-\u9fff\uff00-\uffef'
NO_END = f"{NO_URL}'.,;:!?)\\]}}»”…"  # ... and does not end with these
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
WHOLE = r"(?<![A-Za-z0-9:/])\d++(?:[:/]\d++)++(?![A-Za-z:/])"
ELISION = re.compile(r"[^\W\d_]['’]$")  # l'<b>homme</b>: the tokenizer has to see the letter after it

is_tag = re.compile(TAG).fullmatch
is_copied = re.compile(COPIED).fullmatch
PROTECTED = re.compile(f"{COPIED}|{WHOLE}")


class Placeholders:
    """Placeholder words for protected text in one line."""

    def __init__(self, text: str, hidden: Iterable[str] = ()) -> None:
        """`text`: the line, which must not contain any of them. `hidden`: what the first ones stand for."""
        stem = "ZQ"
        while stem in text.upper():
            stem += "Q"
        self.stem, self.hidden = stem, list(hidden)
        self.pattern = re.compile(f"({stem}[A-Z]{{4}})")

    def add(self, text: str) -> str:
        """A new word that stands for `text`."""
        self.hidden.append(text)
        return self.word(len(self.hidden) - 1)

    def word(self, number: int) -> str:
        """The word with this number: ZQAAAA, ZQAAAB ..."""
        letters = ""
        for _ in range(4):
            number, rest = divmod(number, len(ascii_uppercase))
            letters = ascii_uppercase[rest] + letters
        return self.stem + letters

    def number(self, word: str) -> int:
        """Index of a placeholder, the inverse of `word`."""
        value = 0
        for letter in word[len(self.stem) :]:
            value = value * len(ascii_uppercase) + ascii_uppercase.index(letter)
        return value

    def split(self, words: Sequence[str]) -> list[str]:
        """Words in which every placeholder is a word of its own."""
        return [part for word in words for part in self.pattern.split(word) if part]

    def is_one(self, word: str) -> bool:
        return self.pattern.fullmatch(word) is not None

    def original(self, word: str) -> str:
        """Text that a placeholder stands for; other words are returned unchanged."""
        return self.hidden[self.number(word)] if self.is_one(word) else word


def hide_protected(line: str, blank: str = " ") -> tuple[str, Placeholders]:
    """Replace protected text in a raw line by placeholders. `blank`: inserted around each of them; empty
    where blanks are words."""
    placeholders = Placeholders(line)
    parts, end = list[str](), 0
    for match in PROTECTED.finditer(line):
        preceding = line[end : match.start()]
        parts += [preceding, "" if ELISION.search(preceding) else blank, placeholders.add(match[0]), blank]
        end = match.end()
    return "".join(parts) + line[end:], placeholders


def tag_pairs(words: Sequence[str]) -> list[tuple[int, int]]:
    """Positions of opening tags and of the tags that close them, innermost first. Tags without a partner are
    left out."""
    pairs, waiting = list[tuple[int, int]](), list[tuple[str, int]]()
    for position, word in enumerate(words):
        if not is_tag(word) or word.endswith("/>"):
            continue
        name = re.split(r"[\s\u00a0>]", word.removeprefix("<").removeprefix("/"), maxsplit=1)[0].lower()
        if not word.startswith("</"):
            waiting.append((name, position))
        elif depths := [depth for depth, (open_name, _) in enumerate(waiting) if open_name == name]:
            pairs.append((waiting[depths[-1]][1], position))
            del waiting[depths[-1] :]
    return pairs


def sentence_starts(words: Sequence[str]) -> list[bool]:
    """For each word, whether a sentence starts with it. Tags do not count as words."""
    starts = truecase.sentence_starts(word for word in words if not is_tag(word))
    return [not is_tag(word) and next(starts) for word in words]


# ---- side --------------------------------------------------------------------------------------------------


Span = tuple[int, int]  # the first word of some, and the one after their last
BLANK = "\u00a0"  # stands for blanks inside a tag: a word of a tokenized line has none


class TextSide:
    """`words(line)` are what tables and networks read; `text(words)` is for people.

    >>> from nmt.text.pipeline import SideConfig
    >>> from smt_bridge.hybrid.side import TextSide
    >>> english = TextSide(SideConfig(language="en"))
    >>> english.words("See <b>it</b> at https://example.org/a?b=1&c.")
    ['See', '&lt;b&gt;', 'it', '&lt;/b&gt;', 'at', 'https://example.org/a?b=1&amp;c', '.']
    >>> english.text(["I", "don", "&apos;t", "see", "&lt;b&gt;", "it", "&lt;/b&gt;", "."])
    "I don't see <b>it</b>."
    """

    def __init__(self, config: SideConfig, truecaser: Truecaser | None = None) -> None:
        """`truecaser`: learned from what `split` gives; without one truecased text keeps its case.
        ConfigError for a segmentation that the language does not have."""
        self.case, self.truecaser = config.case, truecaser
        self.language, self.blank = config.language, "" if scripts.is_spaceless(config.language) else " "
        self.rules = Tokenizer(
            config.language, config.normalize, config.tokenize, segment=config.segment
        ).rules

    def split(self, line: str) -> list[str]:
        """The words of a raw line in its own case, without escapes. Protected ones are whole."""
        hidden, placeholders = hide_protected(line, self.blank)
        words = placeholders.split(self.rules.words(hidden))
        return [placeholders.original(word).replace(" ", BLANK).replace("\t", BLANK) for word in words]

    def cased(self, words: Sequence[str]) -> list[str]:
        """Convert words of `split` to the case that the system reads. Copied words keep theirs."""
        text_words = iter(self.in_text_case([word for word in words if not is_tag(word)]))
        cased = [word if is_tag(word) else next(text_words) for word in words]
        return [old if is_copied(old) else new for old, new in zip(words, cased, strict=True)]

    def in_text_case(self, words: list[str]) -> list[str]:
        """Convert words, none of them tags, to the case that the system reads."""
        if self.case == "lower":
            return [word.lower() for word in words]
        return self.truecaser.apply(words) if self.case == "truecase" and self.truecaser else words

    def phrase(self, text: str) -> list[str]:
        """Split part of a sentence into words without escapes; where text is truecased, its first word keeps
        its case."""
        words = self.split(text)
        return self.cased(words) if self.case == "lower" else words

    def words(self, line: str) -> list[str]:
        """The words of a raw line as tables and networks read them."""
        return escaped(self.cased(self.split(line)))

    def text(self, words: Sequence[str], exact: Mapping[Span, str] | None = None) -> str:
        """Format words as raw text. `exact`: text that replaces the words of a span unchanged; spans do not
        overlap."""
        spans = {start: (end, replacement) for (start, end), replacement in (exact or {}).items()}
        placeholders = Placeholders(" ".join([*words, *(replacement for _, replacement in spans.values())]))
        shown, at = list[str](), 0
        while at < len(words):
            word = unescape(words[at])
            if at in spans:
                at, replacement = spans[at]
                shown.append(placeholders.add(replacement))
            else:
                shown.append(placeholders.add(word.replace(BLANK, " ")) if is_copied(word) else word)
                at += 1
        return restored(self.rules.text(self.in_sentence_case(shown, placeholders)), placeholders)

    def in_sentence_case(self, words: list[str], placeholders: Placeholders) -> list[str]:
        """Capitalize the starts of sentences, where the system is truecased. Tags do not count as words."""
        if self.case != "truecase" or not self.truecaser:
            return words
        tags = [bool(is_tag(placeholders.original(word))) for word in words]
        text_words = iter(
            self.truecaser.undo([word for word, tag in zip(words, tags, strict=True) if not tag])
        )
        return [word if tag else next(text_words) for word, tag in zip(words, tags, strict=True)]


def escaped(words: Sequence[str]) -> list[str]:
    """Escape words for the files of a model."""
    return [escape_raw(word) for word in words]


def restored(text: str, placeholders: Placeholders) -> str:
    """Replace placeholders in a detokenized line. Removes the blanks just inside a pair of tags."""
    parts = placeholders.pattern.split(text)  # text, placeholder, text ...
    whole = [placeholders.original(part) for part in parts]
    for first, last in tag_pairs(whole):
        whole[first + 1] = whole[first + 1].removeprefix(" ")
        whole[last - 1] = whole[last - 1].removesuffix(" ")
    return "".join(whole).strip(" ")


def load(config: SideConfig, path: str) -> TextSide:
    """A side with the truecase model of a file, which is read where the text is truecased. DataError for a
    file that is no such model."""
    return TextSide(config, truecase.load(path) if config.case == "truecase" else None)
