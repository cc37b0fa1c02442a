"""BLEU as a function of sentence length (Fig. 6.4 a and b): corpus BLEU in a window of 10 lengths, for three
lengths."""

from collections.abc import Iterator, Mapping, Sequence

from nmt import files
from nmt.analysis.buckets import Bucket, sliding
from nmt.analysis.systems import System, TestSet

WINDOW = 10  # lengths; as in section 6.5.1

Curves = Mapping[str, Mapping[str, Sequence[Bucket]]]  # system -> source, reference, both -> buckets


def lengths(test: TestSet) -> dict[str, list[int]]:
    """Words between blanks of the source, of the (first) reference, and of the longer of both: the text says
    'both lengths'
    without a definition."""
    source = [len(files.split_words(line)) for line in test.sources]
    reference = [len(files.split_words(line)) for line in test.references[0]]
    return {
        "source": source,
        "reference": reference,
        "both": [max(pair) for pair in zip(source, reference, strict=True)],
    }


def by_length(
    systems: Sequence[System], window: int = WINDOW, least: int = 1
) -> dict[str, dict[str, list[Bucket]]]:
    keys = lengths(systems[0].test)
    return {
        system.name: {name: sliding(values, system, window, least) for name, values in keys.items()}
        for system in systems
    }


def to_tsv(curves: Curves, key: str = "length") -> Iterator[str]:
    yield "\t".join(["by", key, "first", "last", "sentences", "bleu", "length_ratio", "chrf", "system"])
    for system, by in curves.items():
        for name, buckets in by.items():
            for b in buckets:
                numbers = [
                    str(b.key),
                    str(b.first),
                    str(b.last),
                    str(b.sentences),
                    f"{b.bleu:.4f}",
                    f"{b.ratio:.4f}",
                    f"{b.chrf:.4f}",
                ]
                yield "\t".join([name, *numbers, system])
