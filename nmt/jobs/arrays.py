"""Parts of files (nmt/jobs/parts.py) that are arrays."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.jobs import parts


def rows(path: Path, number: int, columns: int) -> NDArray[np.uint64]:
    """A part that is an array: (N, columns)"""
    return np.frombuffer(parts.read(path, number), np.uint64).reshape(-1, columns)
