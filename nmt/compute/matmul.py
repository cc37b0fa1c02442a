"""The fastest exact fp32 matrix product of this machine: MKL, or oneDNN where it is as exact and faster.

On AMD processors stock torch takes MKL's slow path and loses a factor of two. oneDNN is reached through a
torch switch that on processors with AMX really computes in bf16, so it is chosen only after its error against
fp64 has been measured. The choice is made once for each run and processor and stored in the run directory:
two back ends differ in the last bits, so every start, worker and resume has to use the same one. Measuring
takes half a second to three seconds of processor time, and two measurements may still disagree; that is why
the choice is stored.
"""

import logging
import math
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from nmt import files
from nmt.compute.processor import processor
from nmt.errors import ConfigError, DataError, UserError

log = logging.getLogger(__name__)

BACK_ENDS = ("mkl", "onednn")
SHAPES = [
    (256, 512, 1536),
    (16, 512, 1536),
    (64, 500, 4000),
]  # rows, inner, columns: a layer, a short batch, a softmax
# The error of an exact back end is at most this multiple of MKL's; rounding inputs to bf16 has 1000 times the
# error.
TOLERANCE = 8.0
# oneDNN compiles a kernel for each shape of a product; it and torch keep the last 1,024 of them each, some
# 500 MB where shapes change from batch to batch. With 64 the same work takes 1% longer.
CACHES, KERNELS = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"), "64"
BASIS = "; oneDNN has {:.1f}x the error and {:.2f}x the speed of MKL"
MARGIN = 1.5  # oneDNN has to be this much faster, so that the noise of a busy machine does not decide


@dataclass
class Choice:
    """A back end, and what its choice was based on."""

    back_end: str  # mkl | onednn
    error: float = math.nan  # largest error of oneDNN against fp64, as a multiple of MKL's; nan: not measured
    speed: float = math.nan  # processor time of MKL over that of oneDNN

    def report(self) -> None:
        """Log the back end, and the error and speed it was chosen by."""
        basis = "" if math.isnan(self.error) else BASIS.format(self.error, self.speed)
        log.debug("matrix products by %s%s", self.back_end, basis)


def use(back_end: str) -> None:
    """Compute all following fp32 matrix products on the CPU with `mkl` or `onednn`."""
    for name in CACHES:  # oneDNN and torch read them as they first compute
        os.environ.setdefault(name, KERNELS)
    torch.backends.mkldnn.matmul.fp32_precision = "bf16" if back_end == "onednn" else "none"  # type: ignore[attr-defined]


def in_use() -> str:
    """The back end that `use` or `choose` has switched to."""
    return "onednn" if torch.backends.mkldnn.matmul.fp32_precision == "bf16" else "mkl"  # type: ignore[attr-defined]


def measure() -> tuple[float, float]:
    """Error and speed of oneDNN relative to MKL; see Choice."""
    generator = torch.Generator().manual_seed(1)
    errors, seconds = dict.fromkeys(BACK_ENDS, 0.0), dict.fromkeys(BACK_ENDS, 0.0)
    for rows, inner, columns in SHAPES:
        a, b = torch.randn(rows, inner, generator=generator), torch.randn(columns, inner, generator=generator)
        c = torch.randn(rows, columns, generator=generator)
        forms = [(a, b.t()), (c, b), (c.t(), a)]  # forward, gradient of the input, gradient of the weight
        for left, right in forms:
            exact = left.double() @ right.double()
            out = torch.empty(exact.shape)
            for name in BACK_ENDS:
                use(name)
                best = float("inf")
                for _ in range(4):
                    clock = time.process_time()  # other programs do not count
                    torch.addmm(torch.zeros(exact.shape[1]), left, right, out=out)
                    best = min(best, time.process_time() - clock)
                seconds[name] += best
                errors[name] = max(errors[name], float((out - exact).abs().max() / exact.abs().max()))
    use("mkl")
    return errors["onednn"] / errors["mkl"], seconds["mkl"] / seconds["onednn"]


def choose(wish: str = "auto", memory: Path | None = None) -> Choice:
    """Switch to the back end that `wish` names, or with `auto` to the one that measures best. ConfigError
    when it is unknown, or not exact on this machine.

    `memory` is a file of earlier choices: `auto` takes the one made on this processor, or measures and adds
    its choice there.
    """
    if wish not in ("auto", *BACK_ENDS):
        raise ConfigError(f"matmul: {wish!r} is unknown, expected auto, mkl or onednn")
    if wish == "auto" and memory and (known := recall(memory)):
        use(known.back_end)
        return known
    choice = decide(wish)
    if wish == "auto" and memory:
        remember(memory, choice)
    return choice


def decide(wish: str) -> Choice:
    """As `choose`, without a file of earlier choices."""
    if wish == "mkl" or not torch.backends.mkldnn.is_available():
        use("mkl")
        return Choice("mkl")
    with torch.no_grad():
        error, speed = measure()
    exact = error <= TOLERANCE
    if wish == "onednn" and not exact:
        raise ConfigError(
            f"matmul: onednn errs {error:.0f} times as much as mkl on this processor; use auto or mkl"
        )
    back_end = "onednn" if wish == "onednn" or (exact and speed >= MARGIN) else "mkl"
    use(back_end)
    return Choice(back_end=back_end, error=error, speed=speed)


def recall(memory: Path) -> Choice | None:
    """The choice that was made on this processor; None when there is none."""
    with suppress(OSError, DataError, ValueError):
        for line in files.read_lines(memory):
            name, back_end, error, speed = line.split("\t")
            if name == processor() and back_end in BACK_ENDS:
                return Choice(back_end=back_end, error=float(error), speed=float(speed))
    return None


def remember(memory: Path, choice: Choice) -> None:
    """Add a choice; a run directory that cannot be written to is left as it is."""
    with suppress(OSError, UserError):
        lines = list(files.read_lines(memory)) if memory.exists() else []
        files.write_text(
            memory, [*lines, f"{processor()}\t{choice.back_end}\t{choice.error:.3g}\t{choice.speed:.3g}"]
        )
