"""Text of one language as ids: sentences one by one, or running text in parallel tracks for models that carry
their state.

Twelve units in 2 tracks, 4 steps at a time (`.` ends a sentence; the unit read is the one before the unit
predicted):

    a b . c d e       predicted   a b . c | d e         read   . a b . | c d
    f . g . h .                   f . g . | h .                . f . g | . h
                                  chunk 1   chunk 2

Each track first reads an end symbol, also one that starts in the middle of a sentence.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.data.batches import WHOLE, Ids, Share
from nmt.data.binarized import BinarizeReport, store
from nmt.data.corpus import Corpus, DataConfig, stat_of, text_rules
from nmt.text.vocab import EOS, Vocab


@dataclass
class Chunk:
    """T steps of B tracks, laid out step by step: token t of track b is ids[t * B + b]."""

    previous: Tensor  # (T * B,) units that are read
    ids: Tensor  # (T * B,) units that follow them
    tracks: int  # B
    fresh: bool  # is it the first chunk of the text?

    def to(self, device: torch.device | str) -> "Chunk":
        """The same on a device."""
        return replace(self, previous=self.previous.to(device), ids=self.ids.to(device))

    @property
    def sizes(self) -> list[int]:
        """Rows of each step."""
        return [self.tracks] * (len(self.ids) // self.tracks)

    @property
    def sentences(self) -> int:
        """What counts as the sentences of a batch: its tracks."""
        return self.tracks

    @property
    def target_tokens(self) -> int:
        """Units that are predicted."""
        return len(self.ids)

    @property
    def tokens(self) -> int:
        """The same."""
        return len(self.ids)

    @property
    def longest(self) -> int:
        """Steps of a track."""
        return len(self.ids) // self.tracks


class ChunkStream:
    """The chunks of each epoch: the same text in the same order."""

    def __init__(self, text: NDArray[np.integer], tracks: int, steps: int) -> None:
        """text (n,), end symbols included; the remainder of its division by the tracks is dropped."""
        self.text, self.steps = text, steps
        self.tracks = min(tracks, len(text))
        self.length = len(text) // max(1, self.tracks)

    def count(self, epoch: int) -> int:
        """Chunks of an epoch."""
        return -(-self.length // self.steps)

    def batches(self, epoch: int, start: int = 0, share: Share = WHOLE) -> Iterator[Chunk]:
        """The chunks of an epoch, from number `start` on, of a share."""
        origin = np.arange(self.tracks) * self.length
        for number in filter(share.has, range(start, self.count(epoch))):
            at = np.arange(number * self.steps, min(self.length, (number + 1) * self.steps))
            places = at[:, None] + origin  # (T, B)
            ids = self.text[places].astype(np.int64)
            previous = self.text[np.maximum(places - 1, 0)].astype(np.int64)
            if number == 0:
                previous[0] = EOS
            yield Chunk(
                previous=torch.from_numpy(previous.reshape(-1)),
                ids=torch.from_numpy(ids.reshape(-1)),
                tracks=self.tracks,
                fresh=number == 0,
            )


def running(corpus: Corpus) -> NDArray[np.integer]:
    """The targets of a corpus one after the other, each followed by an end symbol: in memory, 2 or 4 bytes a
    unit."""
    lengths = np.diff(corpus.target_offsets)
    text = np.full(len(corpus.target) + len(lengths), EOS, corpus.target.dtype)
    ends = np.cumsum(lengths + 1) - 1
    mask = np.ones(len(text), bool)
    mask[ends] = False
    text[mask] = corpus.target
    return text


def sentences(texts: Sequence[Ids]) -> Corpus:
    """Given sentences as a corpus whose sources are empty."""
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    ids = np.array([word for text in texts for word in text], np.int64)
    return Corpus(np.zeros(0, np.int64), np.zeros_like(offsets), ids, offsets)


def binarize(lines: Iterable[Sequence[str]], vocab: Vocab, directory: Path, stamp: str) -> BinarizeReport:
    """Write sentences as ids. None is left out: a language model reads long and empty ones too."""
    report = BinarizeReport()
    with store(directory, {"target": vocab}, stamp, report) as sides:
        for words in lines:
            report.kept += 1
            sides[0].add(vocab.encode(words))
    return report


def make_stamp(config: DataConfig, vocab: Vocab) -> str:
    """Changes when the text, the vocabulary or the text pipeline changes."""
    status = stat_of(config.train_text)
    digest = hashlib.sha256(f"{config.train_text} {status.st_size} {status.st_mtime_ns}\n".encode())
    digest.update(f"{text_rules(config.target)} {config.bpe_merges}\n".encode())
    digest.update("\n".join(vocab.words).encode())
    return digest.hexdigest()
