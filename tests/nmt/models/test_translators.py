"""What holds for every translation model: word by word = the whole sentence, alone = in a batch,
probabilities that sum to one, exact gradients; and guided alignment, whose cost is part of the loss."""

import itertools
import math
import random
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from nmt.data.batches import Batch, guidance, make_batch, unit_links
from nmt.layers.attention import alignment_cost
from nmt.models.config import RNNConfig
from nmt.models.rnn import RNNTranslator
from nmt.models.transformer import Transformer, TransformerConfig
from nmt.scoring import word_scores
from nmt.text.vocab import EOS
from nmt.training.optimizers import make_optimizer
from tests.nmt.models.models import PAIRS, RNN_VARIANTS, TRANSFORMER_VARIANTS, make_rnn, make_transformer

Options = dict[str, object]
MODELS = [("rnn", options) for options in RNN_VARIANTS]
MODELS += [("transformer", options) for options in TRANSFORMER_VARIANTS]


def make(kind: str, options: Options) -> RNNTranslator | Transformer:
    return make_rnn(**options) if kind == "rnn" else make_transformer(**options)


def all_pairs() -> Batch:
    return make_batch(*zip(*PAIRS, strict=True))


@torch.no_grad()
@pytest.mark.parametrize(("kind", "options"), MODELS, ids=str)
def test_steps_equal_the_whole(kind: str, options: Options) -> None:
    """Σ log p by start / step / reorder, word by word, is what the batch gives at once."""
    model = make(kind, options)
    for (source, target), scores in zip(PAIRS, word_scores(model, PAIRS), strict=True):
        state, words = model.reorder(model.start([source]), torch.tensor([0, 0])), None  # type: ignore[arg-type]
        for word, expected in zip([*target, EOS], scores, strict=True):
            log_probs, state = model.step(state, words)  # type: ignore[arg-type]
            assert torch.allclose(log_probs.exp().sum(1), torch.ones(2, dtype=torch.float64))
            assert float(log_probs[1, word]) == pytest.approx(expected, abs=1e-10)
            words = torch.tensor([word, word])


@torch.no_grad()
@pytest.mark.parametrize(("kind", "options"), MODELS, ids=str)
def test_loss_is_minus_the_score_and_neighbors_change_nothing(kind: str, options: Options) -> None:
    model = make(kind, options)
    together = word_scores(model, PAIRS)
    assert float(model.loss(all_pairs())) == pytest.approx(-sum(map(sum, together)), abs=1e-10)
    for pair, scores in zip(PAIRS, together, strict=True):
        assert word_scores(model, [pair])[0] == pytest.approx(scores, abs=1e-12)


@pytest.mark.ci
@pytest.mark.parametrize(("kind", "options"), MODELS[: len(RNN_VARIANTS) + 3], ids=str)
def test_gradients(kind: str, options: Options) -> None:
    model, batch = make(kind, options), all_pairs()
    # The row of <s> in the target embedding of an RNN is frozen at zero, so its numerical and true gradient
    # differ: it is checked elsewhere. So are the 525 filters of a character encoder, in a smaller layer.
    frozen = {"decoder.embedding.weight"} if kind == "rnn" and not options.get("tied") else set()
    parameters = [
        parameter
        for name, parameter in model.named_parameters()
        if name not in frozen and not (options.get("source_words") and "embedding" in name)
    ]
    assert torch.autograd.gradcheck(lambda *_: model.loss(batch), parameters, fast_mode=True)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["rnn", "transformer"])
def test_options_change_the_function(kind: str) -> None:
    """Each key of the configuration that matters to a sentence."""
    values = [round(float(make(*model).loss(all_pairs())), 9) for model in MODELS if model[0] == kind]
    assert len(set(values)) == len(values)


@pytest.mark.parametrize(
    "config",
    [
        RNNConfig(embedding=4, hidden=5, maxout=3, init_scale=0.5),
        TransformerConfig(embedding=4, feed_forward=4, heads=2, encoder_layers=1, decoder_layers=1),
    ],
    ids=lambda config: config.type,
)
def test_texts_of_all_lengths_sum_to_one(config: RNNConfig | TransformerConfig) -> None:
    """Σ p(y | x) over all y of up to 3 words, and over all beginnings of 4 words, is 1; ids 0, 2, 3 can
    follow, 1 ends."""
    torch.manual_seed(0)
    model = RNNTranslator(config, 5, 4) if isinstance(config, RNNConfig) else Transformer(config, 5, 4)
    texts = [list(text) for n in range(5) for text in itertools.product((0, 2, 3), repeat=n)]
    scores = word_scores(model.double().eval(), [([3], text) for text in texts])
    whole = sum(math.exp(sum(row)) for text, row in zip(texts, scores, strict=True) if len(text) < 4)
    begun = sum(math.exp(sum(row[:-1])) for text, row in zip(texts, scores, strict=True) if len(text) == 4)
    assert whole + begun == pytest.approx(1, abs=1e-10)


