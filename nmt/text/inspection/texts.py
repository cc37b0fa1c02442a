"""What an inspection counts: one side of a parallel text, both sides read together, repeated lines."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.errors import DataError
from nmt.io import files
from nmt.io.manifest import digest64
from nmt.text.clean import CleanConfig, reason_against
from nmt.text.inspection.checks import CAPITAL, CHECKS, NOWHERE, Punctuation
from nmt.text.inspection.language import WORD, Guess, LanguageCounts, script_of_line
from nmt.text.scripts import line_length

# ---- repeated lines ----------------------------------------------------------------------------------------
# Lines that occur more than once, found by 64-bit digests: 8 bytes a line, and 32 more while the repeated
# ones are counted. Of 100 million lines two are taken for equal once in 4,000 texts.


Digests = NDArray[np.uint64]


def line_digest(line: str) -> int:
    """Of the text of a line."""
    return int.from_bytes(digest64(line.encode("utf-8", "surrogatepass")), "little")


@dataclass(frozen=True)
class RepeatedLines:
    """How many lines repeat an earlier one; the numbers of the first of them and of the line it repeats, from
    1."""

    lines: int
    first: tuple[int, int] | None


class Digests64:
    """The digests of the lines of a text, in their order."""

    def __init__(self) -> None:
        self.kept = array("Q")

    def __len__(self) -> int:
        return len(self.kept)

    def add(self, line: str) -> None:
        """Add the digest of the next line."""
        self.kept.append(line_digest(line))

    def values(self) -> Digests:
        """The digests as an array, (n,)."""
        return np.frombuffer(self.kept, np.uint64) if self.kept else np.zeros(0, np.uint64)

    def repeated(self) -> RepeatedLines:
        """Lines that have occurred before."""
        order = np.argsort(self.values(), kind="stable")
        ordered = self.values()[order]
        again = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
        if not len(again):
            return RepeatedLines(0, None)
        position = again[np.argmin(order[again])]  # the second of its kind: no third one comes before it
        return RepeatedLines(len(again), (int(order[position]) + 1, int(order[position - 1]) + 1))

    def unique(self) -> NDArray[np.bool_]:
        """Which lines occur once: (n,)"""
        values, counts = np.unique(self.values(), return_counts=True)
        result: NDArray[np.bool_] = counts[np.searchsorted(values, self.values())] == 1
        return result

    def within(self, others: "Digests64") -> "SharedLines":
        """Lines that another text has, too."""
        order = np.argsort(others.values(), kind="stable")
        ordered, mine = others.values()[order], self.values()
        positions = np.searchsorted(ordered, mine)
        inside = positions < len(ordered)
        inside[inside] = ordered[positions[inside]] == mine[inside]
        shared = np.flatnonzero(inside)
        first = (int(shared[0]) + 1, int(order[positions[shared[0]]]) + 1) if len(shared) else None
        return SharedLines(len(shared), first)


@dataclass(frozen=True)
class SharedLines:
    """How many lines another text has, too; the number of the first, here and there, from 1."""

    lines: int
    first: tuple[int, int] | None


# ---- one side ----------------------------------------------------------------------------------------------
# One side of a parallel text: what was found in its lines, with examples.


EXAMPLES = 2  # of each kind
SHOWN, BEFORE = 60, 20  # characters of an example; of those, the ones before the place
COUNTED = 200_000  # lines, from the first on, whose words are counted: at most some 100 MB
BAD, BOM, RETURNS = "encoding", "byte order mark", "carriage returns"  # found in bytes, not in characters


@dataclass
class Lengths:
    """Numbers of words of the lines that are not empty."""

    counts: Counter[int] = field(default_factory=Counter)

    def mean(self) -> float:
        return sum(length * count for length, count in self.counts.items()) / max(1, self.counts.total())

    def quantile(self, share: float) -> int:
        """The length that so many of the lines do not exceed; 0 without lines."""
        left = share * self.counts.total()
        for length in sorted(self.counts):
            left -= self.counts[length]
            if left <= 0:
                return length
        return max(self.counts, default=0)


@dataclass
class SideReport:
    """Counts and examples of problems in one text."""

    path: str
    lines: int = 0
    counts: Counter[str] = field(default_factory=Counter)  # lines by name of a check
    examples: dict[str, list[str]] = field(default_factory=dict)  # file:line: text
    lengths: Lengths = field(default_factory=Lengths)
    scripts: Counter[str] = field(default_factory=Counter)  # lines of each
    languages: LanguageCounts = field(default_factory=LanguageCounts)
    capitals: int = 0  # lines with a capital letter
    punctuation: Punctuation = field(default_factory=Punctuation)
    words: Counter[str] = field(default_factory=Counter)  # of the first lines, lower-cased, only of letters
    digests: Digests64 = field(default_factory=Digests64)

    def add(self, number: int, line: str) -> None:
        self.digests.add(line)
        for name, check in CHECKS.items():
            position = check.position(line)
            if position != NOWHERE:
                self.note(name, number, line, position)
        if not line.strip():
            return
        self.lengths.counts[line_length(line)] += 1
        self.languages.add(line)
        script = script_of_line(line)
        self.scripts[script] += 1
        self.keep_example(f"script {script}", number, line, 0)
        self.capitals += bool(CAPITAL.search(line))
        self.punctuation.add(line)
        if number <= COUNTED:
            self.words.update(WORD.findall(line.lower()))

    def note(self, name: str, number: int, line: str, position: int = 0) -> None:
        """Something was found in a line."""
        self.counts[name] += 1
        self.keep_example(name, number, line, position)

    def keep_example(self, name: str, number: int, line: str, position: int) -> None:
        """The first lines of each kind are shown."""
        examples = self.examples.setdefault(name, [])
        if len(examples) < EXAMPLES:
            examples.append(f"{self.path}:{number}: {excerpt(line, position)}")

    def guess(self) -> Guess:
        """Guess script and language of the text."""
        return self.languages.guess()

    def has_case(self) -> bool:
        """Are there capital letters in more than one of 50 lines?"""
        return 50 * self.capitals > self.lines

    def is_tokenized(self) -> bool:
        """Are full stops and commas words of their own nearly everywhere?"""
        return self.punctuation.is_tokenized()

    def once(self) -> float:
        """The share of running words that occur once in the text: about as many are unknown in new text."""
        total = self.words.total()
        return sum(1 for count in self.words.values() if count == 1) / max(1, total)


def excerpt(line: str, position: int) -> str:
    """The part of a line around a place, as a terminal can show it."""
    start = max(0, position - BEFORE) if position > SHOWN - BEFORE else 0
    part = line[start : start + SHOWN]
    shown = "".join(character if character.isprintable() else ascii(character)[1:-1] for character in part)
    return f"{'...' if start else ''}{shown}{'...' if start + SHOWN < len(line) else ''}"


def inspected_lines(path: str | Path, report: SideReport) -> Iterator[str]:
    """The lines of a file, those that are not UTF-8 too, with U+FFFD for what is wrong: they are counted in
    the report, and shown by what `nmt.io.files.read_lines` would say."""
    for number, raw in enumerate(files.read_byte_lines(path), 1):
        report.lines = number
        if number == 1 and raw.startswith(b"\xef\xbb\xbf"):
            report.counts[BOM] += 1
            raw = raw[3:]
        if raw.endswith(b"\r"):
            report.note(RETURNS, number, raw[:-1].decode("utf-8", "replace"))
            raw = raw[:-1]
        try:
            line = files.decode(raw, path, number)
        except DataError as error:
            line = raw.decode("utf-8", "replace").replace("\ufffd", "?").replace("\0", "?")
            report.counts[BAD] += 1
            examples = report.examples.setdefault(BAD, [])
            if len(examples) < EXAMPLES:
                examples.append(str(error))
        yield line


# ---- both sides --------------------------------------------------------------------------------------------
# Both sides of a parallel text, read together: repeated pairs, copies, what nmt-clean would drop.


SAME = "same"  # source and target are one text


@dataclass
class PairReport:
    """Counts and examples of problems in a parallel text. Memory: 25 bytes a pair, 32 more while repeated
    lines are counted, and at most some 200 MB for words."""

    source: SideReport
    target: SideReport
    reasons: Counter[str] = field(default_factory=Counter)  # pairs that nmt-clean would drop; SAME
    examples: dict[str, list[str]] = field(default_factory=dict)
    digests: Digests64 = field(default_factory=Digests64)  # of the pairs
    sound: bytearray = field(default_factory=bytearray)  # of each pair: 1 where nothing speaks against it

    @property
    def sides(self) -> tuple[SideReport, SideReport]:
        return self.source, self.target

    @property
    def pairs(self) -> int:
        """Lines that both sides have."""
        return min(self.source.lines, self.target.lines)

    @property
    def usable(self) -> int:
        """Pairs without an empty side."""
        return self.pairs - self.reasons["empty"]

    def add(self, number: int, source: str, target: str, config: CleanConfig) -> None:
        self.digests.add(f"{source}\n{target}")
        reason = reason_against(source, target, config)
        if not reason and source == target:
            reason = SAME
        if reason:
            self.note(reason, number, source, target)
        self.sound.append(not reason)

    def note(self, name: str, number: int, source: str, target: str) -> None:
        """Something was found in a pair."""
        self.reasons[name] += 1
        examples = self.examples.setdefault(name, [])
        if len(examples) < EXAMPLES:
            half = 40
            examples.append(f"line {number}: {excerpt(source[:half], 0)} | {excerpt(target[:half], 0)}")


def inspect_pairs(source: str, target: str, passed: Callable[[int], None] = lambda count: None) -> PairReport:
    """Read both files once. `passed` is told of the pairs that were read. DataError for a file that cannot be
    read; bad bytes and unequal lengths are in the report."""
    report = PairReport(SideReport(files.name_of(source)), SideReport(files.name_of(target)))
    config = CleanConfig()
    rows = zip_longest(inspected_lines(source, report.source), inspected_lines(target, report.target))
    for number, (source_line, target_line) in enumerate(rows, 1):
        for side, line in zip(report.sides, (source_line, target_line), strict=True):
            if line is not None:
                side.add(number, line)
        if source_line is not None and target_line is not None:
            report.add(number, source_line, target_line, config)
        passed(1)
    return report
