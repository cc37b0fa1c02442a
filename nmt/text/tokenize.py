"""Moses' normalization, tokenization and casing, and the way back (sacremoses): str -> words -> str.

No escapes are written: a model reads `'`, not `&apos;`. Words never contain a space, a tab or a line end.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from nmt import files
from nmt.errors import ConfigError, DataError
from nmt.numbers import shown

CASES = ("keep", "lower", "truecase")


class Tokenizer:
    """The text rules of one language; nmt.text.pipeline.SideConfig says what the arguments mean."""

    def __init__(
        self, language: str = "en", normalize: bool = True, tokenize: bool = True, case: str = "lower"
    ) -> None:
        if case not in CASES:
            raise ConfigError(f"case: {case!r} is unknown, expected one of {', '.join(CASES)}")
        from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

        self.case = case
        self.normalizer = MosesPunctNormalizer(language) if normalize else None
        self.tokenizer = MosesTokenizer(language) if tokenize else None
        self.detokenizer = MosesDetokenizer(language) if tokenize else None
        self.truecaser: dict[str, str] | None = None

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
            words = self.truecase(words)
        return words

    def text(self, words: list[str]) -> str:
        """The words as people read them: detokenized, a truecased sentence with a capital at its start."""
        if self.case == "truecase" and words:
            words = [words[0][:1].upper() + words[0][1:], *words[1:]]
        if self.detokenizer:
            return str(self.detokenizer.detokenize(words, unescape=False)).replace("\n", " ") if words else ""
        return " ".join(words)

    def truecase(self, words: list[str]) -> list[str]:
        """The words, the first one in its most frequent form elsewhere (Moses' truecase.perl)."""
        if self.truecaser is None:
            raise ConfigError("case: truecase needs a truecase model; train it with learn_truecase first")
        if not words:
            return words
        return [self.truecaser.get(words[0].lower(), words[0]), *words[1:]]


def learn_truecase(sentences: Iterable[list[str]]) -> dict[str, str]:
    """Lower-cased word -> its most frequent form, counted except at the start of sentences; of equally
    frequent forms the smaller string."""
    from sacremoses import MosesTruecaser

    weigh = MosesTruecaser().learn_truecase_weights
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for words in sentences:
        for lower, form, weight in weigh(words, possibly_use_first_token=False):
            counts[lower][form] += weight
    model = {lower: min(forms, key=lambda form: (-forms[form], form)) for lower, forms in counts.items()}
    # No line of a file can end with a carriage return.
    return {lower: form for lower, form in model.items() if not form.endswith("\r")}


TRUECASE_HEADER = "#version: 1 truecase"


def save_truecase(model: dict[str, str], path: str | Path) -> None:
    """Write a truecase model, one word a line."""
    files.write_text(path, [TRUECASE_HEADER, *(f"{lower}\t{form}" for lower, form in sorted(model.items()))])


def load_truecase(path: str | Path) -> dict[str, str]:
    """The truecase model that `save_truecase` wrote. DataError for another file."""
    lines = files.read_lines(path)
    if next(lines, "") != TRUECASE_HEADER:
        raise DataError(f"{path}:1: expected '{TRUECASE_HEADER}'; is this a truecase model?")
    model = {}
    for number, line in enumerate(lines, 2):
        lower, tab, form = line.partition("\t")
        if not tab or "\t" in form:
            raise DataError(
                f"{path}:{number}: expected a lower-cased word, a tab and its form, found {shown(line)}; was "
                "it copied whole?"
            )
        model[lower] = form
    return model
