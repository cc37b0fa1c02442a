"""Both sides of a parallel text, read together: repeated pairs, copies, what nmt-clean would drop."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import zip_longest

from nmt import files
from nmt.text.clean import CleanConfig, reason_against
from nmt.text.inspection.repeats import Digests64
from nmt.text.inspection.side import EXAMPLES, SideReport, excerpt, lines_of

SAME = "same"  # source and target are one text


@dataclass
class PairReport:
    """What was found in a parallel text. Memory: 25 bytes a pair, 32 more while repeated lines are counted,
    and at most some 200 MB for words."""

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
        """Count a pair."""
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
        kept = self.examples.setdefault(name, [])
        if len(kept) < EXAMPLES:
            half = 40
            kept.append(f"line {number}: {excerpt(source[:half], 0)} | {excerpt(target[:half], 0)}")


def inspect(source: str, target: str, passed: Callable[[int], None] = lambda count: None) -> PairReport:
    """Read both files once. `passed` is told of the pairs that were read. DataError for a file that cannot be
    read; bad bytes and unequal lengths are in the report."""
    report = PairReport(SideReport(files.name_of(source)), SideReport(files.name_of(target)))
    config = CleanConfig()
    rows = zip_longest(lines_of(source, report.source), lines_of(target, report.target))
    for number, (one, other) in enumerate(rows, 1):
        for side, line in zip(report.sides, (one, other), strict=True):
            if line is not None:
                side.add(number, line)
        if one is not None and other is not None:
            report.add(number, one, other, config)
        passed(1)
    return report
