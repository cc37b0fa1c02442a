"""The first signal is polite, the second final; compiled code is never left by an exception."""

import signal
import subprocess
import sys

# A shell's background jobs ignore SIGINT, and so would what they start.
HEAD = """import os, signal, sys, time
from nmt.io import signals
signal.signal(signal.SIGINT, signal.default_int_handler)
me = os.getpid()
"""


def run(script: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", HEAD + script], capture_output=True, text=True, timeout=1200, check=False
    )
    assert not done.stderr.strip() or "KeyboardInterrupt" in done.stderr, done.stderr
    return done.returncode, done.stdout


def test_the_first_signal_lets_a_command_clean_up() -> None:
    script = (
        "signals.listen(signals.leave)\ntry:\n    os.kill(me, signal.{})\n    print('not "
        "here')\nfinally:\n    print('cleaned')"
    )
    assert run(script.format("SIGTERM")) == (128 + signal.SIGTERM, "cleaned\n")
    status, out = run(script.format("SIGINT"))
    assert status in (128 + signal.SIGINT, -signal.SIGINT) and out == "cleaned\n"


def test_the_second_signal_ends_at_once() -> None:
    """Even while the first one is being handled; two at the same time, as `timeout` sends them, are one."""
    script = (
        "signals.SAME = {}\nsignals.listen(lambda number: print('saving', flush=True))\nos.kill(me, "
        "signal.SIGTERM)\ntime.sleep(0.02)\n"
    )
    script += "os.kill(me, signal.{})\nprint('saved')"
    assert run(script.format(0.001, "SIGTERM")) == (-signal.SIGTERM, "saving\n")
    assert run(script.format(0.001, "SIGINT")) == (-signal.SIGINT, "saving\n")
    assert run(script.format(1000, "SIGTERM")) == (0, "saving\nsaved\n")


def test_held_signals_come_late() -> None:
    script = (
        "signals.listen(signals.leave)\nwith signals.delayed:\n    with signals.delayed:\n        "
        "os.kill(me, signal.SIGTERM)\n        print('inner')\n"
        "    print('outer')\nprint('not here')"
    )
    assert run(script) == (128 + signal.SIGTERM, "inner\nouter\n")


def test_what_was_to_be_ignored_stays_ignored() -> None:
    assert run(
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\nsignals.listen(signals.leave)\nos.kill(me, "
        "signal.SIGINT)\nprint('on')"
    ) == (0, "on\n")


def test_a_process_that_swallows_the_exception_ends_all_the_same() -> None:
    script = "signals.GRACE = 0.2\nsignals.listen(signals.leave)\ntry:\n    os.kill(me, signal.SIGTERM)\n"
    script += "except SystemExit:\n    print('on', flush=True)\n    time.sleep(1200)"
    assert run(script) == (-signal.SIGALRM, "on\n")


def test_compiled_code_is_not_waited_for() -> None:
    """A sum that takes a day holds the interpreter. Other handlers, those of a Python program, stay, and ours
    is back afterwards."""
    script = "signals.listen(signals.leave)\nwith signals.at_once():\n"
    script += "    os.system(f'(sleep 0.05; kill -s {} {{me}}) &')\n    sum(range(10**15))"
    assert run(script.format("TERM")) == (-signal.SIGTERM, "")
    assert run(script.format("INT")) == (-signal.SIGINT, "")
    script = (
        "with signals.at_once():\n    print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)\n"
    )
    script += "signals.listen(signals.leave)\nbefore = signal.getsignal(signal.SIGTERM)\n"
    script += "with signals.at_once():\n    pass\nprint(signal.getsignal(signal.SIGTERM) is before)"
    assert run(script) == (0, "True\nTrue\n")
