"""Text of one language as ids: sentence by sentence or, for models that carry their state, as running text
in parallel tracks.

Twelve units in 2 tracks, 4 steps at a time (`.` ends a sentence; the unit read is the one before the unit
predicted):

    a b . c d e       predicted   a b . c | d e         read   . a b . | c d
    f . g . h .                   f . g . | h .                . f . g | . h
                                  chunk 1   chunk 2

Each track first reads an end symbol, even if it starts in the middle of a sentence."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.data.batches import ALL_BATCHES, Ids, Share, TensorFields
from nmt.data.binarized import BinarizeReport, Corpus, store
from nmt.data.corpus import DataConfig, text_rules
from nmt.io import files
from nmt.text.vocab import EOS, Vocab


@dataclass
class TrackChunk(TensorFields):
    """T steps of B tracks, laid out step by step: the unit of track b at step t is ids[t * B + b]."""

    previous: Tensor  # (T * B,) units that are read
    ids: Tensor  # (T * B,) units that follow them
    tracks: int  # B
    fresh: bool  # whether it is the first chunk of the text

    @property
    def sizes(self) -> list[int]:
        """Rows of each step: the number of tracks."""
        return [self.tracks] * (len(self.ids) // self.tracks)

    @property
    def sentences(self) -> int:
        """Tracks, which count as the sentences of a batch."""
        return self.tracks

    @property
    def target_tokens(self) -> int:
        """The number of predicted units."""
        return len(self.ids)

    @property
    def tokens(self) -> int:
        """Units that count for the size of a batch."""
        return len(self.ids)

    @property
    def longest(self) -> int:
        """The number of steps of a track."""
        return len(self.ids) // self.tracks


class ChunkStream:
    """The chunks of each epoch; all epochs have the same text in the same order."""

    def __init__(self, text: NDArray[np.integer], tracks: int, steps: int) -> None:
        """text (n,): ids, end symbols included; `tracks`: their number, at most n are used; `steps`: units of
        a track in a chunk. If n is not a multiple of `tracks`, the rest of the text is dropped."""
        self.text, self.steps = text, steps
        self.tracks = min(tracks, len(text))
        self.length = len(text) // max(1, self.tracks)

    def count(self, epoch: int) -> int:
        return -(-self.length // self.steps)

    def batches(self, epoch: int, start: int = 0, share: Share = ALL_BATCHES) -> Iterator[TrackChunk]:
        origin = np.arange(self.tracks) * self.length
        for number in filter(share.has, range(start, self.count(epoch))):
            steps = np.arange(number * self.steps, min(self.length, (number + 1) * self.steps))
            positions = steps[:, None] + origin  # (T, B)
            ids = self.text[positions].astype(np.int64)
            previous = self.text[np.maximum(positions - 1, 0)].astype(np.int64)
            if number == 0:
                previous[0] = EOS
            yield TrackChunk(
                previous=torch.from_numpy(previous.reshape(-1)),
                ids=torch.from_numpy(ids.reshape(-1)),
                tracks=self.tracks,
                fresh=number == 0,
            )


def join_sentences(corpus: Corpus) -> NDArray[np.integer]:
    """Copy the targets of a corpus into one array of their type, each followed by an end symbol: (n,)"""
    lengths = np.diff(corpus.target_offsets)
    text = np.full(len(corpus.target) + len(lengths), EOS, corpus.target.dtype)
    ends = np.cumsum(lengths + 1) - 1
    mask = np.ones(len(text), bool)
    mask[ends] = False
    text[mask] = corpus.target
    return text


def as_corpus(texts: Sequence[Ids]) -> Corpus:
    """Build a corpus of sentences whose sources are empty."""
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    ids = np.array([word for text in texts for word in text], np.int64)
    return Corpus(np.zeros(0, np.int64), np.zeros_like(offsets), ids, offsets)


def binarize(lines: Iterable[Sequence[str]], vocab: Vocab, directory: Path, stamp: str) -> BinarizeReport:
    """Write sentences as ids to a folder. None is dropped, since language models also read long and empty
    sentences. `stamp`: identifies text and settings. UserError if it cannot be written."""
    report = BinarizeReport()
    with store(directory, {"target": vocab}, stamp, report) as sides:
        for words in lines:
            report.kept += 1
            sides[0].add(vocab.encode(words))
    return report


def make_stamp(config: DataConfig, vocab: Vocab) -> str:
    """A digest that changes with the text (path, size and modification time), the vocabulary and the text
    pipeline. DataError if the text cannot be read."""
    status = files.status(config.train_text)
    digest = hashlib.sha256(f"{config.train_text} {status.st_size} {status.st_mtime_ns}\n".encode())
    digest.update(f"{text_rules(config.target)} {config.bpe_merges}\n".encode())
    digest.update("\n".join(vocab.words).encode())
    return digest.hexdigest()
