"""Training by several processes, each with a device of its own, as torchrun starts them:

    torchrun --nproc-per-node 4 --no-python nmt-train train.yaml

An update is made of `accumulate` batches of each process. DistributedDataParallel takes the mean of the
gradients, so costs are multiplied by the number of processes: the result is that of one process with
`accumulate` multiplied by their number. The first process logs, validates and saves; the others follow its
decisions.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Generic, Protocol, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from nmt.errors import ConfigError
from nmt.layers.output import Evolves

PATIENCE = timedelta(days=365)  # torchrun ends the others when a process dies

Item = TypeVar("Item")
Given = TypeVar("Given", contravariant=True)


class CostModel(Protocol[Given]):
    """A model with a cost for a batch: Σ -log p, and the state to carry on, which is none here."""

    @property
    def device(self) -> torch.device: ...

    def cost(self, batch: Given, smoothing: float, carried: None) -> tuple[Tensor, object]: ...


class Costs(nn.Module, Generic[Item]):
    """A model whose call is its cost, as DistributedDataParallel wants it."""

    def __init__(self, model: CostModel[Item]) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Item, smoothing: float) -> Tensor:
        """The cost of a batch: ()"""
        return self.model.cost(batch, smoothing, None)[0]


class Team:
    """The processes of a training; one alone unless `join` says otherwise.

    `waiting`: the connections on which they wait for one another, while the first process prepares data or
    validates. They are not those of the gradients, where a wait of ten minutes means that a process is lost.
    """

    def __init__(
        self, rank: int = 0, size: int = 1, seed: int = 0, waiting: dist.ProcessGroup | None = None
    ) -> None:
        self.rank, self.size, self.seed, self.waiting = rank, size, seed, waiting
        self.costs: DistributedDataParallel | None = None

    @property
    def first(self) -> bool:
        """Is this the process that logs, validates and saves?"""
        return self.rank == 0

    def wrap(self, model: CostModel[Item]) -> None:
        """Let the gradients of a model be summed over the processes. ConfigError for one that carries its
        state through the text, or changes with the updates."""
        if self.size == 1:
            return
        if getattr(model, "carries", False):
            raise ConfigError(
                "lm.carry: a model that carries its state trains in one process; start it without torchrun"
            )
        if reason := getattr(model, "one_process", ""):
            raise ConfigError(f"{reason}; start it without torchrun")
        if any(isinstance(part, Evolves) for part in cast(nn.Module, model).modules()):
            raise ConfigError(
                "a learned tree (output) and the masks of cells vcrnn and vcgru follow the updates of one "
                "process; start it without torchrun"
            )
        device = model.device
        self.costs = DistributedDataParallel(
            Costs(model), device_ids=[device.index] if device.type == "cuda" else None
        )

    def share(self, batches: Sequence[Item]) -> list[tuple[Item, float]]:
        """The batches of this process, each with its weight; one of weight 0 where there are fewer batches
        than processes."""
        mine = [(batch, 1.0) for batch in batches[self.rank :: self.size]]
        rounds = -(-len(batches) // self.size)
        return mine + [(batches[0], 0.0)] * (rounds - len(mine))

    def exchange(self, last: bool) -> AbstractContextManager[None]:
        """The context of a batch forward and backward: gradients are exchanged with the last batch of an
        update."""
        return nullcontext() if last or self.costs is None else self.costs.no_sync()

    def cost(self, batch: object, smoothing: float) -> Tensor:
        """The cost of a batch of this process, after `wrap`: ()"""
        assert self.costs is not None
        return cast(Tensor, self.costs(batch, smoothing))

    def begin_update(self, step: int) -> None:
        """Seed the random numbers of an update: others in each process, the same after a resume."""
        if self.size > 1:
            torch.manual_seed(((self.seed * 1_000_003 + step) * 1_009 + self.rank) % (1 << 63))

    def total(self, value: float) -> float:
        """Σ over the processes."""
        if self.size == 1:
            return value
        tensor = torch.tensor([value], dtype=torch.float64)
        dist.all_reduce(tensor, group=self.waiting)
        return float(tensor[0])

    def agree(self, reason: str, decayed: float) -> tuple[str, float]:
        """The first process' reason to stop and its factor of the learning rate, for all."""
        if self.size == 1:
            return reason, decayed
        tensor = torch.tensor([float(bool(reason)), decayed], dtype=torch.float64)
        dist.broadcast(tensor, 0, group=self.waiting)
        return (reason if self.first else "the first process stops") if tensor[0] else "", float(tensor[1])

    @contextmanager
    def first_then_others(self) -> Iterator[None]:
        """The first process runs the block before the others, which find what it wrote."""
        if self.size > 1 and not self.first:
            dist.barrier(self.waiting)
        yield
        if self.size > 1 and self.first:
            dist.barrier(self.waiting)

    def leave(self) -> None:
        """End all together: a process that ends while another still validates or saves would break its
        connections."""
        if self.size > 1:
            dist.barrier(self.waiting)
            self.costs = None  # its hooks on the gradients go before the connections
            dist.destroy_process_group()


def join(device: str, seed: int) -> tuple[Team, str]:
    """The team that torchrun's environment variables describe, and this process' device. ConfigError when
    there are fewer GPUs than processes."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return Team(), device
    on_gpu = device.startswith("cuda")
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if on_gpu:
        if local >= torch.cuda.device_count():
            raise ConfigError(
                f"device: process {local} of this machine finds {torch.cuda.device_count()} GPUs; give "
                "torchrun --nproc-per-node of as many"
            )
        device = f"cuda:{local}"
        torch.cuda.set_device(local)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    waiting = dist.new_group(backend="gloo", timeout=PATIENCE)
    return Team(dist.get_rank(), size, seed, waiting), device
