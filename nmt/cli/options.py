"""What all commands share: one-line errors, options of the same names everywhere, thread settings before
torch loads."""

import argparse
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from nmt import files, plugins, signals
from nmt.cli import messages, streams
from nmt.cli.arguments import Input, Output, checkpoint
from nmt.cli.arguments import positive as positive
from nmt.cli.parser import Action as Action
from nmt.cli.parser import Parser as Parser
from nmt.errors import ConfigError, UserError, one_line, ran_out_of_memory
from nmt.progress import Progress, Total
from nmt.runs.directory import back_ends_file
from nmt.text.long_lines import MAX_LINE_WORDS

if TYPE_CHECKING:
    from nmt.cli.arguments import Container
    from nmt.compute.reduced import Reduced, Weights


def add_input_output(parser: "Container", what: str = "text") -> None:
    parser.add_argument(
        "--input",
        "-i",
        type=Input,
        default="-",
        metavar="FILE",
        help=f"{what} to read; plain, gzip, or - for stdin",
    )
    add_output(parser)


def add_output(parser: "Container") -> None:
    parser.add_argument(
        "--output",
        "-o",
        type=Output,
        default="-",
        metavar="FILE",
        help="written whole or not at all; .gz compresses; - is stdout",
    )


def add_quiet(parser: "Container") -> None:
    """--quiet and --log: which messages are written where."""
    parser.add_argument("--quiet", "-q", action="store_true", help="only warnings and errors on stderr")
    parser.add_argument(
        "--log",
        type=Output,
        default=None,
        metavar="FILE",
        help="append all messages with their times to FILE, also what --quiet hides, details of how torch "
        "computes, and a line a minute on the progress",
    )


def add_model(parser: "Container") -> None:
    """The argument RUN_DIR and the options of how to compute with it."""
    parser.add_argument("run", type=Input, metavar="RUN_DIR", help="a run directory made by nmt-train")
    add_compute(parser)


