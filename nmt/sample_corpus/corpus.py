"""The files of the sample corpus: train, dev and test, their word alignment, a small phrase table, and a
word-for-word translation of the test set.

The grammar's own word alignment is that of the text as Moses' tokenizer splits it. train.align, dev.align
and test.align have all links as points 0-0; in train.gold, dev.gold and test.gold, links of expressions of
several words on both sides are marked as possible, 0?0 (for nmt-analyze alignment-error).

No source sentence of dev or test occurs in train. The word-for-word baseline replaces each word of the test
set by its most frequent translation in the training text, according to the grammar's own word alignment.
"""

import re
from collections import Counter, defaultdict
from pathlib import Path

from nmt.io import files
from nmt.sample_corpus.grammar import Pair, Tokens, Writer, text

SIZES = {"train": 20000, "dev": 500, "test": 2000}
SEED = 7


def sentences(writer: Writer, count: int) -> list[Pair]:
    """Generate `count` pairs with distinct source sentences. Short ones are more likely, as in real text."""
    pairs: dict[str, Pair] = {}
    while len(pairs) < count:
        words = min(38, 3 + int(writer.random.expovariate(1 / 8)))
        pair = writer.sentence(words)
        pairs.setdefault(text(pair.source), pair)
    return list(pairs.values())


def lexicon(pairs: list[Pair]) -> dict[str, str]:
    """The most frequent translation of each lower-cased source word, according to the marks of the grammar;
    on ties the string that sorts first. It is empty for a word that is mostly left out."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in pairs:
        targets: dict[int, list[str]] = defaultdict(list)
        for word, mark in pair.target:
            targets[mark].append(word)
        sources = Counter(mark for _, mark in pair.source)
        for word, mark in pair.source:
            joined = targets[mark]
            # In a block of several source words, each stands for the middle word of its target side.
            counts[word.lower()][
                joined[len(joined) // 2] if sources[mark] > 1 and joined else " ".join(joined)
            ] += 1
    return {
        word: min(options, key=lambda option: (-options[option], option)) for word, options in counts.items()
    }


def split_tokens(tokens: Tokens) -> Tokens:
    """Split words after apostrophes like Moses' tokenizer (aujourd'hui); the parts have the word's mark."""
    return [(part, mark) for word, mark in tokens for part in re.findall("[^']+'?", word)]


def points(pair: Pair, possible: str) -> str:
    """Format the links between words of equal marks, as points 0-0. `possible`: separator of the two numbers,
    in place of -, if an expression has several words on both sides: it is unclear which of them translate
    each other."""
    source, target = split_tokens(pair.source), split_tokens(pair.target)
    sizes = [Counter(mark for _, mark in side) for side in (source, target)]
    return " ".join(
        f"{i}{possible if min(size[mark] for size in sizes) > 1 else '-'}{j}"
        for i, (_, mark) in enumerate(source)
        for j, (_, target_mark) in enumerate(target)
        if mark == target_mark
    )


def word_for_word(pair: Pair, words: dict[str, str]) -> str:
    """Translate each word by the lexicon `words`, and copy unknown ones."""
    tokens = [words.get(word.lower(), word) for word, _ in pair.source]
    return text([(token, 0) for token in tokens if token])


def phrase_pairs(pairs: list[Pair]) -> list[str]:
    """The lines of a phrase table in Moses' format and order: pairs of phrases that translate each other and
    occur at least 5 times, of at most three source words. The scores are p(source | target) and p(target |
    source) by their counts in the table."""
    counts: Counter[tuple[str, str]] = Counter()
    for pair in pairs:
        for start in range(len(pair.source)):
            for end in range(start + 1, min(start + 3, len(pair.source)) + 1):
                marks = {mark for _, mark in pair.source[start:end]}
                positions = [i for i, (_, mark) in enumerate(pair.target) if mark in marks]
                inside = {mark for _, mark in pair.source[:start] + pair.source[end:]}
                if not positions or marks & inside or positions[-1] - positions[0] + 1 != len(positions):
                    continue
                source = " ".join(word for word, _ in pair.source[start:end])
                counts[source, " ".join(pair.target[i][0] for i in positions)] += 1
    frequent = {key: count for key, count in counts.items() if count >= 5}
    sources, targets = Counter[str](), Counter[str]()
    for (source, target), count in frequent.items():
        sources[source] += count
        targets[target] += count
    escaped = {key: [side.replace("&", "&amp;").replace("'", "&apos;") for side in key] for key in frequent}
    lines = [
        f"{escaped[key][0]} ||| {escaped[key][1]} ||| {count / targets[key[1]]:.6g} "
        f"{count / sources[key[0]]:.6g} "
        f"||| ||| {targets[key[1]]} {sources[key[0]]} {count} ||| |||"
        for key, count in frequent.items()
    ]
    return sorted(lines, key=lambda line: line.encode())


def write_sample_corpus(directory: Path) -> dict[str, int]:
    """Write all files into a folder that exists. Returns the number of sentence pairs of train, dev and test.
    UserError for a file that cannot be written."""
    pairs = sentences(Writer(SEED), sum(SIZES.values()))
    start = 0
    parts = {}
    for name, size in SIZES.items():
        parts[name] = pairs[start : start + size]
        start += size
        files.write_text(directory / f"{name}.en", [text(pair.source) for pair in parts[name]])
        files.write_text(directory / f"{name}.fr", [text(pair.target) for pair in parts[name]])
        for ending, possible in (("align", "-"), ("gold", "?")):
            rows = [points(pair, possible) for pair in parts[name]]
            files.write_text(directory / f"{name}.{ending}", rows)
    words = lexicon(parts["train"])
    files.write_text(
        directory / "test.word-for-word.fr", [word_for_word(pair, words) for pair in parts["test"]]
    )
    files.write_text(directory / "phrase-table.gz", phrase_pairs(parts["train"][:3000]))
    return SIZES
