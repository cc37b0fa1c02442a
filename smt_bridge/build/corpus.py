"""The texts of a build: what is read, how large it is, and its words as tables and networks read them.

corpus/train.source train.target dev.source dev.target    tokenized, cased, escaped, line by line
corpus/lm.target                                          with --monolingual: both texts of the target side
corpus/raw.source raw.target                              the development set as it was
corpus/truecase.source truecase.target                    where the script has case
corpus/corpus.json                                        how many lines there are; written last
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.text import scripts, truecase
from nmt.text.clean import LENGTHS, CleanConfig, CleanReport, clean
from nmt.text.pipeline import SideConfig
from nmt.text.scripts import is_spaceless
from nmt.work.executors import convert_lines
from smt_bridge.build.config import Build, BuildConfig
from smt_bridge.build.plan import Sizes
from smt_bridge.hybrid.folder import SIDES, truecase_file
from smt_bridge.hybrid.lines import of_folder
from smt_bridge.hybrid.side import TextSide, escaped

FOLDER, COUNTS = "corpus", "corpus.json"
RAW = CleanConfig()
LONGEST = 100  # words of a side after tokenization; the decoder makes n-best lists of up to 250
WORDS = CleanConfig(max_length=LONGEST, unit="word", keep_duplicates=True)
DEV = CleanConfig(keep_duplicates=True)
TOKENS = 1.15  # words of a text for one between blanks
SEVERAL = 20_000  # pairs from which several processes tokenize faster than one

Pairs = list[tuple[str, ...]]


# ---- what is there -----------------------------------------------------------------------------------------


def sides(config: BuildConfig) -> tuple[SideConfig, SideConfig]:
    """The text settings of both languages. ConfigError for a language that is unknown, or that nothing
    says."""
    return side(config, "source"), side(config, "target")


def side(config: BuildConfig, name: str) -> SideConfig:
    """The text settings of one language: scripts without case are not truecased."""
    given, paths = (
        getattr(config, f"{name}_language"),
        (getattr(config, name), getattr(config, f"dev_{name}")),
    )
    language = given or next(filter(None, map(scripts.language_of_file, paths)), "")
    if not language:
        raise ConfigError(
            f"--{name}-language: missing, and {Path(paths[0]).name} does not end in the code of a language, "
            f"as train.en does; give it, e.g. --{name}-language de"
        )
    scripts.check_language_code(language, f"--{name}-language")
    return SideConfig(language=language, case="keep" if is_spaceless(language) else "truecase")


def check_glossary(config: BuildConfig) -> None:
    """DataError with the line for a glossary that decoding would refuse."""
    if config.glossary:
        of_folder(config.glossary, *map(TextSide, sides(config)))


def survey(config: BuildConfig) -> Sizes:
    """What the texts hold after cleaning. DataError for unequal texts, bad bytes, or none left."""
    source, target = sides(config)
    dev = kept(config.dev_source, config.dev_target, DEV)
    pairs = words = other = 0
    for one, two in kept(config.source, config.target, RAW):
        pairs, words, other = pairs + 1, words + tokens(one, source), other + tokens(two, target)
    lines = list(map(partial(tokens, config=target), monolingual(config)))
    return Sizes(
        pairs, words, other, len(dev), sum(tokens(one, source) for one, _ in dev), len(lines), sum(lines)
    )


def kept(source: str, target: str, config: CleanConfig, report: CleanReport | None = None) -> Pairs:
    """The pairs of two texts that are worth having. DataError where there are none."""
    found = list(clean(files.parallel(source, target), config, report or CleanReport()))
    if not found:
        raise DataError(
            f"{source}: no pair is left after cleaning (see nmt-clean); expected lines with words, at most "
            f"{config.max_length} of them"
        )
    return found


def monolingual(config: BuildConfig) -> Iterator[str]:
    """The lines of the monolingual text that are worth having."""
    if config.monolingual:
        length = LENGTHS[RAW.unit]
        lines = files.read_lines(config.monolingual)
        yield from (line for line in lines if RAW.min_length <= length(line) <= RAW.max_length)


def tokens(line: str, config: SideConfig) -> int:
    """About how many words tokenization will make of a line."""
    if is_spaceless(config.language):
        return LENGTHS["character"](line)
    return round(TOKENS * LENGTHS["word"](line))


# ---- its words ---------------------------------------------------------------------------------------------


@dataclass
class Texts:
    """The paths of the texts, below the folder of the build."""

    folder: Path

    def path(self, name: str) -> Path:
        """The path of one of the files above."""
        return self.folder / FOLDER / name

    def lm(self) -> str:
        """The text of the count model, relative to the folder of the build."""
        both = f"{FOLDER}/lm.target"
        return both if (self.folder / both).exists() else f"{FOLDER}/train.target"

    def lines(self, name: str) -> list[str]:
        """The lines of one of the files above."""
        return list(files.read_lines(self.path(name)))

    def sides(self, config: BuildConfig) -> tuple[TextSide, TextSide]:
        """Raw lines to words and back, with the truecase models that were learned."""
        made = []
        for name, one in zip(SIDES, sides(config), strict=True):
            place = self.path(truecase_file(name))
            made.append(TextSide(one, truecase.load(place) if one.case == "truecase" else None))
        return made[0], made[1]


def prepare(build: Build) -> None:
    """Clean, tokenize, truecase and escape all texts."""
    config, texts, raw, split_report = build.config, Texts(build.work), CleanReport(), CleanReport()
    workers = config.workers if build.plan.sizes.pairs >= SEVERAL else 1
    settings = sides(config)
    train = kept(config.source, config.target, RAW, raw)
    split = [
        list(converted(one, [pair[number] for pair in train], workers)) for number, one in enumerate(settings)
    ]
    pairs = list(clean(zip(*split, strict=True), WORDS, split_report))
    if not pairs:
        raise DataError(f"{config.source}: no pair is left after tokenization and cleaning")
    dev = development_set(config, settings)
    for number, (name, one) in enumerate(zip(SIDES, settings, strict=True)):
        made = learned(one, [pair[number] for pair in pairs])
        if made.truecaser:
            truecase.save(made.truecaser, texts.path(truecase_file(name)))
        files.write_text(texts.path(f"train.{name}"), (words(made, pair[number]) for pair in pairs))
        files.write_text(texts.path(f"dev.{name}"), (" ".join(made.words(pair[number])) for pair in dev))
        files.write_text(texts.path(f"raw.{name}"), (pair[number] for pair in dev))
        if name == "target" and config.monolingual:
            add_monolingual(config, texts, made, workers)
    dropped = raw.dropped + split_report.dropped
    counts = {"pairs read": raw.pairs, "pairs kept": len(pairs)} | {
        f"pairs dropped: {reason}": count for reason, count in sorted(dropped.items())
    }
    counts |= {"pairs of the development set": len(dev)}
    files.write_text(texts.path(COUNTS), [json.dumps(counts)])


def development_set(config: BuildConfig, settings: tuple[SideConfig, SideConfig]) -> Pairs:
    """Its raw pairs, without those that have no words, or too many for an n-best list. DataError where none
    is left."""
    made = list(map(TextSide, settings))
    found = [
        pair
        for pair in kept(config.dev_source, config.dev_target, DEV)
        if all(0 < len(one.split(line)) <= LONGEST for one, line in zip(made, pair, strict=True))
    ]
    if not found:
        raise DataError(f"{config.dev_source}: no pair is left after tokenization and cleaning")
    return found


def converted(config: SideConfig, lines: Iterable[str], workers: int) -> Iterator[str]:
    """The words of raw lines, between blanks, in their own case."""
    return convert_lines(partial(splitter, config), lines, workers)


def splitter(config: SideConfig) -> Callable[[Sequence[str]], list[str]]:
    """What splits lines into words, in any process."""
    made = TextSide(config)
    return lambda lines: [" ".join(made.split(line)) for line in lines]


def learned(config: SideConfig, lines: Iterable[str]) -> TextSide:
    """The text of a language with a truecase model of these words, where it has case."""
    cased = config.case == "truecase"
    return TextSide(config, truecase.learn(map(files.split_words, lines)) if cased else None)


def words(side: TextSide, split: str) -> str:
    """What `converted` made of a line as tables and networks read it."""
    return " ".join(escaped(side.cased(files.split_words(split))))


def add_monolingual(config: BuildConfig, texts: Texts, side: TextSide, workers: int) -> None:
    """The target side of the training text and the monolingual text together."""
    settings = sides(config)[1]
    more = (words(side, line) for line in converted(settings, monolingual(config), workers))
    with files.Writing(texts.path("lm.target")) as out:
        out.write_lines(files.read_lines(texts.path("train.target")))
        out.write_lines(line for line in more if 0 < len(line.split(" ")) <= LONGEST)
