"""Tokenizers of all scripts, with casing, and Moses' escapes; and their inverses."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, count, groupby, product
from string import ascii_uppercase

import regex

from nmt.errors import ConfigError
from nmt.io import files
from nmt.text import scripts, truecase
from nmt.text.moses import MosesDetokenizer, MosesTokenizer, Normalizer
from nmt.text.scripts import Segmenter
from nmt.text.truecase import Truecaser

CASES = ("keep", "truecase", "lower")


class MosesRules:
    """Normalization and tokenization of one language; if both are off, blanks separate words. `latin`: for
    Latin words inside text of another script, which English rules split."""

    def __init__(self, language: str, normalize: bool, tokenize: bool, latin: bool = False) -> None:
        self.language = "en" if latin else language
        self.tokenize = tokenize
        self.normalizer = Normalizer(language) if normalize else None

    @cached_property
    def tokenizer(self) -> MosesTokenizer:
        return MosesTokenizer(self.language)

    @cached_property
    def detokenizer(self) -> MosesDetokenizer:
        return MosesDetokenizer(self.language)

    def words(self, text: str) -> list[str]:
        if self.normalizer:
            text = self.normalizer(text)
        return self.tokenizer(text) if self.tokenize else files.split_words(text)

    def text(self, words: list[str]) -> str:
        return self.detokenizer(words) if self.tokenize else " ".join(words)


# ---- tokenization without blanks ---------------------------------------------------------------------------
# Runs of Chinese, Japanese, Thai, Lao, Tibetan, Khmer and Burmese letters are cut by a segmenter.
# What is between them, Latin words, numbers and punctuation, follows Moses' rules for English, but dashes,
# ellipses and curly quotes stay what they are. On the way back no blank is written beside such letters or
# their punctuation. In Chinese and Japanese blanks there get lost; in the other scripts, where a blank ends a
# phrase, it is the word `▁`. Zero-width spaces are removed.

BLANK_WORD = "▁"  # a blank that has to be written
NO_BLANKS = frozenset(("cjk", "ja", "yue", "zh"))  # languages whose blanks mean nothing
ZERO_WIDTH = "\u200b"

SCRIPT_PATTERN = "".join(
    rf"\p{{scx={script}}}"
    for script in ("Han", "Hiragana", "Katakana", "Bopomofo", "Thai", "Lao", "Tibetan", "Khmer", "Myanmar")
)
LETTER_PATTERN = rf"[[{SCRIPT_PATTERN}]--[\p{{Nd}}\p{{Zs}}\p{{M}}]]"
# Moses' normalization would make `- -` of a Chinese dash, and close with `"` what “ has opened.
MARK_PATTERN = r"[—…“”‘]|’(?!\p{Latin})"
LETTER_RUN = regex.compile(rf"(?:{LETTER_PATTERN}[\p{{M}}\u200c\u200d]*|{MARK_PATTERN})+", regex.V1)
# Beside these no blank is written: the letters, their punctuation, and all punctuation beyond ASCII.
TIGHT_WORD = regex.compile(rf"{LETTER_PATTERN}|[[\p{{P}}\p{{S}}]--\p{{ASCII}}]|{BLANK_WORD}", regex.V1)
LATIN_WORD = regex.compile(r"[A-Za-z0-9]+")


class SpacelessTokenizer:
    """Tokenizes and detokenizes text of scripts without spaces: a segmenter for their letters, rules for the
    rest."""

    def __init__(self, language: str, segmenter: Segmenter, rules: MosesRules) -> None:
        self.segmenter, self.rules = segmenter, rules
        self.keep_blanks = language not in NO_BLANKS

    def words(self, line: str) -> list[str]:
        """Tokenize a line: `私はSony 3.5台` -> 私 は Sony 3.5 台. The segmenter cuts runs of letters of these
        scripts, Moses' rules all other text. A blank before or after such a run becomes the word `▁`; in
        Chinese and Japanese it is dropped.
        """
        result: list[str] = []
        for words, after_blank in self.pieces(line.replace(ZERO_WIDTH, "")):
            if after_blank and self.keep_blanks and result:
                result.append(BLANK_WORD)
            result += words
        return result

    def pieces(self, line: str) -> Iterator[tuple[list[str], bool]]:
        """Yield the words of each run of letters and of the text between runs, with whether a blank
        precedes."""
        end = 0
        for run in LETTER_RUN.finditer(line):
            yield from self.between(line[end : run.start()])
            yield self.segmenter(run[0]), line[run.start() - 1 : run.start()].isspace()
            end = run.end()
        yield from self.between(line[end:])

    def between(self, text: str) -> Iterator[tuple[list[str], bool]]:
        """Tokenize the text between two runs of letters, with whether a blank precedes; yields nothing for
        blanks alone."""
        if stripped := text.strip():
            words = [stripped] if LATIN_WORD.fullmatch(stripped) else self.rules.words(stripped)
            yield words, text[:1].isspace()

    def text(self, words: list[str]) -> str:
        parts = []
        for tight, group in groupby(words, key=lambda word: bool(TIGHT_WORD.search(word))):
            members = list(group)
            parts.append("".join(members).replace(BLANK_WORD, " ") if tight else self.rules.text(members))
        return "".join(parts).strip(" ")


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


Span = tuple[int, int]  # start and end (exclusive), in words
BLANK = "\u00a0"  # replaces blanks inside tags, as words of a tokenized line contain none


def protected_words(line: str, words: Callable[[str], list[str]], blank: str) -> list[str]:
    """Split a line into words by `words`, its protected text into a word each. `blank`: see
    `hide_protected`."""
    hidden, placeholders = hide_protected(line, blank)
    split = placeholders.split(words(hidden))
    return [placeholders.original(word).replace(" ", BLANK).replace("\t", BLANK) for word in split]


def change_unprotected(words: Sequence[str], change: Callable[[list[str]], list[str]]) -> list[str]:
    """Change the words of a line by `change`, which keeps their number. It sees no tags; URLs and other words
    that are copied stay unchanged."""
    others = iter(change([word for word in words if not is_tag(word)]))
    changed = [word if is_tag(word) else next(others) for word in words]
    return [old if is_copied(old) else new for old, new in zip(words, changed, strict=True)]


def lowered(words: list[str]) -> list[str]:
    return [word.lower() for word in words]


def sentence_starts(words: Sequence[str]) -> list[bool]:
    """Whether each word starts a sentence. Tags do not count as words."""
    starts = truecase.sentence_starts(word for word in words if not is_tag(word))
    return [not is_tag(word) and next(starts) for word in words]


def hide_copied(words: Sequence[str], exact: Mapping[Span, str]) -> tuple[list[str], Placeholders]:
    """Replace words that are copied, and the words of the spans in `exact`, by placeholders; returns the
    words and the placeholders. ValueError for an empty span."""
    if empty := [span for span in exact if span[0] >= span[1]]:
        raise ValueError(f"exact: the span {empty[0]} has no words")
    spans = {start: (end, replacement) for (start, end), replacement in exact.items()}
    placeholders = Placeholders(" ".join([*words, *(replacement for _, replacement in spans.values())]))
    shown, position = list[str](), 0
    while position < len(words):
        word = words[position]
        if position in spans:
            position, replacement = spans[position]
            shown.append(placeholders.add(replacement))
        else:
            shown.append(placeholders.add(word.replace(BLANK, " ")) if is_copied(word) else word)
            position += 1
    return shown, placeholders


def restore_text(text: str, placeholders: Placeholders) -> str:
    """Replace the placeholders in a detokenized line by the original text. Also removes a blank after an
    opening and before a closing tag, and those at both ends of the line."""
    parts = placeholders.pattern.split(text)  # text, placeholder, text ...
    restored = [placeholders.original(part) for part in parts]
    for first, last in tag_pairs(restored):
        restored[first + 1] = restored[first + 1].removeprefix(" ")
        restored[last - 1] = restored[last - 1].removesuffix(" ")
    return "".join(restored).strip(" ")


# ---- tokenizers of all scripts -----------------------------------------------------------------------------

TokenizerSettings = tuple[str, bool, bool, str, str, bool]  # the arguments of Tokenizer


class Tokenizer:
    """Tokenizes and cases text of one language; nmt.text.pipeline.SideConfig documents the arguments.
    ConfigError for an unknown case, and for a segmentation that is unknown or cannot be used. For truecase,
    `truecaser` must be set before words are cased."""

    def __init__(
        self,
        language: str,
        normalize: bool = True,
        tokenize: bool = True,
        case: str = "keep",
        segment: str = "auto",
        protect: bool = False,
    ) -> None:
        if case not in CASES:
            raise ConfigError(f"case: {case!r} is unknown, expected one of {', '.join(CASES)}")
        segmenter = scripts.make_segmenter(segment, language, tokenize)
        moses = MosesRules(language, normalize, tokenize, latin=segmenter is not None)
        self.settings: TokenizerSettings = (language, normalize, tokenize, case, segment, protect)
        self.case, self.protect = case, protect
        self.blank = "" if scripts.is_spaceless(language) else " "  # around protected text
        self.rules = moses if segmenter is None else SpacelessTokenizer(language, segmenter, moses)
        self.truecaser: Truecaser | None = None

    def words(self, line: str) -> list[str]:
        """'C'est "ça".' -> ["c'", 'est', '"', 'ça', '"', '.'] (French, lower-cased)"""
        return self.apply_case(self.split(line))

    def split(self, line: str) -> list[str]:
        """Split a line into words, before truecasing."""
        return self.lower(self.split_cased(line))

    def split_cased(self, line: str) -> list[str]:
        """Split a line into words that keep their case."""
        return protected_words(line, self.rules.words, self.blank) if self.protect else self.rules.words(line)

    def lower(self, words: list[str]) -> list[str]:
        """Lower-case words if the settings ask for it."""
        return self.change(words, lowered) if self.case == "lower" else words

    def change(self, words: list[str], change: Callable[[list[str]], list[str]]) -> list[str]:
        """Change words by a function; not those that are protected."""
        return change_unprotected(words, change) if self.protect else change(words)

    def apply_case(self, words: list[str]) -> list[str]:
        """Truecase the words of `split` if the settings ask for it. ConfigError as from
        `require_truecaser`."""
        return self.change(words, self.require_truecaser().apply) if self.case == "truecase" else words

    def text(self, words: list[str], exact: Mapping[Span, str] | None = None) -> str:
        """Detokenize words; if they are truecased, sentences get a capital at their start. `exact`, where
        text is protected: span -> raw text that replaces its words verbatim; spans must not overlap.
        ConfigError as from `require_truecaser`, ValueError for an empty span."""
        undo = self.require_truecaser().undo if self.case == "truecase" else list[str]
        if not self.protect:
            return self.rules.text(undo(words))
        shown, placeholders = hide_copied(words, exact or {})
        tags = [bool(is_tag(placeholders.original(word))) for word in shown]
        cased = iter(undo([word for word, tag in zip(shown, tags, strict=True) if not tag]))
        return restore_text(
            self.rules.text([word if tag else next(cased) for word, tag in zip(shown, tags, strict=True)]),
            placeholders,
        )

    def require_truecaser(self) -> Truecaser:
        """Return the truecase model. ConfigError if none was learned or loaded."""
        if self.truecaser is None:
            raise ConfigError(
                "case: truecase needs a truecase model; train it with nmt-truecase or nmt-train"
            )
        return self.truecaser


# ---- escapes -----------------------------------------------------------------------------------------------
# Moses' escapes: its tokenizer writes `&#124;` for a vertical bar, `&apos;` for an apostrophe ...

# The order matters: `&amp;` is undone last.
ESCAPES = [
    ("&#124;", "|"),
    ("&#91;", "["),
    ("&#93;", "]"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&apos;", "'"),
    ("&quot;", '"'),
    ("&amp;", "&"),
]


def unescape(word: str) -> str:
    """Undo Moses' escapes in a word."""
    if "&" not in word:
        return word
    for escaped, plain in ESCAPES:
        word = word.replace(escaped, plain)
    return word


def escape(word: str) -> str:
    """Escape a word as Moses' tokenizer does; an escaped word stays as it is."""
    return word if word.isalnum() or unescape(word) != word else escape_raw(word)


def escape_raw(word: str) -> str:
    """Escape every special character of a word of raw text, so that `unescape` restores it even if it looks
    like an escape itself: `&amp;` -> `&amp;amp;`."""
    for escaped, plain in reversed(ESCAPES):
        word = word.replace(plain, escaped)
    return word
