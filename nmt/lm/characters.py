"""The character-aware language model (Kim et al. 2016; Jernite 2018, chapter 2): a recurrent model that reads
words by their spelling and predicts words.

Characters of a word -> convolutions of several widths -> maximum over the word -> highway layers -> LSTM ->
softmax over the vocabulary. Outside training, the vectors of all words are computed once, into a table. Words
outside the vocabulary are read by their spelling, too, but predicted as UNK."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from nmt.config.settings import MOST_UNITS, number
from nmt.data.batches import Ids
from nmt.errors import ConfigError
from nmt.layers.characters import LONGEST, OpenWords, SpellingSizes
from nmt.lm.base import NO_FILES, Floats, LMBase, LMConfig, RunFile
from nmt.lm.recurrent import RecurrentConfig, RecurrentLM
from nmt.text.vocab import SPECIALS, UNK


@dataclass
class CharacterConfig(RecurrentConfig):
    """The keys of `lm` for type characters: those of a recurrent model and the sizes of the convolutions. The
    defaults are the small model of Jernite 2018."""

    type: str = "characters"
    embedding: int = number(
        0, least=0, most=MOST_UNITS, help="size of a word vector; 0: one unit for each filter, no projection"
    )
    init_scale: float = number(0.05, above=0, help="width of uniform and normal; Jernite 2018 has U(±0.05)")
    hidden: int = number(300, least=1, most=MOST_UNITS, help="units of a layer")
    depth: int = number(2, least=1, most=1000, help="layers, stacked")
    character: int = number(15, least=1, most=MOST_UNITS, help="size of a character's vector")
    widths: list[int] = number(
        [1, 2, 3, 4, 5, 6], least=1, most=LONGEST + 2, help="characters that filters see"
    )
    filters: int = number(25, least=1, most=MOST_UNITS, help="filters of width w: w times as many")
    most_filters: int = number(
        0,
        least=0,
        most=MOST_UNITS,
        help="but at most this many for a width, 200 in the large model; 0: no limit",
    )
    highway: int = number(1, least=0, most=100, help="highway layers")

    def check(self) -> None:
        super().check()
        if not self.widths:
            raise ConfigError("lm.widths: expected one width or more, e.g. [1, 2, 3, 4, 5, 6]")
        if self.tied:
            raise ConfigError("lm.tied: words have no embedding that a softmax could share")

    @property
    def vector_sides(self) -> tuple[str, ...]:
        return ()

    @property
    def sizes(self) -> SpellingSizes:
        return SpellingSizes(self.character, tuple(self.widths), self.filters, self.most_filters)

    @property
    def inputs(self) -> int:
        """Size of what the first layer reads."""
        return self.embedding or self.sizes.total


class CharacterLM(RecurrentLM):
    """The network. Ids from V on are words outside the vocabulary, assigned by `spelled`: the model reads
    their spelling, and predicts them as UNK."""

    Config: ClassVar[type[LMConfig]] = CharacterConfig
    embedding: OpenWords

    @classmethod
    def build(
        cls, config: Any, symbols: Sequence[str], files: Mapping[str, RunFile] = NO_FILES, fill: bool = True
    ) -> Self:
        """A model over the words of a vocabulary; see nmt.lm.base.LanguageModel."""
        config.check()
        words = OpenWords(symbols, config.sizes, config.highway, config.embedding)
        return cls(config, len(symbols), fill, words)

    def inputs(self, token_ids: Tensor) -> Tensor:
        """The vectors of words, without dropout: (N,) -> (N, E)"""
        vectors: Tensor = self.embedding(token_ids)
        return vectors

    def answers(self, token_ids: Tensor) -> Tensor:
        """Ids to predict: UNK for words outside the vocabulary."""
        return torch.where(token_ids < self.embedding.vocab_size, token_ids, UNK)

    def spelled(self, words: Sequence[str], token_ids: Sequence[int]) -> list[int]:
        """Ids of words, with ids of their own for words outside the vocabulary; see `OpenVocabulary`."""
        unknown = [
            number == UNK and word not in SPECIALS for word, number in zip(words, token_ids, strict=True)
        ]
        more = iter(self.embedding.numbers([word for word, new in zip(words, unknown, strict=True) if new]))
        return [next(more) if new else number for new, number in zip(unknown, token_ids, strict=True)]

    @torch.no_grad()
    def filter_vectors(self, token_ids: Tensor) -> Tensor:
        """Outputs of the convolutions, before the highway layers: (T,) -> (T, filters)"""
        return self.embedding.maxima(self.embedding.spelling[token_ids])

    def score_sentences(self, texts: Sequence[Ids], ends: bool = True) -> Floats:
        """log p, natural, of each text, (texts,); through a trie if all words are in the vocabulary."""
        if any(max(text, default=0) >= self.embedding.vocab_size for text in texts):
            return LMBase.score_sentences(self, texts, ends)
        return super().score_sentences(texts, ends)
