"""Moses' normalization, tokenization and casing, and the way back (sacremoses): str -> words -> str.

No escapes are written: a model reads `'`, not `&apos;`. Words never contain a space, a tab or a line end.
"""

from nmt import files
from nmt.errors import ConfigError
from nmt.text.truecase import Truecaser

CASES = ("keep", "truecase", "lower")


class Tokenizer:
    """The text rules of one language; nmt.text.pipeline.SideConfig says what the arguments mean."""

    def __init__(
        self, language: str, normalize: bool = True, tokenize: bool = True, case: str = "keep"
    ) -> None:
        if case not in CASES:
            raise ConfigError(f"case: {case!r} is unknown, expected one of {', '.join(CASES)}")
        from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

        self.case = case
        self.normalizer = MosesPunctNormalizer(language) if normalize else None
        self.tokenizer = MosesTokenizer(language) if tokenize else None
        self.detokenizer = MosesDetokenizer(language) if tokenize else None
        self.truecaser: Truecaser | None = None

    def words(self, line: str) -> list[str]:
        """'C'est "ça".' -> ["c'", 'est', '"', 'ça', '"', '.'] (French, lower-cased)"""
        if self.normalizer:
            line = self.normalizer.normalize(line)
        words = files.split_words(line)
        if self.tokenizer and words:
            words = self.tokenizer.tokenize(" ".join(words), return_str=False, escape=False)
            # The tokenizer may leave exotic white space inside or around a word; a word with a blank inside
            # would be two words in a file.
            words = [part for word in words for part in files.split_words(word.replace("\n", " "))]
        if self.case == "lower":
            words = [part for word in words for part in files.split_words(word.lower())]
        elif self.case == "truecase":
            words = self.learned().apply(words)
        return words

    def text(self, words: list[str]) -> str:
        """The words as people read them: detokenized, truecased sentences with a capital at their start."""
        if self.case == "truecase":
            words = self.learned().undo(words)
        if self.detokenizer:
            return str(self.detokenizer.detokenize(words, unescape=False)).replace("\n", " ") if words else ""
        return " ".join(words)

    def learned(self) -> Truecaser:
        """The truecase model. ConfigError where none was learned or loaded."""
        if self.truecaser is None:
            raise ConfigError(
                "case: truecase needs a truecase model; train it with nmt-truecase or nmt-train"
            )
        return self.truecaser
