"""For tests that set up torch in this process."""

from collections.abc import Iterator

import torch

from nmt.compute import device


def torch_as_before() -> Iterator[None]:
    """A fixture: its threads and its back end, which belong to all tests, are put back."""
    threads, back_end = torch.get_num_threads(), device.back_end_in_use()
    yield
    torch.set_num_threads(threads)
    device.use_back_end(back_end)
