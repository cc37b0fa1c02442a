"""p of a word given its neighbors = that of the joint model by enumeration; rings and windows."""

import itertools
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.errors import CheckpointError
from nmt.papers.mrf import MRFConfig, command, model
from nmt.papers.mrf.model import (
    NONE,
    ChainMRF,
    Moments,
    field_bytes,
    load_field,
    lower_bound,
    ring,
    star_pass,
    train_field,
    windows,
)
from nmt.runs.checkpoint import save_tensors
from nmt.text.vocab import EOS, UNK, Vocab
from smt_bridge.features.base import WordPairs
from smt_bridge.features.registry import FEATURES, FeatureSettings, parse_features

# ---- model -------------------------------------------------------------------------------------------------


def small(order: int = 2, vocab_size: int = 5) -> ChainMRF:
    model = ChainMRF(MRFConfig(order=order, dimension=3), vocab_size).double()
    torch.manual_seed(1)
    for part in model.parameters():
        torch.nn.init.normal_(part)
    return model


@torch.no_grad()
def joint(model: ChainMRF, text: list[int]) -> float:
    """Σ of all potentials of a ring."""
    edges, total = model.edges(), 0.0
    for place, word in enumerate(text):
        total += float(model.unary[word])
        for distance in range(1, model.order + 1):
            total += float(edges[distance - 1, word, text[(place + distance) % len(text)]])
    return total


@pytest.mark.parametrize("order", [1, 2, 3])
def test_conditionals_are_those_of_the_joint_model(order: int) -> None:
    model, line = small(order), [3, 4, 2, 3]
    text = ring([line], order)
    expected = 0.0
    for place in range(len(text)):
        rivals = [joint(model, [*text[:place], word, *text[place + 1 :]]) for word in range(5)]
        expected += joint(model, text) - float(np.logaddexp.reduce(rivals))
    assert model.score_sentences([line])[0] == pytest.approx(expected)


@torch.no_grad()
def test_conditionals_sum_to_1_and_phrases_have_no_neighbors_outside() -> None:
    model = small()
    before, after = torch.tensor([[3, NONE], [NONE, NONE]]), torch.tensor([[4, 2], [NONE, NONE]])
    found = model.conditional(before, after)
    assert found.exp().sum(1).tolist() == pytest.approx([1, 1])
    alone = torch.log_softmax(model.unary, 0)
    assert found[1].tolist() == pytest.approx(alone.tolist())
    assert model.score_sentences([[3]], ends=False)[0] == pytest.approx(float(alone[3]))
    edge = model.edges()[0]
    expected = (
        torch.log_softmax(model.unary + edge[:, 4], 0)[3] + torch.log_softmax(model.unary + edge[3], 0)[4]
    )
    assert model.score_sentences([[3, 4]], ends=False)[0] == pytest.approx(float(expected))


def test_many_lines_are_scored_as_one_by_one() -> None:
    model = small()
    texts = [[3, 4, 4], [], [2], [4, 3, 2, 2, 3]]
    for ends in (True, False):
        together = model.score_sentences(texts, ends)
        assert together == pytest.approx([model.score_sentences([text], ends)[0] for text in texts])
    assert model.score_sentences(texts, False)[1] == 0 and len(model.score_sentences([])) == 0


@torch.no_grad()
def test_lines_do_not_depend_on_each_other() -> None:
    """K separators are between words of different lines."""
    text = ring([[3, 4], [2]], 2)
    assert text == [3, 4, EOS, EOS, 2, EOS, EOS]
    _, before, after = windows(text, 2)
    assert before[0].tolist() == [EOS, EOS] and after[0].tolist() == [4, EOS]
    assert before[4].tolist() == [EOS, EOS] and after[6].tolist() == [3, 4]
    assert windows([3, 4], 2, closed=False)[1].tolist() == [[NONE, NONE], [3, NONE]]
    model = small()
    for place, alone in ((0, [3, 4]), (4, [2])):
        apart = windows(ring([alone], 2), 2)
        rows = [model.conditional(*map(torch.from_numpy, part)) for part in (apart[1:], (before, after))]
        assert torch.equal(rows[0][0], rows[1][place])


# ---- lifted ------------------------------------------------------------------------------------------------
# The lifted bound against log Z of the ring by enumeration: never below it, tighter with each step.


V = 4


