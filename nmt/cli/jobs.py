"""Jobs of commands that turn lines into lines: run in this process, in several or on a cluster, and resumed
after they were killed."""

import argparse
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from nmt.cli import options
from nmt.cli.arguments import InputPath, OutputPath, add_setting, parse_settings
from nmt.errors import ConfigError
from nmt.io import files, locks
from nmt.io.progress import Progress
from nmt.runs.directory import is_exported
from nmt.work import executors, store, text_chunks
from nmt.work.executors import EXECUTORS, ExecutorConfig
from nmt.work.stages import SharedFolder
from nmt.work.store import ChunkRecords
from nmt.work.text_chunks import FinishedChunk, Lines, TextChunk

if TYPE_CHECKING:
    from nmt.cli.arguments import Container
    from nmt.compute.device import Arithmetic


log = logging.getLogger(__name__)

Task = TypeVar("Task")
Task_contra = TypeVar("Task_contra", contravariant=True)

RESULTS = "lines"  # file of finished chunks in the job folder
# Options that are not recorded, because they do not affect results or because their effect is recorded.
FREE = (
    "quiet", "log", "resume", "workers", "executor", "cluster", "mixed_workers", "threads", "matmul", "cache",
    "no_cache", "verify",
)  # fmt: skip


def add_executor(parser: "Container", **workers: str) -> None:
    """Add the options of the executor. `workers`: keywords of `add_argument` for --workers."""
    add_setting(parser, ExecutorConfig, "workers", **workers)
    add_setting(parser, ExecutorConfig, "executor", choices=tuple(EXECUTORS))
    add_setting(parser, ExecutorConfig, "cluster", metavar="ADDRESS|JSON")
    add_setting(parser, ExecutorConfig, "mixed_workers")


def add_options(parser: "Container", **workers: str) -> None:
    """Add the options of the executor, and --resume."""
    add_executor(parser, **workers)
    add_resume(parser)


def add_resume(parser: "Container") -> None:
    """Add --resume for jobs that are recorded beside their output."""
    parser.add_argument(
        "--resume", action="store_true", help="resume an interrupted job from its folder OUTPUT.job"
    )


def describe_workers(args: argparse.Namespace) -> str:
    """Describe the workers of a job for the log."""
    if args.cluster:
        return f"cluster {args.cluster}"
    return f"{args.workers} worker{'s' * (args.workers > 1)}"


class ChunkComputer(Protocol[Task_contra]):
    """The loaded models of a command, which compute chunks of its input."""

    def models(self) -> list[Path]:
        """The files, besides the texts, on which results depend; they must be identical for every worker."""

    def lines(self, task: Task_contra) -> Lines:
        """Compute the lines of a chunk for each output."""


class TextJob:
    """One execution of a command over its texts. ConfigError for --resume with a stream."""

    def __init__(
        self,
        args: argparse.Namespace,
        command: str,
        inputs: Sequence[str],
        config: ExecutorConfig | None = None,
        output: str = "",
    ) -> None:
        """`inputs`: the texts, of which messages name the first. `config`, `output`: override the options."""
        self.output = output or str(args.output)
        self.args, self.command, self.inputs = args, command, inputs
        self.config = config or parse_settings(ExecutorConfig, args)
        self.arithmetic: Arithmetic | None = None  # how torch computes; None if the job does not use it
        self.is_remote = self.config.name != "local"
        written = self.output != "-" and (not os.path.exists(self.output) or os.path.isfile(self.output))
        can_resume = written and all(os.path.isfile(path) for path in inputs)
        if args.resume and not can_resume:
            raise ConfigError(
                "--resume reads the input again and continues the output; give files, not - or a pipe"
            )
        self.keeps_chunks = can_resume and (self.is_remote or args.resume)

    @property
    def folder(self) -> Path | None:
        """The folder of finished chunks and of the unfinished output; None for a job that records nothing."""
        return store.job_folder_path(self.output) if self.keeps_chunks else None

    @property
    def in_parts(self) -> bool:
        """Whether different processes may compute the chunks, now or when the job is resumed."""
        return self.is_remote or self.keeps_chunks

    def lock(self) -> AbstractContextManager[None]:
        """A context that locks the job folder, if there is one. Enter it before any work."""
        return store.lock_job(self.output, self.command) if self.keeps_chunks else nullcontext()

    def set_up_torch(self, run: str | None = None) -> str:
        """Import torch, and set the number of threads and the back end of matrix products: those recorded in
        the job to resume, or else those of the options; workers use one thread by default. For an exported
        run, only sets `args.threads`. `run`: a run directory whose choice of back end is reused. Returns a
        line for the log. ConfigError for a device that is missing."""
        if run and is_exported(run):
            self.args.threads = self.args.threads or (1 if self.is_remote else None)
            return "CTranslate2" if self.args.device == "cpu" else f"CTranslate2, device {self.args.device}"
        recorded = store.recorded_settings(self.output) if self.keeps_chunks else {}
        recorded_threads = recorded.get("threads")
        threads = self.args.threads or (
            recorded_threads if isinstance(recorded_threads, int) else 1 if self.is_remote else None
        )
        back_end = str(recorded.get("back_end") or self.args.matmul)
        line = options.set_up_torch(self.args.device, threads, back_end, run)
        from nmt.compute import device

        self.arithmetic = device.arithmetic_in_use()
        return f"{line}, {describe_workers(self.args)}" if self.is_remote else line

    @contextmanager
    def run(
        self, load: "Callable[[argparse.Namespace], ChunkComputer[Task]]", computer: "ChunkComputer[Task]"
    ) -> "Iterator[Callable[[Iterable[TextChunk[Task]]], Iterator[FinishedChunk]]]":
        """Start the executor; yield a function from chunks to finished ones, `text_chunks.compute_chunks`.

        `computer`: what `load` returned for the options; each worker calls `load` again. If the block
        succeeds, the job is done, and its folder is removed. ConfigError if the job to resume was started
        with other settings, DataError for a file of the models that cannot be read.
        """
        models = store.file_digests(computer.models()) if self.is_remote or self.keeps_chunks else {}
        load_remote = partial(
            load_in_worker, load, absolute_paths(self.args, self.inputs), self.arithmetic, models
        )
        name = files.name_of(self.inputs[0])
        with executors.make(computer.lines, load_remote, self.config) as executor:
            yield partial(
                text_chunks.compute_chunks, executor=executor, name=name, records=self.open_records(models)
            )
        if self.folder:
            locks.clear(self.folder)

    @contextmanager
    def open_outputs(
        self, paths: Sequence[str], flush: bool = True
    ) -> Iterator[Callable[[FinishedChunk], None]]:
        """Open the outputs, the main one first, and yield a function that writes a finished chunk. UserError
        if writing fails.

        `flush`: flush the main output after each chunk, for readers that wait for its lines.
        """
        with ExitStack() as stack:
            first, *others = [
                stack.enter_context(files.Writing(path, None if number else self.folder))
                for number, path in enumerate(paths)
            ]

            def write(done: FinishedChunk) -> None:
                for out, lines in zip([first, *others], done.outputs, strict=False):
                    out.write_lines(lines)
                if flush:
                    first.flush()

            yield write

    def open_records(self, models: Mapping[str, str]) -> ChunkRecords | None:
        """Open the file of finished chunks, a new one or that of the job to resume; None for a job without
        one. `models`: digests of their files, by path. ConfigError if the job was started with others."""
        if not self.keeps_chunks:
            return None
        states = [os.stat(path) for path in self.inputs]
        settings = {
            "command": self.command,
            "inputs": [
                [os.path.realpath(path), state.st_size, state.st_mtime_ns]
                for path, state in zip(self.inputs, states, strict=True)
            ],
            "models": sorted(models.values()),
            **(asdict(self.arithmetic) if self.arithmetic else {}),
            **recorded_options(self.args),
            **self.config.recorded(),
        }
        records = ChunkRecords(store.start_job(self.output, settings, RESULTS, self.args.resume))
        if len(records):
            log.info("resuming after %s finished chunks", f"{len(records):,}")
        return records


