"""Training against plain torch: the cell against nn.GRU, the step against nn.GRU with a padded softmax, the
optimizer."""

from timing import interleave, report  # first: it sets the thread policy

import argparse
import random
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.compute import device
from nmt.data.batches import Batch, make_batch
from nmt.layers.cells import GRU
from nmt.layers.initialize import initialize
from nmt.models.config import RNNConfig
from nmt.models.rnn import RNNTranslator
from nmt.training.optimizers import Adadelta, clip, make_optimizer

T, B, E, H, V, M = 25, 64, 620, 1000, 30000, 500


def cell() -> None:
    torch.manual_seed(0)
    ours, theirs = GRU(E, H, bias=True), nn.GRU(E, H)
    initialize(ours, "glorot", 0)
    x = torch.randn(T, B, E)
    sizes, start, packed = [B] * T, torch.zeros(B, H), x.view(T * B, E)
    seconds = interleave(
        {
            "nn.GRU (reset after U: another cell)": lambda: torch.autograd.backward(theirs(x)[0].sum()),
            "ours (eqs. 4.5-4.8), same lengths": lambda: torch.autograd.backward(
                ours.unroll(packed, sizes, start).sum()
            ),
        }
    )
    report(f"GRU layer, forward and backward, T {T} B {B} E {E} H {H}", seconds, "at most 1.05x the time")


class Plain(nn.Module):
    """What one writes first: nn.GRU encoder and decoder, padded, softmax over the whole grid."""

    def __init__(
        self, source: int, target: int, embedding: int, hidden: int, maxout: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(source, embedding), nn.Embedding(target, embedding)
        self.maxout, self.dropout = maxout, dropout
        self.encoder = nn.GRU(embedding, hidden)
        if maxout:  # the papers' model: c at every step, deep output
            self.summary, self.initial = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
            self.decoder = nn.GRU(embedding + hidden, hidden)
            self.deep = nn.Linear(2 * hidden + embedding, 2 * maxout)
            self.out = nn.Linear(maxout, target)
        else:
            self.decoder = nn.GRU(embedding, hidden)
            self.out = nn.Linear(hidden, target)

    def loss(self, x: Tensor, lengths: Tensor, previous: Tensor, y: Tensor) -> Tensor:
        """x (S, B), previous and y (T, B), y is -100 where it is padding."""
        drop = self.dropout
        states, _ = self.encoder(F.dropout(self.source(x), drop))
        last = states[lengths - 1, torch.arange(x.shape[1])]
        words = F.dropout(self.target(previous), drop)
        if self.maxout:
            c = torch.tanh(self.summary(last))
            context = c.expand(len(words), *c.shape)
            hidden, _ = self.decoder(torch.cat([words, context], 2), torch.tanh(self.initial(c))[None])
            deep = self.deep(torch.cat([hidden, words, context], 2))
            features = deep.view(*deep.shape[:2], -1, 2).amax(-1)
        else:
            features, _ = self.decoder(words, last[None].contiguous())
        return F.cross_entropy(
            self.out(F.dropout(features, drop)).flatten(0, 1), y.flatten(), ignore_index=-100, reduction="sum"
        )


def padded(sources: list[list[int]], targets: list[list[int]]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    def grid(rows: list[list[int]], filler: int) -> Tensor:
        return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], padding_value=filler)

    lengths = torch.tensor([len(row) + 1 for row in sources])
    return (
        grid([[*row, 1] for row in sources], 0),
        lengths,
        grid([[0, *row] for row in targets], 0),
        grid([[*row, 1] for row in targets], -100),
    )


def sentences(rng: random.Random, lengths: list[int], words: int) -> list[list[int]]:
    return [[rng.randint(3, words - 1) for _ in range(length)] for length in lengths]


