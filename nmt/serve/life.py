"""Whether the server is about to stop, and how many requests it has in hand."""

import time
from dataclasses import dataclass


@dataclass
class Life:
    """Shared by the gate, which counts requests and lets none in once the server stops, and by the server,
    which ends when the last one has been answered."""

    active: int = 0
    stopping: float = 0.0  # since when, by the monotonic clock; 0: it is not

    def stop(self) -> None:
        """Let no more requests in."""
        self.stopping = self.stopping or time.monotonic()

    def is_over(self, grace: float) -> bool:
        """Is all done, or have so many seconds passed since `stop`?"""
        return self.stopping > 0 and (not self.active or time.monotonic() - self.stopping > grace)
