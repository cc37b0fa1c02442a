"""Small parallel corpora of English and another language, raw text as people write it, made by a program:

    python -m tests.languages.corpus ja FOLDER

writes train.en, train.ja, dev.en and dev.ja. No English sentence of dev occurs in train. The same seed gives
the same text.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from tests.languages import arabic, czech, english, german, japanese
from tests.languages.meaning import Meaning, Writer

LANGUAGES: dict[str, Callable[[Meaning], str]] = {
    "ar": arabic.sentence,
    "cs": czech.sentence,
    "de": german.sentence,
    "ja": japanese.sentence,
}


def pairs(language: str, count: int, seed: int = 1) -> list[tuple[str, str]]:
    """English sentences, all different, and their translations."""
    writer, found = Writer(seed), dict[str, str]()
    while len(found) < count:
        meaning = writer.meaning()
        found.setdefault(english.sentence(meaning), LANGUAGES[language](meaning))
    return list(found.items())


def write(folder: Path, language: str, train: int = 3000, dev: int = 200, seed: int = 1) -> None:
    """Write both texts of both sides."""
    folder.mkdir(parents=True, exist_ok=True)
    made = pairs(language, train + dev, seed)
    for name, part in (("train", made[:train]), ("dev", made[train:])):
        for code, side in (("en", 0), (language, 1)):
            text = "".join(f"{pair[side]}\n" for pair in part)
            (folder / f"{name}.{code}").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[2]), sys.argv[1])
