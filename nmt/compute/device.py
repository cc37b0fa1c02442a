"""Selection of the device, its threads, and its back end of matrix products."""

import logging
import math
import os
import platform
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

from nmt.compute import resources
from nmt.compute.resources import TOO_MANY_THREADS, bounded_threads
from nmt.errors import ConfigError, DataError, UserError
from nmt.io import files


def processor_info(key: str) -> str:
    """Value of the first line of /proc/cpuinfo that starts with `key`; empty if there is none."""
    with suppress(OSError, StopIteration), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        return next(line.partition(":")[2].strip() for line in lines if line.startswith(key))
    return ""


def processor_name() -> str:
    """Name of the processor and version of torch; a choice of back end is valid for one such pair."""
    name = processor_info("model name") or platform.processor() or platform.machine()
    return f"{name}, torch {torch.__version__}"


def processor_flags() -> set[str]:
    """The instruction sets of the processor; empty if the system does not list them."""
    return set(processor_info("flags").split())


# ---- back end of matrix products ---------------------------------------------------------------------------
# The fastest exact fp32 matrix product of this machine: MKL, or oneDNN where it is as exact and faster.
#
# On AMD processors stock torch takes MKL's slow path and loses a factor of two. oneDNN is reached through a
# torch switch that on processors with AMX really computes in bf16, so it is chosen only after its error
# against fp64 has been measured. The choice is made once for each run and processor and stored in the run
# directory: two back ends differ in the last bits, so every start, worker and resume has to use the same one.
# Measuring takes half a second to three seconds of processor time, and two measurements may still disagree;
# that is why the choice is stored.

log = logging.getLogger(__name__)

BACK_ENDS = ("mkl", "onednn")
MEASURED_SHAPES = [
    (256, 512, 1536),
    (16, 512, 1536),
    (64, 500, 4000),
]  # rows, inner, columns: a layer, a short batch, a softmax
# The error of an exact back end is at most this multiple of MKL's; rounding inputs to bf16 has 1000 times the
# error.
ERROR_TOLERANCE = 8.0
# oneDNN compiles a kernel for each shape of a product; it and torch keep the last 1,024 of them each, some
# 500 MB where shapes change from batch to batch. With 64 the same work takes 1% longer.
KERNEL_CACHES, CACHED_KERNELS = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"), "64"
CHOICE_BASIS = "; oneDNN has {:.1f}x the error and {:.2f}x the speed of MKL"
SPEED_MARGIN = 1.5  # oneDNN has to be this much faster, so that the noise of a busy machine does not decide


@dataclass
class BackEndChoice:
    """A back end, and the measurements for which it was chosen."""

    back_end: str  # mkl | onednn
    error: float = math.nan  # largest error of oneDNN against fp64, as a multiple of MKL's; nan: not measured
    speed: float = math.nan  # processor time of MKL over that of oneDNN

    def report(self) -> None:
        """Log the back end, and the error and speed for which it was chosen."""
        basis = "" if math.isnan(self.error) else CHOICE_BASIS.format(self.error, self.speed)
        log.debug("matrix products by %s%s", self.back_end, basis)


def use_back_end(back_end: str) -> None:
    """Compute all following fp32 matrix products on the CPU with `mkl` or `onednn`."""
    for name in KERNEL_CACHES:  # oneDNN and torch read them as they first compute
        os.environ.setdefault(name, CACHED_KERNELS)
    torch.backends.mkldnn.matmul.fp32_precision = "bf16" if back_end == "onednn" else "none"  # type: ignore[attr-defined]


def back_end_in_use() -> str:
    """The back end that `use_back_end` or `choose_back_end` has switched to; mkl before the first switch."""
    return "onednn" if torch.backends.mkldnn.matmul.fp32_precision == "bf16" else "mkl"  # type: ignore[attr-defined]


