import math
import random

import pytest
import torch

from nmt.data.batches import make_batch
from nmt.errors import ConfigError
from nmt.models.config import RNNConfig
from nmt.models.rnn.translator import RNNTranslator
from nmt.scoring import word_scores
from nmt.text.vocab import BOS, EOS
from nmt.training.optimizers import make_optimizer
from tests.nmt.models.options import with_options

SOURCE, TARGET = 11, 12
SPELLING = ["<s>", "</s>", "<unk>", "a", "be", "bee", "cab", "deed", "e", "fa", "abracadabra"]
VARIANTS: list[dict[str, object]] = [
    {},
    {"cell": "lstm"},
    {"gate": "take_new", "bias": True},
    {"reset": "after"},
    {"reset": "after_with_context"},
    {"first_word": "initial"},
    {"first_word": "initial", "cell": "lstm"},
    {"summary": "tanh", "output_rank": 3},
    {"encoder": "birnn"},
    {"encoder": "birnn", "encoder_hidden": 3, "encoder_layers": 2, "decoder_layers": 2, "bias": True},
    {"encoder": "birnn", "encoder_hidden": 3, "attention": 6, "bias": True},
    {"encoder": "birnn", "encoder_layers": 2, "decoder_layers": 3, "attention": 6, "cell": "lstm"},
    {"attention": 6},
    {"attention": 6, "reset": "after", "encoder": "birnn"},
    {"attention": 6, "gate": "take_new", "encoder": "birnn"},
    {"attention": 6, "reverse": True},
    {"reverse": True},
    {"encoder_layers": 2, "decoder_layers": 2, "cell": "lstm"},
    {"cell": "vcrnn", "sharpness": 0.6, "encoder_layers": 2, "decoder_layers": 2},
    {"cell": "vcgru", "sharpness": 0.6, "encoder": "birnn", "first_word": "initial"},
    {"cell": "vcgru", "sharpness": 0.6, "encoder": "birnn", "attention": 6, "decoder_layers": 2},
    {"encoder": "grconv", "bias": True},
    {"encoder": "grconv", "encoder_hidden": 6, "summary": "tanh", "reverse": True},
    {"tied": "target", "output_rank": 4},
    {"tied": "target", "maxout": 4, "encoder": "birnn", "attention": 6},
    {"source_words": "characters"},
]
PAIRS = [([3, 4, 5], [3]), ([6], [4, 5, 6, 7]), ([7, 8], [8, 9]), ([], [])]


def make(**options: object) -> RNNTranslator:
    torch.manual_seed(0)
    config = with_options(RNNConfig(embedding=4, hidden=5, maxout=3, init_scale=0.5), options)
    return RNNTranslator(config, SOURCE, TARGET, spelling=SPELLING).double().eval()


@torch.no_grad()
@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_steps_equal_the_whole(options: dict[str, object]) -> None:
    """Σ log p by start / step / reorder, word by word, is what the batch gives at once."""
    model = make(**options)
    whole = word_scores(model, PAIRS)
    for (source, target), scores in zip(PAIRS, whole, strict=True):
        state, words = model.start([source]), None
        state = model.reorder(state, torch.tensor([0, 0]))
        for word, expected in zip([*target, EOS], scores, strict=True):
            log_probs, state = model.step(state, words)
            assert torch.allclose(log_probs.exp().sum(1), torch.ones(2, dtype=torch.float64))
            assert float(log_probs[1, word]) == pytest.approx(expected, abs=1e-10)
            words = torch.tensor([word, word])


