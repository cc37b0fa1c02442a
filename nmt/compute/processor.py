"""What /proc/cpuinfo says about the processor."""

import platform
from contextlib import suppress

import torch


def processor() -> str:
    """The processor's name and the version of torch, which a choice of back end holds for."""
    name = platform.processor() or platform.machine()
    with suppress(OSError, StopIteration), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{name}, torch {torch.__version__}"


def flags() -> set[str]:
    """The instruction sets of the processor; empty where the system does not list them."""
    with suppress(OSError, StopIteration), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        return set(next(line.partition(":")[2] for line in lines if line.startswith("flags")).split())
    return set()