def measure_back_ends() -> tuple[float, float]:
    """Measure (error, speed) of oneDNN relative to MKL, see BackEndChoice, and switch to MKL."""
    generator = torch.Generator().manual_seed(1)
    errors, seconds = dict.fromkeys(BACK_ENDS, 0.0), dict.fromkeys(BACK_ENDS, 0.0)
    for rows, inner, columns in MEASURED_SHAPES:
        a, b = torch.randn(rows, inner, generator=generator), torch.randn(columns, inner, generator=generator)
        c = torch.randn(rows, columns, generator=generator)
        forms = [(a, b.t()), (c, b), (c.t(), a)]  # forward, gradient of the input, gradient of the weight
        for left, right in forms:
            exact = left.double() @ right.double()
            out = torch.empty(exact.shape)
            for name in BACK_ENDS:
                use_back_end(name)
                best = float("inf")
                for _ in range(4):
                    clock = time.process_time()  # other programs do not count
                    torch.addmm(torch.zeros(exact.shape[1]), left, right, out=out)
                    best = min(best, time.process_time() - clock)
                seconds[name] += best
                errors[name] = max(errors[name], float((out - exact).abs().max() / exact.abs().max()))
    use_back_end("mkl")
    return errors["onednn"] / errors["mkl"], seconds["mkl"] / seconds["onednn"]


def choose_back_end(requested: str = "auto", choices_file: Path | None = None) -> BackEndChoice:
    """Switch to the requested back end, or with `auto` to the one that measures best. ConfigError if it is
    unknown, missing in this build of torch, or not exact on this machine.

    `choices_file` records earlier choices: `auto` reuses the one for this processor, or measures and adds its
    choice there.
    """
    if requested not in ("auto", *BACK_ENDS):
        raise ConfigError(f"matmul: {requested!r} is unknown, expected auto, mkl or onednn")
    if requested == "auto" and choices_file and (recalled := recall_choice(choices_file)):
        use_back_end(recalled.back_end)
        return recalled
    choice = decide_back_end(requested)
    if requested == "auto" and choices_file:
        remember_choice(choices_file, choice)
    return choice


def decide_back_end(requested: str) -> BackEndChoice:
    """Choose a back end, by measuring unless `requested` is mkl, and switch to it; `auto` takes mkl where
    torch has no oneDNN. ConfigError for onednn if torch has none, or if it is not exact on this machine."""
    available = torch.backends.mkldnn.is_available()
    if requested == "onednn" and not available:
        raise ConfigError("matmul: onednn was requested, but torch has no oneDNN here; use auto or mkl")
    if requested == "mkl" or not available:
        use_back_end("mkl")
        return BackEndChoice("mkl")
    with torch.no_grad():
        error, speed = measure_back_ends()
    exact = error <= ERROR_TOLERANCE
    if requested == "onednn" and not exact:
        raise ConfigError(
            f"matmul: onednn has {error:.0f} times the error of mkl on this processor; use auto or mkl"
        )
    back_end = "onednn" if requested == "onednn" or (exact and speed >= SPEED_MARGIN) else "mkl"
    use_back_end(back_end)
    return BackEndChoice(back_end=back_end, error=error, speed=speed)


def recall_choice(choices_file: Path) -> BackEndChoice | None:
    """Read the choice that a file records for this processor; None without one or for an unreadable file."""
    with suppress(OSError, DataError, ValueError):
        for line in files.read_lines(choices_file):
            name, back_end, error, speed = line.split("\t")
            if name == processor_name() and back_end in BACK_ENDS:
                return BackEndChoice(back_end=back_end, error=float(error), speed=float(speed))
    return None


def remember_choice(choices_file: Path, choice: BackEndChoice) -> None:
    """Add a choice for this processor to a file. Does nothing if it cannot be written."""
    with suppress(OSError, UserError):
        lines = list(files.read_lines(choices_file)) if choices_file.exists() else []
        files.write_text(
            choices_file,
            [*lines, f"{processor_name()}\t{choice.back_end}\t{choice.error:.3g}\t{choice.speed:.3g}"],
        )


