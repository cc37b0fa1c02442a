"""Translations as sequences of operations (Durrani et al. 2011; Durrani et al. 2015), with the rules and
names of Moses' generateSequences and OpSequenceModel.

The target sentence is produced from left to right, and each of its words together with the source words that
are linked to it. A cept is a set of source and target words that links connect. A gap is a stretch of source
words that was skipped, left of the rightmost word produced so far.

Their names may have classes in place of words (Durrani et al. 2014).

    _TRANS_t1^_^t2_TO_s1^_^s2   a cept, at its first source word
    _CONT_CEPT_                 the next source word of the cept
    _INS_s                      an unlinked source word, right after the source word before it
    _DEL_t                      an unlinked target word
    _TRANS_SLF_                 a word that stays as it is: an unknown one, or one linked once to itself
    _INS_GAP_                   the source words from here on are left for later
    _JMP_BCK_n                  go back to the n-th open gap from the right
    _JMP_FWD_                   go to the first word right of all produced ones

`er hat ein eis gegessen` - `he ate an ice` with the links 0-0 4-1 1-1 2-2 3-3:

    _TRANS_he_TO_er _TRANS_ate_TO_hat^_^gegessen _INS_GAP_ _CONT_CEPT_ _JMP_BCK_1 _TRANS_an_TO_ein
    _TRANS_ice_TO_eis
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from nmt.formats import pharaoh
from nmt.formats.pharaoh import Links
from nmt.io import files

JOIN = "^_^"  # between the words of a cept
COPY, GAP, FORWARD, BACK, CONTINUE = "_TRANS_SLF_", "_INS_GAP_", "_JMP_FWD_", "_JMP_BCK_", "_CONT_CEPT_"
UNKNOWN_CLASS = "<unk>"
TRANSLATE = "_TRANS_"  # how the names of translations begin, COPY included
TRANSLATED, CONTINUED, INSERTED, DELETED = range(4)  # kinds of planned operations


def count_scores(options: Mapping[str, str]) -> int:
    """The number of scores of an OpSequenceModel with these arguments. Moses decides it by support-features=
    alone, and only by the word `no`."""
    return 1 if options.get("support-features") == "no" else 5


class PlannedOperation(NamedTuple):
    """An operation that produces a word. Which jumps come before it depends on what was produced before."""

    kind: int
    position: int  # of the source word that it produces; -1 for an unlinked target word
    sources: tuple[int, ...] = ()  # words of the cept, or the unlinked one, in increasing order
    targets: tuple[int, ...] = ()

    def name(self, source: Sequence[str], target: Sequence[str]) -> str:
        """The name of the operation in a sentence or phrase pair of these words."""
        if self.kind == TRANSLATED:
            return f"{TRANSLATE}{join_words(target, self.targets)}_TO_{join_words(source, self.sources)}"
        if self.kind == INSERTED:
            return f"_INS_{source[self.position]}"
        return f"_DEL_{target[self.targets[0]]}" if self.kind == DELETED else CONTINUE


class ClassMaps(NamedTuple):
    """The word classes of both sides."""

    source: Mapping[str, int]
    target: Mapping[str, int]

    def apply(self, source: Sequence[str], target: Sequence[str]) -> tuple[list[str], list[str]]:
        """The classes of the words of a sentence or phrase pair; UNKNOWN_CLASS for words without one."""
        first, second = (
            [str(classes.get(word, UNKNOWN_CLASS)) for word in words]
            for classes, words in zip(self, (source, target), strict=True)
        )
        return first, second


def join_words(words: Sequence[str], positions: Iterable[int]) -> str:
    """The words of one side of a cept, as an operation names them."""
    return JOIN.join([words[position] for position in positions])


def plan(points: Iterable[tuple[int, int]], source: int, target: int) -> list[PlannedOperation]:
    """The operations that produce the words of a sentence or phrase pair, in order. `points`: its links
    (source, target); `source`, `target`: its numbers of words."""
    cepts = find_cepts(points)
    linked = {word for sources, _ in cepts.values() for word in sources}
    operations: list[PlannedOperation] = []

    def insert_from(position: int) -> None:
        while position < source and position not in linked:
            operations.append(PlannedOperation(INSERTED, position, (position,)))
            position += 1

    insert_from(0)
    unlinked = {*range(target)} - {word for _, targets in cepts.values() for word in targets}
    for word in range(target):
        if word in unlinked:
            operations.append(PlannedOperation(DELETED, -1, (), (word,)))
        elif word in cepts:
            sources, targets = cepts[word]
            for position in sources:
                kind = TRANSLATED if position == sources[0] else CONTINUED
                operations.append(PlannedOperation(kind, position, sources, targets))
                insert_from(position + 1)
    return operations


def find_cepts(points: Iterable[tuple[int, int]]) -> dict[int, tuple[tuple[int, ...], tuple[int, ...]]]:
    """The cepts that links connect: first target word -> (source words, target words), both sorted."""
    of_source: dict[int, tuple[set[int], set[int]]] = {}
    of_target: dict[int, tuple[set[int], set[int]]] = {}
    for source, target in points:
        first = of_source.setdefault(source, ({source}, set()))
        second = of_target.setdefault(target, first)
        first[1].add(target)
        if second is not first:
            first[0].update(second[0])
            first[1].update(second[1])
            of_source.update(dict.fromkeys(second[0], first))
            of_target.update(dict.fromkeys(second[1], first))
    return {
        min(targets): (tuple(sorted(sources)), tuple(sorted(targets)))
        for sources, targets in of_target.values()
    }


class SourceWalk:
    """The way through a source sentence: which of its words were produced, and where the next word would be
    produced without a jump."""

    def __init__(self, words: int) -> None:
        self.covered = [False] * (words + 1)
        self.next = self.end = 0  # after the word produced last; after the rightmost one

    def produce(self, position: int) -> list[str]:
        """Produce the word at `position`; returns the jumps that lead there."""
        jumps = []
        if self.next < position:
            if not self.covered[self.next]:
                jumps.append(GAP)
            if self.next == self.end:
                self.next = position
            else:
                jumps.append(FORWARD)
                self.next = self.end
        if position < self.next:
            if self.next < self.end and not self.covered[self.next]:
                jumps.append(GAP)
            gaps = self.gaps()
            self.next = max(start for start in gaps if start <= position)
            jumps.append(f"{BACK}{sum(start >= self.next for start in gaps)}")
        if self.next < position:
            jumps.append(GAP)
        self.covered[position], self.next = True, position + 1
        self.end = max(self.end, self.next)
        return jumps

    def gaps(self) -> list[int]:
        """First words of the stretches that were skipped."""
        covered = [True, *self.covered]
        return [word for word in range(self.end) if covered[word] and not covered[word + 1]]


def sequence(
    source: Sequence[str],
    target: Sequence[str],
    links: Iterable[tuple[int, int]],
    copied: Container[str] = (),
    classes: ClassMaps | None = None,
) -> list[str]:
    """The operations of a sentence pair. `copied`: source words, or those of a cept joined by JOIN, whose
    translation is COPY; `classes`: what the names of operations have in place of words; None: the words."""
    named = classes.apply(source, target) if classes else (source, target)
    walk, operations = SourceWalk(len(source)), list[str]()
    for operation in plan(links, len(source), len(target)):
        if operation.position >= 0:
            operations += walk.produce(operation.position)
        is_copy = operation.kind == TRANSLATED and join_words(source, operation.sources) in copied
        operations.append(COPY if is_copy else operation.name(*named))
    return operations


# ---- corpora -----------------------------------------------------------------------------------------------

AlignedRow = tuple[list[str], list[str], Links]


def read_aligned(source: str, target: str, alignment: str) -> Iterator[AlignedRow]:
    """Read the words and links of each sentence pair, given the paths of two texts and their alignment.
    DataError, with file and line, for malformed links, for links outside their sentences, and for unequal
    numbers of lines."""
    name = files.name_of(alignment)
    for number, (first, second, points) in enumerate(files.parallel(source, target, alignment), 1):
        words, translation = files.split_words(first), files.split_words(second)
        links = pharaoh.parse(points, f"{name}:{number}")
        pharaoh.check_points(links, len(words), len(translation), f"{name}:{number}")
        yield words, translation, links


def copied_words(rows: Iterable[AlignedRow]) -> set[str]:
    """The source words that have a single link in the whole text, to the same word, which has no other one:
    their translation is COPY, so that the model learns the contexts of unknown words."""
    counts = Counter[str]()
    for source, target, links in rows:
        sources, targets = (Counter(link[side] for link in links) for side in (0, 1))
        for first, second in links:
            alone = sources[first] == targets[second] == 1 and source[first] == target[second]
            counts[source[first]] += 1 if alone else 2
    return {word for word, count in counts.items() if count == 1}


def operation_lines(
    source: str, target: str, alignment: str, classes: ClassMaps | None = None
) -> Iterator[str]:
    """The operations of each sentence pair of a text, with blanks between them. `classes`: as for `sequence`.
    Errors as from `read_aligned`."""
    copied = copied_words(read_aligned(source, target, alignment))
    for words, translation, links in read_aligned(source, target, alignment):
        yield " ".join(sequence(words, translation, links, copied, classes))
