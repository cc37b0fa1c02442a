"""Scheduler plugin for a Dask cluster: counts the workers that each chunk has killed, and removes a job when
its client is gone.

Dask blames a lost worker on all chunks that had been sent to it. But only one of them was being computed,
usually the one with the highest priority, and only that one is blamed here: otherwise Dask might give up a
chunk that was merely queued with a bad one.
"""

import asyncio
from collections import Counter, deque
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from distributed import Scheduler, get_worker
from distributed.batched import BatchedSend
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.protocol.pickle import dumps, loads
from distributed.scheduler import TaskState

if TYPE_CHECKING:
    from dask.typing import Key

    from nmt.work.dask_worker import JobPlugin


DEATHS = 3  # workers that a chunk may kill before it is given up
MESSAGES = 5  # that a stream keeps for debugging; Dask's 1,000 would hold a chunk each


def shorten_log(stream: BatchedSend) -> None:
    """Limit the number of sent messages that a stream keeps to MESSAGES."""
    stream.recent_message_log = deque(stream.recent_message_log, maxlen=MESSAGES)


class JobWatch(SchedulerPlugin):
    """Watches the job `name` for as long as its client, of Dask's id `client`, is connected."""

    def __init__(self, name: str, client: str) -> None:
        self.name, self.client = name, client
        self.deaths: Counter[Key] = Counter()  # workers that each chunk has killed
        self.event = ""  # Dask's id of the event that is moving chunks now
        # chunks that Dask blames for this event; see `blame`
        self.blamed: list[tuple[bool, tuple[float, ...], Key]] = []

    async def start(self, scheduler: Scheduler) -> None:
        """Called by Dask as the job begins."""
        self.scheduler = scheduler
        for stream in scheduler.stream_comms.values():
            shorten_log(stream)

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """Called by Dask when a worker joins."""
        shorten_log(scheduler.stream_comms[worker])

    def transition(
        self, key: "Key", start: str, finish: str, *args: object, stimulus_id: str, **more: object
    ) -> None:
        """Called by Dask when a task changes its state. For a chunk of this job, records whether Dask blames
        it for a lost worker, and replaces Dask's count of its suspicions."""
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
        """Clear the list in which Dask describes every chunk of the job, so that it does not grow."""
        extension = self.scheduler.extensions.get("spans")
        span = extension.spans.get(task.group.span_id) if extension else None
        if span and span.metadata:
            span.metadata["collections"].clear()

    def blame(self, task: TaskState, finish: str, event: str) -> None:
        """Record a chunk that Dask suspects because of an event, for `remove_worker`. `finish`: its new
        state. Chunks that Dask has given up sort first, the others by priority, the order in which a worker
        computes them; `Dask.map` gives each chunk its own priority."""
        if event != self.event:
            self.event, self.blamed = event, []
        if task.suspicious > self.suspicion(task.key):
            self.blamed.append((finish != "erred", task.priority or (), task.key))

    def suspicion(self, key: "Key") -> int:
        """The value to set as Dask's count of suspicions of chunk `key`. Dask adds 1 for a lost worker, and
        gives a chunk up if its count is above `allowed_failures`: with this value once the chunk has killed
        DEATHS workers, whatever `allowed_failures` is."""
        return self.scheduler.allowed_failures + 1 - DEATHS + self.deaths[key]

    def remove_worker(self, scheduler: Scheduler, worker: str, *, stimulus_id: str, **more: object) -> None:
        """Called by Dask when a worker is gone and its chunks have been moved."""
        if stimulus_id != self.event or not self.blamed:
            return
        alive, _, key = min(self.blamed, key=lambda entry: entry[:2])
        self.blamed = []
        if alive and key in scheduler.tasks:
            self.deaths[key] += 1
            scheduler.tasks[key].suspicious = self.suspicion(key)

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        """Called by Dask when the client has ended or was killed: workers drop its models."""
        if client == self.client:
            self.ending = asyncio.ensure_future(self.end(scheduler))

    async def end(self, scheduler: Scheduler) -> None:
        scheduler.plugins.pop(self.name, None)
        with suppress(Exception):  # a worker that is lost at this moment has dropped them, too
            await scheduler.unregister_worker_plugin(comm=None, name=self.name)


# ---- tasks -------------------------------------------------------------------------------------------------
# The scheduler imports this module and unpickles each task. So the module does not import torch, and the
# content of a chunk is bytes to the scheduler.


def pack_task(task: object) -> bytes:
    return bytes(dumps(task))


def compute_task(name: str, task: bytes) -> object:
    """Compute a chunk of the job `name`; runs on a worker."""
    plugin = cast("JobPlugin", get_worker().plugins[name])
    return plugin.compute(loads(task))
