"""The multi-scale model against the LSTM, sums over segmentations written out, and its own pieces."""

import itertools
import math
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.data.batches import make_batch
from nmt.data.running import ChunkStream, as_corpus, join_sentences
from nmt.layers.batch_scores import word_scores
from nmt.layers.output import Softmax
from nmt.lm.recurrent import RecurrentConfig, RecurrentLM
from nmt.papers.multiscale import command
from nmt.papers.multiscale.dictionary import Dictionary
from nmt.papers.multiscale.model import MultiscaleConfig, MultiscaleLM, Tokens, marginal
from nmt.text.vocab import EOS
from nmt.training.validation import running_cost
from tests.nmt.gradients import check_gradients

# ---- model -------------------------------------------------------------------------------------------------


WORDS = ["<s>", "</s>", "<unk>", "a", "b", "c"]  # a 3, b 4, c 5
LONGER = [("a", "b"), ("b", "c"), ("a", "b", "c"), ("c", "c"), ("b", "b", "a", "a")]
TEXTS = [[3, 4, 5, 3, 4], [5], [], [4, 4, 3, 3, 4, 5], [3, 4, 5, 5, 5], [2, 3, 4]]


def tokens_of(longer: list[tuple[str, ...]] = LONGER) -> Tokens:
    symbols = [(word,) for word in WORDS[3:]]
    return Tokens(WORDS, Dictionary([*symbols, *longer], [1] * (len(symbols) + len(longer))))


def softmax_of(model: MultiscaleLM | RecurrentLM) -> tuple[torch.Tensor, torch.Tensor]:
    """Its matrix and bias."""
    bias = cast(Softmax, model.output).words_bias
    assert bias is not None
    return cast(Softmax, model.output).words, bias


def model_of(longer: list[tuple[str, ...]] = LONGER, seed: int = 0, **more: object) -> MultiscaleLM:
    torch.manual_seed(seed)
    config = MultiscaleConfig(embedding=5, hidden=6, init_scale=1.0, **more)  # type: ignore[arg-type]
    model = MultiscaleLM(config, tokens_of(longer)).double().eval()
    with torch.no_grad():
        for bias in (model.bias, softmax_of(model)[1]):
            bias += 0.5 * torch.randn_like(bias)
    return model


def segmentations(tokens: Tokens, text: list[int]) -> list[list[int]]:
    """All ways to cut a text into tokens."""
    if not text:
        return [[]]
    first = [token for token, spelling in enumerate(tokens.spelling) if text[: len(spelling)] == spelling]
    return [
        [token, *rest]
        for token in first
        for rest in segmentations(tokens, text[len(tokens.spelling[token]) :])
    ]


def naive(model: MultiscaleLM, text: list[int]) -> float:
    """log p of a line, states and paths one by one: eqs. 8.5 to 8.8 with the LSTM's means."""
    H = model.hidden
    start = model.start_window(1)
    states = [(start.hidden[-1, 0], start.cells[-1, 0])]
    line = [*text, EOS]
    for end in range(1, len(line) + 1):
        cells, opened = [], []
        for token, spelling in enumerate(model.tokens.spelling):
            begin = end - len(spelling)
            if begin >= 0 and line[begin:end] == spelling:
                h, c = states[begin]
                gates = model.recurrent @ h + model.inputs @ model.embedding.weight[token] + model.bias
                f, i, o, g = torch.split(gates, H)
                cells.append(torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g))
                opened.append(o)
        c = torch.stack(cells).mean(0)
        states.append((torch.sigmoid(torch.stack(opened).mean(0)) * torch.tanh(c), c))
    total = []
    for path in segmentations(model.tokens, line):
        at, log_p = 0, 0.0
        for token in path:
            log_p += float(model.output.log_probs(states[at][0][None])[0, token])
            at += len(model.tokens.spelling[token])
        total.append(log_p)
    return float(np.logaddexp.reduce(total))


