import math
from pathlib import Path

import pytest
import torch

from nmt.data.batches import make_batch
from nmt.errors import ConfigError, UserError
from nmt.models.config import RNNConfig
from nmt.models.translator import Translator
from nmt.training.loop import Job, Progress, TrainingConfig, check_finite, limit_reached, save, update
from nmt.training.optimizers import make_optimizer, rate_of


def test_limits() -> None:
    config = TrainingConfig(max_steps=10, max_epochs=2, max_minutes=1.0, patience=3)
    assert limit_reached(config, Progress(step=9, epoch=1, seconds=59.9, bad=2)) == ""
    assert limit_reached(config, Progress(step=10)).startswith("max_steps")
    assert limit_reached(config, Progress(epoch=2)).startswith("max_epochs")
    assert limit_reached(config, Progress(seconds=60)).startswith("max_minutes")
    assert limit_reached(config, Progress(bad=3)).startswith("patience")
    assert limit_reached(TrainingConfig(patience=0), Progress(step=10**9, bad=10**9)) == ""


def job(model: Translator, **options: object) -> Job:
    config = TrainingConfig(optimizer="sgd", learning_rate=1.0, clip=0, **options)  # type: ignore[arg-type]
    return Job(
        Path(), config, model, make_optimizer("sgd", model.parameters(), 1.0, 0, 0), None, None, lambda: False
    )  # type: ignore[arg-type]


@pytest.mark.parametrize("cost", ["sentence", "word", "sum"])
def test_accumulated_batches_are_one_batch(cost: str) -> None:
    """Two batches of unlike size in one update move the weights as their union does."""
    pairs = [([3, 4], [3]), ([5], [4, 5, 6, 3]), ([6, 3], [3, 4])]
    results = []
    for cuts in ([pairs], [pairs[:1], pairs[1:]]):
        torch.manual_seed(0)
        model = Translator(RNNConfig(embedding=4, hidden=5, maxout=3, init_scale=0.5), 7, 7).double()
        words = model.decoder.output.words
        mean = (
            model.loss(make_batch(*zip(*pairs, strict=True)))
            / {"sentence": 3, "word": 2 + 5 + 3, "sum": 1}[cost]
        )
        expected = words.detach() - torch.autograd.grad(mean, words)[0]
        total, norm = update(job(model, cost=cost), [make_batch(*zip(*cut, strict=True)) for cut in cuts])
        assert torch.allclose(words, expected, atol=1e-12)
        results.append((total, norm, words.detach().clone()))
    assert results[0][:2] == pytest.approx(results[1][:2], abs=1e-10)
    assert torch.allclose(results[0][2], results[1][2], atol=1e-12)


def test_the_rate_of_an_update_follows_schedule_and_decay() -> None:
    torch.manual_seed(0)
    model = Translator(RNNConfig(embedding=4, hidden=5, maxout=3), 7, 7)
    work = job(model, warmup=4, schedule="inverse_sqrt")
    work.progress.decayed = 0.5
    batch, rates = make_batch([[3]], [[4]]), []
    for work.progress.step in (0, 1, 3, 15):
        update(work, [batch])
        rates.append(rate_of(work.optimizer))
    assert rates == [0.125, 0.25, 0.5, 0.25]  # half of 1/4, 2/4, 1 and √(4/16)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schedule": "cosine"}, "expected one of 'constant', 'inverse_sqrt', 'linear'"),
        ({"schedule": "inverse_sqrt"}, "needs warmup"),
        ({"schedule": "linear", "warmup": 9, "max_steps": 9}, "linear needs max_steps"),
        ({"label_smoothing": 1.0}, "range"),
        ({"accumulate": 0}, r"training\.accumulate: 0 is out of range, expected 1 or more"),
        ({"warmup": -1}, "range"),
        ({"learning_rate": math.inf}, r"training\.learning_rate: inf is out of range"),
        ({"max_minutes": math.nan}, "range"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainingConfig(**options).check()  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_weights_that_are_no_numbers_are_never_saved(value: float, tmp_path: Path) -> None:
    work = job(Translator(RNNConfig(embedding=4, hidden=5, maxout=3), 7, 7))
    work.directory = tmp_path
    save(work, ())  # type: ignore[arg-type]
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert "step-0.pt" in before
    with torch.no_grad():
        next(work.model.parameters())[0] = value
    work.progress.step = 1
    with pytest.raises(UserError, match="weights are not finite numbers at step 1"):
        save(work, ())  # type: ignore[arg-type]
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def test_weights_whose_sum_is_too_large_are_numbers_still() -> None:
    work = job(Translator(RNNConfig(embedding=4, hidden=5, maxout=3), 7, 7))
    with torch.no_grad():
        work.model.decoder.output.words.fill_(3e38)
    check_finite(work)
