"""Several training corpora: what a configuration says of each, and how often an epoch has its pairs.

An epoch has as many pairs as all corpora together. The share of corpus k, of n_k pairs, is proportional to
(weight_k n_k) ** (1 / temperature): with weights 1, temperature 1 is plain concatenation, and a large one
makes all corpora count alike (Arivazhagan et al. 2019, section 4.2; Aharoni et al. 2019).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nmt import files
from nmt.errors import ConfigError, DataError
from nmt.numbers import shown
from nmt.settings import number, setting
from nmt.text.tokenize import escape
from nmt.text.vocab import SPECIALS

TAG = re.compile(r"<[^\s<>]+>")
BYTE = re.compile(r"<0x[0-9A-F]{2}>")  # a unit of SentencePiece
NEAR = 1e-6  # shares are decimal fractions


@dataclass
class FilterConfig:
    """Which lines of a corpus are used. Lengths are those of nmt-clean: words between blanks; of scripts
    without blanks, two Chinese or Japanese characters, or four letters of Thai, are one. A filter also drops
    lines with an empty side."""

    min_length: int = number(0, least=0, help="fewest words of each side; 0: any")
    max_length: int = number(0, least=0, help="most words of each side; 0: any")
    max_ratio: float = number(0.0, least=0, help="longer side over shorter, at most; 0: any")
    drop_copies: bool = setting(False, help="drop pairs whose target is the source")
    drop_duplicates: bool = setting(False, help="drop pairs that occurred before in this corpus")

    @property
    def active(self) -> bool:
        """Is anything filtered?"""
        return self != FilterConfig()


@dataclass
class CorpusConfig:
    """One of several training corpora."""

    name: str = setting("", help="what messages call it; empty: as its source file")
    source: str = setting("", help="parallel text, line by line")
    target: str = setting("", help="its translation")
    tag: str = setting(
        "",
        help="a token put before each source sentence, <bt>, <2fr> or <med>; it is a unit of its own, and "
        "lines to translate may begin with it",
    )
    weight: float = number(
        1.0,
        above=0,
        most=1e9,
        help="how much a pair of this corpus counts: at temperature 1, with weight 2 it comes twice as often "
        "as one of a corpus with weight 1",
    )
    share: float = number(
        0.0,
        least=0,
        most=1,
        help="instead of weights and temperature: the share of an epoch's pairs that are of this corpus; the "
        "shares of all corpora sum to 1",
    )
    filters: FilterConfig = field(default_factory=FilterConfig)

    @property
    def title(self) -> str:
        """What messages call it."""
        return self.name or Path(self.source).name


def tags_of(corpora: Sequence[CorpusConfig]) -> tuple[str, ...]:
    """The different tags, in their order."""
    return tuple(dict.fromkeys(corpus.tag for corpus in corpora if corpus.tag))


def check(corpora: Sequence[CorpusConfig], temperature: float) -> None:
    """ConfigError for settings that contradict each other; of numbers the range has been checked."""
    if temperature != 1 and not corpora:
        raise ConfigError("data.temperature: there is one corpus only; list several in data.corpora")
    for place, corpus in enumerate(corpora):
        key = f"data.corpora[{place}]"
        for side in ("source", "target"):
            if not getattr(corpus, side):
                raise ConfigError(f"{key}.{side}: missing; each corpus has a source and a target")
        check_tag(corpus.tag, f"{key}.tag")
        limits = corpus.filters
        if 0 < limits.max_length < limits.min_length:
            raise ConfigError(
                f"{key}.filters.max_length: {limits.max_length} is less than min_length {limits.min_length}"
            )
        if 0 < limits.max_ratio < 1:
            raise ConfigError(
                f"{key}.filters.max_ratio: {limits.max_ratio:g} is too small, expected 1 or more, or 0"
            )
    check_shares(corpora, temperature)


def check_tag(tag: str, key: str) -> None:
    """ConfigError for a tag that is not of the form <name>, or means something else."""
    if tag and not (TAG.fullmatch(tag) and tag.isprintable()):
        raise ConfigError(f"{key}: {shown(tag)} is no tag, expected a name between < and >, such as <bt>")
    if tag in SPECIALS or BYTE.fullmatch(tag):
        raise ConfigError(f"{key}: {tag} means something else in vocabularies; choose another name")


def check_shares(corpora: Sequence[CorpusConfig], temperature: float) -> None:
    """ConfigError for shares that do not sum to 1, or that are given beside weights."""
    shares = [corpus.share for corpus in corpora]
    if not any(shares):
        return
    for place, corpus in enumerate(corpora):
        if not corpus.share:
            raise ConfigError(
                f"data.corpora[{place}].share: missing or 0; give each corpus a share above 0, or none"
            )
        if corpus.weight != 1:
            raise ConfigError(
                f"data.corpora[{place}].weight: weights and shares exclude each other; leave out one of them"
            )
    if temperature != 1:
        raise ConfigError("data.temperature: has no meaning beside shares; leave out one of them")
    if abs(sum(shares) - 1) > NEAR:
        found = " + ".join(f"{share:g}" for share in shares)
        raise ConfigError(f"data.corpora: the shares {found} sum to {sum(shares):g}, expected 1")


def check_text(corpora: Sequence[CorpusConfig], thorough: bool) -> None:
    """DataError for files that are missing or empty. `thorough` also reads all text once: for bad text, files
    of unequal length, and lines that have a tag already."""
    tags = tags_of(corpora)
    for corpus in corpora:
        for path in (corpus.source, corpus.target):
            if not Path(path).is_file():
                files.existing([path])
                raise DataError(f"{path}: not a regular file; corpora of a list are read several times")
            if next(iter(files.read_byte_lines(path)), None) is None:
                raise DataError(f"{path}: empty file, expected one sentence a line")
        if thorough:
            files.check_parallel(corpus.source, corpus.target)
            for path in (corpus.source, corpus.target):
                check_untagged(path, tags)


def check_untagged(path: str, tags: Sequence[str]) -> None:
    """DataError for a line with one of the tags, plain or with Moses' escapes."""
    forms = {form.encode(): tag for tag in tags for form in (tag, escape(tag))}
    for place, line in enumerate(files.read_byte_lines(path) if tags else (), 1):
        if b"<" in line or b"&lt;" in line:
            for form, tag in forms.items():
                if form in line:
                    raise DataError(
                        f"{path}:{place}: the text has {tag}, which is a tag in data.corpora; "
                        "remove it from the text, or name the tag otherwise"
                    )


def epoch_counts(sizes: Sequence[int], corpora: Sequence[CorpusConfig], temperature: float) -> list[int]:
    """How many pairs of each corpus an epoch has, given their sizes (at least 1): as near to the shares as
    whole numbers are, by largest remainder."""
    total = sum(sizes)
    wanted = [corpus.share for corpus in corpora]
    if not any(wanted):
        sized = [corpus.weight * size for corpus, size in zip(corpora, sizes, strict=True)]
        wanted = [(value / max(sized)) ** (1 / temperature) for value in sized]
    exact = [total * share / sum(wanted) for share in wanted]
    counts = [int(value) for value in exact]
    by_rest = sorted(range(len(counts)), key=lambda place: (counts[place] - exact[place], place))
    for place in by_rest[: total - sum(counts)]:
        counts[place] += 1
    return counts