def potentials(order: int, seed: int, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    """θ0 and θ^l, in float64."""
    made = torch.Generator().manual_seed(seed)
    unary = torch.randn(V, generator=made, dtype=torch.float64)
    return unary, scale * torch.randn(order, V, V, generator=made, dtype=torch.float64)


def star_marginals(unary: Tensor, edges: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
    """Of a star: p of its center, (V,), and of center and each leaf, (K, V, V)."""
    _, center, joint = star_pass(unary, edges, delta)
    return center, center[:, None] * joint.softmax(2)


def star_log_z(unary: Tensor, edges: Tensor, delta: Tensor) -> Tensor:
    return model.star_pass(unary, edges, delta)[0]


def exact(unary: Tensor, edges: Tensor, size: int) -> Tensor:
    """A(θ) of a ring: the sum over all texts."""
    texts = torch.tensor(list(itertools.product(range(V), repeat=size)))
    total = unary[texts].sum(1)
    for distance, edge in enumerate(edges, 1):
        total = total + edge[texts, texts.roll(-distance, 1)].sum(1)
    return total.logsumexp(0)


EIGHT = pytest.mark.ci  # 65,536 texts


@pytest.mark.parametrize(
    ("order", "size"),
    [
        (1, 2),
        (1, 4),
        pytest.param(1, 8, marks=EIGHT),
        (2, 3),
        (2, 6),
        (3, 4),
        pytest.param(3, 8, marks=EIGHT),
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_bound_is_never_below_the_exact_value(order: int, size: int, seed: int) -> None:
    unary, edges = potentials(order, seed)
    least = float(exact(unary, edges, size))
    stars = size / (order + 1)
    found = model.tighten(unary, edges, 100)
    assert all(stars * value >= least - 1e-9 for value in found.values)
    noise = torch.randn(order, V, dtype=torch.float64)
    assert stars * float(star_log_z(unary, edges, noise)) >= least  # for every δ
    assert stars * float(star_log_z(unary, edges, found.delta)) == pytest.approx(stars * found.values[-1])
    assert found.values[-1] <= found.values[0]


def test_without_edges_the_bound_is_exact() -> None:
    unary, edges = potentials(2, 3, scale=0)
    bound = 6 / 3 * star_log_z(unary, edges, torch.zeros(2, V, dtype=torch.float64))
    assert float(bound) == pytest.approx(float(exact(unary, edges, 6)))


def test_tightening_never_raises_the_bound_and_ends_with_equal_marginals() -> None:
    unary, edges = potentials(2, 5)
    found = model.tighten(unary, edges, 400)
    assert all(after <= before for before, after in itertools.pairwise(found.values))
    assert found.values[-1] < found.values[0] - 0.01
    center, joint = star_marginals(unary, edges, found.delta)
    assert joint.sum((1, 2)).tolist() == pytest.approx([1, 1])
    for pair in joint:
        assert pair.sum(1).tolist() == pytest.approx(center.tolist())  # (4.10), true of every δ
        assert pair.sum(0).tolist() == pytest.approx(center.tolist(), abs=1e-4)  # at the tightest one
    loose = star_marginals(unary, edges, torch.zeros(2, V, dtype=torch.float64))[1]
    assert (loose.sum(1) - center).abs().max() > 1e-2
    again = model.tighten(unary, edges, 5, found.delta)
    assert again.values[-1] <= found.values[-1]


def test_one_pass_over_the_star_is_the_sum_over_its_states() -> None:
    """Log Z and marginals of a star with two leaves, by enumeration; gradients by finite differences."""
    unary, edges = potentials(2, 6)
    delta = 0.3 * torch.randn(2, V, dtype=torch.float64)
    grid = torch.zeros(V, V, V, dtype=torch.float64)
    for center, one, two in itertools.product(range(V), repeat=3):
        grid[center, one, two] = (
            unary[center] - delta[:, center].sum() + unary[one] + delta[0, one] + unary[two] + delta[1, two]
            + 3 * edges[0, center, one] + 3 * edges[1, center, two]
        )  # fmt: skip
    assert float(star_log_z(unary, edges, delta)) == pytest.approx(float(grid.logsumexp((0, 1, 2))))
    share = (grid - grid.logsumexp((0, 1, 2))).exp()
    center_share, joint = star_marginals(unary, edges, delta)
    assert torch.allclose(center_share, share.sum((1, 2)))
    assert torch.allclose(joint, torch.stack([share.sum(2), share.sum(1)]))
    value, slope = model.star_slope(unary, edges, delta)
    assert value == pytest.approx(float(star_log_z(unary, edges, delta)))
    delta.requires_grad_()
    assert torch.allclose(torch.autograd.grad(star_log_z(unary, edges, delta), delta)[0], slope)
    assert torch.autograd.gradcheck(star_log_z, (unary.requires_grad_(), edges.requires_grad_(), delta))


@pytest.mark.ci
def test_longer_rings_come_closer_to_the_bound() -> None:
    """Figure 4.5: per symbol the bound does not depend on N; the exact value approaches a limit below."""
    unary, edges = potentials(1, 7, scale=0.5)
    bound = model.tighten(unary, edges, 200).values[-1] / 2
    gaps = [bound - float(exact(unary, edges, size)) / size for size in (4, 6, 8)]
    assert all(gap > 0 for gap in gaps) and abs(gaps[2] - gaps[1]) < abs(gaps[1] - gaps[0]) + 1e-9


# ---- training ----------------------------------------------------------------------------------------------
# Both objectives learn what text there is; the bound's gradient is the difference of moments.


LINES = [[3, 4, 5], [3, 4, 5], [5, 4], [3, 4, 5], [4]]


@pytest.mark.ci
@pytest.mark.parametrize("objective", ["pseudo-likelihood", "bound"])
def test_text_like_the_training_text_scores_higher(objective: str) -> None:
    config = MRFConfig(
        dimension=4, objective=objective, epochs=40, batch_size=64, learning_rate=0.1, rounds=8, dual_steps=60
    )
    told: list[float] = []
    model = train_field(config, LINES, 6, lambda done, value: told.append(value))
    assert told[-1] > told[0] + 0.02
    good, swapped, cut = model.score_sentences([[3, 4, 5], [4, 3, 5], [5, 3, 4]])
    assert good > swapped + 1 and good > cut + 1
    again = train_field(config, LINES, 6, lambda done, value: None)
    assert all(torch.equal(one, two) for one, two in zip(model.parameters(), again.parameters(), strict=True))


@pytest.mark.ci
def test_the_lower_bound_never_falls() -> None:
    config = MRFConfig(dimension=4, objective="bound", rounds=6, dual_steps=30, lbfgs_steps=5)
    told: list[float] = []
    train_field(config, LINES, 6, lambda done, value: told.append(value))
    assert all(after >= before - 1e-5 for before, after in pairwise(told))


def test_the_gradient_for_potentials_is_observed_less_expected() -> None:
    model = ChainMRF(MRFConfig(dimension=3), 6).double()
    symbols = ring(LINES, 2) + [1] * 2
    delta = 0.1 * torch.randn(2, 6, dtype=torch.float64)
    observed = Moments(symbols, 2)
    lower_bound(model, observed, delta).backward()
    center, joint = star_marginals(model.unary.detach(), model.edges().detach(), delta)
    leaves = joint.sum(1)
    expected = (center + leaves.sum(0)) / 3  # θ0 is in the center and in each leaf
    counts = torch.bincount(torch.tensor(symbols), minlength=6) / len(symbols)
    assert torch.allclose(model.unary.grad, counts - expected)  # type: ignore[arg-type]
    pairs = torch.zeros(2, 6, 6, dtype=torch.float64)
    for distance in (1, 2):
        for place, word in enumerate(symbols):
            pairs[distance - 1, word, symbols[(place + distance) % len(symbols)]] += 1 / len(symbols)
    slopes = pairs - joint
    right = torch.einsum("kst,sd->ktd", slopes, model.left.detach())
    assert torch.allclose(model.right.grad, right)  # type: ignore[arg-type]


# ---- file --------------------------------------------------------------------------------------------------
# The file of a Markov random field: what is read is what was written, and other files are refused.


VOCAB = Vocab({"b": 3, "a": 3, "rare": 1}, 2)


def test_a_model_is_read_as_it_was_written(tmp_path: Path) -> None:
    model = ChainMRF(MRFConfig(order=3, dimension=2, vocabulary=2), len(VOCAB))
    (tmp_path / "m").write_bytes(field_bytes(model, VOCAB))
    found, vocab = load_field(tmp_path / "m")
    assert vocab.words == VOCAB.words and found.config == model.config
    texts = [[3, 4, 2], []]
    assert (found.score_sentences(texts) == model.score_sentences(texts)).all()


def test_other_files_are_refused(tmp_path: Path) -> None:
    model = ChainMRF(MRFConfig(order=1, dimension=2), len(VOCAB))
    (tmp_path / "m").write_bytes(field_bytes(model, VOCAB))
    content = torch.load(tmp_path / "m", weights_only=True)
    for changed, message in (
        ({"format": "other"}, "is not a Markov random field"),
        ({"settings": {"order": 0}}, "damaged"),
        ({"settings": {"order": 2}}, "damaged"),
        ({"counts": {}}, "damaged"),
    ):
        save_tensors(content | changed, tmp_path / "other")
        with pytest.raises(CheckpointError, match=message):
            load_field(tmp_path / "other")
    (tmp_path / "m").write_bytes((tmp_path / "m").read_bytes()[:-50])
    with pytest.raises(CheckpointError, match="damaged"):
        load_field(tmp_path / "m")


# ---- feature -----------------------------------------------------------------------------------------------
# A Markov random field as a feature: the scores of the model, sentences and phrases told apart.


TARGETS = [["l&apos;", "eau"], ["eau", "nouveau", "l&apos;"], []]


@pytest.mark.parametrize("whole", [True, False])
def test_scores_are_those_of_the_model(tmp_path: Path, whole: bool) -> None:
    vocab = Vocab({"l'": 2, "eau": 1}, 2)
    model = ChainMRF(MRFConfig(order=2, dimension=3), len(vocab))
    (tmp_path / "m").write_bytes(field_bytes(model, vocab))
    (spec,) = parse_features([f"mrf={tmp_path / 'm'}"])
    assert spec.name == "MRF0"
    feature = FEATURES["mrf"].load(spec, FeatureSettings())
    pairs = WordPairs(sources=[["x"]], targets=TARGETS, source_of=[0, 0, 0], whole=whole)
    eau, l_apos = vocab.ids["eau"], vocab.ids["l'"]
    expected = model.score_sentences([[l_apos, eau], [eau, UNK, l_apos], []], ends=whole)
    assert feature.score(pairs).tolist() == expected.tolist()
    before = feature.identity()
    (tmp_path / "m").write_bytes(
        field_bytes(ChainMRF(MRFConfig(order=2, dimension=3, seed=2), len(vocab)), vocab)
    )
    assert FEATURES["mrf"].load(spec, FeatureSettings()).identity() != before


# ---- command -----------------------------------------------------------------------------------------------
# nmt-mrf, in process: train, score, mistakes.


MRF_TEXT = "l&apos; eau est froide\n\nle vin est rouge\nl&apos; eau est froide\n"


def run(*words: object) -> int:
    return command.main([*map(str, words), "-q", "--threads", "1"])


@pytest.mark.ci
@pytest.mark.parametrize("objective", ["pseudo-likelihood", "bound"])
def test_the_way_of_a_model(tmp_path: Path, objective: str) -> None:
    text, model, out = tmp_path / "text", tmp_path / "new" / "model", tmp_path / "out"
    text.write_text(MRF_TEXT)
    made = ["train", "-i", text, "-o", model, "--objective", objective, "--epochs", 30, "--rounds", 4]
    assert run(*made, "--learning-rate", 0.1, "--dimension", 4) == 0
    text.write_text("l' eau est froide\nl&apos; eau est froide\nfroide est eau l&apos;\n\nzzz\n")
    assert run("score", model, "-i", text, "-o", out) == 0
    values = [float(line) for line in out.read_text().splitlines()]
    assert len(values) == 5 and values[0] == values[1] > values[2] + 1 and max(values) < 0


@pytest.mark.ci
def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("\n\n")
    assert run("train", "-i", tmp_path / "text", "-o", tmp_path / "model") == 2
    assert "no words, expected a training text" in capsys.readouterr().err
    assert run("score", tmp_path / "text", "-i", tmp_path / "text") == 2
    assert "damaged or not a checkpoint" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text"]


def test_an_output_that_cannot_be_written_is_told_before_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text").write_text(MRF_TEXT)
    monkeypatch.setattr(model, "train_field", None)
    assert run("train", "-i", tmp_path / "text", "-o", tmp_path) == 2
    assert "Is a directory" in capsys.readouterr().err
    assert run("train", "-i", tmp_path / "text", "-o", tmp_path / "model.gz") == 2
    assert "leave out .gz" in capsys.readouterr().err


def test_a_text_is_scored_as_it_is_read(tmp_path: Path) -> None:
    """Not kept in memory as a list of lists of words."""
    (tmp_path / "text").write_text(MRF_TEXT)
    assert next(command.read_words(str(tmp_path / "text"))) == ["l'", "eau", "est", "froide"]
