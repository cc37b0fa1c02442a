"""What the benchmarks of a GPU share: the setting, the clock, and the figures, printed as they come."""

import gc
import json
import os
import signal
import statistics
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch

LINES = 12  # of a traceback


@dataclass
class Setting:
    """Where and for how long to measure. `folder`: for text and runs; `figures`: values by name."""

    device: str = "cpu"
    seconds: float = 15.0
    small: bool = False
    out: str = ""
    data: str = ""
    minutes: float = 3.0
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="nmt-gpu-")))
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def on_gpu(self) -> bool:
        return torch.device(self.device).type == "cuda"

    @property
    def device_name(self) -> str:
        return torch.cuda.get_device_name(self.device) if self.on_gpu else "cpu"

    def wait(self) -> None:
        """Wait until the device has done all that was asked of it."""
        if self.on_gpu:
            torch.cuda.synchronize(self.device)

    def now(self) -> float:
        """Seconds of a clock, once the device is done."""
        self.wait()
        return time.perf_counter()

    def figure(self, name: str, value: float, unit: str, what: str = "") -> None:
        """Print a figure and append it to the file of figures. `what`: the setting in words."""
        self.figures[name] = value
        digits = 0 if abs(value) >= 1000 else 2
        print(f"  {name:<44} {value:>14,.{digits}f} {unit}{f'   ({what})' if what else ''}", flush=True)
        if self.out:
            content = {
                "name": name, "value": value, "unit": unit, "setting": what, "small": self.small,
                "device": self.device_name, "torch": torch.__version__,
            }  # fmt: skip
            with open(self.out, "a", encoding="utf-8") as stream:
                stream.write(json.dumps(content) + "\n")
                stream.flush()
                os.fsync(stream.fileno())

    def median(self, call: Callable[[], object], seconds: float = 0.0, least: int = 3) -> float:
        """Median seconds of a call, repeated for `seconds` (by default a tenth of the setting's), at least
        `least` times, after two calls that are not counted."""
        call()
        call()
        times: list[float] = []
        end = self.now() + (seconds or self.seconds / 10)
        while len(times) < least or time.perf_counter() < end:
            began = self.now()
            call()
            times.append(self.now() - began)
        return statistics.median(times)

    @contextmanager
    def attempt(self, title: str, seconds: float) -> Iterator[None]:
        """Run a part of a benchmark: its errors are printed, and it is broken off after `seconds`."""
        began = time.perf_counter()

        def stop(*_: object) -> None:
            raise TimeoutError(f"{title}: broken off after {seconds:.0f} s")

        previous = signal.signal(signal.SIGALRM, stop)
        outer, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
        if 0 < outer < seconds:
            signal.setitimer(signal.ITIMER_REAL, outer)
        try:
            yield
        except Exception:
            lines = traceback.format_exc().rstrip().split("\n")
            print(f"  {title}: FAILED", *lines[-LINES:], sep="\n    | ", flush=True)
        finally:
            took = time.perf_counter() - began
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
            if outer:  # the part around this one goes on
                signal.setitimer(signal.ITIMER_REAL, max(0.001, outer - took))
            gc.collect()
            if self.on_gpu:
                torch.cuda.empty_cache()
            print(f"  [{title}: {took:.1f} s in all]", flush=True)
