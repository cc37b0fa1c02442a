"""Moses' normalization, tokenization and casing, and the way back (sacremoses): str -> words -> str; and
its escapes."""

from functools import partial

from nmt.errors import ConfigError
from nmt.io import files
from nmt.text import scripts
from nmt.text.scripts import SpacelessTokenizer
from nmt.text.truecase import Truecaser

# ---- tokenizers --------------------------------------------------------------------------------------------


CASES = ("keep", "truecase", "lower")


class MosesRules:
    """Normalization and tokenization of one language; without them blanks separate words. `latin`: the words
    are Latin ones in text of another script, and English rules cut them."""

    def __init__(self, language: str, normalize: bool, tokenize: bool, latin: bool = False) -> None:
        from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

        self.normalizer = MosesPunctNormalizer(language) if normalize else None
        of_words = "en" if latin else language
        self.tokenizer = MosesTokenizer(of_words) if tokenize else None
        if self.tokenizer:
            # sacremoses makes sets of all letters of Unicode for each word that ends in a period.
            self.tokenizer.isanyalpha = partial(_has_any, frozenset(MosesTokenizer.IsAlpha))
            self.tokenizer.islower = frozenset(MosesTokenizer.IsLower).issuperset
        self.detokenizer = MosesDetokenizer(of_words) if tokenize else None

    def words(self, text: str) -> list[str]:
        """The words of a text."""
        words = files.split_words(self.normalizer.normalize(text) if self.normalizer else text)
        if self.tokenizer and words:
            words = self.tokenizer.tokenize(" ".join(words), return_str=False, escape=False)
            # The tokenizer may leave exotic white space inside or around a word; a word with a blank inside
            # would be two words in a file.
            words = [part for word in words for part in files.split_words(word.replace("\n", " "))]
        return words

    def text(self, words: list[str]) -> str:
        """The words as people read them."""
        if self.detokenizer:
            return str(self.detokenizer.detokenize(words, unescape=False)).replace("\n", " ") if words else ""
        return " ".join(words)


def _has_any(characters: frozenset[str], text: str) -> bool:
    return not characters.isdisjoint(text)


TokenizerSettings = tuple[str, bool, bool, str, str]  # what a Tokenizer is made with


class Tokenizer:
    """The text rules of one language; nmt.text.pipeline.SideConfig says what the arguments mean."""

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
        return self.cased(self.split(line))

    def split(self, line: str) -> list[str]:
        """The words whose case is not learned yet."""
        words = self.rules.words(line)
        if self.case == "lower":
            words = [part for word in words for part in files.split_words(word.lower())]
        return words

    def cased(self, words: list[str]) -> list[str]:
        """Truecase the tokens of `split` where the settings ask for it."""
        return self.learned().apply(words) if self.case == "truecase" else words

    def text(self, words: list[str]) -> str:
        """The words as people read them: detokenized, truecased sentences with a capital at their start."""
        return self.rules.text(self.learned().undo(words) if self.case == "truecase" else words)

    def learned(self) -> Truecaser:
        """The truecase model. ConfigError where none was learned or loaded."""
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
    """The word without Moses' escapes."""
    if "&" not in word:
        return word
    for escaped, plain in ESCAPES:
        word = word.replace(escaped, plain)
    return word


def escape(word: str) -> str:
    """The word as Moses' tokenizer escapes it; a word that is escaped already stays."""
    if unescape(word) != word:
        return word
    for escaped, plain in reversed(ESCAPES):
        word = word.replace(plain, escaped)
    return word


def escape_raw(word: str) -> str:
    """A word of raw text with every special character escaped: `unescape` always gives it back, also where it
    looks like an escape itself, `&amp;` -> `&amp;amp;`."""
    for escaped, plain in reversed(ESCAPES):
        word = word.replace(plain, escaped)
    return word
