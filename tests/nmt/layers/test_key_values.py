"""Any order of steps, reorderings and joins gives each hypothesis the words it has read, and no others."""

import random
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from nmt.layers.attention import join_sentences, sentence_grid
from nmt.layers.key_values import KeyValueCache, SentenceCache, join_column

# ---- columns -----------------------------------------------------------------------------------------------


LAYERS, PAST_HEADS, PAST_WIDTH = 2, 1, 2
Texts = list[list[float]]


def read(cache: KeyValueCache, words: list[float]) -> tuple[KeyValueCache, Texts]:
    """One step in which word w has keys w and values -w; what each hypothesis then sees."""
    like = torch.zeros(len(words), PAST_WIDTH, dtype=torch.float64)
    step = cache.step(LAYERS, PAST_HEADS, like)
    added = torch.tensor(words, dtype=torch.float64)[:, None]
    found, visible = torch.zeros(0), torch.zeros(0)
    for layer in range(LAYERS):
        pairs = torch.cat([added.expand(-1, PAST_WIDTH), -added.expand(-1, PAST_WIDTH)], 1) * (layer + 1)
        keys, values = step.add(layer, pairs)
        assert keys.shape == values.shape == (len(words), PAST_HEADS, len(cache.columns) + 1, PAST_WIDTH)
        visible = torch.zeros(keys.shape[2], len(words)) if step.mask is None else step.mask
        found = keys[:, 0, :, 0] / (layer + 1)
        assert torch.equal(keys, -values)
    seen = [
        [float(word) for word, hidden in zip(row, mask, strict=True) if hidden == 0]
        for row, mask in zip(found, visible.t(), strict=True)
    ]
    return step.after(), seen


def test_hypotheses_see_their_own_words() -> None:
    """Random programs of reading, reordering, dropping and joining."""
    rng, number = random.Random(0), 0.0
    for _ in range(30):
        cache, texts = KeyValueCache.start(2, torch.device("cpu")), [[], []]  # type: tuple[KeyValueCache, Texts]
        for _ in range(12):
            act = rng.choice(["read", "read", "reorder", "join", "split"])
            if act == "read" and texts:
                words = [number + place for place in range(len(texts))]
                number += len(texts)
                cache, seen = read(cache, words)
                texts = [[*text, word] for text, word in zip(texts, words, strict=True)]
                assert seen == texts
                assert cache.lengths.tolist() == [len(text) for text in texts]
            elif act == "reorder" and texts:
                rows = [rng.randrange(len(texts)) for _ in range(rng.randrange(1, 5))]
                cache, texts = cache.rows(torch.tensor(rows)), [texts[row] for row in rows]
                assert len(cache.columns) == max(map(len, texts)), "columns of longer ones are dropped"
            elif act == "join":
                cache, texts = (
                    KeyValueCache.join([cache, KeyValueCache.start(1, torch.device("cpu"))]),
                    [*texts, []],
                )
            elif act == "split" and len(texts) > 1:
                half = [cache.rows(torch.tensor([row])) for row in range(len(texts))]
                cache = KeyValueCache.join(half)
        assert all(len(column) <= cache.row_index.shape[1] or len(column) <= 8 for column in cache.columns)


def test_a_column_keeps_only_what_is_needed() -> None:
    first, second = torch.arange(5.0)[:, None], torch.arange(10.0, 13)[:, None]
    column, places = join_column(
        [(first, torch.tensor([3, 3])), (None, torch.tensor([-1])), (second, torch.tensor([0, 2]))]
    )
    assert column[:, 0].tolist() == [3, 10, 12] and places.tolist() == [0, 0, -1, 1, 2]
    shared, places = join_column([(first, torch.tensor([0, 1, 2])), (first, torch.tensor([4, 4]))])
    assert shared is first and places.tolist() == [0, 1, 2, 4, 4]


# ---- sentences ---------------------------------------------------------------------------------------------


HEADS, WIDTH = 2, 6


