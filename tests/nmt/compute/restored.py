"""For tests that set up torch in this process."""

from collections.abc import Iterator

import torch

from nmt.compute import matmul


def torch_as_before() -> Iterator[None]:
    """A fixture: its threads and its back end, which belong to all tests, are put back."""
    threads, back_end = torch.get_num_threads(), matmul.in_use()
    yield
    torch.set_num_threads(threads)
    matmul.use(back_end)
