"""The text pipeline of one language: raw text -> words -> subword units, and back. It is stored in a run
directory."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from nmt import files
from nmt.settings import choice, number, setting
from nmt.text import languages, subword, truecase
from nmt.text.escapes import escape, unescape
from nmt.text.subword import Subwords, load_codes
from nmt.text.tokenize import Tokenizer

BLANK = "_"  # between words whose units are characters


@dataclass
class SideConfig:
    """How the text of one language is read, and its vocabulary."""

    language: str = setting(
        "", help="language code of the text rules; empty: as the name of the training file ends, train.de"
    )
    normalize: bool = setting(True, help="normalize punctuation as Moses' normalize-punctuation does")
    tokenize: bool = setting(True, help="tokenize as Moses does; false: blanks separate words")
    escaped: bool = setting(
        False,
        help="the text has Moses' escapes (&apos; ...), as Moses' own tokenizer writes them: they are "
        "undone, and put back in translations",
    )
    case: str = choice(
        "keep",
        "truecase",
        "lower",
        help="case of words; truecase, which gives the first word of a sentence the case it has elsewhere, "
        "helps small corpora; lower cannot be undone",
    )
    characters: bool = setting(False, help="language models: the units are characters, with _ between words")
    vocabulary: int = number(
        30000, least=1, help="most frequent words kept, all others are UNK; the papers use 15000 and 30000"
    )
    min_count: int = number(1, least=0, help="words rarer than this are UNK, too")
    vocab_file: str = setting("", help="a file of nmt-vocab to use instead of counting the training text")
    codes: str = setting("", help="file of BPE codes (nmt-subword); empty: whole words, or data.bpe_merges")


def needs_language(config: SideConfig) -> bool:
    """Are rules of a language used?"""
    return config.normalize or config.tokenize


def check_language(config: SideConfig, key: str = "language") -> None:
    """ConfigError for an unknown language, where its rules are used. `key`: what the message calls it."""
    if needs_language(config):
        languages.check(config.language, key)


class TextPipeline:
    """`units(line)` for a model to read, `text(units)` for people to read.

    `tokenized` text skips every step but the subword units.
    """

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
        """A pipeline for new text. ConfigError for an unknown language, which only runs of version 0.5 may
        have."""
        check_language(config)
        return TextPipeline.with_codes(config, load_codes(config.codes) if config.codes else None)

    @staticmethod
    def with_codes(config: SideConfig, codes: Subwords | None) -> "TextPipeline":
        """A pipeline with given codes; None for whole words."""
        tokenizer = Tokenizer(
            language=config.language,
            normalize=config.normalize,
            tokenize=config.tokenize,
            case=config.case,
        )
        return TextPipeline(tokenizer, codes, escaped=config.escaped, characters=config.characters)

    def words(self, line: str, tokenized: bool = False) -> list[str]:
        """The words of a line: normalized, tokenized, cased, without escapes."""
        words = files.split_words(line) if tokenized else self.tokenizer.words(line)
        return [unescape(word) for word in words] if self.escaped else words

    def units(self, line: str, tokenized: bool = False) -> list[str]:
        """What a model reads of a line: words, subword units or characters."""
        return self.cut(self.words(line, tokenized))

    def cut(self, words: list[str]) -> list[str]:
        """Words -> subword units or characters."""
        if self.characters:
            return list(BLANK.join(words))
        return self.subwords.apply(words) if self.subwords else words

    def unit_counts(self, words: Counter[str]) -> Counter[str]:
        """Counts of words -> counts of units. A word is always cut in the same way."""
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
        """Subword units or characters -> words."""
        if self.characters:
            return [word for word in "".join(units).split(BLANK) if word]
        return subword.undo(units) if self.subwords else units

    def text(self, units: list[str], tokenized: bool = False) -> str:
        """Units as a line of text."""
        return self.line(self.join(units), tokenized)

    def line(self, words: list[str], tokenized: bool = False) -> str:
        """Words as a line of text, detokenized unless `tokenized`."""
        if self.escaped:
            words = [escape(word) for word in words]
        return " ".join(words) if tokenized else self.tokenizer.text(words)

    def save(self, directory: Path, side: str) -> None:
        """Write `<side>.codes` and `<side>.truecase`; the settings are in the run's config.yaml."""
        if self.subwords:
            files.write_text(directory / f"{side}.codes", self.subwords.lines)
        if self.tokenizer.truecaser is not None:
            truecase.save(self.tokenizer.truecaser, directory / f"{side}.truecase")

    @staticmethod
    def load(directory: Path, side: str, config: SideConfig) -> "TextPipeline":
        """The pipeline that `save` wrote, with the settings it had."""
        codes = directory / f"{side}.codes"
        pipeline = TextPipeline.with_codes(config, load_codes(codes) if codes.exists() else None)
        if config.case == "truecase":
            pipeline.tokenizer.truecaser = truecase.load(directory / f"{side}.truecase")
        return pipeline
