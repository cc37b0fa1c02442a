"""The text pipeline of one language: raw text -> words -> subword units, and back. It is stored in a run
directory."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path

from nmt.config.settings import choice, name_in, number, setting
from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.text import scripts, subwords, truecase
from nmt.text.scripts import SEGMENTERS
from nmt.text.subwords import AUTO, NONE, Subwords
from nmt.text.subwords.bpe import BPE
from nmt.text.subwords.sentencepiece import Unigram
from nmt.text.tokenize import Tokenizer, escape, unescape

CHARACTER_BLANK = "_"  # between words whose units are characters


@dataclass
class SideConfig:
    """Settings of the text processing and the vocabulary of one language."""

    language: str = setting(
        "",
        help="language code; empty: the ending of the training file's name, as in train.de",
    )
    normalize: bool = setting(True, help="normalize punctuation as Moses' normalize-punctuation does")
    tokenize: bool = setting(True, help="tokenize as Moses does; false: blanks separate words")
    segment: str = name_in(
        SEGMENTERS,
        help="what a word is in scripts without spaces, where it is tokenized: a character, or a word of a "
        "dictionary (ja, th, zh; needs the extra of that name); auto: character for languages written so, "
        "none for others",
    )
    protect: bool = setting(
        False,
        help="keep tags, URLs, e-mail addresses, entities, times and dates as single words of unchanged case",
    )
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
        30000,
        least=1,
        help="most frequent words kept, all others are UNK; Cho et al. 2014a have 15000, Cho et al. 2014b "
        "30000",
    )
    min_count: int = number(1, least=0, help="rarer words also become UNK")
    vocab_file: str = setting("", help="a file of nmt-vocab to use instead of counting the training text")
    codes: str = setting(
        "",
        help="file of BPE codes or SentencePiece model (nmt-subword); empty: learned from the training text",
    )
    subword: str = name_in(
        subwords.CHOICES,
        help="units that words are cut into. SentencePiece (unigram, sentencepiece-bpe) reads raw text: "
        "there is no tokenization. auto: the kind of `codes`, unigram for languages written without blanks, "
        "unless `segment` is given, bpe with data.bpe_merges, else whole words",
    )
    unicode: str = choice(
        "identity",
        "nfkc",
        "nmt_nfkc",
        "nfkc_cf",
        "nmt_nfkc_cf",
        help="SentencePiece learned here: Unicode normalization of the text; identity keeps full-width "
        "characters, the others would lose them",
    )


def needs_language(config: SideConfig) -> bool:
    """Whether the rules of a language apply; not for SentencePiece. Errors as from `subword_kind`."""
    return (config.normalize or config.tokenize) and not is_raw(config)


def is_raw(config: SideConfig) -> bool:
    """Whether the subword model reads raw text. With subword: auto, errors as from `subword_kind`."""
    return reads_raw(subword_kind(config) if config.subword == AUTO else config.subword)


def check_segment(config: SideConfig) -> None:
    """ConfigError for a segmentation that this side does not support; the message begins with the key. Also
    errors as from `subword_kind`."""
    scripts.make_segmenter(config.segment, config.language, config.tokenize and not is_raw(config))


def check_language(config: SideConfig, key: str = "language") -> None:
    """ConfigError for an unknown language if its rules are needed; warns if Moses has none. `key`: what the
    message calls the setting. Also errors as from `subword_kind`."""
    if needs_language(config):
        scripts.check_language_code(config.language, key)


def subword_kind(config: SideConfig, merges: int = 0) -> str:
    """The kind of subwords of a side: a name in SUBWORDS, or `none`. `merges`: number of BPE merges to learn
    here. DataError for a file of codes that cannot be read; ConfigError for settings that contradict each
    other or the file, and for bpe with neither merges nor codes."""
    stored = subwords.file_kind(config.codes) if config.codes else ""
    if config.subword == AUTO:
        if stored or config.characters:
            return stored or NONE
        spaceless = config.segment in scripts.WITHOUT_SEGMENTER and scripts.is_spaceless(config.language)
        return Unigram.kind if spaceless else BPE.kind if merges else NONE
    if config.characters and config.subword != NONE:
        raise ConfigError(
            f"characters and subword: {config.subword} exclude each other: leave one of them out"
        )
    if stored and stored != config.subword:
        raise ConfigError(
            f"{config.codes}: holds {stored} units, but subword is {config.subword!r}; set "
            f"subword: {stored}, or leave it out"
        )
    if config.subword == BPE.kind and not merges and not stored:
        raise ConfigError("subword: bpe needs data.bpe_merges, or a file of codes")
    return config.subword


def reads_raw(kind: str) -> bool:
    return kind != NONE and subwords.SUBWORDS[kind].raw


def split_tag(line: str, tags: Iterable[str]) -> tuple[str, str]:
    """The tag from `tags` that a line begins with (empty if none), and the rest of the line."""
    start = line.lstrip(" \t") if tags else ""
    for tag in tags:
        if start.startswith(tag):
            return tag, start[len(tag) :]
    return "", line


class TextPipeline:
    """Converts text for a model and back: `units(line)` returns the units that the model reads, `text(units)`
    the text.

    A pipeline from `for_text(tokenized=True)` skips all steps but the subword units.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        subwords: Subwords | None = None,
        escaped: bool = False,
        characters: bool = False,
        spaceless: bool = False,
    ) -> None:
        """`spaceless`: raw text of a language that is written without blanks."""
        self.tokenizer, self.characters, self.spaceless = tokenizer, characters, spaceless
        self.subwords = subwords
        self.escaped = escaped
        self.tags: tuple[str, ...] = ()  # that a line may begin with
        self.tokenized = False  # words between blanks, in and out

    def for_text(self, tokenized: bool) -> "TextPipeline":
        """This pipeline for raw lines, or for lines that are tokenized like the training text."""
        if tokenized == self.tokenized:
            return self
        view = copy(self)
        view.tokenized = tokenized
        return view

    @staticmethod
    def of(config: SideConfig, merges: int = 0) -> "TextPipeline":
        """Build a pipeline for new text with the subwords of `codes`; without codes they must still be
        learned. `merges`: see `subword_kind`. ConfigError for an unknown language; other errors as from
        `subword_kind`, `nmt.text.subwords.load` and `with_subwords`."""
        kind = subword_kind(config, merges)
        check_language(config)
        units = subwords.load(config.codes) if config.codes else None
        return TextPipeline.with_subwords(config, units, reads_raw(kind))

    @staticmethod
    def with_subwords(config: SideConfig, units: Subwords | None, raw: bool) -> "TextPipeline":
        """Build a pipeline with these subword `units`; None for whole words. `raw`: without tokenization.

        ConfigError for a truecase model of raw text, and for a segmentation that cannot be used.
        """
        if raw and config.case == "truecase":
            raise ConfigError(
                "case: truecase needs words, and SentencePiece reads raw text; use case: keep, or lower"
            )
        tokenizer = Tokenizer(
            language=config.language,
            normalize=config.normalize and not raw,
            tokenize=config.tokenize and not raw,
            case=config.case,
            segment=config.segment,
            protect=config.protect and not raw,
        )
        spaceless = raw and scripts.is_spaceless(config.language)
        return TextPipeline(tokenizer, units, config.escaped, config.characters, spaceless)

    @property
    def raw(self) -> bool:
        """Whether the model reads raw text, where blanks do not separate words."""
        return self.subwords is not None and self.subwords.raw

    def words(self, line: str) -> list[str]:
        """The words of a line: normalized, tokenized, cased and unescaped. A leading tag is kept as one word;
        a line that is only a tag yields no words."""
        tag, text = self.split_tag(line)
        words = self.unescape_words(files.split_words(text) if self.tokenized else self.tokenizer.words(text))
        return [tag, *words] if tag and words else words

    def split_tag(self, line: str) -> tuple[str, str]:
        """The tag that a line begins with (empty if none), and the rest of the line."""
        return split_tag(line, self.tags)

    def finish_words(self, words: list[str]) -> list[str]:
        """Apply case and unescaping to the tokens of `tokenizer.split`."""
        return self.unescape_words(self.tokenizer.apply_case(words))

    def unescape_words(self, words: list[str]) -> list[str]:
        return [unescape(word) for word in words] if self.escaped else words

    def units(self, line: str) -> list[str]:
        """Split a line into the units that a model reads: words, subword units or characters."""
        return self.cut(self.words(line))

    def cut(self, words: list[str]) -> list[str]:
        """Split words into subword units or characters. A leading tag stays whole."""
        if self.tags and words and words[0] in self.tags:
            return [words[0], *self.cut(words[1:])]
        if self.characters:
            return list(CHARACTER_BLANK.join(words))
        return self.subwords.apply(words) if self.subwords else words

    def cut_phrase(self, words: list[str], inventory: Container[str]) -> list[str]:
        """Split words into their units inside a sentence, not at its start. `inventory`: known units."""
        units = self.cut(words)
        if not (self.spaceless and units and self.spell(units[0]).startswith(" ")):
            return units
        first = units[0][1:]  # a blank is only at the start of a sentence
        return [*([first] if first in inventory else first), *units[1:]]

    def unit_counts(self, words: Counter[str]) -> Counter[str]:
        """Convert counts of words to counts of units; a word is always split in the same way."""
        if not self.subwords and not self.characters:
            return words
        units: Counter[str] = Counter()
        if self.characters:
            units[CHARACTER_BLANK] = sum(words.values())
        for word, count in words.items():
            for unit in self.cut([word]):
                units[unit] += count
        return units

    def phrase(self, text: str) -> list[str]:
        """The words of part of a sentence; with truecasing the first word keeps its case."""
        return self.unescape_words(files.split_words(text) if self.tokenized else self.tokenizer.split(text))

    def spell(self, unit: str) -> str:
        """The text of a unit, with a blank wherever a word is known to begin or end; without subwords the
        unit is a word."""
        return self.subwords.spell(unit) if self.subwords else f"{unit} "

    def join(self, units: list[str]) -> list[str]:
        """Join subword units or characters into words."""
        if self.characters:
            return [word for word in "".join(units).split(CHARACTER_BLANK) if word]
        return self.subwords.undo(units) if self.subwords else units

    def word_numbers(self, units: list[str]) -> list[int]:
        """The index of the word that each unit belongs to: `lo@@ wer case` -> 0 0 1"""
        return self.subwords.word_numbers(units) if self.subwords else list(range(len(units)))

    def concatenate(self, parts: Iterable[list[str]]) -> list[str]:
        """Concatenate the words of the parts of a line. In raw text of languages written without blanks, the
        last word of a part is joined to the first of the next, so that no blank gets between them."""
        words: list[str] = []
        for part in parts:
            if self.spaceless and words and part:
                words[-1] += part[0]
                part = part[1:]
            words += part
        return words

    def text(self, units: list[str]) -> str:
        """Join units into a line of text."""
        return self.line(self.join(units))

    def line(self, words: list[str]) -> str:
        """Join words into a line of text, detokenized if the pipeline is for raw text."""
        if self.escaped:
            words = [escape(word) for word in words]
        return " ".join(words) if self.tokenized else self.tokenizer.text(words)

    def save(self, directory: Path, side: str) -> None:
        """Write `<side>.codes` or `<side>.spm`, and `<side>.truecase`, as far as the pipeline has them; the
        settings are in the run's config.yaml. UserError if that fails."""
        if self.subwords:
            self.subwords.save(directory / f"{side}.{self.subwords.suffix}")
        if self.tokenizer.truecaser is not None:
            truecase.save(self.tokenizer.truecaser, directory / f"{side}.truecase")

    @staticmethod
    def load(directory: Path, side: str, config: SideConfig) -> "TextPipeline":
        """Load the pipeline of a side (source or target) that `save` wrote; `config` has its settings.
        DataError for damaged files."""
        path = subwords.side_file(directory, side)
        units = subwords.load(path) if path else None
        pipeline = TextPipeline.with_subwords(config, units, units is not None and units.raw)
        if pipeline.tokenizer.case == "truecase":
            pipeline.tokenizer.truecaser = truecase.load(directory / f"{side}.truecase", may_be_empty=True)
        return pipeline


# ---- tags --------------------------------------------------------------------------------------------------


def check_tag(tag: str, runs: Iterable[tuple[str, TextPipeline]], path: str) -> None:
    """ConfigError for a tag that one of the runs (name, source side) does not know, DataError for a line of
    the text `path` that already begins with a tag or is not text. Lines of a stream are not checked."""
    for name, source in runs:
        if tag not in source.tags:
            tags = ", ".join(source.tags) or "none"
            raise ConfigError(f"--tag {tag}: {name} was not trained with it; its tags: {tags}")
        for row, line in enumerate(files.preview(path), 1):
            if line_tag := source.split_tag(line)[0]:
                raise DataError(
                    f"{path}:{row}: begins with {line_tag}; take the tags away, or leave --tag out"
                )


def without_tag(alignment: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Shift an alignment of a tagged line to positions without the tag; links of the tag are dropped."""
    return ((source - 1, target) for source, target in alignment if source)
