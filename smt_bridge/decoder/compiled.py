"""numba where it is installed. Without it nothing is compiled, and the decoder takes its plain twin."""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any


def cache_folder() -> Path:
    """Where compiled code is kept: a folder for each state of all sources that are compiled.

    numba itself looks at the file of a function only, not at those it calls: after an update of one file alone it would run old code.
    """
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted([*here.glob("*.py"), *(here.parent / "extraction").glob("*.py")]):
        digest.update(path.read_bytes())
    return here / "__pycache__" / f"numba-{digest.hexdigest()[:16]}"


try:
    import numba
    import numba.core.config

    HAVE_NUMBA = True
    if not os.environ.get("NUMBA_CACHE_DIR"):
        folder = cache_folder()
        numba.core.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
        for old in folder.parent.glob("numba-*"):
            if old != folder:
                shutil.rmtree(old, ignore_errors=True)

    def njit(function: Callable[..., Any]) -> Any:
        """Compiled once per machine and version, and run without the interpreter's lock."""
        return numba.njit(nogil=True, cache=True)(function)
except ImportError:
    HAVE_NUMBA = False

    def njit(function: Callable[..., Any]) -> Any:
        return function