@torch.no_grad()
@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_loss_is_minus_the_score_and_neighbours_change_nothing(options: dict[str, object]) -> None:
    model = make(**options)
    batch = make_batch(*zip(*PAIRS, strict=True))
    together = word_scores(model, PAIRS)
    assert float(model.loss(batch)) == pytest.approx(-sum(map(sum, together)), abs=1e-10)
    shuffled = [2, 0, 3, 1]
    again = word_scores(model, [PAIRS[row] for row in shuffled])
    for row, scores in zip(shuffled, again, strict=True):
        assert scores == pytest.approx(together[row], abs=1e-12)
        assert word_scores(model, [PAIRS[row]])[0] == pytest.approx(together[row], abs=1e-12)


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_gradients(options: dict[str, object]) -> None:
    model = make(**options)
    batch = make_batch(*zip(*PAIRS, strict=True))
    # The target embedding's row of <s> is frozen at zero, so its numerical and true gradient differ: it is
    # checked below.
    # The 525 filters of a character encoder are checked in a smaller layer of their own.
    own = {"decoder.embedding.weight"} if not options.get("tied") else set()
    parameters = [
        p
        for name, p in model.named_parameters()
        if name not in own and not (options.get("source_words") and "embedding" in name)
    ]
    assert torch.autograd.gradcheck(lambda *_: model.loss(batch), parameters, fast_mode=True)


def test_no_previous_word_is_a_zero_vector_that_stays() -> None:
    model = make()
    model.loss(make_batch(*zip(*PAIRS, strict=True))).backward()
    weight = model.decoder.embedding.weight
    assert weight.grad is not None
    assert not weight[BOS].any() and not weight.grad[BOS].any() and weight.grad[4].any()


@torch.no_grad()
def test_options_change_the_function() -> None:
    values = [
        round(float(make(**options).loss(make_batch(*zip(*PAIRS, strict=True)))), 9) for options in VARIANTS
    ]
    assert len(set(values)) == len(VARIANTS)


def test_probabilities_of_all_sentences_sum_to_one() -> None:
    """Σ p(y | x) over all y of up to 4 words, and over all beginnings of 5 words, is 1; ids 0, 2, 3 can
    follow, 1 ends."""
    torch.manual_seed(0)
    model = RNNTranslator(RNNConfig(embedding=4, hidden=5, maxout=3, init_scale=0.5), 5, 4).double().eval()
    texts: list[list[int]] = [[]]
    for length in range(5):
        texts += [[*text, word] for text in texts if len(text) == length for word in (0, 2, 3)]
    scores = dict(zip(map(tuple, texts), word_scores(model, [([3], text) for text in texts]), strict=True))
    whole = sum(math.exp(sum(values)) for text, values in scores.items() if len(text) < 5)
    begun = sum(math.exp(sum(values[:-1])) for text, values in scores.items() if len(text) == 5)
    assert whole + begun == pytest.approx(1, abs=1e-10)


@pytest.mark.ci
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_overfits_twenty_pairs(cell: str) -> None:
    rng = random.Random(0)
    pairs = [
        (
            [rng.randint(3, 20) for _ in range(rng.randint(1, 6))],
            [rng.randint(3, 20) for _ in range(rng.randint(1, 6))],
        )
        for _ in range(20)
    ]
    torch.manual_seed(0)
    model = RNNTranslator(
        RNNConfig(cell=cell, embedding=16, hidden=48, maxout=24, init="glorot", bias=True), 21, 21
    )
    optimizer = make_optimizer("adam", model.parameters(), 0.01, 0, 0)
    batch = make_batch(*zip(*pairs, strict=True))
    for _ in range(250):
        optimizer.zero_grad()
        model.loss(batch).backward()
        optimizer.step()
    assert model.loss(batch).item() / batch.target_tokens < 0.02


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cell": "gur"}, "expected one of 'gru', 'lstm'"),
        ({"hidden": 0}, "out of range, expected 1 to 1000000"),
        ({"dropout": 1.0}, "range"),
        ({"cell": "lstm", "reset": "after"}, "belong to"),
        ({"cell": "vcgru", "gate": "take_new"}, "belong to"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make(**options)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_cuda_gives_the_same_scores() -> None:
    cpu = word_scores(make(), PAIRS)
    assert [pytest.approx(scores, abs=1e-9) for scores in cpu] == word_scores(make().to("cuda"), PAIRS)
