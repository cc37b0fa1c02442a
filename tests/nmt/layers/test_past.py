"""Any order of steps, reorderings and joins gives each hypothesis the words it has read, and no others."""

import random

import torch

from nmt.layers.past import Past, join_column

LAYERS, HEADS, D = 2, 1, 2
Texts = list[list[float]]


def read(past: Past, words: list[float]) -> tuple[Past, Texts]:
    """One step in which word w has keys w and values -w; what each hypothesis then sees."""
    like = torch.zeros(0, dtype=torch.float64)
    reading = past.reading(LAYERS, HEADS, LAYERS * 2 * D, like)
    added = torch.tensor(words, dtype=torch.float64)[:, None]
    found, visible = torch.zeros(0), torch.zeros(0)
    for layer in range(LAYERS):
        pairs = torch.cat([added.expand(-1, D), -added.expand(-1, D)], 1) * (layer + 1)
        keys, values = reading.add(layer, pairs)
        assert keys.shape == values.shape == (len(words), HEADS, len(past.columns) + 1, D)
        visible = torch.zeros(keys.shape[2], len(words)) if reading.mask is None else reading.mask
        found = keys[:, 0, :, 0] / (layer + 1)
        assert torch.equal(keys, -values)
    seen = [
        [float(word) for word, hidden in zip(row, mask, strict=True) if hidden == 0]
        for row, mask in zip(found, visible.t(), strict=True)
    ]
    return reading.after(), seen


def test_hypotheses_see_their_own_words() -> None:
    """Random programs of reading, reordering, dropping and joining."""
    rng, number = random.Random(0), 0.0
    for _ in range(30):
        past, texts = Past.start(2, torch.device("cpu")), [[], []]  # type: tuple[Past, Texts]
        for _ in range(12):
            act = rng.choice(["read", "read", "reorder", "join", "split"])
            if act == "read" and texts:
                words = [number + place for place in range(len(texts))]
                number += len(texts)
                past, seen = read(past, words)
                texts = [[*text, word] for text, word in zip(texts, words, strict=True)]
                assert seen == texts
                assert past.lengths.tolist() == [len(text) for text in texts]
            elif act == "reorder" and texts:
                rows = [rng.randrange(len(texts)) for _ in range(rng.randrange(1, 5))]
                past, texts = past.rows(torch.tensor(rows)), [texts[row] for row in rows]
                assert len(past.columns) == max(map(len, texts)), "columns of longer ones are dropped"
            elif act == "join":
                past, texts = Past.join([past, Past.start(1, torch.device("cpu"))]), [*texts, []]
            elif act == "split" and len(texts) > 1:
                half = [past.rows(torch.tensor([row])) for row in range(len(texts))]
                past = Past.join(half)
        assert all(len(column) <= past.places.shape[1] or len(column) <= 8 for column in past.columns)


def test_a_column_keeps_only_what_is_needed() -> None:
    first, second = torch.arange(5.0)[:, None], torch.arange(10.0, 13)[:, None]
    column, places = join_column(
        [(first, torch.tensor([3, 3])), (None, torch.tensor([-1])), (second, torch.tensor([0, 2]))]
    )
    assert column[:, 0].tolist() == [3, 10, 12] and places.tolist() == [0, 0, -1, 1, 2]
    shared, places = join_column([(first, torch.tensor([0, 1, 2])), (first, torch.tensor([4, 4]))])
    assert shared is first and places.tolist() == [0, 1, 2, 4, 4]
