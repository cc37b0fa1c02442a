"""One side of a parallel text: what was found in its lines, with examples."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nmt import files
from nmt.errors import DataError
from nmt.text.inspection.checks import CAPITAL, CHECKS, NOWHERE
from nmt.text.inspection.language import WORD, Guess, LanguageCounts, script_of_line
from nmt.text.inspection.repeats import Digests64
from nmt.text.inspection.tokenized import Punctuation
from nmt.text.units import line_length

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
    """What was found in a text."""

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
        """Count a line."""
        self.digests.add(line)
        for name, check in CHECKS.items():
            place = check.where(line)
            if place != NOWHERE:
                self.note(name, number, line, place)
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

    def note(self, name: str, number: int, line: str, place: int = 0) -> None:
        """Something was found in a line."""
        self.counts[name] += 1
        self.keep_example(name, number, line, place)

    def keep_example(self, name: str, number: int, line: str, place: int) -> None:
        """The first lines of each kind are shown."""
        kept = self.examples.setdefault(name, [])
        if len(kept) < EXAMPLES:
            kept.append(f"{self.path}:{number}: {excerpt(line, place)}")

    def guess(self) -> Guess:
        """Its script and language."""
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


def excerpt(line: str, place: int) -> str:
    """The part of a line around a place, as a terminal can show it."""
    begin = max(0, place - BEFORE) if place > SHOWN - BEFORE else 0
    part = line[begin : begin + SHOWN]
    shown = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in part)
    return f"{'...' if begin else ''}{shown}{'...' if begin + SHOWN < len(line) else ''}"


def lines_of(path: str | Path, report: SideReport) -> Iterator[str]:
    """The lines of a file, those that are not UTF-8 too, with U+FFFD for what is wrong: they are counted in
    the report, and shown by what `nmt.files.read_lines` would say."""
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
            kept = report.examples.setdefault(BAD, [])
            if len(kept) < EXAMPLES:
                kept.append(str(error))
        yield line
