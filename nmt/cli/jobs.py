"""Commands that turn lines into lines: in this process, in several or on a cluster, and again after they were
killed."""

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
from nmt.work import executors, folder, texts
from nmt.work.config import ExecutorConfig
from nmt.work.executors import EXECUTORS
from nmt.work.stages import SharedFolder
from nmt.work.texts import ChunkRecords, FinishedChunk, Lines, TextChunk

if TYPE_CHECKING:
    from nmt.cli.arguments import Container
    from nmt.compute.device import Arithmetic


# ---- jobs --------------------------------------------------------------------------------------------------


log = logging.getLogger(__name__)

Task = TypeVar("Task")
Task_contra = TypeVar("Task_contra", contravariant=True)

RESULTS = "lines"  # the file of the job folder
# Options that no result depends on, and those that are recorded by what they led to.
FREE = (
    "quiet", "log", "resume", "workers", "executor", "cluster", "mixed_workers", "threads", "matmul", "cache",
    "no_cache", "verify",
)  # fmt: skip


def add_executor(parser: "Container", **workers: str) -> None:
    """The options of how a job is computed. `workers`: what argparse is to have for --workers instead."""
    add_setting(parser, ExecutorConfig, "workers", **workers)
    add_setting(parser, ExecutorConfig, "executor", choices=tuple(EXECUTORS))
    add_setting(parser, ExecutorConfig, "cluster", metavar="ADDRESS|JSON")
    add_setting(parser, ExecutorConfig, "mixed_workers")


def add_options(parser: "Container", **workers: str) -> None:
    """Those, and --resume."""
    add_executor(parser, **workers)
    add_resume(parser)


def add_resume(parser: "Container") -> None:
    """--resume alone."""
    parser.add_argument(
        "--resume",
        action="store_true",
        help="resume a job that was killed, from OUTPUT.job",
    )


def describe_workers(args: argparse.Namespace) -> str:
    """What computes, for the log."""
    if args.cluster:
        return f"cluster {args.cluster}"
    return f"{args.workers} worker{'s' * (args.workers > 1)}"


class ChunkComputer(Protocol[Task_contra]):
    """What a command computes with, once it is loaded."""

    def models(self) -> list[Path]:
        """The files that its results depend on, besides the text: workers need the same ones."""
        ...

    def lines(self, task: Task_contra) -> Lines:
        """The lines of each output for a chunk."""
        ...


class TextJob:
    """One call of a command. ConfigError where --resume is asked for, but a text or the output is a
    stream."""

    def __init__(
        self,
        args: argparse.Namespace,
        command: str,
        inputs: Sequence[str],
        config: ExecutorConfig | None = None,
        output: str = "",
    ) -> None:
        """`inputs`: the texts, the one that messages name first; `config`, `output`: instead of the
        options'."""
        self.output = output or str(args.output)
        self.args, self.command, self.inputs = args, command, inputs
        self.config = config or parse_settings(ExecutorConfig, args)
        self.arithmetic: Arithmetic | None = None  # where torch computes
        self.elsewhere = self.config.name != "local"
        written = self.output != "-" and (not os.path.exists(self.output) or os.path.isfile(self.output))
        can_resume = written and all(os.path.isfile(path) for path in inputs)
        if args.resume and not can_resume:
            raise ConfigError(
                "--resume reads the input again, and needs an --output: give files, not - or a pipe"
            )
        self.kept = can_resume and (self.elsewhere or args.resume)

    @property
    def folder(self) -> Path | None:
        """Where finished chunks are kept, and the unfinished output."""
        return folder.job_folder_path(self.output) if self.kept else None

    @property
    def in_parts(self) -> bool:
        """May different processes compute its chunks?"""
        return self.elsewhere or self.kept

    def held(self) -> AbstractContextManager[None]:
        """The lock of the folder, taken before any work."""
        return folder.lock_job(self.output, self.command) if self.kept else nullcontext()

    def set_up_torch(self, run: str | None = None) -> str:
        """Import torch, and choose its threads and back end: those of the job that is resumed, and elsewhere
        one thread a worker unless given. A line for the log."""
        before = folder.recorded_settings(self.output) if self.kept else {}
        known = before.get("threads")
        threads = self.args.threads or (known if isinstance(known, int) else 1 if self.elsewhere else None)
        back_end = str(before.get("back_end") or self.args.matmul)
        line = options.set_up_torch(self.args.device, threads, back_end, run)
        from nmt.compute import device

        self.arithmetic = device.arithmetic_in_use()
        return f"{line}, {describe_workers(self.args)}" if self.elsewhere else line

    @contextmanager
    def run(
        self, load: "Callable[[argparse.Namespace], ChunkComputer[Task]]", found: "ChunkComputer[Task]"
    ) -> "Iterator[Callable[[Iterable[TextChunk[Task]]], Iterator[FinishedChunk]]]":
        """What computes chunks, see `texts.compute`: by `found`, which `load` has made of the options, and
        makes again in each worker. Afterwards the job is done, and its folder gone."""
        models = folder.file_digests(found.models()) if self.elsewhere or self.kept else {}
        elsewhere = partial(
            load_in_worker, load, absolute_paths(self.args, self.inputs), self.arithmetic, models
        )
        name = files.name_of(self.inputs[0])
        with executors.make(found.lines, elsewhere, self.config) as executor:
            yield partial(texts.compute, executor=executor, name=name, kept=self.records(models))
        if self.folder:
            locks.clear(self.folder)

    @contextmanager
    def writing(self, paths: Sequence[str], flush: bool = True) -> Iterator[Callable[[FinishedChunk], None]]:
        """What writes the lines of a finished chunk. `paths`: the outputs, the main one first; `flush`: at
        once, since somebody may be waiting for these lines."""
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

    def records(self, models: Mapping[str, str]) -> ChunkRecords | None:
        """The results of finished chunks; None for a job that keeps none."""
        if not self.kept:
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
        found = ChunkRecords(folder.start_job(self.output, settings, RESULTS, self.args.resume))
        if len(found):
            log.info("resuming after %s finished chunks", f"{len(found):,}")
        return found


