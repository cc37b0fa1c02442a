"""The parser of every command, the options that commands share, and how commands are run: exit status,
messages, progress."""

import argparse
import difflib
import gc
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from nmt import __version__, plugins
from nmt.cli import messages
from nmt.cli.arguments import InputPath, OutputPath, check_separate, checkpoint, list_files, names_file
from nmt.cli.arguments import positive as positive
from nmt.compute.resources import TOO_MANY_THREADS, bounded_threads
from nmt.errors import ConfigError, UserError, one_line, ran_out_of_memory
from nmt.io import files, signals
from nmt.io.progress import Progress, Total
from nmt.runs.directory import back_ends_file, is_exported
from nmt.text.sentences import MAX_LINE_WORDS

if TYPE_CHECKING:
    from torch import nn

    from nmt.cli.arguments import Container
    from nmt.compute.precision import Reduced


# ---- parser ------------------------------------------------------------------------------------------------


CHOICE = re.compile(r"invalid choice: '?(.*?)'? \(choose from (.*)\)")
OPTION = re.compile(r"--\w[\w-]*")


class Help(argparse.ArgumentDefaultsHelpFormatter):
    """Shows the default of an option unless it is empty or the help text already states it."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        default = action.default
        if action.required or default is None or default is False or default in ("", [], ()):
            return action.help
        if isinstance(default, list | tuple):
            return f"{action.help} (default: {' '.join(map(str, default))})"
        return action.help if "default:" in str(action.help) else super()._get_help_string(action)


class PrintCompletion(argparse.Action):
    """--print-completion SHELL: print the shell script that completes options and file names."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> NoReturn:
        import shtab

        for action in all_actions(parser):
            if names_file(action):
                action.complete = shtab.FILE  # type: ignore[attr-defined]  # read by shtab
        print(shtab.complete(parser, shell=str(values)))
        parser.exit()


