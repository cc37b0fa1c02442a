"""Compilation by numba, if it is installed. Without it nothing is compiled: n-gram models score by NumPy, and
the decoder searches in plain Python."""

import hashlib
import logging
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, cast

from nmt.io import signals

if TYPE_CHECKING:
    from numba.core.registry import CPUDispatcher

log = logging.getLogger(__name__)

# Folders whose functions are compiled, some of them into functions of another folder.
COMPILED = (
    "nmt/ngram",
    "smt_bridge/decoder",
    "smt_bridge/extraction",
    "smt_bridge/tables",
    "smt_bridge/tuning",
)

P = ParamSpec("P")
R = TypeVar("R")


def cache_folder() -> Path | None:
    """Folder for compiled code: beside the sources, in the user's cache or, if neither is writable (a
    container without a home directory, say), in the temporary folder; creates it. None if there is none.

    Its name contains a hash of all compiled sources. numba itself only checks the file of the function that
    is called, not those of the functions that it calls, and would run old code after a partial update.
    """
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for folder in (here.parents[1] / name for name in COMPILED):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    name = f"numba-{digest.hexdigest()[:16]}"
    of_user = os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    folders = here / "__pycache__" / name, Path(of_user, "nmt-smt-compiled", name)
    if own := next((folder for folder in folders if folder.is_absolute() and is_own(folder)), None):
        return own
    with suppress(FileNotFoundError):  # of gettempdir, which writes a file to find a folder
        temporary = Path(tempfile.gettempdir(), f"nmt-smt-compiled-{os.geteuid()}")
        if is_private(temporary) and is_own(temporary / name):
            return temporary / name
    return None


def is_own(folder: Path) -> bool:
    """Whether this user owns the folder and can write to it; creates it if necessary. Code compiled by
    another user is never run."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return folder.stat().st_uid == os.geteuid() and os.access(folder, os.W_OK)
    except OSError:
        return False


def is_private(folder: Path) -> bool:
    """Whether this is a folder of this user, not a link to one, that nobody else can open; creates it if
    necessary. Others can put files of any name into the folder that it is in."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        return (status.st_mode, status.st_uid) == (stat.S_IFDIR | 0o700, os.geteuid())
    except OSError:
        return False


class CompiledFunction:
    """A function compiled by numba. A call from Python defers signals until it returns; calls from other
    compiled functions do not go through this class."""

    def __init__(self, dispatcher: "CPUDispatcher", inner: "CPUDispatcher") -> None:
        """`dispatcher`: for calls from Python; `inner`: for calls from compiled functions, without the code
        that unpacks Python's objects, which takes long to compile where there are dozens of arrays."""
        self.dispatcher, self.inner, self.ready = dispatcher, inner, False
        self._numba_type_ = inner._numba_type_  # a weak reference to it

    def __call__(self, *args: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return self.dispatcher(*args)
        if not self.ready:  # compiling takes seconds, and may be interrupted
            self.dispatcher.compile(tuple(map(numba.typeof, args)))
            self.ready = True
        with signals.delayed:
            return self.dispatcher(*args)


class CompilationNotice:
    """Logs once, before the first function is compiled, that compiling takes a while. Logs nothing if all
    functions are cached. `seconds`: time spent compiling so far."""

    logged = False
    seconds = 0.0
    depth = 0  # nesting of compilations: a function compiles those that it calls
    since = 0.0  # when the outermost one started

    def listen(self) -> None:
        """Register with numba's compiler events."""

        class Starts(numba.core.event.Listener):
            """Listener for the compilation of functions that are not in numba's cache."""

            def on_start(_, event: object) -> None:
                self.log_once()
                if not self.depth:
                    self.since = time.monotonic()
                self.depth += 1

            def on_end(_, event: object) -> None:
                self.depth -= 1
                if not self.depth:
                    self.seconds += time.monotonic() - self.since

        numba.core.event.register("numba:compile", Starts())  # type: ignore[no-untyped-call]

    def log_once(self) -> None:
        """Log the notice the first time this is called."""
        if not self.logged:
            self.logged = True
            log.info("compiling for this processor, once: up to a minute")


notice = CompilationNotice()


class Stopped(Exception):
    """Raised in a translation that its caller has canceled."""


def go_on(stop: threading.Event | None) -> None:
    """Raise Stopped if the event `stop` is set; None never stops. Called between the short calls of compiled
    code, where Python also handles signals."""
    if stop is not None and stop.is_set():
        raise Stopped


try:
    import numba
    import numba.core.config
    import numba.core.event

    HAVE_NUMBA = True
    has_cache = bool(os.environ.get("NUMBA_CACHE_DIR"))
    if not has_cache and (folder := cache_folder()):
        has_cache = True
        numba.core.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
        for old in folder.parent.glob("numba-*"):
            if old != folder:
                shutil.rmtree(old, ignore_errors=True)

    notice.listen()
except ImportError:
    HAVE_NUMBA = False


def njit(function: Callable[P, R], error_model: Literal["python", "numpy"] = "python") -> Callable[P, R]:
    """Compile a function to run without holding the GIL, and cache its code if possible. `error_model`: with
    `numpy`, division by 0 gives inf or nan instead of ZeroDivisionError. Without numba, returns the function
    unchanged."""
    return compiled_function(function, error_model=error_model, _nrt=True)


def njit_ieee(function: Callable[P, R]) -> Callable[P, R]:
    """Like `njit`, but division by 0 follows NumPy instead of raising ZeroDivisionError, so that loops with
    divisions can be vectorized."""
    return njit(function, error_model="numpy")


def njit_forced_inline(function: Callable[P, R]) -> Callable[P, R]:
    """Like `njit`, but the machine code becomes part of each function that calls it: for short ones whose
    arguments take longer to pass than the work takes."""
    return compiled_function(function, error_model="numpy", forceinline=True)


def njit_borrowing(function: Callable[P, R]) -> Callable[P, R]:
    """Like `njit`, for a function that neither allocates nor returns arrays: it borrows those of its caller
    and does not count references, which would cost more than the work where there are dozens of arrays."""
    return compiled_function(function, _nrt=False)


def njit_inline(function: Callable[P, R]) -> Callable[P, R]:
    """Like `njit_borrowing`, but the code becomes a part of each compiled function that calls it, since
    passing dozens of arrays takes long too."""
    return cast(Callable[P, R], dispatcher(function, inline="always", _nrt=False)) if HAVE_NUMBA else function


def compiled_function(function: Callable[P, R], **options: object) -> Callable[P, R]:
    """Compile a function with these options of numba, and cache its code if possible. Without numba, returns
    the function unchanged."""
    if not HAVE_NUMBA:
        return function
    inner = dispatcher(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
    return cast(Callable[P, R], CompiledFunction(dispatcher(function, cache=has_cache, **options), inner))


def dispatcher(function: Callable[P, R], **options: object) -> "CPUDispatcher":
    """Make numba's dispatcher for a function, with these options; compiles nothing yet."""
    compiled: CPUDispatcher = numba.njit(nogil=True, **options)(function)  # type: ignore[call-overload]
    return compiled
