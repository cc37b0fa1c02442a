"""Read, measure and tokenize the texts of a build.

corpus/train.source train.target dev.source dev.target    tokenized, cased, escaped, line by line
corpus/lm.target                                          with --monolingual: both texts of the target side
corpus/raw.source raw.target                              the development set before tokenization
corpus/truecase.source truecase.target                    for languages with blanks between words
corpus/corpus.json                                        numbers of lines; written last
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.text import scripts, truecase
from nmt.text.clean import LENGTHS, CleanConfig, CleanReport, clean
from nmt.text.pipeline import SideConfig
from nmt.text.scripts import is_spaceless
from nmt.work.executors import convert_lines
from smt_bridge.build.config import Build, BuildConfig
from smt_bridge.build.plan import CorpusSizes
from smt_bridge.hybrid.decoder import read_glossary
from smt_bridge.hybrid.folder import SIDES, truecase_file
from smt_bridge.hybrid.side import TextSide, escape_words
from smt_bridge.hybrid.side import load as load_side

FOLDER, COUNTS = "corpus", "corpus.json"
LONGEST = 100  # maximum words of a side after tokenization; the decoder makes n-best lists for up to 250
RAW_LIMITS = CleanConfig()  # for raw training text
TOKENIZED_LIMITS = CleanConfig(max_length=LONGEST, unit="word", keep_duplicates=True)  # for tokenized one
DEV_LIMITS = CleanConfig(keep_duplicates=True)  # for the raw development set
WORD_RATIO = 1.15  # words after tokenization per word between blanks, on average
PARALLEL_PAIRS = 20_000  # with this many pairs or more, several processes tokenize faster than one

Pairs = list[tuple[str, ...]]  # lines of source and target text


# ---- raw texts ---------------------------------------------------------------------------------------------


def sides(config: BuildConfig) -> tuple[SideConfig, SideConfig]:
    """Text settings of both languages. ConfigError for a language that is unknown or missing."""
    return side(config, "source"), side(config, "target")


def side(config: BuildConfig, name: str) -> SideConfig:
    """Text settings of side `name`, source or target. Only languages with blanks between words are truecased.
    ConfigError for a language that is unknown or missing."""
    code, paths = getattr(config, f"{name}_language"), [getattr(config, name), getattr(config, f"dev_{name}")]
    language = code or next(filter(None, map(scripts.language_of_file, paths)), "")
    if not language:
        raise ConfigError(
            f"--{name}-language: missing, and {Path(paths[0]).name} does not end in the code of a language, "
            f"as train.en does; give it, e.g. --{name}-language de"
        )
    scripts.check_language_code(language, f"--{name}-language")
    return SideConfig(language=language, case="keep" if is_spaceless(language) else "truecase")


def check_glossary(config: BuildConfig) -> None:
    """Check the glossary as decoding would. DataError, with the line; ConfigError as from `sides`."""
    if config.glossary:
        read_glossary(config.glossary, *map(TextSide, sides(config)))


def survey(config: BuildConfig) -> CorpusSizes:
    """Measure the sizes of the texts after cleaning. ConfigError as from `sides`; DataError for texts of
    unequal length, bad bytes, or if no pair is left."""
    source, target = sides(config)
    dev = clean_pairs(config.dev_source, config.dev_target, DEV_LIMITS)
    pairs = clean_pairs(config.source, config.target, RAW_LIMITS)
    monolingual = [estimate_words(line, target) for line in monolingual_lines(config)]
    return CorpusSizes(
        pairs=len(pairs),
        source_words=sum(estimate_words(line, source) for line, _ in pairs),
        target_words=sum(estimate_words(line, target) for _, line in pairs),
        dev_pairs=len(dev),
        dev_words=sum(estimate_words(line, source) for line, _ in dev),
        monolingual_lines=len(monolingual),
        monolingual_words=sum(monolingual),
    )


def clean_pairs(source: str, target: str, config: CleanConfig, report: CleanReport | None = None) -> Pairs:
    """Read two parallel files and return the pairs (source, target) that pass cleaning. `report`: counts what
    is dropped. DataError if no pair is left, or if the files differ in length."""
    pairs = list(clean(files.parallel(source, target), config, report or CleanReport()))
    if not pairs:
        raise DataError(
            f"{source}: no pair is left after cleaning (see nmt-clean); expected lines with words, at most "
            f"{config.max_length} of them"
        )
    return pairs


def monolingual_lines(config: BuildConfig) -> Iterator[str]:
    """Lines of the monolingual text that are neither too short nor too long for training; none without such a
    text. DataError for bad bytes."""
    if config.monolingual:
        length, limits = LENGTHS[RAW_LIMITS.unit], RAW_LIMITS
        lines = files.read_lines(config.monolingual)
        yield from (line for line in lines if limits.min_length <= length(line) <= limits.max_length)


def estimate_words(line: str, config: SideConfig) -> int:
    """Estimate the number of words of a raw line after tokenization."""
    if is_spaceless(config.language):
        return LENGTHS["character"](line)
    return round(WORD_RATIO * LENGTHS["word"](line))


# ---- tokenized texts ---------------------------------------------------------------------------------------


@dataclass
class BuildTexts:
    """Paths of the texts, below the folder of the build."""

    folder: Path

    def path(self, name: str) -> Path:
        """Path of a file listed at the top of this module."""
        return self.folder / FOLDER / name

    def lm(self) -> str:
        """Path of the text that the count model learns, relative to the folder of the build."""
        combined = f"{FOLDER}/lm.target"
        return combined if (self.folder / combined).exists() else f"{FOLDER}/train.target"

    def monolingual(self) -> Iterator[str]:
        """The lines that the count model learns besides the training text."""
        pairs = files.count_lines(self.path("train.target"))
        return islice(files.read_lines(self.folder / self.lm()), pairs, None)

    def lines(self, name: str) -> list[str]:
        """Lines of a file listed at the top of this module."""
        return list(files.read_lines(self.path(name)))

    def sides(self, config: BuildConfig) -> tuple[TextSide, TextSide]:
        """The text processing of both sides, with the truecase models of the build, which must exist."""
        source, target = (
            load_side(side_config, self.path(truecase_file(name)))
            for name, side_config in zip(SIDES, sides(config), strict=True)
        )
        return source, target


def prepare(build: Build) -> None:
    """Clean, tokenize, truecase and escape all texts, and write the files listed at the top of this module.
    DataError as from `survey`, or if no pair is left after tokenization."""
    config, texts, raw, split_report = build.config, BuildTexts(build.work), CleanReport(), CleanReport()
    workers = config.workers if build.plan.sizes.pairs >= PARALLEL_PAIRS else 1
    settings = sides(config)
    train = clean_pairs(config.source, config.target, RAW_LIMITS, raw)
    split = [
        list(tokenize_lines(side_config, [pair[number] for pair in train], workers))
        for number, side_config in enumerate(settings)
    ]
    pairs = list(clean(zip(*split, strict=True), TOKENIZED_LIMITS, split_report))
    if not pairs:
        raise DataError(f"{config.source}: no pair is left after tokenization and cleaning")
    dev = development_set(config, settings)
    for number, (name, side_config) in enumerate(zip(SIDES, settings, strict=True)):
        converter = learn_side(side_config, [pair[number] for pair in pairs])
        if converter.truecaser:
            truecase.save(converter.truecaser, texts.path(truecase_file(name)))
        files.write_text(
            texts.path(f"train.{name}"), (table_words(converter, pair[number]) for pair in pairs)
        )
        files.write_text(texts.path(f"dev.{name}"), (" ".join(converter.words(pair[number])) for pair in dev))
        files.write_text(texts.path(f"raw.{name}"), (pair[number] for pair in dev))
        if name == "target" and config.monolingual:
            add_monolingual(config, texts, converter, workers)
    dropped = raw.dropped + split_report.dropped
    counts = {"pairs read": raw.pairs, "pairs kept": len(pairs)} | {
        f"pairs dropped: {reason}": count for reason, count in sorted(dropped.items())
    }
    counts |= {"pairs of the development set": len(dev)}
    files.write_text(texts.path(COUNTS), [json.dumps(counts)])


def development_set(config: BuildConfig, settings: tuple[SideConfig, SideConfig]) -> Pairs:
    """Raw pairs of the development set, without those that are empty or too long for an n-best list.
    `settings`: of the source and the target side. DataError as from `clean_pairs`, or if none is left."""
    converters = list(map(TextSide, settings))
    pairs = [
        pair
        for pair in clean_pairs(config.dev_source, config.dev_target, DEV_LIMITS)
        if all(
            0 < len(converter.split(line)) <= LONGEST
            for converter, line in zip(converters, pair, strict=True)
        )
    ]
    if not pairs:
        raise DataError(f"{config.dev_source}: no pair is left after tokenization and cleaning")
    return pairs


def tokenize_lines(config: SideConfig, lines: Iterable[str], workers: int) -> Iterator[str]:
    """Tokenize raw lines with `workers` processes; words are joined by blanks and keep their case."""
    return convert_lines(partial(make_splitter, config), lines, workers)


def make_splitter(config: SideConfig) -> Callable[[Sequence[str]], list[str]]:
    """Create the tokenizing function of a worker process."""
    converter = TextSide(config)
    return lambda lines: [" ".join(converter.split(line)) for line in lines]


def learn_side(config: SideConfig, lines: Iterable[str]) -> TextSide:
    """Create the text processing of a side; a truecase model is learned from tokenized lines."""
    cased = config.case == "truecase"
    return TextSide(config, truecase.learn(map(files.split_words, lines)) if cased else None)


def table_words(side: TextSide, split: str) -> str:
    """Truecase and escape a tokenized line, as tables and networks read it."""
    return " ".join(escape_words(side.apply_case(files.split_words(split))))


def add_monolingual(config: BuildConfig, texts: BuildTexts, side: TextSide, workers: int) -> None:
    """Write lm.target: the target side of the training text, which must have been written, then the
    monolingual text without lines that have no words or more than LONGEST."""
    tokenized = tokenize_lines(sides(config)[1], monolingual_lines(config), workers)
    more = (table_words(side, line) for line in tokenized)
    with files.Writing(texts.path("lm.target")) as out:
        out.write_lines(files.read_lines(texts.path("train.target")))
        out.write_lines(line for line in more if 0 < len(files.split_words(line)) <= LONGEST)