class Parser(argparse.ArgumentParser):
    """Reports errors in one line that suggests a correction, reads `--beam_size` as `--beam-size`, and
    refuses outputs that would overwrite an input or each other."""

    completes = True

    def __init__(self, command: str, description: str, epilog: str | None = None) -> None:
        super().__init__(prog=command, description=description, epilog=epilog, formatter_class=Help)
        # Returns the (option, path) pairs of outputs whose names the command derives from other options.
        self.derived: Callable[[argparse.Namespace], list[tuple[str, str]]] = lambda args: []
        self.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
        if self.completes:
            self.add_argument(
                "--print-completion",
                action=PrintCompletion,
                choices=("bash", "zsh", "tcsh"),
                default=argparse.SUPPRESS,
                help="print the completion script for a shell and exit",
            )

    def error(self, message: str) -> NoReturn:
        if match := CHOICE.search(message):
            message += did_you_mean(match[1], re.findall(r"[^\s',]+", match[2]))
        self.exit(2, f"{self.prog}: {one_line(message)}; see {self.prog} --help\n")

    def parse_known_args(  # type: ignore[override]  # parse_args calls it too
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        return self.checked(super().parse_known_args, args, namespace)

    def parse_known_intermixed_args(  # type: ignore[override]  # it calls parse_known_args until Python 3.11
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        return self.checked(super().parse_known_intermixed_args, args, namespace)

    def checked(
        self,
        parse: Callable[..., tuple[argparse.Namespace, list[str]]],
        args: Sequence[str] | None,
        namespace: argparse.Namespace | None,
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse with argparse's `parse`: names of options may have underscores, one that does not exist is
        named with a similar one, threads are bounded, and no output may be an input."""
        raw_args = list(sys.argv[1:] if args is None else args)
        end = raw_args.index("--") if "--" in raw_args else len(raw_args)
        own = min(end, self.action_index(raw_args))
        words = [*map(with_dashes, raw_args[:own]), *raw_args[own:]]
        self.check_names(words[:own])
        parsed, rest = parse(words, namespace)
        names = {
            action.dest: action.option_strings[0]
            if action.option_strings
            else str(action.metavar or action.dest)
            for action in self._actions
        }
        for name in ("threads", "workers"):
            count = getattr(parsed, name, None)
            if count and (allowed := bounded_threads(count)) < count:
                messages.print_to_stderr(
                    f"{self.prog}: {names[name]} {TOO_MANY_THREADS.format(count, allowed)}"
                )
                setattr(parsed, name, allowed)
        outputs = list_files(parsed, names, OutputPath) + self.derived(parsed)
        if getattr(parsed, "document", None):  # it takes the place of --input, which is stdin by default
            names.pop("input", None)
        check_separate(list_files(parsed, names, InputPath), outputs)
        return parsed, rest

    def action_index(self, words: Sequence[str]) -> int:
        """The index of the action's name; the words after it are for the action's own parser. The number of
        words for a command without actions."""
        if not any(isinstance(action, argparse._SubParsersAction) for action in self._actions):
            return len(words)
        return next((index for index, word in enumerate(words) if not word.startswith("-")), len(words))

    def check_names(self, words: Iterable[str]) -> None:
        """Report the first option that does not exist, and exit, before argparse reports missing ones."""
        option_strings = [name for action in self._actions for name in action.option_strings]
        for word in words:
            name = word.partition("=")[0]
            if OPTION.fullmatch(name) and not any(option.startswith(name) for option in option_strings):
                self.error(f"unrecognized arguments: {word}{did_you_mean(name, option_strings)}")


class ActionParser(Parser):
    """The parser of an action (sub-command); argparse constructs it with its full name."""

    completes = False  # the completion script of the command covers its actions

    def __init__(self, prog: str, description: str = "") -> None:
        super().__init__(prog, description)


def with_dashes(word: str) -> str:
    if not word.startswith("--"):
        return word
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value


def did_you_mean(word: str, candidates: Sequence[str]) -> str:
    """The suggestion at the end of a message about an unknown word; empty if no candidate is similar."""
    close = difflib.get_close_matches(word, candidates, 1, 0.7)
    return f"; did you mean {close[0]}?" if close else ""


def all_actions(parser: argparse.ArgumentParser) -> Iterable[argparse.Action]:
    """All options and arguments, including those of sub-commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for child in dict.fromkeys(action.choices.values()):
                yield from all_actions(child)


# ---- options -----------------------------------------------------------------------------------------------


def add_input_output(parser: "Container", what: str = "text") -> None:
    add_input(parser, f"{what} to read; plain, gzip, or - for stdin")
    add_output(parser)


def add_input(parser: "Container", help: str) -> None:
    parser.add_argument("--input", "-i", type=InputPath, default="-", metavar="FILE", help=help)


def add_output(parser: "Container") -> None:
    parser.add_argument(
        "--output",
        "-o",
        type=OutputPath,
        default="-",
        metavar="FILE",
        help="written completely or not at all; .gz compresses; - is stdout",
    )


def add_required_output(parser: "Container", metavar: str, help: str) -> None:
    parser.add_argument("--output", "-o", type=OutputPath, required=True, metavar=metavar, help=help)


def add_quiet(parser: "Container") -> None:
    """Add the options --quiet and --log."""
    parser.add_argument("--quiet", "-q", action="store_true", help="only warnings and errors on stderr")
    parser.add_argument(
        "--log",
        type=OutputPath,
        metavar="FILE",
        help="append all messages to FILE with their times, including those that --quiet hides, details of "
        "how torch computes, and progress once a minute",
    )


def add_model(parser: "Container") -> None:
    """Add the argument RUN_DIR, and the options for computing with it."""
    parser.add_argument("run", type=InputPath, metavar="RUN_DIR", help="a run directory made by nmt-train")
    add_compute(parser)


def add_checkpoint(parser: "Container") -> None:
    parser.add_argument(
        "--checkpoint",
        type=checkpoint,
        default="best",
        metavar="STEP",
        help="best, last or the number of an update",
    )


def add_compute(parser: "Container", threads: str = "default: chosen by torch") -> None:
    add_checkpoint(parser)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1 ..., auto (a GPU if there is one)")
    add_processor(parser, threads)


def add_processor(
    parser: "Container", threads: str = "default: chosen by torch", matmul: str = "auto"
) -> None:
    """Add --threads and --matmul. `threads`: end of the help text of --threads; `matmul`: its default."""
    parser.add_argument("--threads", type=positive, help=f"CPU threads; {threads}")
    parser.add_argument(
        "--matmul",
        choices=("auto", "mkl", "onednn"),
        default=matmul,
        help="library for matrix products on the CPU; auto measures which is faster",
    )


def add_language_model(parser: "Container") -> None:
    """Add the argument for a language model of any kind, and the options for neural ones."""
    parser.add_argument(
        "model",
        type=InputPath,
        metavar="RUN_DIR|ARPA|BINARY",
        help="run directory of a language model, ARPA file (also .gz), folder of nmt-ngram compile, KenLM "
        "binary, or mixture written by nmt-interpolate",
    )
    add_compute(parser)
    add_network_scores(parser)


def add_network_scores(parser: "Container") -> None:
    parser.add_argument(
        "--backoff",
        type=InputPath,
        default="",
        metavar="ARPA",
        help="divide a neural model's p(UNK) among unknown words in the proportions of this n-gram model",
    )
    parser.add_argument(
        "--assume-normalized",
        action="store_true",
        help="assume log Z = 0: faster; only for a CSLM trained with lm.normalizer",
    )


def add_max_line_words(parser: "Container", what: str, default: str = "") -> None:
    """Add --max-line-words. `what`: what happens to longer lines; `default`: what follows the default."""
    parser.add_argument(
        "--max-line-words",
        type=positive,
        metavar="N",
        help=f"longer lines {what}; default: {MAX_LINE_WORDS}{default}",
    )


def flags(names: Sequence[str]) -> str:
    """Format the names of options as they are typed: n_best, mbr -> --n-best, --mbr"""
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def refuse_alone(
    parser: argparse.ArgumentParser, args: argparse.Namespace, names: Sequence[str], partner: str
) -> None:
    """ConfigError for an option of `names` with another value than its default. `partner`: the option that
    these need, which was not given."""
    if useless := [name for name in names if getattr(args, name) != parser.get_default(name)]:
        raise ConfigError(f"{flags(useless[:1])} goes with {partner}; give that, too, or leave it out")


def add_split_sentences(parser: "Container", refused: str) -> None:
    """Add --split-sentences. `refused`: the options that exclude it."""
    parser.add_argument(
        "--split-sentences",
        action="store_true",
        help="translate each sentence of a raw line by itself and join the translations into one line, with "
        f"the same spacing; not with {refused}",
    )


def add_precision(parser: "Container") -> None:
    parser.add_argument(
        "--precision",
        choices=("fp32", "bf16", "int8"),
        default="fp32",
        help="precision of matrix products; bf16 and int8 change results, and are faster for wide models "
        "(a message says if this one is not)",
    )


def precision_contexts(precision: str, models: "Sequence[nn.Module]", device: str) -> "list[Reduced]":
    """Return the contexts in which the matrix products of `models` are computed with a lower precision; an
    empty list for fp32. ConfigError if the processor does not support bf16, and for int8 on a GPU."""
    if precision == "fp32":
        return []
    from nmt.compute.device import resolve_device
    from nmt.compute.precision import Reduced, check_precision

    if precision == "bf16":
        check_precision(precision, device)
    elif resolve_device(device) != "cpu":
        raise ConfigError("--precision int8: computes on the CPU only; use bf16, or --device cpu")
    return [Reduced(precision, model) for model in models]


def enter_all(contexts: Sequence[AbstractContextManager[object]]) -> ExitStack:
    """Enter several contexts at once: `with enter_all(contexts):`"""
    stack = ExitStack()
    for context in contexts:
        stack.enter_context(context)
    return stack


def refuse_exported(args: argparse.Namespace, runs: Sequence[str], names: Sequence[str]) -> None:
    """ConfigError if one of `runs` (paths) was exported to CTranslate2 and one of the options `names`
    (attributes of `args`), --precision or --matmul is set.
    """
    exported = next((path for path in runs if is_exported(path)), None)
    if exported is None:
        return
    defaults = {"precision": "fp32", "matmul": "auto"}
    wrong = [
        name for name in (*names, *defaults) if getattr(args, name) not in (None, "", defaults.get(name))
    ]
    if wrong:
        hint = "; nmt-export --quantization chooses the precision" if wrong[0] == "precision" else ""
        raise ConfigError(
            f"{exported}: {flags(wrong[:1])} cannot be combined with a run exported to CTranslate2; use the "
            f"run itself{hint}"
        )


Command = Callable[[Sequence[str] | None], None]
NO_TORCH = (
    "torch is not installed; without an NVIDIA GPU: pip install --index-url "
    "https://download.pytorch.org/whl/cpu torch; see Install in the README"
)
OUT_OF_MEMORY = "out of memory; use a smaller batch or model"


def run(command: Command, argv: Sequence[str] | None) -> int:
    """Call a command and return its exit status: 0; 2, with one line on stderr, for an error that a user can
    cause; 130 for an interrupt; 141 if the reader of stdout has exited. Other errors are raised.

    `argv`: None for the arguments of this process, whose streams and signals are then set up, too.
    """
    name = os.path.basename(sys.argv[0]) if argv is None else command.__module__.rpartition(".")[2]
    if argv is None:
        messages.set_up_streams()
        signals.listen(signals.leave)
    try:
        call_and_flush(command, argv)
        return 0
    except BrokenPipeError:  # the reader of our output has exited, e.g. `| head`
        messages.drop_stdout()
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        messages.error(name, "interrupted")
        return 128 + signal.SIGINT
    except Exception as error:
        if not (message := error_message(error) or error_message(plugins.explained(error))):
            raise
        messages.error(name, one_line(message))
        if isinstance(error, UserError | OSError):
            messages.drop_stdout()
        return 2
    finally:
        messages.stop()
        if argv is None:
            gc.freeze()  # skips the garbage collection at exit, which takes half a second


def error_message(error: Exception) -> str:
    """The line that reports an error to the user; empty for an error that is a bug."""
    if isinstance(error, OSError):
        return f"{error.filename or '<stdout>'}: {error.strerror or error}"
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return NO_TORCH if error.name == "torch" else ""
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return "the system starts no more threads; see ulimit -u, or stop other programs"
    return OUT_OF_MEMORY if ran_out_of_memory(error) else ""


def call_and_flush(command: Command, argv: Sequence[str] | None) -> None:
    """Import the plugins, run a command, and flush what it printed, even if it was only --help. ConfigError
    for a broken plugin, UserError if stdout cannot be written."""
    try:
        if plugins.plugin_names():
            plugins.load()
        command(argv)
    except SystemExit:
        messages.flush_stdout()
        raise
    messages.flush_stdout()


def parse(parser: Parser, argv: Sequence[str] | None, times: bool = False) -> argparse.Namespace:
    """Parse the options of a command (None: of this process), and set up its messages, see `start_log`."""
    args = parser.parse_args(argv)
    start_log(parser.prog, args, times)
    return args


def start_log(command: str, args: argparse.Namespace, times: bool = False) -> None:
    """Set up messages on stderr and in the log file, as the options of `add_quiet` say. `times`: begin lines
    on stderr with the time instead of the command's name."""
    settings = vars(args)
    messages.start(command, settings.get("quiet", False), settings.get("log"), times)


def shows_bar(args: argparse.Namespace) -> bool:
    """Whether to show a progress bar: stderr is a terminal, and the results do not go to a terminal, too."""
    results = any(isinstance(value, OutputPath) and value == "-" for value in vars(args).values())
    return not args.quiet and sys.stderr.isatty() and not (results and sys.stdout.isatty())


def progress(
    args: argparse.Namespace, unit: str, total: Total | None, opening: str = "", title: str = ""
) -> Progress:
    """Create the progress report of a command, with a bar if `shows_bar`.

    `unit`: what is counted, such as lines; `total`: their number (0: unknown), or a function that computes
    it; `opening`, `title`: the first message and the title of the bar, see `Progress`.
    """
    return Progress(total, unit, shows_bar(args), title, opening)


def line_progress(args: argparse.Namespace, *paths: str, unit: str = "lines", title: str = "") -> Progress:
    """Create the progress report for reading the lines of one or more texts."""
    return progress(args, unit, partial(files.number_of_lines, *paths), title=title)


def set_up_torch(device: str, threads: int | None, matmul: str, run: str | None = None) -> str:
    """Import torch, check the device, choose threads and matrix back end; returns a line for the log.

    `threads`: None for torch's own choice; `matmul`: auto, mkl or onednn; `run`: a run directory, whose
    choice of back end for this processor is reused. ConfigError for an unusable device or back end."""
    from nmt.compute import device as devices

    return devices.set_up_device(device, threads, matmul, back_ends_file(run) if run else None)