def advance(progress: Progress, done: FinishedChunk) -> None:
    """Count the lines of a finished chunk; those of an earlier start are no part of the rate."""
    (progress.skip if done.before else progress.add)(done.count)


def load_in_worker(
    load: Callable[[argparse.Namespace], ChunkComputer[Task]],
    args: argparse.Namespace,
    used: "Arithmetic | None",
    models: Mapping[str, str],
) -> Callable[[Task], Lines]:
    """In a worker: the same models, by the same arithmetic. DataError for files that differ."""
    folder.check_digests(models)
    if used:
        used.use()
    return load(args).lines


def absolute_paths(args: argparse.Namespace, texts: Sequence[str]) -> argparse.Namespace:
    """The options with absolute paths of files, wherever a worker was started. The `texts`, which workers do
    not read, keep their names."""

    def whole(value: object) -> object:
        if isinstance(value, list):
            return [whole(one) for one in value]
        if not isinstance(value, InputPath) or not value or value in texts:
            return value
        return InputPath(os.path.abspath(value))

    return argparse.Namespace(**{name: whole(value) for name, value in vars(args).items()})


def recorded_options(args: argparse.Namespace) -> dict[str, object]:
    """The options that results depend on, by name; of files that are written, whether there are any."""
    return {
        f"--{name.replace('_', '-')}": bool(value) if isinstance(value, OutputPath) else value
        for name, value in vars(args).items()
        if name not in FREE and not names_inputs(value)
    }


def names_inputs(value: object) -> bool:
    """Does an option name files that are read? They are recorded by their contents."""
    return isinstance(value, InputPath) or (isinstance(value, list) and any(map(names_inputs, value)))


# ---- shared job --------------------------------------------------------------------------------------------
# The options of commands whose work several processes or hosts share, through a folder
# (nmt/work/stages.py).


def add_shared_job(parser: "Container") -> None:
    """What computes, and where the job leaves its files."""
    add_executor(parser)
    parser.add_argument(
        "--work",
        type=OutputPath,
        default="",
        metavar="DIR",
        help="with several workers: a folder for the files of the job, which all of them share; OUTPUT.job "
        "unless given",
    )
    parser.add_argument("--resume", action="store_true", help="resume a job that was killed, from its folder")


def shared_folder(args: argparse.Namespace, command: str, config: ExecutorConfig) -> SharedFolder | None:
    """The folder of the job; None where this process computes alone, without one. ConfigError for a job
    without a folder."""
    if config.name == "local" and not args.work and not args.resume:
        return None
    if not args.work and args.output == "-":
        raise ConfigError("several workers share a folder: give --output FILE, or --work DIR")
    return SharedFolder(Path(args.work or f"{args.output}.job").absolute(), command, args.resume)
