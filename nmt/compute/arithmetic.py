"""What the last digits of results depend on, besides the processor: several processes have to agree on it."""

from dataclasses import dataclass

import torch

from nmt.compute import matmul


@dataclass(frozen=True)
class Arithmetic:
    """How torch computes."""

    threads: int
    back_end: str  # of matrix products, see matmul.py

    def use(self) -> None:
        """Let this thread compute so."""
        torch.set_num_threads(self.threads)
        matmul.use(self.back_end)


def in_use() -> Arithmetic:
    """As this process computes."""
    return Arithmetic(threads=torch.get_num_threads(), back_end=matmul.in_use())