@pytest.mark.ci
@pytest.mark.parametrize("cell", ["gru", "lstm", ""])
def test_a_fresh_model_learns_twenty_pairs(cell: str) -> None:
    """RNNs with either cell, and a Transformer, which begins nearly uniform."""
    rng = random.Random(0)
    pairs = [
        tuple([rng.randint(3, 20) for _ in range(rng.randint(1, 6))] for _ in range(2)) for _ in range(20)
    ]
    torch.manual_seed(0)
    batch = make_batch(*zip(*pairs, strict=True))
    model: RNNTranslator | Transformer
    if cell:
        sizes = RNNConfig(cell=cell, embedding=16, hidden=48, maxout=24, init="glorot", bias=True)
        model, updates = RNNTranslator(sizes, 21, 21), 250
        optimizer = make_optimizer("adam", model.parameters(), 0.01, 0, 0)
    else:
        config = TransformerConfig(
            embedding=32, feed_forward=64, heads=4, encoder_layers=1, decoder_layers=1, norm="pre",
            dropout=0.0, attention_dropout=0.0, feed_forward_dropout=0.0,
        )  # fmt: skip
        model, updates = Transformer(config, 21, 21), 80
        optimizer = make_optimizer("adam", model.parameters(), 0.005, 0, 0, (0.9, 0.98))
        assert math.log(21) - 0.5 < model.loss(batch).item() / batch.target_tokens < math.log(21) + 2
    for _ in range(updates):
        optimizer.zero_grad()
        model.loss(batch).backward()
        optimizer.step()
    assert model.loss(batch).item() / batch.target_tokens < 0.05


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("kind", ["rnn", "transformer"])
def test_cuda_gives_the_same_scores(kind: str) -> None:
    cpu = word_scores(make(kind, {}), PAIRS)
    assert [pytest.approx(scores, abs=1e-9) for scores in cpu] == word_scores(
        make(kind, {}).to("cuda"), PAIRS
    )


# ---- guided alignment --------------------------------------------------------------------------------------

GUIDED = [([3, 4, 5], [3]), ([6], [4, 5, 6, 7]), ([7, 8], [8, 9]), ([9, 3, 4, 5], [])]
LINKS = [{(0, 0), (2, 0)}, {(0, 1)}, {(0, 1), (1, 0)}, set[tuple[int, int]]()]
ATTENTIVE: list[tuple[str, Options]] = [
    ("rnn", {"attention": 6}),
    ("rnn", {"attention": 6, "encoder": "birnn", "encoder_layers": 2, "decoder_layers": 2, "bias": True}),
    ("rnn", {"attention": 6, "reverse": True}),
    ("rnn", {"attention": 6, "cell": "lstm", "encoder": "birnn"}),
    ("rnn", {"attention": 6, "reset": "after"}),
    ("transformer", {}),
    ("transformer", {"norm": "pre", "attention_layer": 2}),
    ("transformer", {"attention_heads": 1}),
    ("transformer", {"recompute": True}),
]


def guided(rows: list[int], weight: float = 0.7) -> Batch:
    """A batch of some of the pairs, with their links."""
    batch = make_batch([GUIDED[row][0] for row in rows], [GUIDED[row][1] for row in rows])
    links = [
        unit_links(frozenset(LINKS[row]), range(len(GUIDED[row][0])), range(len(GUIDED[row][1])))
        for row in rows
    ]
    return replace(batch, guidance=guidance(links, batch.target.sizes, batch.target.order.tolist(), weight))


@torch.no_grad()
@pytest.mark.parametrize(("kind", "options"), ATTENTIVE, ids=str)
def test_attention_of_whole_sentences_is_that_of_the_steps(kind: str, options: Options) -> None:
    model = make(kind, options)
    assert model.attends
    batch = guided([0, 1, 2, 3])
    features, weights = model.attended(batch)
    assert torch.equal(features, model.unroll(batch))
    for (source, target), rows in zip(GUIDED, batch.target.split(weights), strict=True):
        state, words = model.start([source]), None
        for word, row in zip([*target, EOS], rows, strict=True):
            _, state = model.step(state, words)  # type: ignore[arg-type]
            looks = model.attention(state)  # type: ignore[arg-type]
            assert looks is not None and not row[len(source) + 1 :].any()
            assert torch.allclose(looks[0], row[: len(source) + 1], atol=1e-12)
            words = torch.tensor([word])


@pytest.mark.parametrize(("kind", "options"), ATTENTIVE, ids=str)
def test_the_loss_has_the_cost_of_the_links(kind: str, options: Options) -> None:
    """Whatever else is in the batch, and in any order."""
    model = make(kind, options)
    batch = guided([0, 1, 2, 3])
    plain, whole = model.loss(replace(batch, guidance=None)), model.loss(batch)
    assert batch.guidance is not None
    extra = alignment_cost(model.attended(batch)[1], batch.guidance)
    assert float(extra.detach()) > 1 and torch.allclose(whole, plain + extra, atol=1e-12)
    assert torch.allclose(whole, sum((model.loss(guided([row])) for row in (2, 0, 3, 1)), torch.tensor(0.0)))
    assert torch.allclose(extra, 0.7 * (model.loss(guided([3, 1, 0, 2], 1.7)) - whole))


@pytest.mark.ci
@pytest.mark.parametrize(("kind", "options"), ATTENTIVE, ids=str)
def test_gradients_of_a_guided_batch(kind: str, options: Options) -> None:
    model, batch = make(kind, options), guided([0, 1, 2, 3])
    parameters = [p for name, p in model.named_parameters() if name != "decoder.embedding.weight"]

    def loss(*_: Tensor) -> Tensor:
        return model.loss(batch)

    assert torch.autograd.gradcheck(loss, parameters, fast_mode=True)


def test_one_head_leaves_the_others_free() -> None:
    """The first head of the layer learns the links; a second one gets no gradient from them."""
    model, batch = make_transformer(attention_heads=1, attention_layer=2), guided([0, 1, 2])
    assert isinstance(model, Transformer) and batch.guidance is not None
    alignment_cost(model.attended(batch)[1], batch.guidance).backward()
    source = model.decoder.blocks[1].source
    assert source is not None and source.query.weight.grad is not None
    first, second = source.query.weight.grad.chunk(2)
    assert first.abs().max() > 1e-3 and not second.any()
