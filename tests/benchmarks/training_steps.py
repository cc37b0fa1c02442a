"""CPU seconds and peak memory of each step of `smt-train`, and the bytes of its model:

    python -m tests.benchmarks.training_steps SOURCE TARGET MODEL_DIR [--memory 1]

The peak is that of this process (Linux); with compiled code in the cache, that is, from the second time on.
"""

import argparse
import resource
from pathlib import Path

from smt_bridge.config import TrainConfig
from smt_bridge.extraction.config import ExtractConfig
from smt_bridge.train_system import STEPS, train


def cpu_seconds() -> float:
    """User and system time of this process and its children."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def take_peak() -> int:
    """Peak memory in MB since the last call."""
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0])
    Path("/proc/self/clear_refs").write_text("5")
    return peak >> 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("model", type=Path)
    parser.add_argument("--memory", type=float, default=ExtractConfig.memory)
    args = parser.parse_args()
    config = TrainConfig(args.source, args.target, extract=ExtractConfig(memory=args.memory))
    steps, start = iter(STEPS), cpu_seconds()

    def report() -> None:
        nonlocal start
        now = cpu_seconds()
        print(f"{next(steps).name}\t{now - start:.1f} CPU s\t{take_peak()} MB", flush=True)
        start = now

    take_peak()
    train(args.model, config, on_step=report)
    for path in sorted(args.model.iterdir()):
        print(f"{path.name}\t{path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
