"""The whole way of a line of one language: raw text -> words -> subword units, and back. A run directory
stores it."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from nmt import files
from nmt.data import languages, subword
from nmt.data.subword import Subwords
from nmt.data.tokenize import Tokenizer, load_truecase, save_truecase
from nmt.phrase_table import escape, unescape
from nmt.settings import choice, number

BLANK = "_"  # between words of which the characters are read


@dataclass
class SideConfig:
    language: str = "en"  # language code of the Moses rules
    normalize: bool = True  # punctuation as Moses' normalize-punctuation does
    tokenize: bool = True  # false: words are what stands between blanks
    # the text has Moses' escapes (&apos; ...), as Moses' own tokenizer leaves them: they are undone, and put
    # back in translations
    escaped: bool = False
    case: str = choice(
        "lower", "keep", "truecase"
    )  # the papers lower-case nothing, small corpora gain from it
    characters: bool = False  # language models: the units are characters, with _ between words
    vocabulary: int = number(
        30000, least=1
    )  # most frequent words kept, all others are UNK; chapter 4 uses 15000, chapter 6 30000
    min_count: int = number(1, least=0)  # words rarer than this are UNK too
    vocab_file: str = ""  # a file of nmt-vocab to use instead of counting the training text
    codes: str = ""  # file of BPE codes (nmt-subword); empty: whole words, or data.bpe_merges


def check_language(config: SideConfig) -> None:
    if config.normalize or config.tokenize:
        languages.check(config.language)


class TextPipeline:
    """`units(line)` for a model to read, `text(units)` for a person. `tokenized` text skips all but the
    subword units."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        subwords: Subwords | None = None,
        escaped: bool = False,
        characters: bool = False,
    ) -> None:
        self.tokenizer, self.characters = tokenizer, characters
        self.subwords = subwords
        self.escaped = escaped

    @staticmethod
    def of(config: SideConfig) -> "TextPipeline":
        """A pipeline for new text. ConfigError for an unknown language, which runs of version 0.5 may
        have."""
        check_language(config)
        tokenizer = Tokenizer(config.language, config.normalize, config.tokenize, config.case)
        return TextPipeline(
            tokenizer, subword.load(config.codes) if config.codes else None, config.escaped, config.characters
        )

    def words(self, line: str, tokenized: bool = False) -> list[str]:
        words = files.split_words(line) if tokenized else self.tokenizer.words(line)
        return [unescape(word) for word in words] if self.escaped else words

    def units(self, line: str, tokenized: bool = False) -> list[str]:
        return self.cut(self.words(line, tokenized))

    def cut(self, words: list[str]) -> list[str]:
        """Words to subword units, or to characters."""
        if self.characters:
            return list(BLANK.join(words))
        return self.subwords.apply(words) if self.subwords else words

    def unit_counts(self, words: Counter[str]) -> Counter[str]:
        """Counts of words -> counts of units: a word is always cut in the same way."""
        if not self.subwords and not self.characters:
            return words
        units: Counter[str] = Counter()
        if self.characters:
            units[BLANK] = sum(words.values())
        for word, count in words.items():
            for unit in self.cut([word]):
                units[unit] += count
        return units

    def join(self, units: list[str]) -> list[str]:
        """Subword units or characters back to words."""
        if self.characters:
            return [word for word in "".join(units).split(BLANK) if word]
        return subword.undo(units) if self.subwords else units

    def text(self, units: list[str], tokenized: bool = False) -> str:
        return self.line(self.join(units), tokenized)

    def line(self, words: list[str], tokenized: bool = False) -> str:
        """Words as a line of text"""
        if self.escaped:
            words = [escape(word) for word in words]
        return " ".join(words) if tokenized else self.tokenizer.text(words)

    def save(self, directory: Path, side: str) -> None:
        """Write `<side>.codes` and `<side>.truecase`; the options themselves stand in the run's
        config.yaml."""
        if self.subwords:
            files.write_text(directory / f"{side}.codes", self.subwords.lines)
        if self.tokenizer.truecaser is not None:
            save_truecase(self.tokenizer.truecaser, directory / f"{side}.truecase")

    @staticmethod
    def load(directory: Path, side: str, config: SideConfig) -> "TextPipeline":
        tokenizer = Tokenizer(config.language, config.normalize, config.tokenize, config.case)
        codes = directory / f"{side}.codes"
        if config.case == "truecase":
            tokenizer.truecaser = load_truecase(directory / f"{side}.truecase")
        return TextPipeline(
            tokenizer, subword.load(codes) if codes.exists() else None, config.escaped, config.characters
        )
