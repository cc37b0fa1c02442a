"""Training by several processes, each with a device of its own, as torchrun starts them:

    torchrun --nproc-per-node 4 --no-python nmt-train train.yaml

The processes take the batches of an update in turn (nmt/data/batches.py). DistributedDataParallel takes the
mean of the gradients, so costs are multiplied by the number of processes: the result is that of one process
that computes all batches of an update. The first process logs, validates and saves; the others follow its
decisions. If a process is lost, all end, and torchrun starts them again on the remaining hosts.
"""

import logging
import os
import platform
import re
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from nmt.data.batches import Share
from nmt.errors import ConfigError, UserError
from nmt.io.manifest import digest64
from nmt.runs import directory as run_directory
from nmt.training.protocols import AnyBatch, Trainable

log = logging.getLogger(__name__)


LOST_AFTER = timedelta(minutes=10)  # a process that has sent nothing for this long is lost
MOST_VALUES = 4  # maximum number of values that the first process sends at a time
BEAT = 30.0  # seconds between two heartbeats of the first process, while the others wait for it
GRACE = 60.0  # seconds that an earlier process may take to end, and a shared file system to show new files
NEW_STORES = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"  # for torchrun: each start gets a store of its own
POLL = 0.2  # seconds between two looks at the files of the run

# What gloo says when a connection breaks; NCCL's errors have a class of their own.
LOST = re.compile(r"(?i)gloo|connection (closed|reset|refused)|broken pipe")


class LostProcess(UserError):
    """Another process of the training has ended or cannot be reached."""


class Costs(nn.Module):
    """Wraps a model so that calling it computes its cost, as DistributedDataParallel expects."""

    def __init__(self, model: Trainable) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: AnyBatch, smoothing: float) -> Tensor:
        """The cost of a batch: ()"""
        return self.model.cost(batch, smoothing, None)[0]