def advance(progress: Progress, done: FinishedChunk) -> None:
    """Count the lines of a finished chunk; those from before a resume do not affect the rate."""
    (progress.skip if done.earlier else progress.add)(done.count)


def load_in_worker(
    load: Callable[[argparse.Namespace], ChunkComputer[Task]],
    args: argparse.Namespace,
    arithmetic: "Arithmetic | None",
    models: Mapping[str, str],
) -> Callable[[Task], Lines]:
    """In a worker, load the same models with the same arithmetic; returns the function that computes a chunk.
    DataError for files that differ."""
    store.check_digests(models)
    if arithmetic:
        arithmetic.use()
    return load(args).lines


def absolute_paths(args: argparse.Namespace, texts: Sequence[str]) -> argparse.Namespace:
    """Copy the options with absolute paths of inputs, for workers started in another folder. The paths in
    `texts`, which workers do not read, stay as they are."""

    def absolute(value: object) -> object:
        if isinstance(value, list):
            return [absolute(item) for item in value]
        if not isinstance(value, InputPath) or not value or value in texts:
            return value
        return InputPath(os.path.abspath(value))

    return argparse.Namespace(**{name: absolute(value) for name, value in vars(args).items()})


def recorded_options(args: argparse.Namespace) -> dict[str, object]:
    """The options that affect results, by name; for an output file, only whether there is one."""
    return {
        f"--{name.replace('_', '-')}": bool(value) if isinstance(value, OutputPath) else value
        for name, value in vars(args).items()
        if name not in FREE and not names_inputs(value)
    }


def names_inputs(value: object) -> bool:
    """Whether the value of an option is an input file, or a list of them. These are not recorded as options:
    a job records the path, size and time of its texts, and the checksums of its models."""
    return isinstance(value, InputPath) or (isinstance(value, list) and any(map(names_inputs, value)))


# ---- jobs in stages, through a shared folder (nmt/work/stages.py) ------------------------------------------


def add_shared_job(parser: "Container") -> None:
    """Add the options of the executor, and --work and --resume for the shared folder."""
    add_executor(parser)
    parser.add_argument(
        "--work",
        type=OutputPath,
        default="",
        metavar="DIR",
        help="with several workers: folder for the intermediate files of the job, seen by all workers; "
        "default: OUTPUT.job",
    )
    parser.add_argument("--resume", action="store_true", help="resume an interrupted job from its folder")


def shared_folder(args: argparse.Namespace, command: str, config: ExecutorConfig) -> SharedFolder | None:
    """Return the shared folder of a job; None if this process computes alone. `command`: for messages.
    ConfigError if several workers have no folder to share."""
    if config.name == "local" and not args.work and not args.resume:
        return None
    if not args.work and args.output == "-":
        raise ConfigError("several workers share a folder; give --output FILE or --work DIR")
    return SharedFolder(Path(args.work or f"{args.output}.job").absolute(), command, args.resume)
