"""Batched beam search against one sentence at a time: beam 10, 30,000 words, 1,000 units, sentences of about
20 words."""

from timing import interleave, report  # first: it sets the thread policy

import random

import torch

from nmt.compute import device
from nmt.models.config import RNNConfig
from nmt.models.rnn import RNNTranslator
from nmt.search.beam import search
from nmt.search.config import BeamConfig


def main() -> None:
    torch.set_num_threads(1)
    device.use_back_end("mkl")
    torch.manual_seed(0)
    words = 30000
    model = RNNTranslator(
        RNNConfig(embedding=620, hidden=1000, maxout=500, init="glorot", bias=True), words, words
    ).eval()
    rng = random.Random(0)
    sources = [
        [rng.randint(3, words - 1) for _ in range(min(40, max(4, round(rng.gammavariate(4, 5)))))]
        for _ in range(20)
    ]
    # Random weights hardly ever end a sentence: the limit does, after one word for each source word.
    seconds = interleave(
        {
            "one sentence at a time": lambda: search(
                model, sources, BeamConfig(rows=10, max_length_factor=1.0)
            ),
            "10 sentences, about 100 rows": lambda: search(
                model, sources, BeamConfig(rows=100, max_length_factor=1.0)
            ),
        },
        3,
    )
    report(f"beam 10, {len(sources)} sentences, {sum(map(len, sources))} words", seconds, "at least 2x")
    for name, value in seconds.items():
        print(f"  {name:<52} {len(sources) / value:.1f} sentences a CPU second")


if __name__ == "__main__":
    main()
