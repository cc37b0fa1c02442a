"""Text with planted discourse: sentences say their place, and what conjunction they follow."""

import random

from nmt.data.running import as_corpus
from nmt.papers.discourse.objectives import KINDS, Paragraphs
from nmt.text.vocab import Vocab

FIRST = {kind: phrases.split(", ")[0].capitalize() for kind, phrases in KINDS.items()}


def planted(paragraphs: int, seed: int = 0, length: int = 10) -> list[list[str]]:
    """Lines of `length` sentences a paragraph: some words at random, one that counts from 0. From the second
    on, a third begins with a conjunction, whose kind is a word of the sentence, too."""
    rng, lines = random.Random(seed), []
    for _ in range(paragraphs):
        for place in range(length):
            words = [f"w{rng.randint(0, 5)}", f"n{place}", f"w{rng.randint(0, 5)}"]
            if place and not rng.randint(0, 2):
                kind = rng.choice(list(KINDS))
                words = [*FIRST[kind].split(), ",", *words, f"k{kind}"]
            lines.append(words)
        lines.append([])
    return lines


def paragraphs_of(lines: list[list[str]], vocab: Vocab | None = None) -> Paragraphs:
    """A text by its paragraphs."""
    vocab = vocab or Vocab.count(lines, 999)
    return Paragraphs.of(as_corpus([vocab.encode(line) for line in lines]), vocab.words)
