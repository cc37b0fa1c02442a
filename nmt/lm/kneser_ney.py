"""Interpolated modified Kneser-Ney estimation (Chen and Goodman 1998) into an ARPA file, as KenLM's lmplz does without pruning.

All n-grams are held in memory: some millions, i.e. small corpora. For large ones use lmplz; the files are the same.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from nmt.errors import DataError

BOS, EOS, UNK = "<s>", "</s>", "<unk>"
Gram = tuple[str, ...]


def estimate(sentences: Iterable[Sequence[str]], order: int) -> Iterator[str]:
    """The lines of an ARPA file (logarithms to base 10). DataError for an empty corpus, or one too small to have discounts."""
    counts = adjusted_counts(sentences, order)
    discounts = [discounts_of(level, number) for number, level in enumerate(counts, 1)]
    probs: list[dict[Gram, float]] = []
    backoffs: list[dict[Gram, float]] = []  # of contexts of each length, from 0
    lower: dict[Gram, float] = {}
    for level, discount in zip(counts, discounts, strict=True):
        totals: Counter[Gram] = Counter()
        kinds: dict[Gram, list[int]] = defaultdict(lambda: [0, 0, 0])
        for gram, count in level.items():
            totals[gram[:-1]] += count
            kinds[gram[:-1]][min(count, 3) - 1] += 1
        backoff = {context: sum(d * n for d, n in zip(discount, kinds[context], strict=True)) / total for context, total in totals.items()}
        if not probs:
            uniform = 1 / (len(level) + 1)  # <unk> is a word too, <s> is not
            here = {gram: (count - discount[min(count, 3) - 1]) / totals[()] + backoff[()] * uniform for gram, count in level.items()}
            here[(UNK,)] = backoff[()] * uniform
        else:
            here = {gram: (count - discount[min(count, 3) - 1]) / totals[gram[:-1]] + backoff[gram[:-1]] * lower[gram[1:]] for gram, count in level.items()}
        probs.append(here)
        backoffs.append(backoff)
        lower = here
    yield from arpa(probs, backoffs)


def adjusted_counts(sentences: Iterable[Sequence[str]], order: int) -> list[Counter[Gram]]:
    """Of the highest order how often; of lower ones after how many different words, or how often where nothing can stand before."""
    full: list[Counter[Gram]] = [Counter() for _ in range(order)]
    for words in sentences:
        line = (BOS, *words, EOS)
        for size in range(1, order + 1):
            full[size - 1].update(line[at : at + size] for at in range(len(line) - size + 1))
    del full[0][(BOS,)]
    if not full[0]:
        raise DataError("no words to estimate a language model from")
    for size in range(1, order):
        continuations: Counter[Gram] = Counter(gram[1:] for gram in full[size])
        for gram in full[size - 1]:
            if gram[0] != BOS:
                full[size - 1][gram] = continuations[gram]
    return full


def discounts_of(level: Counter[Gram], size: int) -> list[float]:
    """D1, D2 and D3+ from the counts of counts. DataError where one is out of range: too little text."""
    ones, twos, threes, fours = (sum(1 for count in level.values() if count == k) for k in range(1, 5))
    if not ones or not twos or not threes:
        raise DataError(f"too little text: no {size}-gram occurs {'once' if not ones else 'twice' if not twos else 'three times'}, which discounts need")
    y = ones / (ones + 2 * twos)
    found = [1 - 2 * y * twos / ones, 2 - 3 * y * threes / twos, 3 - 4 * y * fours / threes]
    if any(not 0 <= d <= k for k, d in enumerate(found, 1)):
        raise DataError(f"too little text: discounts of {size}-grams out of range ({', '.join(f'{d:.3g}' for d in found)})")
    return found


def arpa(probs: list[dict[Gram, float]], backoffs: list[dict[Gram, float]]) -> Iterator[str]:
    yield "\\data\\"
    for size, level in enumerate(probs, 1):
        yield f"ngram {size}={len(level) + (size == 1)}"
    for size, level in enumerate(probs, 1):
        yield ""
        yield f"\\{size}-grams:"
        longer = backoffs[size] if size < len(backoffs) else {}
        if size == 1:
            yield f"0\t{BOS}\t{math.log10(longer[(BOS,)]):.7g}" if (BOS,) in longer else f"0\t{BOS}"
        for gram, prob in level.items():
            tail = f"\t{math.log10(longer[gram]):.7g}" if longer.get(gram) else "\t0" if size < len(probs) else ""
            yield f"{math.log10(prob):.7g}\t{' '.join(gram)}{tail}"
    yield ""
    yield "\\end\\"