def test_the_likelihood_is_the_sum_over_all_segmentations() -> None:
    model = model_of()
    assert len(segmentations(model.tokens, TEXTS[0])) == 8, (
        "a b c a b: a|b|c, ab|c, a|bc, abc, each with a|b or ab"
    )
    with torch.no_grad():
        expected = [naive(model, text) for text in TEXTS]
        together = [sum(scores) for scores in word_scores(model, [((), text) for text in TEXTS])]
        assert together == pytest.approx(expected, abs=1e-9)
        assert float(model.cost(make_batch([()] * len(TEXTS), TEXTS), 0.0, None)[0]) == pytest.approx(
            -sum(expected), abs=1e-9
        )
        assert [float(-model.loss(make_batch([()], [text]))) for text in TEXTS] == pytest.approx(
            expected, abs=1e-9
        ), "neighbours change nothing"
        assert model.score_sentences(TEXTS).tolist() == pytest.approx(expected, abs=1e-9)


def test_with_single_symbols_it_is_the_lstm() -> None:
    """The same parameters, its gates in the order f, i, o, g; the LSTM's are i, f, o, g."""
    model = model_of([], seed=3)
    lstm = RecurrentLM(RecurrentConfig(embedding=5, hidden=6), len(WORDS)).double().eval()
    order = torch.cat([torch.arange(6) + 6 * gate for gate in (1, 0, 2, 3)])
    assert isinstance(lstm.embedding, torch.nn.Embedding)
    with torch.no_grad():
        lstm.embedding.weight.copy_(model.embedding.weight)
        cell = lstm.cells[0]
        for name in ("inputs", "recurrent", "bias"):
            getattr(cell, name).copy_(getattr(model, name)[order])
        for theirs, ours in zip(softmax_of(lstm), softmax_of(model), strict=True):
            theirs.copy_(ours)
    found, expected = (
        [score for line in each.score_texts(TEXTS) for score in line] for each in (model, lstm)
    )
    assert found == pytest.approx(expected, abs=1e-10)
    losses = [each.loss(make_batch([()] * len(TEXTS), TEXTS)) for each in (model, lstm)]
    for loss in losses:
        torch.autograd.backward(loss)
    assert model.recurrent.grad is not None and cell.recurrent.grad is not None
    assert torch.allclose(model.recurrent.grad[order], cell.recurrent.grad, atol=1e-9)  # type: ignore[arg-type]


def test_probabilities_of_all_short_lines_stay_below_one_and_approach_it() -> None:
    """Lines of a, b, c and what has no spelling, <s> and <unk>; longer lines add less and less."""
    model, sums = model_of(seed=1), []
    with torch.no_grad():
        softmax_of(model)[1][EOS] = 4.0  # so that lines are short
    for length in range(6):
        lines = [
            list(text) for n in range(length + 1) for text in itertools.product((0, 2, 3, 4, 5), repeat=n)
        ]
        sums.append(float(np.exp(model.score_sentences(lines)).sum()))
    assert all(low < high for low, high in itertools.pairwise(sums)) and 0.97 < sums[-1] < 1
    assert 1 - sums[-1] < 0.5 * (1 - sums[2])


@pytest.mark.ci
def test_gradients_and_dropout() -> None:
    model = model_of()
    batch = make_batch([()] * 3, TEXTS[:3])
    check_gradients(model, lambda: model.loss(batch))


def test_text_in_chunks_is_the_text_at_once() -> None:
    """States and α of the last positions are carried, so that tokens may lie across two chunks."""
    model = model_of(carry=True)
    text = join_sentences(as_corpus(TEXTS))
    costs = []
    for steps in (1, 2, 5, 100):
        total, carried = 0.0, None
        for chunk in ChunkStream(text, 1, steps).batches(0):
            with torch.no_grad():
                cost, carried = model.cost(chunk, 0.0, carried)
            total += float(cost)
        costs.append(total)
    assert costs == pytest.approx([costs[-1]] * 4, abs=1e-9)
    assert running_cost(model, as_corpus(TEXTS), tracks=1) * len(text) == pytest.approx(costs[-1], abs=1e-9)
    joined = [id for line in TEXTS for id in [*line, EOS]][:-1]
    assert -costs[-1] == pytest.approx(sum(word_scores(model, [((), joined)])[0]), abs=1e-9)


