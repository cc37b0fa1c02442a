"""The presets, and a configuration proposed for texts that have been inspected: the preset that suits their
size, and settings that suit their content, as YAML with comments for the user to edit. Torch is not
imported."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from nmt.errors import ConfigError
from nmt.io import files
from nmt.text.inspection import CASED, PairReport, SideReport
from nmt.text.scripts import is_spaceless

# ---- presets -----------------------------------------------------------------------------------------------

PRESETS = Path(__file__).parents[1] / "presets"
SMALL, TRANSFORMER, LARGE = "small", "transformer-small", "large"
LARGE_TEXT = 200_000  # pairs from which the preset `large` is worth its time


def choose_preset(pairs: int) -> str:
    """Choose the preset for a text of `pairs` sentence pairs. The Transformer is never chosen yet:
    recipes/presets/choice.py has to show that it is better (recipes/presets/README.md)."""
    return LARGE if pairs >= LARGE_TEXT else SMALL


def preset_file(preset: str) -> Path:
    """Path of the YAML file of a preset. ConfigError for an unknown name."""
    path = PRESETS / f"{preset}.yaml"
    if not path.exists():
        names = ", ".join(sorted(file.stem for file in PRESETS.glob("*.yaml")))
        raise ConfigError(f"--preset {preset}: unknown, expected one of {names}")
    return path


# ---- proposal ----------------------------------------------------------------------------------------------

EPOCHS = {LARGE_TEXT: 20, 1_000_000: 10, 5_000_000: 5}  # of `large`, by the number of pairs
# BPE merges, by the number of pairs.
MERGES = {0: 2000, 10_000: 4000, 50_000: 8000, LARGE_TEXT: 16_000, 1_000_000: 32_000}
MOST_WARM_UP = 0.2  # largest share of the updates when training time is limited
SUBWORD_FACTOR, TOKEN_FACTOR = 1.4, 1.15  # subwords, and tokens, for each word between blanks
SHORTEST, LONGEST = 60, 100  # bounds of data.max_length; longer sentences cost more time than they are worth
PLAIN = re.compile(r"[\w./][\w./+-]*")

Values = dict[str, tuple[object, str]]  # key -> (value, reason)


@dataclass
class ParallelTexts:
    """The training and development files of a configuration and the language codes, each as (source, target);
    empty strings for what is unknown."""

    train: tuple[str, str]
    dev: tuple[str, str]
    languages: tuple[str, str]


@dataclass
class Proposal:
    """A proposed configuration: the preset, and what differs from it or from the defaults, with reasons."""

    run: str
    preset: str
    texts: ParallelTexts
    data: Values = field(default_factory=dict)
    sides: tuple[Values, Values] = field(default_factory=lambda: ({}, {}))  # data.source, data.target
    training: Values = field(default_factory=dict)  # what differs from the preset

    def lines(self) -> Iterator[str]:
        """Yield the lines of the configuration file."""
        yield "# Made by nmt-init. Paths are relative to the folder in which nmt-train is started."
        yield f"run: {yaml_string(self.run)}"
        yield "device: auto  # a GPU if there is one"
        yield "data:"
        for name, pair in (("train", self.texts.train), ("dev", self.texts.dev)):
            for side, path in zip(("source", "target"), pair, strict=True):
                yield f"  {name}_{side}: {yaml_string(path)}"
        yield from values_as_yaml(self.data, "  ")
        for side, values in zip(("source", "target"), self.sides, strict=True):
            if values:
                yield f"  {side}:"
                yield from values_as_yaml(values, "    ")
        yield f"# From here on the preset {self.preset}; nmt-train --print-config shows all other settings."
        for line in preset_lines(self.preset):  # `training` is the last one
            if line.strip().partition(":")[0] not in self.training:
                yield line
        yield from values_as_yaml(self.training, "  ")

    def fit_warmup(self, warmup: int, updates: int) -> bool:
        """Limit the warm-up to MOST_WARM_UP of the updates for which there is time. `warmup`: updates of the
        preset's warm-up. Returns whether it was shortened; `training` then has the new value."""
        if warmup <= MOST_WARM_UP * updates:
            return False
        most = int(MOST_WARM_UP * updates)
        self.training["warmup"] = (
            most,
            f"{MOST_WARM_UP:.0%} of the about {updates:,} updates that the time allows",
        )
        return True


