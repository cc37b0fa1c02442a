"""Words of scripts that are written without spaces: characters, or the words of a dictionary.

A segmenter cuts a run of such text, which holds no blank, into pieces that are the run when they are joined.
Libraries are imported when they are needed, and read only the dictionaries that they bring.
"""

import os
from collections.abc import Callable
from functools import cache
from typing import Protocol

import regex

from nmt.errors import ConfigError
from nmt.text.units import is_spaceless


class Segmenter(Protocol):
    """Cuts a run of text."""

    def __call__(self, run: str) -> list[str]: ...


# A grapheme cluster with all its marks, and the consonants below it in Burmese and Khmer.
CHARACTER = regex.compile(r"\X\p{M}*(?:(?<=[\u1039\u17d2])\X\p{M}*)*")


def characters(run: str) -> list[str]:
    """What readers take for characters: no mark leaves its letter."""
    return list(map(str, CHARACTER.findall(run)))


# ---- words -------------------------------------------------------------------------------------------------


def japanese() -> Segmenter:
    """MeCab with its dictionary ipadic, as in sacreBLEU's tokenizer ja-mecab."""
    import ipadic
    import MeCab

    tagger = MeCab.Tagger(f"{ipadic.MECAB_ARGS} -Owakati")
    return lambda run: str(tagger.parse(run)).split()


def chinese() -> Segmenter:
    """jieba's dictionary and model."""
    import rjieba

    return lambda run: list(map(str, rjieba.cut(run)))


def thai() -> Segmenter:
    """PyThaiNLP's newmm, the longest words of its dictionary. Nothing is fetched, or written to the user's
    home."""
    os.environ.setdefault("PYTHAINLP_OFFLINE", "1")
    if "PYTHAINLP_READ_MODE" not in os.environ:  # the former name; both together are an error
        os.environ.setdefault("PYTHAINLP_READ_ONLY", "1")
    from pythainlp.tokenize import word_tokenize

    return lambda run: list(map(str, word_tokenize(run, engine="newmm-safe")))


# Segmenters by language; the extra that installs the library has the same name.
WORDS: dict[str, Callable[[], Segmenter]] = {"ja": japanese, "th": thai, "zh": chinese}


@cache
def words(language: str) -> Segmenter:
    """The words of a dictionary. ConfigError for a language without one, or where its library is missing."""
    if language not in WORDS:
        raise ConfigError(
            f"segment: word needs a dictionary, which there is for {', '.join(WORDS)}, not for "
            f"{language or 'text without a language'}; use character"
        )
    try:
        found = WORDS[language]()
    except ImportError as error:
        raise ConfigError(
            f"segment: word needs a library for {language}: pip install 'nmt-smt[{language}]', or use "
            "character"
        ) from error
    return lambda run: whole(found(run), run)


def whole(pieces: list[str], run: str) -> list[str]:
    """The pieces that a library found in a run, no mark without its letter; characters if anything is
    missing."""
    if "".join(pieces) != run:
        return characters(run)
    found: list[str] = []
    for piece in filter(None, pieces):
        if found and regex.match(r"\p{M}", piece):
            found[-1] += piece
        else:
            found.append(piece)
    return found


# ---- which one ---------------------------------------------------------------------------------------------


def automatic(language: str) -> Segmenter | None:
    """Characters, whatever is installed: the same text gives the same words everywhere."""
    return characters if is_spaceless(language) else None


# Values of `segment`, the default first. None: blanks and Moses' rules alone make words.
SEGMENTERS: dict[str, Callable[[str], Segmenter | None]] = {
    "auto": automatic,
    "none": lambda language: None,
    "character": lambda language: characters,
    "word": words,
}
NO_WISH = ("auto", "none")


def make(kind: str, language: str, tokenize: bool) -> Segmenter | None:
    """The segmenter of a value of `segment`. ConfigError for one that cannot be, in a message that begins
    with the key."""
    if kind not in SEGMENTERS:
        raise ConfigError(f"segment: {kind!r} is unknown, expected one of {', '.join(SEGMENTERS)}")
    if not tokenize and kind not in NO_WISH:
        raise ConfigError(
            f"segment: {kind} is a part of tokenization; set tokenize: true, and subword: none or bpe, or "
            "leave segment out"
        )
    return SEGMENTERS[kind](language) if tokenize else None