@pytest.mark.ci
def test_samples_are_tokens_and_make_text() -> None:
    model = model_of(seed=4)
    draw = partial(model.sample, temperature=1.0, top_k=0, top_p=1.0)
    lines = list(draw(40, max_length=12, seed=1))
    assert lines == list(draw(40, max_length=12, seed=1)) != list(draw(40, max_length=12, seed=2))
    assert {token for line in lines for token in line} <= set(model.tokens.texts) and any(
        len(token) > 1 for line in lines for token in line
    )
    # Drawn tokens are as frequent as the model says: the first of a line.
    first = [line[0] if line else "\n" for line in draw(800, max_length=1, seed=3)]
    with torch.no_grad():
        probs = model.output.log_probs(model.start_window(1).hidden[-1])[0].exp().tolist()
    for token, p in zip(model.tokens.texts, probs, strict=True):
        assert abs(first.count(token) / 800 - p) < 4 * math.sqrt(p * (1 - p) / 800) + 1e-3


# ---- lattice -----------------------------------------------------------------------------------------------
# Arcs are the tokens that end at each symbol; the forward recursion against sums written out.


def test_arcs_are_the_tokens_that_end_at_each_symbol() -> None:
    tokens, rng = tokens_of(), np.random.default_rng(1)
    symbols = rng.integers(-1, 6, (4, 40))
    arcs = tokens.arcs(symbols, 33)
    found = set(
        zip(arcs.rows.tolist(), arcs.ends.tolist(), arcs.lengths.tolist(), arcs.tokens.tolist(), strict=True)
    )
    expected = {
        (row, end + 1, len(spelling), token)
        for row in range(4)
        for end in range(33)
        for token, spelling in enumerate(tokens.spelling)
        if symbols[row, end + 8 - len(spelling) : end + 8].tolist() == spelling
    }
    assert found == expected and len(arcs.rows) == len(found)
    assert (np.diff(arcs.ends * 100 + arcs.rows) >= 0).all()


def test_the_marginal_and_its_gradient() -> None:
    torch.manual_seed(2)
    scores = torch.randn(5, 2, 3, dtype=torch.float64)
    scores[torch.rand(5, 2, 3) < 0.3] = -torch.inf
    scores[:, :, 0] = torch.randn(5, 2, dtype=torch.float64)
    before = torch.tensor([[-1e30, -1e30], [-1e30, -2.0], [0.0, 0.0]], dtype=torch.float64)

    def plain(values: Tensor) -> Tensor:
        alpha = list(before)
        for t in range(5):
            alpha.append(
                torch.logsumexp(
                    torch.stack([values[t, :, length] + alpha[-1 - length] for length in range(3)]), 0
                )
            )
        return torch.stack(alpha[3:])

    assert torch.allclose(marginal(scores, before), plain(scores))
    weights = torch.randn(5, 2, dtype=torch.float64)
    finite = scores.isfinite()
    grads = []
    for function in (lambda values: marginal(values, before), plain):
        values = scores.clone().requires_grad_()
        (grad,) = torch.autograd.grad((function(values) * weights).sum(), values)
        grads.append(grad[finite])
    assert torch.allclose(grads[0], grads[1], atol=1e-10)


# ---- command -----------------------------------------------------------------------------------------------
# nmt-dictionary, in process: learn, show, segment, count arcs.


def test_a_text_without_symbols_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("\n")
    assert command.main(["learn", "-i", str(tmp_path / "text"), "-o", str(tmp_path / "out"), "-q"]) == 2
    assert f"{tmp_path / 'text'}: no symbols" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_the_way_of_a_dictionary(tmp_path: Path) -> None:
    text, learned, out = (str(tmp_path / name) for name in ("text", "dictionary", "out"))
    Path(text).write_text("ab ab\nab c\n")
    assert command.main(["learn", "--size", "5", "--characters", "-i", text, "-o", learned, "-q"]) == 0
    assert command.main(["table", learned, "-o", out, "-q"]) == 0
    rows = Path(out).read_text().split("\n")
    assert rows[0] == "rank\ttoken\tcount" and any(row.endswith("\tab\t3") for row in rows)
    assert command.main(["segment", learned, "--characters", "--mark", "|", "-i", text, "-o", out, "-q"]) == 0
    assert Path(out).read_text() == "ab|_|ab\nab|_|c\n"
    assert command.main(["arcs", learned, "--characters", "-i", text, "-o", out, "-q"]) == 0
    symbols, arcs, mean = Path(out).read_text().split("\n")[1].split("\t")
    assert (symbols, arcs) == ("9", "12") and float(mean) == round(12 / 9, 4), "one a symbol, and 3 of ab"
