"""A naive twin of operation sequences, phrase by phrase: gaps are kept in a dictionary, and operations are
text."""

from collections.abc import Iterable, Sequence

Links = Iterable[tuple[int, int]]


class Story:
    """A derivation that grows phrase by phrase. `names`: its operations; `width`, `opened`, `open`,
    `unlinked`: the counts of Moses' four other scores."""

    def __init__(self, words: int) -> None:
        self.covered = [False] * words
        self.gaps: dict[int, bool] = {}  # first word of each gap: whether it is open
        self.at = self.right = 0
        self.names: list[str] = []
        self.width = self.opened = self.open = self.unlinked = 0

    def add_phrase(
        self, first: int, source: Sequence[str], target: Sequence[str], links: Links, unknown: bool = False
    ) -> None:
        """Append a phrase pair; its first source word is word `first` of the sentence. Source words without
        links come right after the word before them."""
        links = sorted(links)
        alone = {word for word in range(len(source)) if word not in {a for a, _ in links}}

        def produce(word: int, name: str, kind: str) -> None:
            self.produce(first + word, name, kind)
            if word + 1 in alone:
                produce(word + 1, f"_INS_{source[word + 1]}", "inserted")

        if 0 in alone:
            produce(0, f"_INS_{source[0]}", "inserted")
        done: set[int] = set()
        for word in range(len(target)):
            if word in done:
                continue
            sources, targets = cept(word, links)
            done |= targets
            if not sources:
                self.names.append(f"_DEL_{target[word]}")
                continue
            name = f"_TRANS_{'^_^'.join(target[i] for i in sorted(targets))}_TO_"
            name += "^_^".join(source[i] for i in sorted(sources))
            for number, position in enumerate(sorted(sources)):
                if number:
                    produce(position, "_CONT_CEPT_", "continued")
                else:
                    produce(position, "_TRANS_SLF_" if unknown else name, "translated")

    def produce(self, word: int, name: str, kind: str) -> None:
        before = len(self.names)
        if self.at < word:
            if not self.covered[self.at]:
                self.leave_gap()
            if self.at != self.right:
                self.names.append("_JMP_FWD_")
            self.at = word if self.at == self.right else self.right
        if word < self.at:
            if self.at < self.right and not self.covered[self.at]:
                self.leave_gap()
            gaps = sorted((gap for gap, is_open in self.gaps.items() if is_open), reverse=True)
            number, self.at = next((number, gap) for number, gap in enumerate(gaps, 1) if gap <= word)
            self.names.append(f"_JMP_BCK_{number}")
            if self.at == word:
                self.gaps[word] = False
        if self.at < word:
            self.leave_gap()
        self.opened += "_INS_GAP_" in self.names[before:]
        self.names.append(name)
        if kind != "continued":
            self.width += word - self.covered.index(False)
        self.unlinked += kind == "inserted"
        assert not self.covered[word]
        self.covered[word], self.at = True, word + 1
        self.right = max(self.right, self.at)
        self.open += sum(self.gaps.values())

    def leave_gap(self) -> None:
        self.names.append("_INS_GAP_")
        self.gaps[self.at] = True


def cept(word: int, links: Links) -> tuple[set[int], set[int]]:
    """The source and target words that links connect with a target word."""
    sources, targets, size = set[int](), {word}, 0
    while size < len(sources) + len(targets):
        size = len(sources) + len(targets)
        sources |= {a for a, b in links if b in targets}
        targets |= {b for a, b in links if a in sources}
    return sources, targets
