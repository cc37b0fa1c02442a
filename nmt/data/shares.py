"""Which batches of an epoch a process computes, where several train together.

An update is made of some batches that follow one another, which the processes take in turn. Updates of 4
batches, by 3 processes:

    batch      0  1  2  3   4  5  6  7   8  9
    process    0  1  2  0   0  1  2  0   0  1
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """The batches of one of several processes."""

    start: int = 0  # the first batch of an update
    update: int = 1  # batches of an update
    rank: int = 0  # the process
    size: int = 1  # processes

    def has(self, number: int) -> bool:
        """Is the batch of this number, not before `start`, one of them?"""
        return (number - self.start) % self.update % self.size == self.rank


WHOLE = Share()  # all batches: those of a process that trains alone