def add_compute(parser: "Container", threads: str = "torch decides unless given") -> None:
    parser.add_argument(
        "--checkpoint",
        type=checkpoint,
        default="best",
        metavar="STEP",
        help="best, last or the number of an update",
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1 ..., auto (a GPU if there is one)")
    add_processor(parser, threads)


def add_processor(
    parser: "Container", threads: str = "torch decides unless given", matmul: str = "auto"
) -> None:
    """Options of how the CPU computes. `threads`: what its help says; `matmul`: its default."""
    parser.add_argument("--threads", type=positive, default=None, help=f"CPU threads; {threads}")
    parser.add_argument(
        "--matmul",
        choices=("auto", "mkl", "onednn"),
        default=matmul,
        help="back end of matrix products on the CPU",
    )


def add_language_model(parser: "Container") -> None:
    """The argument of a language model of any kind, and the options of how to compute with a network."""
    parser.add_argument(
        "model",
        type=Input,
        metavar="RUN_DIR|ARPA|BINARY",
        help="a language model's run directory, an ARPA file (.gz too), a KenLM binary, or a mixture of "
        "nmt-interpolate",
    )
    add_compute(parser)
    parser.add_argument(
        "--backoff",
        type=Input,
        default="",
        metavar="ARPA",
        help="share a network's p(UNK) among unknown words, as this n-gram model does",
    )
    parser.add_argument(
        "--assume-normalized",
        action="store_true",
        help="take log Z as 0: faster; only for a CSLM that was trained with lm.normalizer",
    )


def add_max_line_words(parser: "Container", what: str, default: str = "") -> None:
    """The option for the longest line. `what`: what happens to longer ones."""
    parser.add_argument(
        "--max-line-words",
        type=positive,
        default=None,
        metavar="N",
        help=f"longer lines {what}; default: {MAX_LINE_WORDS}{default}",
    )


def flags(names: Sequence[str]) -> str:
    """Options as a user writes them: n_best, mbr -> --n-best, --mbr"""
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def add_split_sentences(parser: "Container", refused: str) -> None:
    """The option to cut lines into sentences. `refused`: what it does not go with."""
    parser.add_argument(
        "--split-sentences",
        action="store_true",
        help="translate each sentence of a raw line by itself; what stands between them stays, and a line is "
        f"a line; not with {refused}",
    )


def add_precision(parser: "Container") -> None:
    parser.add_argument(
        "--precision",
        choices=("fp32", "bf16", "int8"),
        default="fp32",
        help="precision of matrix products; bf16 and int8 are faster, but results change",
    )


def reduced(precision: str, models: "Sequence[Weights]", device: str) -> "list[Reduced]":
    """The contexts in which the matrix products of models are computed in a precision. ConfigError where the
    processor lacks it."""
    if precision == "fp32":
        return []
    from nmt.compute.device import resolve
    from nmt.compute.mixed import check_precision
    from nmt.compute.reduced import Reduced

    if precision == "bf16":
        check_precision(precision, device)
    elif resolve(device) != "cpu":
        raise ConfigError("--precision int8: computes on the CPU only; use bf16, or --device cpu")
    return [Reduced(precision, model) for model in models]


Command = Callable[[Sequence[str] | None], None]
NO_TORCH = (
    "torch is not installed; without an NVIDIA GPU: pip install --index-url "
    "https://download.pytorch.org/whl/cpu torch; see Install in the README"
)
OUT_OF_MEMORY = "out of memory; use a smaller batch or model"


def run(command: Command, argv: Sequence[str] | None) -> int:
    """Call a command and return its exit status: 2, with one line on stderr, for what a user can cause, 130
    for an interrupt."""
    name = os.path.basename(sys.argv[0]) if argv is None else command.__module__.rpartition(".")[2]
    if argv is None:
        streams.set_up()
        signals.listen(signals.leave)
    try:
        whole(command, argv)
        return 0
    except BrokenPipeError:  # the reader of our output has gone, e.g. `| head`: nobody is left to tell
        streams.drop()
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        messages.error(name, "interrupted")
        return 128 + signal.SIGINT
    except (UserError, MemoryError, RuntimeError, OSError, ModuleNotFoundError) as error:
        if not (message := message_of(error)):
            raise
        messages.error(name, one_line(message))
        if isinstance(error, UserError | OSError):
            streams.drop()
        return 2
    finally:
        messages.stop()
        if argv is None:
            gc.freeze()  # the process ends: searching its libraries for garbage would take half a second


def message_of(error: UserError | MemoryError | RuntimeError | OSError | ModuleNotFoundError) -> str:
    """What to tell the user; empty for an error of ours."""
    if isinstance(error, OSError):
        return f"{error.filename or '<stdout>'}: {error.strerror or error}"
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return NO_TORCH if error.name == "torch" else ""
    if "start new thread" in str(error):
        return "the system starts no more threads; see ulimit -u, or stop other programs"
    return OUT_OF_MEMORY if ran_out_of_memory(error) else ""


def whole(command: Command, argv: Sequence[str] | None) -> None:
    """A command, and all that it has printed, be it --help."""
    try:
        if plugins.named():
            plugins.load()
        command(argv)
    except SystemExit:
        streams.flush()
        raise
    streams.flush()


def start_log(command: str, args: argparse.Namespace, times: bool = False) -> None:
    """Messages go to stderr, as the options of `add_quiet` say; results go to stdout."""
    given = vars(args)
    messages.start(command, given.get("quiet", False), given.get("log"), times)


def shows_bar(args: argparse.Namespace) -> bool:
    """Is there a terminal for a progress bar? Not where results go to it, too: the bar would break into
    them."""
    results = any(isinstance(value, Output) and value == "-" for value in vars(args).values())
    return not args.quiet and sys.stderr.isatty() and not (results and sys.stdout.isatty())


def progress(
    args: argparse.Namespace, unit: str, total: Total | None, opening: str = "", title: str = ""
) -> Progress:
    """The progress of a command, see `Progress`."""
    return Progress(total, unit, shows_bar(args), title, opening)


def line_progress(args: argparse.Namespace, *paths: str, unit: str = "lines", title: str = "") -> Progress:
    """The progress through the lines of some texts, one after the other."""
    return progress(args, unit, partial(files.number_of_lines, *paths), title=title)


def set_up_torch(device: str, threads: int | None, matmul: str, run: str | None = None) -> str:
    """Import torch, check the device, choose threads and matrix back end; returns a line for the log.

    `run`: a run directory, whose choice of back end for this processor is reused.
    """
    from nmt.compute import device as devices

    return devices.set_up(device, threads, matmul, back_ends_file(run) if run else None)