def propose(
    report: PairReport, texts: ParallelTexts, run: str, preset: str = "", minutes: float = 0.0
) -> Proposal:
    """Propose a configuration for a parallel text. `report`: what the inspection of the text has found;
    `run`: the run directory; `preset`: empty for the one that the size of the text suggests; `minutes`: how
    long training may take, 0 for no limit."""
    pairs = report.usable
    preset = preset or choose_preset(pairs)
    proposal = Proposal(run, preset, texts)
    if preset == LARGE:
        proposal.training["max_epochs"] = (
            by_size(EPOCHS, max(pairs, LARGE_TEXT)),
            "patience may end it sooner",
        )
    if minutes:
        proposal.training["schedule"] = ("linear", "down to 0 when training ends, by epochs or by minutes")
        proposal.training["max_minutes"] = (minutes, "the last validation included")
    sides = list(zip(report.sides, texts.languages, strict=True))
    with_bpe = [learns_bpe(*side) for side in sides]
    if any(with_bpe):
        rare = max(side.hapax_share() for side, language in sides if learns_bpe(side, language))
        reason = (
            f"{100 * rare:.1f}% of the running words occur once; without subwords, about as many would be "
            "unknown"
        )
        proposal.data["bpe_merges"] = (by_size(MERGES, pairs), reason)
        scripts = {side.guess().script for side in report.sides}
        if len(scripts) > 1 and all(with_bpe) and preset != TRANSFORMER:
            proposal.data["bpe_joint"] = (False, "the scripts have no units in common")
    if preset == TRANSFORMER:
        proposal.data["shared_vocabulary"] = (True, "for model.tied: all")
    proposal.data["max_length"] = max_length(report, any(with_bpe))
    for values, (side, language) in zip(proposal.sides, sides, strict=True):
        values.update(side_values(side, language))
    return proposal


def learns_bpe(side: SideReport, language: str) -> bool:
    """Whether a side needs BPE: its text consists of words, in a known language that is written with spaces.
    `language`: empty if unknown.

    SentencePiece splits raw text of other languages. Tokenized text of an unknown language asks for nothing,
    but is split by BPE if the other side needs it."""
    return not side.counts["subwords"] and bool(language) and not is_spaceless(language)


def max_length(report: PairReport, subwords: bool) -> tuple[int, str]:
    """Value and reason for data.max_length, in units: subwords if `subwords`, otherwise tokens."""
    longest = max(side.lengths.quantile(0.99) for side in report.sides)
    units = longest * (SUBWORD_FACTOR if subwords else TOKEN_FACTOR)
    limit = min(LONGEST, max(SHORTEST, 10 * -(-int(units) // 10)))
    return limit, f"units; 99% of the lines have at most {longest} words"


def side_values(side: SideReport, language: str) -> Values:
    """Settings of `data.source` or `data.target` other than defaults. `language`: empty if unknown."""
    values: Values = {}
    segmented = bool(side.counts["subwords"])
    raw = not segmented and not side.punctuation.is_tokenized() and (not language or is_spaceless(language))
    if language:
        guess = side.guess()
        values["language"] = (language, "" if guess.language == language else f"the text: {guess}")
    elif raw:
        values["subword"] = ("unigram", "the language is unknown, and SentencePiece needs no rules for it")
    if segmented:
        values["subword"] = (
            "none",
            "already segmented into subwords, and translations will be too; whole words are better",
        )
    if segmented or side.punctuation.is_tokenized():
        values["tokenize"] = (False, "already tokenized, and translations will be too")
        values["normalize"] = (False, "")
        if side.counts["escaped"]:
            values["escaped"] = (True, "Moses' escapes: undone here, and put back in translations")
    if side.guess().script in CASED and not raw and not segmented:
        cased = side.has_case()
        values["case"] = ("truecase", "") if cased else ("keep", "the text has no capitals")
    return values


def by_size(table: Mapping[int, int], pairs: int) -> int:
    """Look up the value for a corpus of `pairs` sentence pairs, which must not be below the smallest key.
    `table`: the number of pairs from which a value applies -> the value."""
    return table[max(size for size in table if size <= pairs)]


def preset_lines(preset: str) -> Iterator[str]:
    """Yield the lines of a preset, from its section `model` on."""
    lines = files.read_lines(preset_file(preset))
    for line in lines:
        if line.startswith("model:"):
            yield line
            break
    yield from lines


def values_as_yaml(values: Values, indent: str) -> Iterator[str]:
    """Yield values as lines of YAML, with their reasons as comments."""
    for key, (value, reason) in values.items():
        if isinstance(value, str):
            shown = yaml_string(value)
        else:
            shown = f"{value:g}" if isinstance(value, float) else str(value).lower()
        yield f"{indent}{key}: {shown}{f'  # {reason}' if reason else ''}"


def yaml_string(text: str | Path) -> str:
    """Format a string for YAML, with quotes if it would be another value without, such as `no` or 2024.10."""
    text = str(text)
    if PLAIN.fullmatch(text) and yaml.safe_load(text) == text:
        return text
    return "'" + text.replace("'", "''") + "'"
