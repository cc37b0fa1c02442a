"""Generate text of known entropy. Each word belongs to a class, the class of a word depends on that of the
previous word, and words of a class follow Zipf's law.

usage: generated_text.py DIR [--words 30000] [--classes 60] [--lines 60000] [--seed 1]

Writes train.txt, dev.txt and test.txt, and prints the perplexity of the source, end symbols included: no
model can do better in the long run.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
END = 0.06  # probability that a sentence ends after a word
HELD_OUT = 2000  # lines of dev.txt and of test.txt, at most a tenth of those of train.txt
BRANCHES = 4  # approximate number of classes that can follow a class


class Source:
    """A random text source over word classes 0 .. C - 1; C is the end symbol."""

    def __init__(self, words: int, classes: int, seed: int) -> None:
        """`words`: size of the vocabulary; `classes`: number of classes C."""
        rng = np.random.default_rng(seed)
        follow = rng.dirichlet(np.full(classes, BRANCHES / classes), classes + 1)
        ends = np.full((classes + 1, 1), END)
        ends[classes] = 0  # no empty sentence
        self.follow = np.hstack([follow * (1 - ends), ends])  # (C + 1, C + 1)
        self.words = np.array_split(rng.permutation(words), classes)
        self.shares = [zipf(len(part)) for part in self.words]

    def entropy(self) -> float:
        """Entropy per word, in nats, counting end symbols as words."""
        steady = np.full(len(self.follow), 1 / len(self.follow))
        for _ in range(2000):
            steady = steady @ self.follow
        inside = np.array([*(entropy(share) for share in self.shares), 0.0])
        return float(steady @ (np.array([entropy(row) for row in self.follow]) + self.follow @ inside))

    def lines(self, count: int, seed: int) -> list[str]:
        """Generate `count` sentences, whose words are such as w17."""
        rng, sentences, end = np.random.default_rng(seed), list[str](), len(self.words)
        follow, inside = self.follow.cumsum(1), [share.cumsum() for share in self.shares]
        for _ in range(count):
            line, now = list[str](), end
            while (now := draw(follow[now], rng)) != end:
                line.append(f"w{self.words[now][draw(inside[now], rng)]}")
            sentences.append(" ".join(line))
        return sentences


def draw(sums: Floats, rng: np.random.Generator) -> int:
    """Draw an outcome, given cumulative probabilities."""
    return min(int(np.searchsorted(sums, rng.random(), side="right")), len(sums) - 1)


def zipf(size: int) -> Floats:
    """The probabilities of `size` words by Zipf's law: (size,)"""
    shares = 1 / np.arange(1, size + 1)
    return np.asarray(shares / shares.sum())


def entropy(shares: Floats) -> float:
    """The entropy of a distribution (N,), in nats."""
    positive = shares[shares > 0]
    return float(-(positive * np.log(positive)).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--words", type=int, default=30000)
    parser.add_argument("--classes", type=int, default=60)
    parser.add_argument("--lines", type=int, default=60000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    source = Source(args.words, args.classes, args.seed)
    args.folder.mkdir(parents=True, exist_ok=True)
    few = min(HELD_OUT, args.lines // 10)
    for number, (name, count) in enumerate((("train", args.lines), ("dev", few), ("test", few))):
        text = "".join(f"{line}\n" for line in source.lines(count, args.seed + 1000 + number))
        (args.folder / f"{name}.txt").write_text(text, encoding="utf-8")
    print(f"perplexity of the source: {np.exp(source.entropy()):.2f}")


if __name__ == "__main__":
    main()