def step() -> None:
    """Both sides have lengths of 9 to 24 and the end symbol, one of them 25: about two thirds of the 1600
    places are words."""
    rng = random.Random(0)
    lengths: list[int] = []
    while sum(lengths) + len(lengths) != 1077:
        lengths = [T - 1, *(rng.randint(9, T - 1) for _ in range(B - 1))]
    sources, targets = sentences(rng, lengths, V), sentences(rng, lengths, V)
    torch.manual_seed(0)
    theirs = Plain(V, V, E, H, M)
    ours = RNNTranslator(
        RNNConfig(embedding=E, hidden=H, maxout=M, bias=True, summary="tanh", init="glorot"), V, V
    )
    batch, grid = make_batch(sources, targets), padded(sources, targets)
    print(f"\n{batch.target_tokens} real of {T * B} target places")

    def run(model: nn.Module, loss: Callable[[], torch.Tensor]) -> None:
        model.zero_grad(set_to_none=True)
        torch.autograd.backward(loss())

    def run_ours() -> None:
        run(ours, lambda: ours.loss(batch))

    seconds = interleave(
        {"nn.GRU, padded softmax": lambda: run(theirs, lambda: theirs.loss(*grid)), "ours": run_ours}, 5
    )
    report(f"whole step, c at every step, maxout {M}, V {V}, forward and backward", seconds, "at least 1.4x")
    seconds_of_step = seconds["ours"]
    run_ours()
    optimizers = {
        "torch Adadelta (foreach)": torch.optim.Adadelta(ours.parameters(), 1.0, 0.95, 1e-6, foreach=True),
        "our Adadelta, in blocks": Adadelta(ours.parameters()),
        "torch Adam (fused)": make_optimizer("adam", ours.parameters(), 1e-9, 0, 0),
    }
    times = interleave({name: optimizer.step for name, optimizer in optimizers.items()}, 3)
    report(
        f"optimizer, {sum(p.numel() for p in ours.parameters()) / 1e6:.0f}M parameters",
        times,
        "at most 10% of a step",
    )
    print(f"  our Adadelta is {100 * times['our Adadelta, in blocks'] / seconds_of_step:.1f}% of our step")


def b1_batches(
    source_words: int, target_words: int, batches: int = 16
) -> tuple[list[tuple[Tensor, Tensor, Tensor, Tensor]], list[Batch]]:
    """64 sentences of about 13 words a batch: padded as they come, and packed out of pools of like length."""
    rng = random.Random(1)
    pairs = []
    for _ in range(64 * batches):
        length = min(40, max(3, round(rng.gauss(13, 4))))
        pairs.append((length, min(40, max(3, length + round(rng.gauss(1.2, 1.8))))))
    unsorted = [pairs[start : start + 64] for start in range(0, len(pairs), 64)]
    pairs = sorted(pairs, key=max)
    pooled = [pairs[start : start + 64] for start in range(0, len(pairs), 64)]

    def text(cut: list[list[tuple[int, int]]]) -> list[tuple[list[list[int]], list[list[int]]]]:
        return [
            (
                sentences(rng, [a for a, _ in rows], source_words),
                sentences(rng, [b for _, b in rows], target_words),
            )
            for rows in cut
        ]

    grids = [padded(*rows) for rows in text(unsorted)]
    return grids, [make_batch(*rows) for rows in text(pooled)]


def b1() -> None:
    """Sizes of a small captions system: embeddings 256, 512 units, 5,917 and 6,478 words, dropout 0.2."""
    source_words, target_words = 5917, 6478
    grids, ready = b1_batches(source_words, target_words)
    torch.manual_seed(0)
    theirs = Plain(source_words, target_words, 256, 512, 0, 0.2)
    ours = RNNTranslator(
        RNNConfig(embedding=256, hidden=512, maxout=256, bias=True, dropout=0.2, init="glorot"),
        source_words,
        target_words,
    )
    adam, fused = (
        torch.optim.Adam(theirs.parameters(), 1e-3),
        make_optimizer("adam", ours.parameters(), 1e-3, 0, 0),
    )

    def plain() -> None:
        for grid in grids:
            adam.zero_grad()
            torch.autograd.backward(theirs.loss(*grid) / 900)
            nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
            adam.step()

    def packed() -> None:
        for batch in ready:
            fused.zero_grad()
            torch.autograd.backward(ours.loss(batch) / batch.target_tokens)
            clip(ours.parameters(), 1.0)
            fused.step()

    seconds = interleave(
        {
            "nn.GRU encoder-decoder, padded, torch Adam": plain,
            "ours (c at every step, maxout 256), pooled by length": packed,
        },
        3,
    )
    tokens = sum(batch.target_tokens for batch in ready)
    report("training, sizes of peers B1, optimizer and clipping included", seconds, "at least 1.3x")
    for name, value in seconds.items():
        print(f"  {name:<52} {tokens / value:,.0f} target words a CPU second")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matmul", default="mkl", choices=device.BACK_ENDS)
    torch.set_num_threads(1)
    print(device.choose_back_end("auto"))
    back_end = parser.parse_args().matmul
    device.use_back_end(back_end)
    print(f"measured with {back_end} on both sides, one thread")
    cell()
    step()
    b1()


if __name__ == "__main__":
    main()
