"""A configuration for texts that have been inspected: a preset for their number, and settings for what was
seen in them. It is text with comments, for people to change."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nmt import files
from nmt.text.inspection.findings import CASED
from nmt.text.inspection.pairs import PairReport
from nmt.text.inspection.side import SideReport
from nmt.text.units import is_spaceless
from nmt.training.config_file import PRESETS

LARGE = 200_000  # pairs from which the preset `large` is worth its time
EPOCHS = {LARGE: 20, 1_000_000: 10, 5_000_000: 5}  # of `large`, by the number of pairs
MERGES = {0: 2000, 10_000: 8000, LARGE: 16_000, 1_000_000: 32_000}
RARE = 0.03  # share of words that occur once from which whole words leave too many unknown
SUBWORD_FACTOR, TOKEN_FACTOR = 1.4, 1.15  # units for a word between blanks
SHORTEST, LONGEST = 60, 100  # of `max_length`; longer sentences cost more than they teach
PLAIN = re.compile(r"[\w./][\w./+-]*")

Values = dict[str, tuple[object, str]]  # key -> value, and why


@dataclass
class Texts:
    """The files of a configuration, and the languages of the two sides; empty where nothing is known."""

    train: tuple[str, str]
    dev: tuple[str, str]
    languages: tuple[str, str]


@dataclass
class Proposal:
    """What a configuration is to say."""

    run: str
    preset: str
    texts: Texts
    data: Values = field(default_factory=dict)
    sides: tuple[Values, Values] = field(default_factory=lambda: ({}, {}))
    epochs: int = 0  # 0: those of the preset

    def lines(self) -> Iterator[str]:
        """The file."""
        yield "# Made by nmt-init. Paths are those from the folder in which nmt-train is started."
        yield f"run: {plain(self.run)}"
        yield "device: auto  # a GPU if there is one"
        yield "data:"
        for name, pair in (("train", self.texts.train), ("dev", self.texts.dev)):
            for side, path in zip(("source", "target"), pair, strict=True):
                yield f"  {name}_{side}: {plain(path)}"
        yield from written(self.data, "  ")
        for side, values in zip(("source", "target"), self.sides, strict=True):
            if values:
                yield f"  {side}:"
                yield from written(values, "    ")
        yield f"# From here on the preset {self.preset}; nmt-train --print-config shows all other settings."
        for line in sections_of(self.preset):
            if self.epochs and line.startswith("  patience:"):
                yield f"  max_epochs: {self.epochs}  # patience may end it sooner"
            yield line


def propose(report: PairReport, texts: Texts, run: str, preset: str = "") -> Proposal:
    """The configuration for a parallel text. `preset`: another one than its size asks for."""
    pairs = report.usable
    preset = preset or ("large" if pairs >= LARGE else "small")
    found = Proposal(run, preset, texts)
    if preset == "large":
        found.epochs = by_size(EPOCHS, max(pairs, LARGE))
    sides = list(zip(report.sides, texts.languages, strict=True))
    merged = [is_cut_here(*side) for side in sides]
    rare = max([side.once() for side, language in sides if is_cut_here(side, language)], default=0.0)
    subwords = preset != "small" or rare > RARE
    if subwords and any(merged):
        reason = f"{100 * rare:.1f}% of the running words occur once, and as many would be unknown"
        found.data["bpe_merges"] = (by_size(MERGES, pairs), reason if rare > RARE else "")
        scripts = {side.guess().script for side in report.sides}
        if len(scripts) > 1 and all(merged) and preset != "transformer-small":
            found.data["bpe_joint"] = (False, "the scripts have no units in common")
    if preset == "transformer-small":
        found.data["shared_vocabulary"] = (True, "for model.tied: all")
    found.data["max_length"] = max_length(report, subwords)
    for values, (side, language) in zip(found.sides, sides, strict=True):
        values.update(side_values(side, language, subwords))
    return found


def is_cut_here(side: SideReport, language: str) -> bool:
    """Would BPE cut this side? Not where it is cut already, nor where SentencePiece reads raw text."""
    return not side.counts["subwords"] and bool(language) and not is_spaceless(language)


def max_length(report: PairReport, subwords: bool) -> tuple[int, str]:
    """The longest sentence that is kept, in units."""
    longest = max(side.lengths.quantile(0.99) for side in report.sides)
    units = longest * (SUBWORD_FACTOR if subwords else TOKEN_FACTOR)
    limit = min(LONGEST, max(SHORTEST, 10 * -(-int(units) // 10)))
    return limit, f"units; 99% of the lines have at most {longest} words"


def side_values(side: SideReport, language: str, subwords: bool) -> Values:
    """The settings of one side that differ from the defaults."""
    values: Values = {}
    cut = bool(side.counts["subwords"])
    raw = not cut and not side.is_tokenized() and (not language or is_spaceless(language))
    if language:
        guess = side.guess()
        values["language"] = (language, "" if guess.language == language else f"the text: {guess}")
    elif raw:
        values["subword"] = ("unigram", "no language is known, and SentencePiece needs no rules of one")
    if cut:
        values["subword"] = ("none", "it is cut already, as translations will be; better give whole words")
    if cut or side.is_tokenized():
        values["tokenize"] = (False, "it is tokenized already, as translations will be")
        values["normalize"] = (False, "")
        if side.counts["escaped"]:
            values["escaped"] = (True, "Moses' escapes: undone here, and put back in translations")
    if side.guess().script in CASED and not raw and not cut:
        cased = side.has_case()
        values["case"] = ("truecase", "") if cased else ("keep", "it has no capitals")
    if not subwords and not raw and not cut:
        values["min_count"] = (2, "a word seen once cannot be learned")
    return values


def by_size(table: Mapping[int, int], pairs: int) -> int:
    """The entry of the largest size that a corpus reaches."""
    return table[max(size for size in table if size <= pairs)]


def sections_of(preset: str) -> Iterator[str]:
    """The lines of a preset from its section `model` on."""
    lines = files.read_lines(PRESETS / f"{preset}.yaml")
    for line in lines:
        if line.startswith("model:"):
            yield line
            break
    yield from lines


def written(values: Values, indent: str) -> Iterator[str]:
    """Lines of YAML."""
    for key, (value, reason) in values.items():
        shown = plain(value) if isinstance(value, str) else str(value).lower()
        yield f"{indent}{key}: {shown}{f'  # {reason}' if reason else ''}"


def plain(text: str | Path) -> str:
    """A string of YAML, in quotes where it needs them."""
    text = str(text)
    return text if PLAIN.fullmatch(text) else "'" + text.replace("'", "''") + "'"
