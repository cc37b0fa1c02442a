"""Selects the pairs of a parallel corpus that are worth training on, and reports why the others were
dropped."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

from nmt.config import settings
from nmt.config.settings import choice, number, setting
from nmt.errors import ConfigError
from nmt.io import files
from nmt.text.scripts import character_length, line_length

LENGTHS: dict[str, Callable[[str], int]] = {
    "auto": line_length,
    "word": lambda line: len(files.split_words(line)),
    "character": character_length,
}
REASONS = ("empty", "short", "long", "ratio", "duplicate")


@dataclass
class CleanConfig:
    """Limits for pairs of a parallel corpus. Moses' clean-corpus-n.perl has the same ratio, and is often
    called with 80 words."""

    min_length: int = number(1, least=1, help="fewest words (see --unit) of each side")
    max_length: int = number(80, least=1, help="most words of each side")
    ratio: float = number(9.0, least=0, help="longer side over shorter, at most; 0: any")
    unit: str = choice(
        *LENGTHS,
        help="unit of lengths. word: words between blanks; auto: the same, but in scripts without blanks two "
        "Chinese or Japanese characters, or four letters of Thai, Lao, Tibetan, Khmer or Burmese, count as a "
        "word",
    )
    keep_duplicates: bool = setting(False, help="keep pairs that occurred before")

    def check(self) -> None:
        """ConfigError for limits that contradict each other."""
        settings.check(self)
        if self.min_length > self.max_length:
            raise ConfigError(
                f"lengths: expected minimum <= maximum, found {self.min_length} and {self.max_length}"
            )
        if self.ratio and self.ratio < 1:
            raise ConfigError(f"ratio: {self.ratio:g} is too small, expected 1 or more, or 0 for any")


@dataclass
class CleanReport:
    """Numbers of pairs: all, those that are kept, and those that are dropped by reason."""

    pairs: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)  # by the first of REASONS that applies

    def lines(self) -> Iterator[str]:
        """The report as tab-separated lines of reason and number of pairs."""
        yield "reason\tpairs"
        yield f"kept\t{self.kept}"
        yield from (f"{reason}\t{self.dropped[reason]}" for reason in REASONS)


def reason_against(source: str, target: str, config: CleanConfig) -> str:
    """The reason to drop a pair of lines: the first of REASONS that applies, or empty if there is none.
    Duplicates are detected by `clean`, not here."""
    length = LENGTHS[config.unit]
    lengths = length(source), length(target)
    if not min(lengths):
        return "empty"
    if min(lengths) < config.min_length:
        return "short"
    if max(lengths) > config.max_length:
        return "long"
    if config.ratio and max(lengths) > config.ratio * min(lengths):
        return "ratio"
    return ""


def clean(
    pairs: Iterable[tuple[str, ...]], config: CleanConfig, report: CleanReport
) -> Iterator[tuple[str, ...]]:
    """Yield the pairs that are kept, in order, and count all pairs in `report`.

    Duplicates are detected by 128-bit digests of their text: about 100 MB per million pairs.
    """
    seen: set[bytes] = set()
    for pair in pairs:
        report.pairs += 1
        reason = reason_against(pair[0], pair[1], config)
        if not reason and not config.keep_duplicates:
            key = blake2b("\n".join(pair).encode(), digest_size=16).digest()
            reason = "duplicate" if key in seen else ""
            seen.add(key)
        if reason:
            report.dropped[reason] += 1
        else:
            report.kept += 1
            yield pair
