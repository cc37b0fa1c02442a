"""The gated recursive convolution against a padded autograd version, level by level: 2,000 units, 30 words,
forward and backward."""

from timing import interleave, report  # first: it sets the thread policy

import argparse

import torch
import torch.nn.functional as F
from torch import Tensor

from nmt.compute import device
from nmt.layers.grconv import GatedConvolution

T = 30


def padded(layer: GatedConvolution, words: Tensor, lengths: list[int]) -> Tensor:
    """What one writes first: all positions of all sentences at every level, the roots picked out: words (T,
    B, E) -> (B, D)"""
    h = F.linear(words, layer.leaf)
    roots: list[Tensor | None] = [None] * len(lengths)
    for level in range(T):
        for sentence, length in enumerate(lengths):
            if length == level + 1:
                roots[sentence] = h[0, sentence]
        if level < T - 1:
            left, right = h[:-1], h[1:]
            candidate = torch.relu(
                F.linear(left, layer.recurrent_left, layer.bias) + F.linear(right, layer.recurrent_right)
            )
            gates = torch.softmax(
                F.linear(left, layer.gates_left, layer.gates_bias) + F.linear(right, layer.gates_right), -1
            )
            h = gates[..., :1] * candidate + gates[..., 1:2] * left + gates[..., 2:] * right
    return torch.stack([root for root in roots if root is not None])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matmul", default="mkl", choices=device.BACK_ENDS)
    parser.add_argument("--sentences", type=int, default=16)
    parser.add_argument("--units", type=int, default=2000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    device.use_back_end(args.matmul)
    lengths = sorted((int(n) for n in torch.randint(10, T + 1, (args.sentences - 1,))), reverse=True)
    lengths = [T, *lengths]
    layer = GatedConvolution(620, args.units, bias=True)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, 0, 0.02)
    grid = torch.randn(T, args.sentences, 620)
    sizes = [sum(length > step for length in lengths) for step in range(T)]
    packed = torch.cat([grid[step, :rows] for step, rows in enumerate(sizes)])
    with torch.no_grad():
        difference = float((padded(layer, grid, lengths) - layer(packed, sizes)).abs().max())
    print(
        f"{args.matmul}, {args.sentences} sentences of 10 to {T} words, {args.units} units; largest "
        f"difference of the two: {difference:.1e}"
    )
    seconds = interleave(
        {
            "padded, autograd": lambda: torch.autograd.backward(padded(layer, grid, lengths).sum()),
            "ours, ragged levels": lambda: torch.autograd.backward(layer(packed, sizes).sum()),
        },
        3,
    )
    report("grConv, forward and backward", seconds, "at least 1.7x")


if __name__ == "__main__":
    main()
