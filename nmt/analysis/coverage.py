"""Do a text and a list of words have the same form? Counting the words of one in the other means little
otherwise."""

import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from nmt.errors import ConfigError

log = logging.getLogger(__name__)

FEW = 20  # running words: too few to judge by
SUSPICIOUS = 0.02  # share of words that are missing
MOST = 0.5  # with a larger share missing and a known reason, the words are refused
SUBWORDS = 0.05  # share of entries that are marked as subword units

Words = Mapping[str, int]  # words of a text and how often each occurs


def lowered(words: Iterable[str]) -> set[str]:
    return {word.lower() for word in words}


def parts(word: str) -> list[str]:
    """The word without the punctuation around it."""
    return re.findall(r"^\W+|\w(?:.*\w)?|\W+$", word) or [word]


def missing(text: Words, known: Collection[str], split: Callable[[str], list[str]]) -> float:
    """Running words of a text, each made other ones by `split`, that are not known, in units of words."""
    return sum(
        count * sum(part not in known for part in found) / len(found)
        for word, count in text.items()
        if (found := split(word))
    )


def reasons(text: Words, known: Collection[str], others: Collection[str]) -> Iterator[tuple[str, float]]:
    """What may be wrong, and how many running words would still be missing if it were put right."""
    found: list[tuple[str, Collection[str], Callable[[str], list[str]]]] = [
        (
            "its words are lower-cased and the text is not: lower-case the text",
            known,
            lambda word: [word.lower()],
        ),
        (
            "the text is lower-cased and its words are not: give the text as it was",
            lowered(known),
            lambda word: [word],
        ),
        ("the text is not tokenized as its words are: give it as nmt-tokenize writes it", known, parts),
        (
            "the text is neither tokenized nor lower-cased as its words are: see nmt-tokenize --lower",
            known,
            lambda word: parts(word.lower()),
        ),
        ("source and target are exchanged", others, lambda word: [word]),
    ]
    for reason, words, split in found:
        yield reason, missing(text, words, split)


def likely_reason(text: Words, known: Collection[str], others: Collection[str]) -> tuple[float, str]:
    """The share of running words that are missing, and why: the first reason that explains most of the words
    that any reason explains, if that is half of them; "" for none."""
    total, absent = sum(text.values()), missing(text, known, lambda word: [word])
    if absent < SUSPICIOUS * total or not absent:
        return absent / total if total else 0.0, ""
    found = list(reasons(text, known, others))
    fewest = min(left for _, left in found)
    if fewest > absent / 2:
        return absent / total, ""
    nearly = fewest + (absent - fewest) / 10
    return absent / total, next(reason for reason, left in found if left <= nearly)


def is_subwords(known: Collection[str]) -> bool:
    """Are these units of BPE (`lower@@`) or SentencePiece (`\u2581case`)?"""
    marked = sum(word.endswith("@@") or word.startswith("\u2581") for word in known)
    return marked > SUBWORDS * len(known)


def check(lines: Iterable[list[str]], known: Collection[str], others: Collection[str], name: str) -> None:
    """Are the words of these lines of the same form as `known`, which `name` names?

    ConfigError for subword units, and for words of which most are missing in the text for a reason that we
    see; a warning where it is a smaller part, or where we see none. `others`: the words of the other side.
    """
    if is_subwords(known):
        raise ConfigError(
            f"{name}: holds subword units, but the text has words; make word vocabularies with nmt-vocab, or "
            "take by-rare or by-segmented"
        )
    text = Counter(word for words in lines for word in words)
    if text.total() < FEW:
        return
    share, reason = likely_reason(text, known, others)
    says = f"{name}: {share:.0%} of the running words of the text are not in it"
    if reason and share > MOST:
        raise ConfigError(f"{says}; probably {reason}")
    if reason:
        log.warning("%s; probably %s", says, reason)
    elif share > MOST:
        log.warning("%s: are both of one language and form?", says)
