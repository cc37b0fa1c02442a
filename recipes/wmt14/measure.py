"""Run a command and append its name, wall and CPU seconds and peak memory to a table.

    python recipes/wmt14/measure.py steps.tsv NAME COMMAND ...

Memory is that of the command and its children together, sampled twice a second: anonymous pages (what the
programs allocate) and the peak of all resident pages of one process, mapped files included. Linux only. The
exit status is the command's; a command that fails leaves no row.
"""

import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

HEADER = "step\tseconds\tCPU seconds\tanonymous MB\tresident MB of a process\n"
INTERVAL = 0.5  # seconds between two samples of the memory


def processes(parent: int) -> Iterator[int]:
    """A process and all its descendants that run now."""
    yield parent
    for path in Path("/proc").glob(f"{parent}/task/*/children"):
        try:
            children = path.read_text().split()
        except OSError:  # it has just ended
            continue
        for child in children:
            yield from processes(int(child))


def anonymous_bytes(process: int) -> int:
    """Anonymous resident memory of a process; 0 if it has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    return int(status.partition("RssAnon:")[2].split()[0]) << 10 if "RssAnon:" in status else 0


class PeakMemory(threading.Thread):
    """Largest sum of the anonymous memory of a process and its descendants, in bytes."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.process, self.peak, self.stopped = process, 0, threading.Event()

    def run(self) -> None:
        while not self.stopped.wait(INTERVAL):
            self.peak = max(self.peak, sum(map(anonymous_bytes, processes(self.process))))


def main(table: Path, name: str, command: list[str]) -> int:
    start = time.monotonic()
    with subprocess.Popen(command) as process:
        memory = PeakMemory(process.pid)
        memory.start()
        status = process.wait()
        memory.stopped.set()
        memory.join()
    if status:
        return status if status > 0 else 128 - status
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    row = [
        name,
        f"{time.monotonic() - start:.1f}",
        f"{usage.ru_utime + usage.ru_stime:.1f}",
        f"{memory.peak / 1e6:.0f}",
        f"{usage.ru_maxrss * 1024 / 1e6:.0f}",
    ]
    is_new = not table.exists()
    with table.open("a", encoding="utf-8", newline="\n") as file:
        file.write((HEADER if is_new else "") + "\t".join(row) + "\n")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
