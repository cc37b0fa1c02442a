"""Tokenizers of all scripts, with casing, and Moses' escapes; and their inverses."""

from collections.abc import Iterator
from functools import cached_property
from itertools import groupby

import regex

from nmt.errors import ConfigError
from nmt.io import files
from nmt.text import scripts
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


# ---- tokenizers of all scripts -----------------------------------------------------------------------------

TokenizerSettings = tuple[str, bool, bool, str, str]  # the arguments of Tokenizer


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
    ) -> None:
        if case not in CASES:
            raise ConfigError(f"case: {case!r} is unknown, expected one of {', '.join(CASES)}")
        segmenter = scripts.make_segmenter(segment, language, tokenize)
        moses = MosesRules(language, normalize, tokenize, latin=segmenter is not None)
        self.settings: TokenizerSettings = (language, normalize, tokenize, case, segment)
        self.case = case
        self.rules = moses if segmenter is None else SpacelessTokenizer(language, segmenter, moses)
        self.truecaser: Truecaser | None = None

    def words(self, line: str) -> list[str]:
        """'C'est "ça".' -> ["c'", 'est', '"', 'ça', '"', '.'] (French, lower-cased)"""
        return self.apply_case(self.split(line))

    def split(self, line: str) -> list[str]:
        """Split a line into words, before truecasing."""
        words = self.rules.words(line)
        if self.case == "lower":
            words = [word.lower() for word in words]
        return words

    def apply_case(self, words: list[str]) -> list[str]:
        """Truecase the words of `split` if the settings ask for it. ConfigError as from
        `require_truecaser`."""
        return self.require_truecaser().apply(words) if self.case == "truecase" else words

    def text(self, words: list[str]) -> str:
        """Detokenize words; if they are truecased, sentences get a capital at their start. ConfigError as
        from `require_truecaser`."""
        return self.rules.text(self.require_truecaser().undo(words) if self.case == "truecase" else words)

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
