"""Settings of the decoder, whatever its model. The defaults are those of Moses."""

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any

from nmt.config import settings
from nmt.config.settings import HELP, choice, number, setting
from nmt.errors import ConfigError
from nmt.text.sentences import MAX_LINE_WORDS

WIDEST = 63  # words beyond the first untranslated one that a coverage can hold


@dataclass(frozen=True)
class SearchSettings:
    """Search settings that a moses.ini can give."""

    stack: int = number(200, least=0, help="hypotheses kept for each number of translated words; 0: all")
    table_limit: int = number(20, least=0, help="best options of a source phrase; 0: all")
    distortion_limit: int = number(-1, least=-1, help="longest jump in words; -1: any")
    beam_threshold: float = number(
        1e-5, least=0, most=1, help="drop hypotheses with less than this share of the best one's probability"
    )
    max_phrase_length: int = number(20, least=1, help="source words of an option")
    max_options: int = number(
        5000, least=0, help="options of a source phrase, whatever the table limit; 0: any number"
    )
    nbest_factor: int = number(
        20, least=0, help="derivations examined, at most, for each distinct one listed; 0: as in Moses, 1000"
    )
    early_distortion_cost: bool = setting(
        False, help="charge for a jump when it leaves a gap (Moore and Quirk 2007)"
    )
    drop_unknown: bool = setting(False, help="leave unknown words out, except those with digits")
    mark_unknown: bool = setting(False, help="put UNK, or what the ini has for it, before unknown words")
    unknown_prefix: str = setting("UNK", help="written before unknown words that are marked")
    unknown_suffix: str = setting("", help="written after them")
    xml_input: str = choice(
        "pass-through",
        "exclusive",
        "inclusive",
        "constraint",
        "ignore",
        help="what tags in the input do, as in Moses",
    )
    xml_brackets: tuple[str, str] = setting(("<", ">"), help="what encloses tags")


BY_NAME: dict[str, "Field[object]"] = {item.name: item for item in fields(SearchSettings)}


def override(name: str) -> Any:
    """A field of SearchSettings as an option that overrides the ini; None keeps the ini's value, or Moses'
    default."""
    item = BY_NAME[name]
    words = " ".join(item.default) if isinstance(item.default, tuple) else str(item.default).lower()
    text = f"{item.metadata[HELP]}; default: the ini's, or {words}"
    return field(default=None, metadata={**item.metadata, HELP: text})


@dataclass(frozen=True)
class DecoderConfig:
    """The user's options of a decoder."""

    stack: int | None = override("stack")
    table_limit: int | None = override("table_limit")
    distortion_limit: int | None = override("distortion_limit")
    beam_threshold: float | None = override("beam_threshold")
    max_phrase_length: int | None = override("max_phrase_length")
    nbest_factor: int | None = override("nbest_factor")
    early_distortion_cost: bool | None = override("early_distortion_cost")
    drop_unknown: bool | None = override("drop_unknown")
    mark_unknown: bool | None = override("mark_unknown")
    xml_input: str | None = override("xml_input")
    xml_brackets: tuple[str, str] | None = override("xml_brackets")
    max_line_words: int = number(
        MAX_LINE_WORDS, least=1, help="longer lines are translated in parts, or refused for an n-best list"
    )
    nbest: int = number(0, least=0, help="derivations listed; 0: only the best")
    distinct: bool = setting(False, help="list different texts only")
    explain: bool = setting(False, help="compute what each phrase of the best derivation adds to the total")
    neural_beam: int = number(
        500, least=0, help="candidates of a stack that neural features of the ini score; 0: all"
    )
    buffer: int = number(8192, least=1, help="n-grams that a neural LM scores at a time")

    def check(self) -> None:
        """ConfigError for a value out of range."""
        for problem in settings.problems(self):
            name, _, wrong = problem.partition(":")
            raise ConfigError(f"--{name.replace('_', '-')}:{wrong}")


def search_settings(config: DecoderConfig, ini: Mapping[str, object]) -> SearchSettings:
    """Merge the settings of the search: the user's options, then the ini's, then Moses' defaults."""
    options = {name: getattr(config, name) for name in BY_NAME if getattr(config, name, None) is not None}
    return replace(SearchSettings(), **{**ini, **options})