@dataclass
class Hypotheses:
    """A cache of sentences, and what it has to contain: the keys and values that each hypothesis has read."""

    cache: SentenceCache
    sentence: Tensor
    read: list[list[Tensor]]  # of each hypothesis, its words (layers, 2 * WIDTH)

    @staticmethod
    def start(count: int) -> "Hypotheses":
        cache = SentenceCache.start(count, torch.device("cpu"))
        return Hypotheses(cache, torch.arange(count), [[] for _ in range(count)])

    def step(self) -> "Hypotheses":
        """Read a random word each; every layer sees what a plain softmax over the words read gives."""
        R, grid = len(self.sentence), sentence_grid(self.sentence, self.cache.store.pairs.shape[2])
        words = torch.randn(R, LAYERS, 2 * WIDTH, dtype=torch.float64)
        read = [[*before, word] for before, word in zip(self.read, words, strict=True)]
        step = self.cache.step(LAYERS, HEADS, words[:, 0, :WIDTH], grid)
        for layer in range(LAYERS):
            query = torch.randn(R, WIDTH, dtype=torch.float64)
            seen = step.attend(layer, torch.cat([query, words[:, layer]], 1))
            assert torch.allclose(seen, plain(query, read, layer), atol=1e-12)
        return Hypotheses(step.after(), self.sentence, read)

    def rows(self, rows: list[int]) -> "Hypotheses":
        index = torch.tensor(rows)
        return Hypotheses(self.cache.rows(index), self.sentence[index], [self.read[row] for row in rows])

    def join(self, other: "Hypotheses") -> "Hypotheses":
        sentence, used = join_sentences([self.sentence, other.sentence])
        first, second = sentence.split([len(self.sentence), len(other.sentence)])
        parts = [
            self.cache.sentences(used[0], first, 0),
            other.cache.sentences(used[1], second - len(used[0]), 0),
        ]
        return Hypotheses(SentenceCache.join(parts, 3), sentence, self.read + other.read)


def plain(query: Tensor, read: list[list[Tensor]], layer: int) -> Tensor:
    """Attention of each hypothesis to its words, one head after the other."""
    rows = []
    for row, words in zip(query, read, strict=True):
        keys, values = torch.stack(words)[:, layer].chunk(2, 1)
        heads = zip(row.chunk(HEADS), keys.chunk(HEADS, 1), values.chunk(HEADS, 1), strict=True)
        rows.append(torch.cat([torch.softmax(k @ q / (WIDTH / HEADS) ** 0.5, 0) @ v for q, k, v in heads]))
    return torch.stack(rows)


@pytest.mark.parametrize("seed", range(4))
def test_hypotheses_of_a_sentence_attend_to_their_own_words(seed: int) -> None:
    """Random programs; a state that goes on twice is the same both times."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    for _ in range(8):
        now = Hypotheses.start(3)
        for _ in range(20):
            act = rng.choice(["step", "step", "step", "twice", "reorder", "reorder", "join"])
            if act == "twice":
                first, second = now.step(), now.step()
                first.step()
                now = second.step()
            elif act == "step":
                now = now.step()
            elif act == "reorder":
                chosen = sorted(rng.choices(range(len(now.read)), k=rng.randrange(1, 8)))
                now = now.rows(chosen)
            else:
                fresh = Hypotheses.start(2)
                now = now.join(fresh.step() if rng.random() < 0.7 else fresh)
        assert now.cache.lengths.tolist() == list(map(len, now.read))


def test_a_store_keeps_only_what_hypotheses_have_read() -> None:
    """However long a search, the store is as large as its hypotheses need."""
    now = Hypotheses.start(2)
    for _ in range(30):
        now = now.step().rows([0, 0, 1, 1]).rows([0, 2])  # one of each sentence survives
    assert now.cache.store.capacity <= 30 + 10


def test_words_of_sentences_as_columns() -> None:
    """The cache of columns that continues a cache of sentences has the same words."""
    torch.manual_seed(0)
    now = Hypotheses.start(2).step().rows([0, 0, 1]).step().rows([1, 0, 2, 2])
    now = now.join(Hypotheses.start(1).step()).step()
    columns = now.cache.columns(now.sentence)
    assert columns.lengths.tolist() == list(map(len, now.read))
    query, new = torch.randn(2, len(now.read), LAYERS, 2 * WIDTH, dtype=torch.float64)
    read = [[*before, word] for before, word in zip(now.read, new, strict=True)]
    step = columns.step(LAYERS, HEADS, query[:, 0, :WIDTH])
    for layer in range(LAYERS):
        seen = step.attend(layer, torch.cat([query[:, layer, :WIDTH], new[:, layer]], 1))
        assert torch.allclose(seen, plain(query[:, layer, :WIDTH], read, layer), atol=1e-12)
