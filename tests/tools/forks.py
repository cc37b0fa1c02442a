"""The commands of one checkout, run by a process that has imported its code once and forks for each of them:
same_bytes.py starts one for each of its two checkouts.

    PYTHONPATH=CHECKOUT python -P tests/tools/forks.py

It prints the folder that the code comes from. Then each line of JSON on stdin is a command (`entry`, a
module:function, `argv`, and files for `stdout` and `stderr`); the answer is the number of the process, and
its exit status once it has ended.
"""

import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

TESTS = str(Path(__file__).resolve().parents[1])


def import_everything() -> None:
    """What tests/fork_server.py imports; the folder of tests is on the path no longer than that."""
    sys.path.append(TESTS)
    importlib.import_module("fork_server").import_everything()
    sys.path.remove(TESTS)


def serve() -> Callable[[], int]:
    """Fork for each line of stdin; returns, in a forked process only, what it has to call."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            return become(json.loads(line))
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    sys.exit()


def become(request: dict[str, str]) -> Callable[[], int]:
    """In the forked process: its streams, its arguments, and the function to call."""
    writing = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for number, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, request["stdout"], writing),
        (2, request["stderr"], writing),
    ):
        stream = os.open(path, flags, 0o644)
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.argv = list(request["argv"])
    module, _, function = request["entry"].partition(":")
    entry: Callable[[], int] = getattr(importlib.import_module(module), function)
    return entry


if __name__ == "__main__":
    import_everything()
    print(Path(str(sys.modules["nmt"].__file__)).resolve().parents[1], flush=True)
    sys.exit(serve()())
