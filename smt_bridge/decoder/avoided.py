"""Phrases that a translation may not contain."""

from collections.abc import Iterable, Sequence


class AvoidedPhrases:
    """Phrases as words of the target side, by their first word."""

    def __init__(self, phrases: Iterable[Sequence[str]]) -> None:
        self.by_first: dict[str, list[list[str]]] = {}
        for phrase in phrases:
            if phrase:
                self.by_first.setdefault(phrase[0], []).append(list(phrase))

    def __bool__(self) -> bool:
        return bool(self.by_first)

    def occurs(self, words: Sequence[str]) -> bool:
        """Whether one of the phrases is in a text."""
        return any(
            list(words[start : start + len(phrase)]) == phrase
            for start, word in enumerate(words)
            for phrase in self.by_first.get(word, ())
        )


NOTHING = AvoidedPhrases([])