# ---- threads and back end together -------------------------------------------------------------------------
# Besides the processor, the last digits of results depend on these two settings, so several processes have to
# agree on them.


@dataclass(frozen=True)
class Arithmetic:
    """Number of threads and back end with which torch computes."""

    threads: int
    back_end: str  # of matrix products

    def use(self) -> None:
        """Set the number of threads, which torch keeps for each calling thread, and the back end of this
        process."""
        torch.set_num_threads(self.threads)
        use_back_end(self.back_end)


def arithmetic_in_use() -> Arithmetic:
    """The number of threads and the back end of this process."""
    return Arithmetic(threads=torch.get_num_threads(), back_end=back_end_in_use())


# ---- device ------------------------------------------------------------------------------------------------

EXPECTED_DEVICES = "cpu, cuda, cuda:N or auto"


def resolve_device(device: str, cpu_only: bool = False) -> str:
    """Resolve `auto` on this machine: the first GPU, or the CPU where torch finds none or the model
    computes on the CPU only. Other names stay as they are."""
    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() and not cpu_only else "cpu"


def set_up_device(device: str, threads: int | None, matmul: str, choices_file: Path | None = None) -> str:
    """Check the device, and set the number of threads and, for the CPU, the matrix back end of this process;
    returns a line for the log. ConfigError for a device or back end that is unknown or cannot be used.

    `threads`: if None, torch decides; too large a number is lowered with a warning. `matmul`: mkl, onednn or
    auto; `choices_file`: the file in which a run records its back end for each processor.
    """
    device = resolve_device(device)
    if threads:
        if (most := bounded_threads(threads)) < threads:
            log.warning("threads: %s", TOO_MANY_THREADS.format(threads, most))
        torch.set_num_threads(most)
    try:
        parsed = torch.device(device)
    except RuntimeError as error:
        raise ConfigError(f"device: {device!r} is unknown, expected {EXPECTED_DEVICES}") from error
    if parsed.type not in ("cpu", "cuda"):
        raise ConfigError(f"device: {device!r} is not supported, expected {EXPECTED_DEVICES}")
    if parsed.type == "cuda":
        check_gpu(parsed)
        # cuDNN's attention makes a plan, for up to a second, for each shape that it has not seen.
        torch.backends.cuda.enable_cudnn_sdp(False)
        return f"device {device}"
    choose_back_end(matmul, choices_file).report()
    threads = torch.get_num_threads()
    return f"device cpu, {threads} thread{'s' * (threads > 1)}"


def check_gpu(device: torch.device) -> None:
    """ConfigError unless torch finds this GPU; without an index, any GPU."""
    if not torch.cuda.is_available():
        raise ConfigError(f"device: '{device}' was requested, but torch finds no GPU; use --device cpu")
    count = torch.cuda.device_count()
    if device.index is not None and device.index >= count:
        remedy = f"s; use cuda:0 or another up to cuda:{count - 1}" if count > 1 else "; use cuda:0"
        raise ConfigError(f"device: '{device}' does not exist, torch finds {count} GPU{remedy}")


GPU_FLOATS = 1 << 27  # that rows computed at a time may have on a GPU: 512 MiB


def block_rows(device: torch.device, on_cpu: int, width: int) -> int:
    """Rows of `width` floats to compute at a time: `on_cpu`, or as many as keep a GPU busy."""
    return on_cpu if device.type == "cpu" else max(on_cpu, GPU_FLOATS // max(1, width))


@cache
def settle_threads() -> None:
    """Compute with one thread if torch was imported before nmt, unless the user has set the number of
    threads. Torch's waiting threads then spin, which can no longer be changed. For Python programs; has an
    effect only once."""
    if (
        resources.SPINNING
        and not resources.is_chosen(torch.get_num_threads())
        and torch.get_num_threads() > 1
    ):
        torch.set_num_threads(1)
        log.warning(
            "torch was imported before nmt, so its idle threads would compete with busy ones; using one "
            "thread. Import nmt first to use all, or call torch.set_num_threads"
        )