class Team:
    """The processes of a training job; a single one unless created by `join`.

    `waiting`: process group on which the others wait while the first process prepares data, validates or
    saves; meanwhile it sends heartbeats. `counting`: process group for the sums of an update. On both, and on
    the one for gradients, a wait of ten minutes means that a process is lost.
    """

    def __init__(
        self,
        rank: int = 0,
        size: int = 1,
        seed: int = 0,
        waiting: dist.ProcessGroup | None = None,
        counting: dist.ProcessGroup | None = None,
    ) -> None:
        self.rank, self.size, self.seed, self.waiting, self.counting = rank, size, seed, waiting, counting
        self.costs: DistributedDataParallel | None = None

    @property
    def first(self) -> bool:
        """Whether this is the process that logs, validates and saves."""
        return self.rank == 0

    def wrap(self, model: Trainable) -> None:
        """Average a model's gradients over all processes. ConfigError for a model that carries its state
        through the text, or with a part that has `one_process`, the reason why it needs a single process."""
        if self.size == 1:
            return
        if getattr(model, "carries", False):
            raise ConfigError(
                "lm.carry: a model that carries its state trains in one process; start it without torchrun"
            )
        for part in cast(nn.Module, model).modules():
            if reason := getattr(part, "one_process", ""):
                raise ConfigError(f"{reason}; start it without torchrun")
        device = model.device
        self.costs = DistributedDataParallel(
            Costs(model), device_ids=[device.index] if device.type == "cuda" else None
        )

    def share(self, start: int, update: int) -> Share:
        """The batches of this process, for updates of `update` batches each, from batch number `start` on."""
        return Share(start, update, self.rank, self.size)

    def idle(self, batches: int) -> bool:
        """Whether other processes have one more batch than this one, in an update of this many batches."""
        return 0 < batches % self.size <= self.rank

    def exchange(self, last: bool) -> AbstractContextManager[None]:
        """Context for the passes of a batch: gradients are exchanged only with an update's last batch."""
        return nullcontext() if last or self.costs is None else self.costs.no_sync()

    def cost(self, batch: AnyBatch, smoothing: float) -> Tensor:
        """Cost of a batch in this process, a scalar () to be differentiated; `smoothing`: label smoothing.
        `wrap` must have been called, with several processes."""
        assert self.costs is not None
        return cast(Tensor, self.costs(batch, smoothing))

    def begin_update(self, step: int) -> None:
        """Seed the random numbers of an update: different in each process, the same after a resume."""
        if self.size > 1:
            torch.manual_seed(((self.seed * 1_000_003 + step) * 1_009 + self.rank) % (1 << 63))

    def totals(self, *values: float) -> list[float]:
        """Σ of each value over the processes."""
        if self.size == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(tensor, group=self.counting)
        return [float(value) for value in tensor]

    def agree(self, reason: str, *values: float) -> tuple[str, list[float]]:
        """Share the first process's decision: returns its reason to stop, empty if training goes on, and its
        values, at most three. In the other processes the reason has another wording."""
        if self.size == 1:
            return reason, list(values)
        stops, *values_of_first = self.broadcast(float(bool(reason)), *values)
        if stops and not self.first:
            reason = "the first process stops"
        return reason if stops else "", values_of_first

    def broadcast(self, *values: float) -> list[float]:
        """Send the values of the first process, at most MOST_VALUES, to all, and return them. The others wait
        for them; they pass as many values, which are ignored."""
        message = torch.zeros(1 + MOST_VALUES, dtype=torch.float64)
        if self.first:
            message[: 1 + len(values)] = torch.tensor([1.0, *values], dtype=torch.float64)
        dist.broadcast(message, 0, group=self.waiting)
        while not message[0]:  # a heartbeat
            dist.broadcast(message, 0, group=self.waiting)
        return [float(value) for value in message[1 : 1 + len(values)]]

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Context in which the first process works and sends heartbeats. The others run its block too,
        without waiting; they wait for the first process in their next `broadcast` or `agree`."""
        if self.size == 1 or not self.first:
            yield
            return
        over = threading.Event()

        def beat() -> None:
            with suppress(RuntimeError):  # of a lost process, which the next exchange finds
                while not over.wait(BEAT):
                    dist.broadcast(torch.zeros(1 + MOST_VALUES, dtype=torch.float64), 0, group=self.waiting)

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    @contextmanager
    def first_then_others(self, directory: Path) -> Iterator[None]:
        """Context whose block the first process runs before the others, which then read in the run directory
        what it wrote. ConfigError if a host does not share this directory."""
        if self.size > 1 and not self.first:
            self.wait_for_files(directory)
        with self.busy():
            yield
        if self.size > 1 and self.first:
            self.wait_for_files(directory)

    def wait_for_files(self, directory: Path) -> None:
        """Wait until all processes see the same files in a run directory as the first one, since a shared
        file system may show them later on other hosts. ConfigError if one still does not after GRACE
        seconds."""
        [wanted] = self.broadcast(float(fingerprint(directory)))
        until = time.monotonic() + GRACE
        while not (seen := fingerprint(directory) == wanted) and time.monotonic() < until:
            time.sleep(POLL)
        if self.totals(float(seen)) != [self.size]:
            which = (
                "another process" if seen else f"process {self.rank} of {self.size}, on {platform.node()},"
            )
            raise ConfigError(
                f"{directory}: {which} does not see here what the first process wrote; all hosts have to "
                "share the run directory"
            )

    def leave(self) -> None:
        """End all processes together: one that left others validating would break their connections."""
        if self.size > 1:
            self.broadcast()
            dist.barrier(self.counting)
            self.costs = None  # its hooks on the gradients go before the connections
            dist.destroy_process_group()


def fingerprint(directory: Path) -> int:
    """A 48-bit number that changes with each save of a run; 0 if there is no run."""
    if not run_directory.exists(directory):
        return 0
    return int.from_bytes(digest64(run_directory.save_state(directory))[:6], "little") or 1


@contextmanager
def report_lost_process() -> Iterator[None]:
    """Context that raises LostProcess if its block cannot reach the other processes."""
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, dist.DistError) and not LOST.search(str(error)):
            raise
        log.debug("%s", error)
        raise LostProcess(
            f"process {os.environ.get('RANK')} of {os.environ.get('WORLD_SIZE')}, on {platform.node()}: "
            "cannot reach another process, which has ended or whose host is gone; its own message says why. "
            "Started again, training goes on from the last save"
        ) from error


def grace_period() -> float:
    """Seconds to wait for another process in the run directory, which under torchrun may be ending."""
    return GRACE if "TORCHELASTIC_RUN_ID" in os.environ else 0.0


def may_restart() -> bool:
    """Whether torchrun restarts the processes after a failure."""
    return int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0")) > 0


def check_restarts() -> None:
    """ConfigError if processes that torchrun starts again would find the addresses of the earlier start in
    its store, and wait for them. That is so in torch 2.9 to 2.13, unless each start gets a store of its
    own."""
    if may_restart() and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        raise ConfigError(
            "--max-restarts: torchrun would keep the addresses of processes that it has ended, and those "
            f"that it starts again would wait for them; set {NEW_STORES}=1 in its environment, on every host"
        )


def join(device: str, seed: int) -> tuple[Team, str]:
    """Create the team that torchrun's environment variables describe; also returns the device of this
    process. `device`: cpu or cuda; `seed`: that of the run. ConfigError if this machine has fewer GPUs than
    processes, or if a restart would not work; LostProcess if another process cannot be reached."""
    check_restarts()
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return Team(), device
    on_gpu = device.startswith("cuda")
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if on_gpu:
        if local >= torch.cuda.device_count():
            raise ConfigError(
                f"device: process {local} of this machine has no GPU of its own, torch finds "
                f"{torch.cuda.device_count()}; start no more processes than GPUs (torchrun --nproc-per-node)"
            )
        device = f"cuda:{local}"
        torch.cuda.set_device(local)
    with report_lost_process():
        dist.init_process_group("nccl" if on_gpu else "gloo", timeout=LOST_AFTER)
        waiting = dist.new_group(backend="gloo", timeout=LOST_AFTER)
        counting = dist.new_group(backend="gloo", timeout=LOST_AFTER)
    return Team(dist.get_rank(), size, seed, waiting, counting), device
