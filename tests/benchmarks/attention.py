"""Models with attention: training in the sizes of other toolkits' figures, bf16 against fp32, and sentences a
CPU second.

python tests/benchmarks/attention.py [--shares]      where the time of a step goes, instead of its speed
python tests/benchmarks/attention.py --translate RUN_DIR --input test.en     tokenized text
"""

from timing import interleave, report  # first: it sets the thread policy

import argparse
import random
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import torch
from torch.optim import Optimizer

from nmt.io import files
from nmt.compute import device
from nmt.compute.precision import Mixed
from nmt.compute.device import processor_flags
from nmt.data.batches import Batch, make_batch
from nmt.models.config import RNNConfig
from nmt.models.rnn import RNNTranslator
from nmt.runs.run import Run
from nmt.search.config import BeamConfig
from nmt.training.optimizers import clip, make_optimizer

# What the profiler calls matrix products.
PRODUCTS = ("aten::mm", "aten::addmm", "aten::addmm_", "aten::bmm", "aten::baddbmm", "aten::mkldnn_linear")
# name, model, words, words a sentence, rounds. OpenNMT-py trains 1,190 and Joey 830 target words a CPU second
# of the first kind.
SIZES: list[tuple[str, dict[str, str | int], int, int, int]] = [
    (
        "attention, 2 x 256 / 512 units, 6,478 words",
        {"encoder": "birnn", "encoder_hidden": 256, "attention": 512, "embedding": 256, "hidden": 512},
        6478,
        13,
        5,
    ),
    (
        "RNNsearch, 1000 units, 30,000 words",
        {"encoder": "birnn", "attention": 1000, "embedding": 620, "hidden": 1000, "maxout": 500},
        30000,
        24,
        2,
    ),
    ("RNNenc, 1000 units, 30,000 words", {"embedding": 620, "hidden": 1000, "maxout": 500}, 30000, 24, 2),
]


def batch_of(rng: random.Random, words: int, length: int) -> Batch:
    """64 pairs of like length, as a pool of batches gives them."""
    lengths = [max(3, round(rng.gauss(length, length / 12))) for _ in range(64)]
    sides = [[[rng.randint(3, words - 1) for _ in range(n)] for n in lengths] for _ in range(2)]
    return make_batch(*sides)


def training(look_inside: bool = False) -> None:
    rng = random.Random(1)
    for name, options, words, length, rounds in SIZES:
        torch.manual_seed(0)
        config = RNNConfig(maxout=256, bias=True, init="uniform", init_scale=0.1, dropout=0.2)
        for key, value in options.items():
            setattr(config, key, value)
        model, batch = RNNTranslator(config, words, words), batch_of(rng, words, length)
        optimizer = make_optimizer("adam", model.parameters(), 1e-4, 0, 0)

        def step(
            back_end: str,
            mode: AbstractContextManager[object],
            model: RNNTranslator = model,
            batch: Batch = batch,
            optimizer: Optimizer = optimizer,
        ) -> None:
            device.use_back_end(back_end)
            optimizer.zero_grad()
            with mode:
                torch.autograd.backward(model.loss(batch) / batch.target_tokens)
            clip(model.parameters(), 1.0)
            optimizer.step()

        variants: dict[str, Callable[[], object]] = {
            "fp32, MKL": partial(step, "mkl", nullcontext()),
            "fp32, oneDNN": partial(step, "onednn", nullcontext()),
            "bf16": partial(step, "mkl", Mixed()),
        }
        if not processor_flags() & {"avx512_bf16", "amx_bf16"}:
            del variants["bf16"]
        if look_inside:
            print(f"\n{name}")
            shares(variants, rounds)
            continue
        seconds = interleave(variants, rounds)
        report(
            f"{name}, Adam and clipping included",
            seconds,
            "bf16 1.8x MKL and 1.3x the faster fp32; 1,550 words a CPU second of the first size",
        )
        for variant, spent in seconds.items():
            print(f"  {variant:<52} {batch.target_tokens / spent:,.0f} target words a CPU second")


def shares(variants: Mapping[str, Callable[[], object]], rounds: int) -> None:
    """CPU time of a step in matrix products and in all else. An instruction of bf16 multiplies twice as many
    numbers as one of fp32, so that products take half their time at best."""
    for name, step in variants.items():
        step()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as found:
            for _ in range(rounds):
                step()
        spent = {one.key: one.self_cpu_time_total / rounds / 1000 for one in found.key_averages()}
        total, products = sum(spent.values()), sum(spent.get(one, 0.0) for one in PRODUCTS)
        others = sorted(spent.keys() - set(PRODUCTS), key=spent.__getitem__, reverse=True)[:6]
        print(f"  {name}: {total:.0f} ms, {products:.0f} ({products / total:.0%}) in matrix products; else")
        print("    " + ", ".join(f"{one} {spent[one]:.0f}" for one in others))
        if name.startswith("fp32"):
            most = total / (total - products / 2)
            print(f"    at most {most:.2f}x as fast with products at twice the speed and no rounding")


def translating(directory: str, path: str) -> None:
    run, lines = Run.load(directory).for_text(tokenized=True), list(files.read_lines(path))
    run.translate(lines[:20], BeamConfig(5))
    for beam, goal in ((5, 110), (10, 60)):
        clock = time.process_time()
        run.translate(lines, BeamConfig(beam))
        print(
            f"beam {beam}: {len(lines) / (time.process_time() - clock):.1f} sentences a CPU second "
            f"({Path(directory).name}; goal {goal})"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shares", action="store_true")
    parser.add_argument("--translate", default="", metavar="RUN_DIR")
    parser.add_argument("--input", default="", metavar="FILE")
    parser.add_argument("--matmul", default="mkl", choices=device.BACK_ENDS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    device.use_back_end(args.matmul)
    if args.translate:
        translating(args.translate, args.input)
    else:
        training(args.shares)


if __name__ == "__main__":
    main()
