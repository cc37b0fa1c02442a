"""Word translation tables: Moses' lex.f2e (`target source p(target | source)`), or a dictionary of lines
`source target`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.errors import DataError
from nmt.io import files
from nmt.text.vocab import Vocab

NULL = "NULL"  # Moses' empty word


@dataclass
class Lexicon:
    """For each source word its translations, the likeliest first."""

    translations: dict[str, list[str]]

    @staticmethod
    def load(path: str | Path, most: int = 50) -> "Lexicon":
        """Read the `most` likeliest translations of each word. DataError for a line of another form."""
        entries_by_word: dict[str, list[tuple[float, str]]] = {}
        for number, line in enumerate(files.read_lines(path), 1):
            parts = files.split_words(line)
            try:
                if len(parts) == 3:
                    target, source, value = parts[0], parts[1], float(parts[2])
                elif len(parts) == 2:
                    source, target, value = parts[0], parts[1], 1.0
                else:
                    raise ValueError
            except ValueError as error:
                raise DataError(
                    f"{path}:{number}: expected 'target source probability' or 'source target', found "
                    f"{line[:60]!r}"
                ) from error
            if NULL not in (source, target):
                entries_by_word.setdefault(source, []).append((-value, target))
        if not entries_by_word:
            raise DataError(f"{path}: no entry; expected lines 'target source probability' (Moses' lex.f2e)")
        return Lexicon(
            {
                source: [target for _, target in sorted(entries)[:most]]
                for source, entries in entries_by_word.items()
            }
        )

    def best(self, word: str) -> str:
        """The likeliest translation, or the word itself."""
        return self.translations.get(word, [word])[0]

    def candidates(self, words: Iterable[str]) -> set[str]:
        """All translations of some words."""
        return {target for word in words for target in self.translations.get(word, [])}


def shortlist(lexicon: Lexicon, source: Sequence[str], vocab: Vocab, frequent: int) -> set[int]:
    """The ids of the words that may translate a sentence: the lexicon's, and the `frequent` most frequent
    words of the vocabulary."""
    candidates = {vocab.ids[word] for word in lexicon.candidates(source) if word in vocab.ids}
    return candidates | set(range(min(len(vocab), frequent + 3)))  # the specials are the first three
