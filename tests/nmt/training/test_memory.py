"""Too little memory is one line that says what fits; a stand-in for the model raises what torch would."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from nmt.data.batches import WHOLE, Batch, Share, make_batch
from nmt.data.running import TrackChunk
from nmt.errors import UserError
from nmt.models.config import RNNConfig
from nmt.models.rnn import RNNTranslator
from nmt.training import loop
from nmt.training.config import TrainingConfig
from nmt.training.job import Fitted, TrainingJob
from nmt.training.memory import in_round_numbers, remedy, report_out_of_memory, validating
from nmt.training.optimizers import make_optimizer
from nmt.training.validation import DevScore

CPU = RuntimeError(
    "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
    "allocate 40000000000 bytes. Error code 12 (Cannot allocate memory)"
)
CUDA = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has ...")
LIBRARY = RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")


class Small(RNNTranslator):
    """A model that fits batches of up to 30 units only."""

    error: Exception = CPU

    def cost(self, batch: Batch, smoothing: float, carried: torch.Tensor | None) -> tuple[torch.Tensor, None]:
        if batch.tokens > 30:
            raise self.error
        return super().cost(batch, smoothing, carried)


class Batches:
    """A stream of given batches."""

    def __init__(self, given: Sequence[Batch]) -> None:
        self.given = given

    def count(self, epoch: int) -> int:
        return len(self.given)

    def batches(self, epoch: int, start: int = 0, share: Share = WHOLE) -> Sequence[Batch]:
        return self.given[start:]


def of(count: int, length: int) -> Batch:
    """`count` pairs whose targets have `length` units and an end symbol, the sources fewer."""
    return make_batch([[3]] * count, [[4] * length] * count)


def job(folder: Path, batches: Sequence[Batch], **settings: object) -> TrainingJob:
    torch.manual_seed(0)
    model = Small(RNNConfig(embedding=4, hidden=5, maxout=3), 7, 7)
    return TrainingJob(
        directory=folder / "run",
        config=TrainingConfig(optimizer="sgd", max_epochs=1, tensorboard=False, **settings),  # type: ignore[arg-type]
        model=model,
        optimizer=make_optimizer("sgd", model.parameters(), 1.0, 0, 0),
        stream=Batches(batches),  # type: ignore[arg-type]
        validate=None,
        stop=lambda: False,
    )


@pytest.mark.parametrize("error", [CPU, CUDA, LIBRARY, MemoryError()])
def test_the_largest_batch_that_fits_is_named(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    monkeypatch.setattr(Small, "error", error)
    work = job(tmp_path, [of(2, 4), of(4, 6), of(3, 5), of(5, 9)], save_every=2)
    with pytest.raises(UserError) as raised:
        loop.train(work)
    assert str(raised.value) == (
        f"{tmp_path}/run: out of memory at update 4, in a batch of 5 sentences, 50 units, the longest of 10; "
        "the largest that fit had 4 sentences, 28 units, the longest of 7. The save of update 2 is whole. "
        "Start a new run with training.batch_tokens=28 training.accumulate=2, whose updates are as large"
    )
    assert (tmp_path / "run" / "step-2.pt").exists(), "what was saved is still there"


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    work = job(tmp_path, [])
    with pytest.raises(RuntimeError, match="a mistake of ours"), report_out_of_memory(work, [of(1, 1)]):
        raise RuntimeError("a mistake of ours")
    with pytest.raises(RuntimeError, match="a mistake of ours"), validating(work):
        raise RuntimeError("a mistake of ours")
    assert work.fitted == Fitted()


def test_what_helps(tmp_path: Path) -> None:
    work = job(tmp_path, [], accumulate=3)
    batch = Fitted(sentences=80, tokens=5000, longest=60)
    assert "training.batch_tokens=2500 training.accumulate=6," in remedy(work, batch)
    work.fitted = Fitted(sentences=60, tokens=3978, longest=70)
    assert "training.batch_tokens=3900 training.accumulate=6," in remedy(work, batch)
    shared = job(tmp_path, [], accumulate=3, update_batches=8)
    assert "training.batch_tokens=2500 training.update_batches=16," in remedy(shared, batch)
    work.fitted = Fitted(sentences=60, tokens=9000, longest=70)  # the memory was cut up since
    assert "training.batch_tokens=2500 " in remedy(work, batch)
    assert remedy(work, Fitted(1, 900, 900)).startswith("Set data.max_length below 899")
    work.model.carries = True  # type: ignore[attr-defined]
    assert remedy(work, batch) == "Start a new run with training.batch_size=40"
    assert [in_round_numbers(number) for number in (1, 42, 123, 3978)] == [1, 42, 120, 3900]


def test_nothing_fits(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"; none has fit before\. Nothing was saved before\. "):
        loop.updates(job(tmp_path, [of(4, 20)]), None)  # type: ignore[arg-type]


def test_a_development_set_that_does_not_fit(tmp_path: Path) -> None:
    def validate() -> DevScore:
        raise CUDA

    work = job(tmp_path, [], dev_beam=12)
    work.validate, work.progress.step, work.progress.saved = validate, 9, [4, 6]
    with pytest.raises(UserError, match=r"after update 9\. The save of update 6 .*dev_beam=6 \(it is 12"):
        loop.validate_and_save(work, None)  # type: ignore[arg-type]


def test_sizes_of_batches() -> None:
    batch = make_batch([[3, 3, 3], [3]], [[4], [4, 4]])
    assert (batch.tokens, batch.longest, batch.target_tokens) == (6, 4, 5)
    chunk = TrackChunk(torch.zeros(12), torch.zeros(12), tracks=3, fresh=True)
    assert (chunk.tokens, chunk.longest, chunk.sentences) == (12, 4, 3)
