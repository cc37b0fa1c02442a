"""Training on a GPU with CUDA graphs: the cost and gradient of a batch, thousands of small kernels for a
recurrent model, are recorded once for each shape of batches and then launched as one.

Batches of about the same size are padded to one shape, see `batch_shape`, so that a training needs few
graphs. Chunks of running text nearly all have one shape; their graph also computes the state after them."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

import torch
from torch import Tensor

from nmt.data.batches import Batch, pinned
from nmt.data.running import TrackChunk
from nmt.errors import ran_out_of_memory
from nmt.lm.base import Carried
from nmt.training.protocols import AnyBatch, Trainable

log = logging.getLogger(__name__)

MOST_GRAPHS = 200  # recorded; batches of other shapes are computed without a graph
LEAST_STEP = 4  # lengths and numbers of sentences are rounded up to multiples of this or, ...
PARTS = 8  # ... if they are large, to one of this many numbers between two powers of 2

Shape = tuple[int, int, int]  # source units of the longest sentence, target units, sentences or tracks


def rounded(count: int) -> int:
    """The next larger number that shapes have, at most 12% above a large `count`."""
    step: int = max(LEAST_STEP, (1 << (count.bit_length() - 1)) // PARTS)
    return -(-count // step) * step


def batch_shape(batch: Batch | TrackChunk) -> Shape:
    """The shape that a batch is padded to, or that a chunk has."""
    if isinstance(batch, TrackChunk):
        return 0, batch.longest, batch.tracks
    return rounded(len(batch.source.sizes)), rounded(len(batch.target.sizes)), rounded(batch.sentences)


class CostGraphs:
    """The graphs of a training, one for each shape. They write to the gradients that the parameters have now:
    set them to zero between updates, not to None."""

    def __init__(
        self, model: Trainable, smoothing: float, precision: Callable[[], AbstractContextManager[object]]
    ) -> None:
        """`model`: on a GPU, takes padding; `smoothing`: see `Trainable.cost`; `precision`: makes the context
        of products in the configured precision."""
        self.model, self.smoothing, self.precision = model, smoothing, precision
        self.graphs: dict[Shape, CostGraph] = {}
        self.most = MOST_GRAPHS
        self.stream = torch.cuda.Stream(model.device)  # that records all: each stream has memory of its own
        # One memory for all: only one graph runs at a time, and none leaves a result there that is read after
        # another has run.
        self.pool = torch.cuda.graph_pool_handle()

    def add_gradient(
        self, batch: AnyBatch, divisor: float, carried: Carried
    ) -> tuple[Tensor, Carried] | None:
        """Add the gradient of the cost of a batch on the CPU, divided by `divisor`, to those of the
        parameters. Returns the cost, (), and the state after it, as `Trainable.cost` does from the state
        `carried`; None for a batch that is to be computed without a graph."""
        if not isinstance(batch, Batch | TrackChunk):
            return None
        if isinstance(batch, Batch) and batch.guidance is not None:
            return None
        shape = batch_shape(batch)
        graph = self.graphs.get(shape)
        if graph is None and len(self.graphs) >= self.most:
            return None
        padded = batch.pad(*shape) if isinstance(batch, Batch) else batch
        if graph is None:
            return self.record(shape, padded, divisor, carried)
        return graph.add_gradient(padded, divisor, carried)

    def record(
        self, shape: Shape, batch: Batch | TrackChunk, divisor: float, carried: Carried
    ) -> tuple[Tensor, Carried]:
        """Add the gradient of the first batch of a new graph, and record the graph. If it cannot be recorded,
        for lack of memory or since the model waits for the GPU, no more graphs are recorded."""
        for parameter in self.model.parameters():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        graph = CostGraph(self, batch)
        result = graph.warm_up(divisor, carried)
        try:
            with torch.cuda.graph(graph.graph, pool=self.pool, stream=self.stream):
                graph.cost, graph.after = graph.compute(graph.before)
        except RuntimeError as error:
            self.most = len(self.graphs)
            reason = "no memory" if ran_out_of_memory(error) else str(error).split("\n")[0]
            log.warning("only %d CUDA graphs, other batches are slower: %s", self.most, reason)
        else:
            self.graphs[shape] = graph
        return result


class CostGraph:
    """The graph of one shape, and the memory that it reads its batch and the state before it from."""

    def __init__(self, graphs: CostGraphs, batch: Batch | TrackChunk) -> None:
        """`batch`: the first one, padded, on the CPU."""
        self.model, self.smoothing, self.precision = graphs.model, graphs.smoothing, graphs.precision
        device = graphs.model.device
        self.numbers = pinned(batch.tensors).to(device, non_blocking=True)
        self.batch = batch.of_tensors(self.numbers.split(list(map(len, batch.tensors))))
        self.before: Tensor | None = None  # of models that carry a state
        self.after: Carried = None
        self.divisor = torch.ones((), device=device)
        self.stream = graphs.stream
        self.graph = torch.cuda.CUDAGraph()
        self.cost = torch.zeros((), device=device)

    def compute(self, carried: Carried) -> tuple[Tensor, Carried]:
        """Add the gradient; returns the cost, (), and the state after the batch."""
        with self.precision():
            cost, after = self.model.cost(self.batch, self.smoothing, carried)
            torch.autograd.backward(cost / self.divisor)
        return cost.detach().double(), after

    def warm_up(self, divisor: float, carried: Carried) -> tuple[Tensor, Carried]:
        """Add the gradient of the first batch without a graph, on the stream that records it: libraries
        allocate what they need. Returns the cost, (), and the state after the batch."""
        self.divisor.fill_(divisor)
        current = torch.cuda.current_stream(self.numbers.device)
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            cost, after = self.compute(carried)
        current.wait_stream(self.stream)
        if isinstance(self.batch, TrackChunk):
            assert isinstance(after, Tensor)  # of models that take padding
            self.batch, self.before = replace(self.batch, fresh=False), torch.zeros_like(after)
        return cost, after

    def add_gradient(
        self, batch: Batch | TrackChunk, divisor: float, carried: Carried
    ) -> tuple[Tensor, Carried]:
        """Add the gradient of a padded batch, or a chunk, on the CPU; returns the cost, (), and the state
        after it."""
        self.numbers.copy_(pinned(batch.tensors), non_blocking=True)
        self.divisor.fill_(divisor)
        if isinstance(batch, TrackChunk) and self.before is not None:
            if isinstance(carried, Tensor) and not batch.fresh:
                self.before.copy_(carried)
            else:
                self.before.zero_()
        self.graph.replay()
        return self.cost.clone(), self.after.clone() if isinstance(self.after, Tensor) else None
