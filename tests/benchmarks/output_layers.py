"""Output layers of large vocabularies against the flat softmax: the layer alone, and the training of a
recurrent language model.

python tests/benchmarks/output_layers.py [--words 250000] [--features 200] [--classes 30000]
python tests/benchmarks/output_layers.py --text DIR    # perplexities; recipes/seeds/generated_text.py

Words are drawn from Zipf's law. For the best word the features are scaled so that the perplexity of p is that
of 000's language models, about 150: the flatter p, the more branch and bound has to look at.
"""

from timing import interleave, report  # first: it sets the thread policy

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from nmt.data.running import TrackChunk
from nmt.layers.output import OutputSettings, make_output
from nmt.layers.output.hierarchy import Hierarchical
from nmt.training.protocols import Callback
from nmt.lm.recurrent import RecurrentConfig, RecurrentLM
from nmt.search.hypotheses import topk
from nmt.search.beam import MOST_BANNED
from nmt.text.vocab import EOS, Vocab
from nmt.training.optimizers import clip, make_optimizer

PERPLEXITY, BEAM = 150, 5
SMALL, BATCH, RATE = 48, 512, 0.004  # of the networks whose perplexity is compared


def zipf(words: int, size: int) -> Tensor:
    shares = 1 / np.arange(1, words + 1)
    return torch.from_numpy(np.random.default_rng(0).choice(words, size, p=shares / shares.sum()))


def layer_of(words: int, inputs: int, **settings: object) -> nn.Module:
    layer = make_output(OutputSettings(**settings), inputs, words)  # type: ignore[arg-type]
    assert isinstance(layer, nn.Module)
    torch.manual_seed(0)
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.05)
    return layer


def scaled(layer: nn.Module, features: Tensor) -> Tensor:
    """Features whose mean perplexity is PERPLEXITY."""
    low, high = 1.0, 64.0
    while high / low > 1.02:
        middle = (low * high) ** 0.5
        with torch.no_grad():
            found = layer.log_probs(features[:8] * middle)  # type: ignore[operator]
        entropy = -(found.exp() * found).sum(1).mean()
        low, high = (middle, high) if float(entropy.exp()) > PERPLEXITY else (low, middle)
    return features * low


def alone(words: int, inputs: int) -> None:
    flat = layer_of(words, inputs).eval()
    tree = layer_of(words, inputs, output="learned-tree").eval()
    assert isinstance(tree, Hierarchical)
    for count in (1, 128, 1024):
        features, targets = torch.randn(count, inputs), zipf(words, count)
        seconds = interleave(
            {
                "flat softmax": lambda f=features, t=targets: flat.target_log_probs(f, t),  # type: ignore[misc, operator]
                "learned tree": lambda f=features, t=targets: [
                    tree.target_log_probs(f, t) for _ in range(20)
                ],  # type: ignore[misc]
            },
            3,
        )
        seconds["learned tree"] /= 20
        report(f"log p of words, {count} at a time, V {words:,} K {inputs}", seconds, "at least 100x")
    features = scaled(tree, torch.randn(128, inputs))
    assert torch.equal(tree.best_words(features, 1)[1][:, 0], best(tree, features))
    seconds = interleave(
        {
            "flat softmax, the greatest of all": lambda: best(flat, features),
            "learned tree, branch and bound": lambda: tree.best_words(features, 1),
            "learned tree, the greatest of all": lambda: best(tree, features),
        },
        3,
    )
    report(f"best word of 128 rows, perplexity {PERPLEXITY}", seconds, "at least 5x")
    classes = layer_of(words, inputs, output="classes").eval()
    of_classes = scaled(classes, torch.randn(128, inputs))
    seconds = interleave(
        {
            "flat softmax": lambda: topk(flat.log_probs(features), BEAM),  # type: ignore[operator]
            "learned tree, branch and bound": lambda: tree.best_words(features, BEAM + MOST_BANNED),
            "learned tree, all words": lambda: topk(tree.log_probs(features), BEAM),
            "classes, branch and bound": lambda: classes.best_words(of_classes, BEAM + MOST_BANNED),  # type: ignore[operator]
            "classes, all words": lambda: topk(classes.log_probs(of_classes), BEAM),  # type: ignore[operator]
        },
        3,
    )
    report(f"the {BEAM} best words of 128 rows that may follow, perplexity {PERPLEXITY}", seconds, "")
    for count in (128, 1024):
        training(words, inputs, count)


@torch.no_grad()
def best(layer: nn.Module, features: Tensor) -> Tensor:
    return layer.log_probs(features).argmax(1)  # type: ignore[operator, no-any-return]


def training(words: int, inputs: int, count: int) -> None:
    features, targets = torch.randn(count, inputs), zipf(words, count)

    def step(with_optimizer: bool, **settings: object) -> Callable[[], object]:
        layer = layer_of(words, inputs, **settings).train()
        optimizer = torch.optim.Adagrad(layer.parameters(), 0.01)

        def run() -> None:
            given = features.clone().requires_grad_()
            optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(layer.cross_entropy(given, targets) / count)  # type: ignore[operator]
            if with_optimizer:
                optimizer.step()

        return run

    for with_optimizer in (False, True):
        kinds = {"flat softmax": {}, "learned tree": {"output": "learned-tree"}, "nce": {"output": "nce"}}
        seconds = interleave({name: step(with_optimizer, **kind) for name, kind in kinds.items()}, 3)
        also = " and dense Adagrad" if with_optimizer else ""
        report(f"training step of {count} words: forward, backward{also}", seconds, "at least 2.8x")


