"""Features over chunks of pairs: in this process, or in several that take chunks in turn. The results never
depend on which."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from nmt.errors import UserError
from smt_bridge.features.base import Feature, Pairs
from smt_bridge.features.spec import Settings, Spec

AHEAD = 2  # chunks that wait for each worker: enough to keep it busy, few enough for memory


@dataclass
class Task:
    """A chunk: the pairs that each feature is asked for; features may share them."""

    pairs: list[Pairs]


Values = list[NDArray[np.float64]]  # one array a feature


def compute(features: Sequence[Feature], task: Task) -> Values:
    return [
        feature.score(pairs) if len(pairs) else np.zeros(0)
        for feature, pairs in zip(features, task.pairs, strict=True)
    ]


class Crew:
    """`with Crew(...) as crew: crew.map(tasks)`. One worker is this process; of several, each loads the
    features itself."""

    def __init__(
        self, specs: Sequence[Spec], settings: Settings, workers: int, features: Sequence[Feature]
    ) -> None:
        self.specs, self.settings, self.workers, self.features = specs, settings, workers, features
        self.pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> "Crew":
        if self.workers > 1:
            context = multiprocessing.get_context("spawn")  # a forked torch may hang
            self.pool = ProcessPoolExecutor(self.workers, context, begin, (self.specs, self.settings))
            for _ in range(self.workers):
                self.pool.submit(os.getpid)  # they load while this process still checks its input
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.pool is None:
            return
        if (
            kind is not None
        ):  # chunks in hand take seconds: nobody waits for them after an error or an interrupt
            for process in list((self.pool._processes or {}).values()):
                process.terminate()
        self.pool.shutdown(wait=kind is None, cancel_futures=True)

    def map(self, tasks: Iterable[Task]) -> Iterator[Values]:
        """The values of each chunk, in order; only so many tasks are drawn as keep the workers busy."""
        if self.pool is None:
            yield from (compute(self.features, task) for task in tasks)
            return
        waiting: deque[Future[Values]] = deque()
        try:
            for task in tasks:
                waiting.append(self.pool.submit(work, task))
                if len(waiting) > AHEAD * self.workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise UserError(
                "a worker process died; was it short of memory? Give fewer --workers; --resume goes on with "
                "the finished chunks"
            ) from error


_features: list[Feature] = []  # of a worker process


def begin(specs: Sequence[Spec], settings: Settings) -> None:
    """A worker starts: it leaves interrupts to its parent, and does not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=follow_parent, daemon=True).start()
    from smt_bridge.features.load import load

    set_up(settings)
    _features[:] = load(specs, settings)


def follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        with suppress(Exception):
            parent.join()
        os._exit(1)


def set_up(settings: Settings) -> None:
    """The same arithmetic in every process."""
    import torch

    from nmt import fastmath

    torch.set_num_threads(settings.threads)
    fastmath.use(settings.back_end)


def work(task: Task) -> Values:
    return compute(_features, task)
