"""Generated text: sentences as long as those of news, whose words follow Zipf's law."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.io import files
from nmt.text.vocab import Vocab

MEAN, DEVIATION, SHORTEST, LONGEST = 23, 12, 3, 50  # words of a sentence of news
Ints = NDArray[np.int64]


def sentences(lengths: Ints, words: int, generator: np.random.Generator) -> list[Ints]:
    """Sentences of these lengths: numbers below `words`, number k with a probability of 1 / (k + 1)."""
    shares = 1 / np.arange(1, words + 1)
    flat = generator.choice(words, int(lengths.sum()), p=shares / shares.sum())
    return np.split(flat, np.cumsum(lengths)[:-1])


def pairs_of_sentences(
    pairs: int, words: int, seed: int, mean: float = MEAN, deviation: float = DEVIATION
) -> tuple[list[Ints], list[Ints]]:
    """Sources and targets. A target is as long as its source, give or take 15%."""
    generator = np.random.default_rng(seed)
    sources = np.clip(generator.normal(mean, deviation, pairs).round(), SHORTEST, LONGEST).astype(np.int64)
    factors = generator.uniform(0.85, 1.15, pairs)
    targets = np.clip((sources * factors).round(), SHORTEST, LONGEST).astype(np.int64)
    return sentences(sources, words, generator), sentences(targets, words, generator)


def write_text(folder: Path, pairs: int, words: int, seed: int) -> None:
    """Write train.src and train.tgt, words `w0`, `w1` and so on, and words.vocab, a vocabulary of all
    `words`, to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, side in zip(("src", "tgt"), pairs_of_sentences(pairs, words, seed), strict=True):
        files.write_text(folder / f"train.{name}", (" ".join(f"w{word}" for word in row) for row in side))
    Vocab({f"w{word}": words - word for word in range(words)}, words).save(folder / "words.vocab")
