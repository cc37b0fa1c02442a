"""Short-lists of the target words of a run, sentence by sentence."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nmt.data.batches import Ids
from nmt.errors import ConfigError
from nmt.models.protocols import Restrictable
from nmt.runs.checkpoint import SavedRun
from nmt.search.shortlist import Shortlisted
from nmt.search.steps import StepModel
from nmt.text.lexicon import Lexicon, shortlist


@dataclass
class ShortlistOf:
    """The ids of the target words that may translate a sentence of source ids, UNK, BOS and EOS included."""

    member: SavedRun
    lexicon: Lexicon
    frequent: int

    def __call__(self, source: Ids) -> set[int]:
        words = self.member.source.join(self.member.source_words.decode(map(int, source)))
        if not self.member.target.subwords:
            return shortlist(self.lexicon, words, self.member.target_words, self.frequent)
        units = {unit for word in self.lexicon.candidates(words) for unit in self.member.target.cut([word])}
        return shortlist(Lexicon({"": sorted(units)}), [""], self.member.target_words, self.frequent)


def restricted(members: Iterable[SavedRun], lexicon: Lexicon, frequent: int) -> list[StepModel[Any]]:
    """The models of runs with their short-lists. ConfigError for models that cannot."""
    models: list[StepModel[Any]] = []
    for member in members:
        if not isinstance(member.model, Restrictable):
            raise ConfigError(f"{member.directory}: a model of its type has no short-lists")
        models.append(Shortlisted(member.model, ShortlistOf(member, lexicon, frequent)))
    return models
