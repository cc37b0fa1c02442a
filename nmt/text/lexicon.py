"""Word translation tables: Moses' lex.f2e (`target source p(target | source)`), or a dictionary of lines
`source target`; and short-lists of the words that may translate a sentence."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.errors import DataError
from nmt.io import files, numbers
from nmt.io.numbers import shown
from nmt.text.vocab import Vocab

NULL = "NULL"  # Moses' empty word


@dataclass
class Lexicon:
    """The translations of each source word, most probable first."""

    translations: dict[str, list[str]]

    @staticmethod
    def load(path: str | Path, most: int = 50) -> "Lexicon":
        """Read the `most` most probable translations of each word from lines `target source p(target |
        source)`, or `source target` with equal p. DataError for a malformed line, and without any entry."""
        entries_by_word: dict[str, list[tuple[float, str]]] = {}
        for number, line in enumerate(files.read_lines(path), 1):
            parts = files.split_words(line)
            try:
                if len(parts) == 3:
                    target, source, value = parts[0], parts[1], numbers.real(parts[2])
                elif len(parts) == 2:
                    source, target, value = parts[0], parts[1], 1.0
                else:
                    raise ValueError
            except ValueError as error:
                raise DataError(
                    f"{path}:{number}: expected 'target source probability' or 'source target', found "
                    f"{shown(line, 60)}"
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
        """The most probable translation, or the word itself if it has none."""
        return self.translations.get(word, [word])[0]

    def candidates(self, words: Iterable[str]) -> set[str]:
        """All translations of any of these words."""
        return {target for word in words for target in self.translations.get(word, [])}


def shortlist(lexicon: Lexicon, source: Sequence[str], vocab: Vocab, frequent: int) -> set[int]:
    """Ids of the words that may translate a sentence: those of the lexicon, the `frequent` most frequent
    words of the vocabulary, the reserved symbols and the tags."""
    candidates = {vocab.ids[word] for word in lexicon.candidates(source) if word in vocab.ids}
    return candidates | set(range(min(len(vocab), vocab.first + frequent)))