def language_model(words: int) -> None:
    text, tokens = zipf(words, 300_000), 700
    kinds = {
        "softmax": {},
        **{
            f"classes, {kind}": {"output": "classes", "output_classes": kind}
            for kind in ("frequency", "random")
        },
        "tree, huffman": {"output": "tree"},
        "nce": {"output": "nce"},
    }

    def training_of(**settings: object) -> Callable[[], object]:
        torch.manual_seed(0)
        config = RecurrentConfig(embedding=200, hidden=200, carry=True, init_scale=0.1, **settings)  # type: ignore[arg-type]
        model = RecurrentLM(config, words)
        if settings:
            model.output.learn(text.numpy())
        optimizer = make_optimizer("adam", model.parameters(), 1e-3, 0, 0)

        def run() -> None:
            for number in range(3):
                ids = text[number * tokens : (number + 1) * tokens]
                optimizer.zero_grad(set_to_none=True)
                cost, _ = model.cost(
                    TrackChunk(previous=ids.roll(1), ids=ids, tracks=20, fresh=True), 0, None
                )
                torch.autograd.backward(cost / tokens)
                clip(model.parameters(), 1.0)
                optimizer.step()

        return run

    seconds = interleave({name: training_of(**kind) for name, kind in kinds.items()}, 3)
    report(f"training an LSTM of 200 units, V {words:,}, 20 x 35 words, Adam", seconds, "classes at least 2x")
    for name, value in seconds.items():
        print(f"  {name:<52} {3 * tokens / value:,.0f} words a CPU second")


class Bigrams(nn.Module):
    """p(w | the word before) from one tanh layer."""

    def __init__(self, words: int, **settings: object) -> None:
        super().__init__()
        self.embedding, self.layer = nn.Embedding(words, SMALL), nn.Linear(SMALL, SMALL)
        self.output = make_output(OutputSettings(**settings), SMALL, words)  # type: ignore[arg-type]
        for parameter in self.parameters():
            (nn.init.zeros_ if parameter.dim() == 1 else partial(nn.init.uniform_, a=-0.1, b=0.1))(parameter)

    def features(self, before: Tensor) -> Tensor:
        found: Tensor = torch.tanh(self.layer(self.embedding(before)))
        return found


def perplexities(folder: Path, epochs: int, only: Sequence[str]) -> None:
    """The same small network and updates with each layer, the rate linear to 0; perplexity of test.txt."""
    texts = [(folder / f"{name}.txt").read_text(encoding="utf-8").splitlines() for name in ("train", "test")]
    vocab = Vocab.count([line.split() for line in texts[0]], 10**6)
    text, test = (
        torch.tensor([i for line in part for i in (*vocab.encode(line.split()), EOS)]) for part in texts
    )
    updates = epochs * -(-(len(text) - 1) // BATCH)
    learned = {
        "output": "learned-tree",
        "output_rebuild": updates // 24,
        "output_rebuild_until": updates // 2,
    }
    kinds: dict[str, dict[str, object]] = {
        "flat": {}, "learned tree": learned, "random tree": {"output": "tree", "output_tree": "random"},
        "huffman tree": {"output": "tree"}, "classes, frequency": {"output": "classes"},
        "classes, random": {"output": "classes", "output_classes": "random"},
        "classes, clusters": {"output": "classes", "output_classes": "clusters"}, "nce": {"output": "nce"},
    }  # fmt: skip
    print(f"\n{len(text):,} words, {len(vocab):,} different ones, {updates} updates", flush=True)
    for name, settings in kinds.items():
        if only and name not in only:
            continue
        torch.manual_seed(0)
        model, start = Bigrams(len(vocab), **settings), time.process_time()
        if settings:
            model.output.learn(text.numpy())
        learn(model, text, epochs, updates)
        spent = time.process_time() - start
        found = model.eval().output.target_log_probs(model.features(test[:-1]), test[1:])
        print(f"  {name:<20} perplexity {float((-found.mean()).exp()):8.1f}   {spent:6.1f} CPU s", flush=True)


def learn(model: Bigrams, text: Tensor, epochs: int, updates: int) -> None:
    optimizer, step = make_optimizer("adam", model.parameters(), RATE, 0, 0), 0
    callbacks = [part for part in model.modules() if isinstance(part, Callback)]
    for _ in range(epochs):
        for places in torch.randperm(len(text) - 1).split(BATCH):
            optimizer.param_groups[0]["lr"] = RATE * min(1.0, 2 * (1 - step / updates))
            optimizer.zero_grad()
            loss = model.output.cross_entropy(model.features(text[places]), text[places + 1])
            torch.autograd.backward(loss / len(places))
            clip(model.parameters(), 1.0)
            optimizer.step()
            step += 1
            for part in callbacks:
                part.on_update(step)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=250_000)
    parser.add_argument("--features", type=int, default=200)
    parser.add_argument("--classes", type=int, default=30_000, help="words of the language model")
    parser.add_argument("--text", type=Path, metavar="DIR", help="perplexities on this text instead")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=[], metavar="LAYER", help="such as flat, 'learned tree'")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.text:
        perplexities(args.text, args.epochs, args.only)
        return
    alone(args.words, args.features)
    language_model(args.classes)


if __name__ == "__main__":
    main()
