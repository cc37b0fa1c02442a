"""numba where it is installed. Without it nothing is compiled, and the decoder takes its plain twin."""

from collections.abc import Callable
from typing import Any

try:
    import numba

    HAVE_NUMBA = True

    def njit(function: Callable[..., Any]) -> Any:
        """Compiled once per machine (kept in __pycache__), and run without the interpreter's lock."""
        return numba.njit(nogil=True, cache=True)(function)
except ImportError:
    HAVE_NUMBA = False

    def njit(function: Callable[..., Any]) -> Any:
        return function
