"""Short-lists of the target words of a run, sentence by sentence."""

from dataclasses import dataclass

from nmt.data.batches import Ids
from nmt.runs.checkpoint import SavedRun
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
