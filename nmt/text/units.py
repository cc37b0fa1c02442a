"""How long a line is, whatever its script, and which script a text has."""

import re
import unicodedata
from collections import Counter
from functools import cache

from nmt import files

# Languages written without blanks between words.
SPACELESS = frozenset({"bo", "cjk", "dz", "ja", "km", "lo", "my", "th", "yue", "zh"})

# Chinese characters, kana, their punctuation and full-width forms: about two make a word.
IDEOGRAPH = re.compile(
    "[\u3001-\u303f\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"
    "\U00020000-\U0003ffff]"
)
IDEOGRAPHS_A_WORD = 2
# Thai, Lao, Tibetan, Burmese, Khmer: about four make a word.
LETTER = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f]")
LETTERS_A_WORD = 4

# A unit that is one byte of a character is a letter in private use wherever it is looked at as text.
FIRST_BYTE = 0xE000
BYTE_LETTER = re.compile("[\ue000-\ue0ff]")


def line_length(text: str) -> int:
    """The number of words of a line: of what blanks separate; where a script has none, two Chinese or
    Japanese characters count as a word, and four letters of Thai, Lao, Tibetan, Burmese or Khmer.

    Segmented text counts as its words.

    >>> line_length("The dog sees a cat ."), line_length("犬が猫を見る。"), line_length("犬 が 猫 を 見る 。")
    (6, 4, 6)
    """
    words = len(files.split_words(text))
    if text.isascii():
        return words
    rest, ideographs = IDEOGRAPH.subn(" ", text)
    rest, letters = LETTER.subn(" ", rest)
    if not (ideographs or letters):
        return words
    there = len(files.split_words(rest)) + -(-ideographs // IDEOGRAPHS_A_WORD) + -(-letters // LETTERS_A_WORD)
    return max(words, there)


def character_length(text: str) -> int:
    """The number of characters of a line without its blanks."""
    return len(text) - text.count(" ") - text.count("\t")


def is_spaceless(language: str) -> bool:
    """Is a language written without blanks between words? `zh-TW` is zh."""
    return re.split("[-_]", language.lower())[0] in SPACELESS


@cache
def script_of(character: str) -> str:
    """The script of a letter, by its Unicode name: LATIN, CYRILLIC, CJK, HIRAGANA ..."""
    return unicodedata.name(character, "?").split(" ")[0]


def script(characters: Counter[str]) -> str:
    """The script of most letters of a text, by their Unicode names: LATIN, CYRILLIC, CJK ..."""
    found: Counter[str] = Counter()
    for character, count in characters.items():
        if character.isalpha():
            found[script_of(character)] += count
    return max(found, key=lambda name: (found[name], name), default="")


def byte_letter(byte: int) -> str:
    """The letter that stands for a unit that is one byte of a character; it is in private use."""
    return chr(FIRST_BYTE + byte)
