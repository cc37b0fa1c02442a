"""BLEU as a function of sentence length (Fig. 6.4 a and b): corpus BLEU in a window of 10 lengths, for three lengths."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nmt import files
from nmt.analysis.buckets import Bucket, sliding
from nmt.metrics import BLEU, SentenceStatistics

WINDOW = 10  # lengths; as in section 6.5.1


@dataclass
class ByLength:
    """Buckets by the words of the source, of the (first) reference, and of the longer of the two."""

    curves: dict[str, list[Bucket]]  # source, reference, both
    bleu: BLEU  # of all sentences


def lengths(sources: Sequence[str], references: Sequence[str]) -> dict[str, list[int]]:
    """Words between blanks. The text says 'both lengths' without a definition: here it is the longer side."""
    source = [len(files.split_words(line)) for line in sources]
    reference = [len(files.split_words(line)) for line in references]
    return {"source": source, "reference": reference, "both": [max(pair) for pair in zip(source, reference, strict=True)]}


def by_length(
    sources: Sequence[str], references: Sequence[Sequence[str]], hypotheses: Sequence[str], tokenize: str = "13a", window: int = WINDOW, least: int = 1
) -> ByLength:
    """`references` holds one list for each reference translation."""
    statistics = SentenceStatistics(hypotheses, references, tokenize)
    keys = lengths(sources, references[0])
    return ByLength({name: sliding(values, statistics, window, least) for name, values in keys.items()}, statistics.bleu())


def to_tsv(curves: Mapping[str, Sequence[Bucket]]) -> Iterator[str]:
    yield "\t".join(["by", "length", "first", "last", "sentences", "bleu", "length_ratio"])
    for name, buckets in curves.items():
        for b in buckets:
            yield "\t".join([name, str(b.key), str(b.first), str(b.last), str(b.sentences), f"{b.bleu:.4f}", f"{b.ratio:.4f}"])
