"""A task on its way through a Dask cluster. The scheduler imports this module, and looks at each task: it is
spared torch, and the content of chunks."""

from typing import Protocol, cast

from distributed import get_worker
from distributed.protocol.pickle import dumps, loads


class Computes(Protocol):
    """What a job left on the worker."""

    def compute(self, task: object) -> object:
        """The result of a chunk."""
        ...


def packed(task: object) -> bytes:
    """A chunk as bytes."""
    return bytes(dumps(task))


def compute(name: str, task: bytes) -> object:
    """One chunk of a job, on a worker."""
    plugin = cast(Computes, get_worker().plugins[name])
    return plugin.compute(loads(task))
