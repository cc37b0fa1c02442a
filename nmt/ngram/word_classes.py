"""Word classes: learned from text, in files `word<TAB>class` like those of mkcls (Och 1999), and in place of
words."""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmt.config.settings import number
from nmt.errors import DataError
from nmt.io import files, numbers
from nmt.io.numbers import shown
from nmt.ngram import exchange
from nmt.ngram.counting import SYMBOLS, Counts, CountSettings
from nmt.ngram.exchange import Bigrams
from nmt.ngram.text_scorer import UNK

log = logging.getLogger(__name__)

WordClasses = dict[str, int]  # the class of each word
PAIRS = CountSettings(order=2)  # how n-grams are counted from which classes are learned


@dataclass
class ClassConfig:
    """How words are put into classes."""

    classes: int = number(200, least=1, help="number of word classes")
    rounds: int = number(
        15, least=1, help="most rounds, in each of which every word may move; fewer if hardly any does"
    )


def learn_classes(counts: Counts, config: ClassConfig) -> WordClasses:
    """Put the words of a text into classes by the exchange algorithm, from the counts of its bigrams. Classes
    are numbered from 1, the most frequent first. <s>, </s> and <unk> stay outside, each by itself.

    At first, words are dealt out to the classes in order of their frequency. Same counts, same classes. Fewer
    words than classes have a class each, with a warning. DataError for a text of <unk> alone."""
    words, (unigrams, pairs) = counts[0], counts[1][:2]
    size, symbols = len(words), len(SYMBOLS)
    if size == symbols:
        raise DataError(f"no words but {UNK} to put into classes")
    count = min(config.classes, size - symbols)
    if count < config.classes:
        log.warning("%d words for %d classes: each word is a class", count, config.classes)
    order = np.argsort(-unigrams.raw[symbols:], kind="stable") + symbols
    classes = np.arange(size) + count  # the symbols, which are numbered first, have the last classes
    classes[order] = np.arange(len(order)) % count
    bigrams = Bigrams(pairs.parents, pairs.keys % size, pairs.raw)
    classes = exchange.cluster(bigrams, classes, count + symbols, symbols, config.rounds)
    frequency = np.bincount(classes[symbols:], unigrams.raw[symbols:], minlength=count)
    rank = np.empty(count, np.int64)
    rank[np.argsort(-frequency, kind="stable")] = np.arange(1, count + 1)
    return dict(zip(words[symbols:], rank[classes[symbols:]].tolist(), strict=True))


def write_classes(path: str | Path, classes: WordClasses) -> None:
    """Write the class of each word, sorted by word. UserError if that fails."""
    files.write_text(path, (f"{word}\t{classes[word]}" for word in sorted(classes)))


def read_classes(path: str | Path) -> WordClasses:
    """Read the classes of `write_classes`, or of mkcls. DataError for any other line, for a word that occurs
    twice, and for a file without words."""
    classes: WordClasses = {}
    for row, line in enumerate(files.read_lines(path), 1):
        word, tab, text = line.partition("\t")
        try:
            if not tab or files.split_words(word) != [word]:
                raise ValueError
            index = numbers.count(text)
        except ValueError as error:
            raise DataError(
                f"{path}:{row}: expected 'word<TAB>class', the class a whole number, found {shown(line)}"
            ) from error
        if word in classes:
            raise DataError(f"{path}:{row}: {shown(word)} has a class above; remove one of them")
        classes[word] = index
    if not classes:
        raise DataError(f"{path}: no words, expected lines 'word<TAB>class'")
    return classes


def class_lines(classes: WordClasses, lines: Iterable[str]) -> Iterator[str]:
    """Replace each word of tokenized lines by the number of its class, or by UNK if it has none."""
    names = {word: str(index) for word, index in classes.items()}
    for line in lines:
        yield " ".join([names.get(word, UNK) for word in files.split_words(line)])
