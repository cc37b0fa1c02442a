"""A process that has imported the libraries once and forks for each command that a test runs: an interpreter
with torch takes two seconds to start, a fork a hundredth of one.

    python -P tests/fork_server.py SOCKET LIFE

SOCKET is the path to listen on; LIFE the number of a pipe's end, and the server ends when the other is
closed. A request is one line of JSON with the command's standard streams attached; the answer is the
process's number, and its exit status when it has ended. A forked command is what the console script would
be: its own process, arguments, environment, folder and streams.
"""

import atexit
import configparser
import contextlib
import gc
import importlib
import importlib.metadata
import json
import os
import pkgutil
import select
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

HEAVY = ("torch", "numpy", "omegaconf", "sacrebleu", "sacremoses", "subword_nmt.apply_bpe", "tqdm", "numba")
Entry = Callable[[], int]


def import_everything() -> None:
    """Heavy libraries, and every module of ours; none of their objects is garbage."""
    for name in HEAVY:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for package in ("nmt", "smt_bridge"):
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
    # A command's exit would search and so copy all of this: a second of the processor instead of a quarter.
    gc.collect()
    gc.freeze()


def entry_points() -> dict[str, importlib.metadata.EntryPoint]:
    """The commands of this checkout, which may be another one than that of the installed scripts."""
    config = configparser.ConfigParser()
    config.read(Path(__file__).parents[1] / "setup.cfg", encoding="utf-8")
    rows = config["options.entry_points"]["console_scripts"].strip().splitlines()
    pairs = [row.partition("=")[::2] for row in rows]
    return {
        name.strip(): importlib.metadata.EntryPoint(name.strip(), value.strip(), "console_scripts")
        for name, value in pairs
    }


def serve(path: str, life: int) -> Entry:
    """Fork for each request until LIFE is closed; returns, in a forked process only, what it has to call."""
    entries = entry_points()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([listener.fileno(), life], [], [])
        if life in ready:
            sys.exit()
        connection, _ = listener.accept()
        if os.fork():
            connection.close()
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listener.close()
        os.close(life)
        return handle(connection, entries)


def handle(connection: socket.socket, entries: dict[str, importlib.metadata.EntryPoint]) -> Entry:
    """Fork the command and answer for it; returns in the command's process only."""
    line, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    while not line.endswith(b"\n"):
        line += connection.recv(1 << 20)
    request = json.loads(line)
    if child := os.fork():
        for stream in streams:
            os.close(stream)
        connection.sendall(f"{child}\n".encode())
        _, status = os.waitpid(child, 0)
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = request["argv"]
    entry: Entry = entries[os.path.basename(sys.argv[0])].load()
    return entry


def leave(outcome: Sequence[object]) -> None:
    """Let the system free the memory of a command, after all that Python calls at exit: freeing the libraries
    one by one takes 0.4 seconds of the processor. Returns, for an ordinary exit, if `outcome` holds no exit
    status, or a stream cannot be flushed."""
    if not outcome or not isinstance(outcome[0], int | None):
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return
    os._exit(outcome[0] or 0)


if __name__ == "__main__":
    ended: list[object] = []  # what the command has returned or exited with
    atexit.register(leave, ended)  # before the libraries, so that it is called after theirs
    import_everything()
    command = serve(sys.argv[1], int(sys.argv[2]))
    try:
        ended.append(command())
    except SystemExit as stop:
        ended.append(stop.code)
    sys.exit(ended[0])  # type: ignore[arg-type]
