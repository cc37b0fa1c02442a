"""How long a text is, whatever its script: words, or characters where no blanks separate words."""

import re
import unicodedata
from collections import Counter

# Languages written without blanks between words.
SPACELESS = frozenset({"bo", "cjk", "dz", "ja", "km", "lo", "my", "th", "yue", "zh"})

IDEOGRAPHS = (
    "\u3000-\u303f\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"
    "\U00020000-\U0003ffff"
)
"""Chinese characters, kana, their punctuation and full-width forms: each counts as a word."""
LETTERS = "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"
"""Thai, Lao, Tibetan, Burmese, Khmer: words have about four characters."""
LETTERS_A_WORD = 4

WORDLESS = re.compile(f"[{IDEOGRAPHS}{LETTERS}]")
PART = re.compile(f"([{IDEOGRAPHS}])|([{LETTERS}]+)|[^{IDEOGRAPHS}{LETTERS}]+")


def is_spaceless(language: str) -> bool:
    """Is a language written without blanks between words? `zh-TW` is zh."""
    return re.split("[-_]", language.lower())[0] in SPACELESS


def script(characters: Counter[str]) -> str:
    """The script of most letters of a text, by their Unicode names: LATIN, CYRILLIC, CJK ..."""
    found: Counter[str] = Counter()
    for character, count in characters.items():
        if character.isalpha():
            found[unicodedata.name(character, "?").split(" ")[0]] += count
    return max(found, key=lambda name: (found[name], name), default="")
