"""Compilation by numba where it is installed. Without it nothing is compiled, and the decoder uses plain
search."""

import hashlib
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar, cast

from nmt.io import signals

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")


def cache_folder() -> Path | None:
    """Folder for compiled code, named by a hash of all sources that are compiled: beside them, or in the
    user's cache; None where neither is writable (a service without a home, say).

    numba itself checks the file of a function only, not the files of the functions that it calls: after an
    update of one file alone it would run old code."""
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted([*here.rglob("*.py"), *(here.parent / "extraction").glob("*.py")]):
        digest.update(path.read_bytes())
    name = f"numba-{digest.hexdigest()[:16]}"
    of_user = os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    folders = here / "__pycache__" / name, Path(of_user, "nmt-smt-compiled", name)
    return next((folder for folder in folders if folder.is_absolute() and is_own(folder)), None)


def is_own(folder: Path) -> bool:
    """Whether this user owns the folder and can write to it; creates it if necessary. Compiled code of
    another user is never run."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return folder.stat().st_uid == os.geteuid() and os.access(folder, os.W_OK)
    except OSError:
        return False


class CompiledFunction:
    """A compiled function. A call from Python defers signals until it returns; compiled functions call it
    directly."""

    def __init__(self, dispatcher: Any) -> None:
        self.dispatcher, self.ready = dispatcher, False
        self._numba_type_ = dispatcher._numba_type_  # by this numba sees the function itself

    def __call__(self, *args: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return self.dispatcher(*args)
        if not self.ready:  # compiling takes seconds, and may be interrupted
            self.dispatcher.compile(tuple(map(numba.typeof, args)))
            self.ready = True
        with signals.delayed:
            return self.dispatcher(*args)


class CompilationNotice:
    """Logs once, before the first function is compiled, that this takes a while; silent where all of them
    come from the cache. `seconds`: time spent compiling so far."""

    said = False
    seconds = 0.0
    depth = 0  # a function compiles those that it calls
    since = 0.0

    def listen(self) -> None:
        """Register with numba's compiler events."""

        class Starts(numba.core.event.Listener):
            """Receives numba's events for functions that were not in its cache."""

            def on_start(_, event: object) -> None:
                self.say()
                if not self.depth:
                    self.since = time.monotonic()
                self.depth += 1

            def on_end(_, event: object) -> None:
                self.depth -= 1
                if not self.depth:
                    self.seconds += time.monotonic() - self.since

        numba.core.event.register("numba:compile", Starts())  # type: ignore[no-untyped-call]

    def say(self) -> None:
        """Log the notice, the first time only."""
        if not self.said:
            self.said = True
            log.info("compiling for this processor, once: up to half a minute")


notice = CompilationNotice()


class Stopped(Exception):
    """Raised when a translation is no longer wanted."""


def go_on(stop: threading.Event | None) -> None:
    """Called between two calls of compiled code, none of which takes long: Python handles signals here, and
    another thread can end this one by `stop`, which raises Stopped."""
    if stop is not None and stop.is_set():
        raise Stopped


try:
    import numba
    import numba.core.config
    import numba.core.event

    HAVE_NUMBA = True
    keeps = bool(os.environ.get("NUMBA_CACHE_DIR"))
    if not keeps and (folder := cache_folder()):
        keeps = True
        numba.core.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
        for old in folder.parent.glob("numba-*"):
            if old != folder:
                shutil.rmtree(old, ignore_errors=True)

    notice.listen()
except ImportError:
    HAVE_NUMBA = False


def njit(function: Callable[P, R], error_model: Literal["python", "numpy"] = "python") -> Callable[P, R]:
    """Compile a function to run without the interpreter's lock, cached on this machine where possible.
    Without numba, returns the function itself."""
    if not HAVE_NUMBA:
        return function
    compiled = numba.njit(nogil=True, cache=keeps, error_model=error_model)(function)
    return cast(Callable[P, R], CompiledFunction(compiled))


def njit_ieee(function: Callable[P, R]) -> Callable[P, R]:
    """Like `njit`, but division by 0 follows NumPy instead of raising ZeroDivisionError, so that loops with
    divisions are vectorized."""
    return njit(function, error_model="numpy")
