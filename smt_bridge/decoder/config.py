"""What a decoder does, whatever model it has. The defaults are Moses'."""

from dataclasses import dataclass, field, fields
from typing import Any

from nmt import settings
from nmt.data.long_lines import MAX_LINE_WORDS
from nmt.errors import ConfigError
from nmt.settings import choice, number

WIDEST = 63  # words beyond the first untranslated one that a coverage can hold


@dataclass(frozen=True)
class SearchSettings:
    """The search as a moses.ini can set it."""

    stack: int = number(200, least=0)  # hypotheses kept for each number of translated words; 0: all
    table_limit: int = number(20, least=0)  # best options of a source phrase; 0: all
    distortion_limit: int = number(-1, least=-1)  # of a jump, in words; -1: none
    beam_threshold: float = number(
        1e-5, least=0, most=1
    )  # hypotheses of less than this share of the best one's probability are dropped
    max_phrase_length: int = number(20, least=1)  # source words of an option
    max_options: int = number(5000, least=0)  # of a source phrase, whatever the table limit; 0: any number
    nbest_factor: int = number(
        20, least=0
    )  # at most this many derivations looked at for each distinct one listed; 0: as Moses, 1000
    early_distortion_cost: bool = False  # pay for a jump when it leaves a gap (Moore and Quirk 2007)
    drop_unknown: bool = False  # leave unknown words out, but for those with digits
    mark_unknown: bool = False  # write them between prefix and suffix
    unknown_prefix: str = "UNK"
    unknown_suffix: str = ""
    xml_input: str = choice(
        "pass-through", "exclusive", "inclusive", "constraint", "ignore"
    )  # what tags in the input do, see xml_input.py
    xml_brackets: tuple[str, str] = ("<", ">")  # of tags


BY_NAME = {item.name: item for item in fields(SearchSettings)}


def given(name: str) -> Any:
    """A value of SearchSettings that wins over the ini's; None: the ini's, or Moses' default."""
    return field(default=None, metadata=BY_NAME[name].metadata)


@dataclass(frozen=True)
class DecoderConfig:
    """What a user asks of a decoder."""

    stack: int | None = given("stack")
    table_limit: int | None = given("table_limit")
    distortion_limit: int | None = given("distortion_limit")
    beam_threshold: float | None = given("beam_threshold")
    max_phrase_length: int | None = given("max_phrase_length")
    nbest_factor: int | None = given("nbest_factor")
    early_distortion_cost: bool | None = None
    drop_unknown: bool | None = None
    mark_unknown: bool | None = None
    xml_input: str | None = given("xml_input")
    xml_brackets: tuple[str, str] | None = None
    max_line_words: int = number(
        MAX_LINE_WORDS, least=1
    )  # longer lines are translated in parts, or refused for an n-best list
    nbest: int = number(0, least=0)  # translations listed; 0: only the best
    distinct: bool = False  # of different texts
    neural_beam: int = number(500, least=0)  # candidates of a stack that neural language models score; 0: all
    buffer: int = number(8192, least=1)  # n-grams scored by them at a time

    def check(self) -> None:
        """ConfigError for a value out of range."""
        for found in settings.problems(self):
            name, _, wrong = found.partition(":")
            raise ConfigError(f"--{name.replace('_', '-')}:{wrong}")


def search_settings(config: DecoderConfig, ini: dict[str, Any]) -> SearchSettings:
    """What is asked for, else what the ini says, else what Moses does."""
    asked = {name: getattr(config, name) for name in BY_NAME if getattr(config, name, None) is not None}
    return SearchSettings(**{**ini, **asked})
