"""What /proc/cpuinfo says about the processor."""

import platform
from contextlib import suppress

import torch


def processor() -> str:
    """The processor and the torch that a choice holds for."""
    name = platform.processor() or platform.machine()
    with suppress(OSError, StopIteration), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{name}, torch {torch.__version__}"


def flags() -> set[str]:
    """What the processor says it can do; empty where the system does not tell."""
    with suppress(OSError, StopIteration), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        return set(next(line.partition(":")[2] for line in lines if line.startswith("flags")).split())
    return set()
