"""Batches of examples of discourse objectives, each of one objective.

B examples, S sentences of an example.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from nmt.data.batches import Ids, Packed, pack_source
from nmt.data.shares import WHOLE, Share
from nmt.errors import DataError
from nmt.models.discourse.objective import Ints, Paragraphs
from nmt.models.discourse.registry import OBJECTIVES


@dataclass
class DiscourseBatch:
    """Examples of one objective: B x S sentences, those of an example one after the other."""

    objective: str
    source: Packed
    answers: Tensor  # (B,)

    def to(self, device: torch.device | str) -> "DiscourseBatch":
        """The same on a device."""
        return replace(self, source=self.source.to(device), answers=self.answers.to(device))

    @property
    def sentences(self) -> int:
        """Examples."""
        return len(self.answers)

    @property
    def target_tokens(self) -> int:
        """What is predicted: an answer for each example."""
        return len(self.answers)

    @property
    def tokens(self) -> int:
        """Words that are read, end symbols included."""
        return len(self.source.ids)

    @property
    def longest(self) -> int:
        """Words of the longest sentence, its end symbol included."""
        return len(self.source.sizes)


class DiscourseStream:
    """The batches of each epoch, the same for the same seed: all examples in a random order, of some
    objectives only a share where there are several."""

    def __init__(self, text: Paragraphs, objectives: Sequence[str], batch_size: int, seed: int) -> None:
        """DataError for a text without an example of an objective."""
        self.text, self.batch_size, self.seed = text, batch_size, seed
        self.places: dict[str, Ints] = {name: OBJECTIVES[name].find(text) for name in objectives}
        for name, places in self.places.items():
            if not len(places):
                raise DataError(
                    f"objective {name}: the text has no example, in {len(text.spans):,} paragraphs; expected "
                    "one sentence a line and an empty line between paragraphs"
                )

    def examples(self, name: str) -> int:
        """Examples of an objective in an epoch."""
        share = OBJECTIVES[name].share if len(self.places) > 1 else 1.0
        return max(1, int(share * len(self.places[name])))

    def count(self, epoch: int) -> int:
        """Batches of an epoch."""
        return sum(-(-self.examples(name) // self.batch_size) for name in self.places)

    def batches(self, epoch: int, start: int = 0, share: Share = WHOLE) -> Iterator[DiscourseBatch]:
        """The batches of an epoch, from number `start` on, of a share."""
        rng = np.random.default_rng([self.seed, epoch])
        cuts: list[tuple[str, Ints]] = []
        for name, places in self.places.items():
            rows = rng.permutation(len(places))[: self.examples(name)]
            cuts += [(name, rows[at : at + self.batch_size]) for at in range(0, len(rows), self.batch_size)]
        order = rng.permutation(len(cuts))
        for number in filter(share.has, range(start, len(order))):
            name, rows = cuts[order[number]]
            yield self.batch(name, rows, np.random.default_rng([self.seed, epoch, number]))

    def batch(self, name: str, rows: Ints, rng: np.random.Generator) -> DiscourseBatch:
        """Some examples of an objective."""
        examples = [OBJECTIVES[name].example(self.text, place, rng) for place in self.places[name][rows]]
        sentences: list[Ids] = [sentence for example in examples for sentence in example.sentences]
        answers = torch.tensor([example.answer for example in examples])
        return DiscourseBatch(name, pack_source(sentences), answers)
