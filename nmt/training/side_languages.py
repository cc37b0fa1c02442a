"""The languages of the texts of a run: as the configuration says, else as the names of its files end."""

from pathlib import Path

from nmt.data.corpus import DataConfig
from nmt.errors import ConfigError
from nmt.text import languages
from nmt.text.pipeline import check_language, check_segment, needs_language
from nmt.text.units import is_spaceless
from nmt.training.run_config import RunConfig

# Keys of the files of each side; the first that says a language decides.
FILES = {
    "source": ("train_source", "dev_source"),
    "target": ("train_target", "train_text", "dev_target", "dev_text"),
}


def sides(config: RunConfig) -> tuple[str, ...]:
    """The sides that have text: plain text has `target` alone."""
    return ("target",) if config.monolingual else ("source", "target")


def find(config: RunConfig) -> None:
    """Set the language of each side that has none and whose files say one. Scripts without spaces have no
    case to learn, though a preset asks for it."""
    for name in sides(config):
        side = getattr(config.data, name)
        if not side.language and not several(config.data, name):
            found = (languages.of_file(path) for path in paths(config.data, name))
            side.language = next(filter(None, found), "")
        # `none` is what runs of version 0.5 have, which keep their truecase models
        if side.case == "truecase" and side.segment == "auto" and is_spaceless(side.language):
            side.case = "keep"


def several(data: DataConfig, name: str) -> bool:
    """Are the corpora of a side of several languages? ConfigError where the rules of one are needed."""
    found = sorted({languages.of_file(getattr(corpus, name)) for corpus in data.corpora} - {""})
    if len(found) > 1 and needs_language(getattr(data, name)):
        raise ConfigError(
            f"data.{name}.language: missing, and the corpora are of several languages, {', '.join(found)}; "
            f"name the one whose rules all are read by, or set data.{name}.subword: unigram, which needs none"
        )
    return len(found) > 1


def check(config: RunConfig) -> None:
    """ConfigError for a language that is unknown, or missing where its rules are used."""
    for name in sides(config):
        side, key = getattr(config.data, name), f"data.{name}.language"
        given = paths(config.data, name) or list(filter(None, [config.data.phrase_table]))
        if not given:
            continue  # without text nothing is trained, and its absence is the mistake to name
        if not side.language and needs_language(side):
            files = ", ".join(Path(path).name for path in given)
            raise ConfigError(
                f"{key}: missing, and {files} does not end in the code of a language, as train.en does; set "
                f"it, e.g. {key}: de"
            )
        check_language(side, key)
        try:
            check_segment(side)
        except ConfigError as error:
            raise ConfigError(f"data.{name}.{error}") from error


def paths(data: DataConfig, side: str) -> list[str]:
    """The files of a side whose names may say its language; a table of both says none."""
    listed = [getattr(corpus, side) for corpus in data.corpora]
    return listed + [path for key in FILES[side] if (path := str(getattr(data, key)))]


def shown(config: RunConfig) -> str:
    """The languages, for the log: `en -> fr`"""
    return " -> ".join(getattr(config.data, name).language or "not set" for name in sides(config))
