"""What every output layer is held to, and layers in double precision to try it on."""

import numpy as np
import torch
from torch import Tensor, nn

from nmt.layers.output import OutputLayer, OutputSettings, make_output
from nmt.layers.output.hierarchy import Hierarchical
from tests.nmt.gradients import check_gradients

K, V = 5, 13


def zipf(words: int = V, size: int = 400, seed: int = 0) -> np.ndarray:
    """A text (size,) whose words 1, 2 ... are as frequent as 1, 1/2, ...; word 0 is never there."""
    shares = 1 / np.arange(1, words)
    return np.random.default_rng(seed).choice(np.arange(1, words), size, p=shares / shares.sum())


def layer_of(bias: bool = True, words: int = V, text: bool = True, **settings: object) -> OutputLayer:
    """A layer with random weights, made for the text unless told otherwise."""
    torch.manual_seed(0)
    layer = make_output(OutputSettings(**settings), K, words, bias)  # type: ignore[arg-type]
    if text:
        layer.learn(zipf(words))
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    return layer.double().eval()


def features(rows: int = 10) -> Tensor:
    return torch.randn(rows, K, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def slow_log_probs(layer: Hierarchical, given: Tensor) -> Tensor:
    """log p of every word (R, V), word by word: the sum over its path of log softmax among siblings."""
    tree = layer.hierarchy
    found = torch.zeros(len(given), layer.vocab_size, dtype=given.dtype)
    node_of = np.repeat(np.arange(len(tree.above)), np.diff(tree.starts))
    used = {int(row) for row in tree.paths().flatten() if row >= 0}
    for word, leaf in enumerate(tree.leaf.tolist()):
        row = leaf
        while row >= 0:
            node = int(node_of[row])
            siblings = [r for r in range(tree.starts[node], tree.starts[node + 1]) if r in used]
            scores = given @ layer.rows[siblings].t()
            if layer.rows_bias is not None:
                scores = scores + layer.rows_bias[siblings]
            found[:, word] += torch.log_softmax(scores, 1)[:, siblings.index(row)]
            row = int(tree.above[node])
    return found


@torch.no_grad()
def check_distribution(layer: OutputLayer, given: Tensor, words: int = V) -> Tensor:
    """Σ p = 1, and each method gives the same log p. Returns log p of every word."""
    whole = layer.log_probs(given)
    R = len(given)
    assert whole.shape == (R, words)
    assert torch.allclose(whole.logsumexp(1), torch.zeros(R, dtype=whole.dtype), atol=1e-12)
    assert torch.allclose(layer.log_probs(given, layer.room(R)), whole, atol=1e-12)
    each = torch.arange(R * words)
    rows, targets = each // words, each % words
    assert torch.allclose(layer.selected_log_probs(given, rows, targets), whole.flatten(), atol=1e-12)
    some = torch.arange(R) % words
    alone = whole[torch.arange(R), some]
    assert torch.allclose(layer.target_log_probs(given, some), alone, atol=1e-12)
    assert torch.allclose(layer.cross_entropy(given, some), -alone.sum(), atol=1e-11)
    single = torch.cat([layer.target_log_probs(given[i : i + 1], some[i : i + 1]) for i in range(R)])
    assert torch.allclose(single, alone, atol=1e-12)  # batch = one by one
    scores = layer.scores(given)
    assert torch.allclose(scores - layer.log_z(given)[:, None], whole, atol=1e-12)
    assert torch.allclose(layer.target_scores(given, some), scores[torch.arange(R), some], atol=1e-12)
    part = torch.tensor([7, 2, 11])
    wanted = torch.log_softmax(whole[:, part], 1)
    restricted = layer.restrict(part)
    assert torch.allclose(torch.log_softmax(restricted.scores(given), 1), wanted, atol=1e-12)
    assert torch.allclose(restricted.log_probs(given), wanted, atol=1e-12)
    alone = restricted.target_log_probs(given[:3], torch.arange(3))
    assert torch.allclose(alone, wanted[:3].diagonal(), atol=1e-12)
    return whole


def check_backward(layer: OutputLayer) -> None:
    """The gradients of the loss, and of log p of several words of a row, are those of torch through
    `log_probs`."""
    given = features(6).requires_grad_()
    parameters = [given, *layer.parameters()]
    where, words = torch.tensor([0, 0, 0, 2, 5]), torch.tensor([3, 3, 1, 0, 12])
    weights = torch.linspace(-1, 2, 5, dtype=torch.float64)
    both = layer.selected_log_probs(given, where, words), layer.log_probs(given)[where, words]
    targets = torch.tensor([1, 2, 1, 12, 5, 5])
    loss = layer.cross_entropy(given, targets)
    plain = -layer.log_probs(given)[torch.arange(6), targets].sum()
    for ours, theirs in (((both[0] * weights).sum(), (both[1] * weights).sum()), (loss, plain)):
        found = (torch.autograd.grad(value, parameters, retain_graph=True) for value in (ours, theirs))
        assert all(torch.allclose(a, b, atol=1e-11) for a, b in zip(*found, strict=True))


def check_by_differences(layer: OutputLayer) -> None:
    """The gradients of the loss in the weights, and of log p of several words in the features."""
    given, targets = features(3), torch.tensor([1, 12, 1])
    check_gradients(layer, lambda: layer.cross_entropy(given, targets))
    where, words = torch.tensor([0, 0, 2]), torch.tensor([3, 3, 12])
    assert torch.autograd.gradcheck(
        lambda x: layer.selected_log_probs(x, where, words), given.requires_grad_()
    )
