"""What the scheduler of a Dask cluster does for a job: it counts the workers that each chunk has killed, and
lets go of the job when its client is gone.

Dask blames a lost worker on all chunks that it had been sent. Only one of them was being computed, the one of
the highest priority unless it came late, and only that one is blamed here: otherwise a chunk might be given
up that merely waited beside a bad one.
"""

import asyncio
from collections import Counter, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, cast

from distributed import Scheduler, get_worker
from distributed.batched import BatchedSend
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.protocol.pickle import dumps, loads
from distributed.scheduler import TaskState

if TYPE_CHECKING:
    from dask.typing import Key


# ---- dask scheduler ----------------------------------------------------------------------------------------


DEATHS = 3  # workers that a chunk may kill
MESSAGES = 5  # that a stream keeps for Dask's developers; it would be 1,000, of a chunk each


def shorten_log(stream: BatchedSend) -> None:
    """Let a stream forget what it has sent: 1,000 chunks are 300 MB for each worker."""
    stream.recent_message_log = deque(stream.recent_message_log, maxlen=MESSAGES)


class JobWatch(SchedulerPlugin):
    """Of one job, for as long as its client is there."""

    def __init__(self, name: str, client: str) -> None:
        self.name, self.client = name, client
        self.deaths: Counter[Key] = Counter()  # by key of the chunk
        self.event = ""  # what moves chunks now
        self.blamed: list[tuple[bool, tuple[float, ...], Key]] = []  # by Dask, for this event; see `blame`

    async def start(self, scheduler: Scheduler) -> None:
        """As the job begins."""
        self.scheduler = scheduler
        for stream in scheduler.stream_comms.values():
            shorten_log(stream)

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """A worker has joined."""
        shorten_log(scheduler.stream_comms[worker])

    def transition(
        self, key: "Key", start: str, finish: str, *args: object, stimulus_id: str, **more: object
    ) -> None:
        """A chunk changes its state."""
        if not (isinstance(key, str) and key.startswith(f"{self.name}-")):
            return
        task: TaskState = self.scheduler.tasks[key]
        if start == "processing" and finish in ("released", "erred"):
            self.blame(task, finish, stimulus_id)
        if finish == "memory":
            self.shorten_span(task)
        if finish in ("memory", "erred", "forgotten"):
            self.deaths.pop(key, None)
        else:
            task.suspicious = self.suspicion(key)

    def shorten_span(self, task: TaskState) -> None:
        """Let Dask's description of the job forget what kind of thing each chunk was: 400 bytes a chunk."""
        extension = self.scheduler.extensions.get("spans")
        span = extension.spans.get(task.group.span_id) if extension else None
        if span and span.metadata:
            span.metadata["collections"].clear()

    def blame(self, task: TaskState, finish: str, event: str) -> None:
        """Note a chunk that Dask suspects, for `remove_worker`: first one that has failed, then by priority,
        the order in which a worker computes. No two are equal: `Dask.map` sees to that."""
        if event != self.event:
            self.event, self.blamed = event, []
        if task.suspicious > self.suspicion(task.key):
            self.blamed.append((finish != "erred", task.priority or (), task.key))

    def suspicion(self, key: "Key") -> int:
        """What Dask is told, so that it gives up a chunk with its third worker, whatever it would allow
        itself."""
        return self.scheduler.allowed_failures + 1 - DEATHS + self.deaths[key]

    def remove_worker(self, scheduler: Scheduler, worker: str, *, stimulus_id: str, **more: object) -> None:
        """A worker is gone, and its chunks have been moved."""
        if stimulus_id != self.event or not self.blamed:
            return
        alive, _, key = min(self.blamed, key=lambda one: one[:2])
        self.blamed = []
        if alive and key in scheduler.tasks:
            self.deaths[key] += 1
            scheduler.tasks[key].suspicious = self.suspicion(key)

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        """The client has ended, or was killed: workers forget its models."""
        if client == self.client:
            self.ending = asyncio.ensure_future(self.end(scheduler))

    async def end(self, scheduler: Scheduler) -> None:
        scheduler.plugins.pop(self.name, None)
        with suppress(Exception):  # a worker that is lost at this moment has forgotten them, too
            await scheduler.unregister_worker_plugin(comm=None, name=self.name)


# ---- dask task ---------------------------------------------------------------------------------------------
# A task on its way through a Dask cluster. The scheduler imports this module, and looks at each task: it is
# spared torch, and the content of chunks.


class Computes(Protocol):
    """What a job left on the worker."""

    def compute(self, task: object) -> object:
        """The result of a chunk."""
        ...


def pack_task(task: object) -> bytes:
    """A chunk as bytes."""
    return bytes(dumps(task))


def compute_task(name: str, task: bytes) -> object:
    """One chunk of a job, on a worker."""
    plugin = cast(Computes, get_worker().plugins[name])
    return plugin.compute(loads(task))
