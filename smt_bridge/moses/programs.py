"""Runs the programs of a Moses installation."""

import logging
import os
import shlex
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import BinaryIO, cast

from nmt.config.settings import name_in, number
from nmt.errors import ConfigError, DataError, UserError
from nmt.io import files, locks, numbers
from smt_bridge.moses import ini as moses_ini

log = logging.getLogger(__name__)

FILTER = "scripts/training/filter-model-given-input.pl"
TUNE = "scripts/training/mert-moses.pl"
LOG_LINES, LOG_BYTES = 5, 4000  # how much of the end of a log is shown


@dataclass
class Installation:
    """A built checkout of mosesdecoder, with the folders bin/ and scripts/."""

    root: Path

    def program(self, name: str) -> Path:
        """The path of a program or script, given relative to `root`. ConfigError if it does not exist."""
        path = self.root / name
        if not path.is_file():
            raise ConfigError(f"{path}: does not exist; is {self.root} a built Moses (bin/ and scripts/)?")
        return path


def find_installation(folder: str | None) -> Installation:
    """Find the installation in the given folder, or else in $MOSES_HOME. ConfigError if there is none."""
    root = folder or os.environ.get("MOSES_HOME", "")
    if not root:
        raise ConfigError(
            "no Moses: give --moses DIR, or set MOSES_HOME to the folder with bin/ and scripts/"
        )
    installation = Installation(Path(root).absolute())
    program = installation.program("bin/moses")
    if not os.access(program, os.X_OK):
        raise ConfigError(f"{program}: cannot be executed; build it, or make it so (chmod +x)")
    return installation


def run_program(
    command: Sequence[str | Path], stdin: BinaryIO | None = None, stdout: str | None = None
) -> None:
    """Run a program and wait for its end; its messages go to stderr. `stdin`: its input, none by default;
    `stdout`: path of a file for its output, by default that of this process. UserError, with the exit status,
    if it fails; ConfigError if it is not installed."""
    line = shlex.join(map(str, command))
    try:
        with open(stdout, "wb") if stdout else nullcontext() as sink:
            done = subprocess.run(
                list(map(str, command)), stdin=stdin or subprocess.DEVNULL, stdout=sink, check=False
            )
    except FileNotFoundError as error:
        raise ConfigError(f"{line}: {error.filename} is not installed; install it, or set PATH") from error
    except OSError as error:
        raise UserError(f"{line}: {error.strerror or error}") from error
    if done.returncode:
        fate = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
        program = Path(command[1] if command[0] == "perl" else command[0]).name
        raise UserError(f"{program}: failed with {fate}; its own messages are above")


def write_absolute_ini(ini: str, folder: Path) -> Path:
    """Write a copy of an ini to `folder`, with absolute paths, for Moses' scripts, which change their working
    directory. As in Moses, relative paths are resolved from the working directory. Returns the copy's path.
    DataError or ConfigError for an ini that cannot be used."""
    copy = folder / "smt-moses.ini"
    moses_ini.write(copy, moses_ini.with_absolute_paths(moses_ini.read(ini), ["."]))
    return copy


def ended_text(text: str, folder: Path) -> Path:
    """The absolute path of a text for Moses' scripts, which skip a last line without a line end: that of a
    copy in `folder` where the text has none. DataError for a text that cannot be read."""
    with files.open_bytes(text) as stream:
        lines = stream.read()
    if not lines or lines.endswith(b"\n"):
        return Path(text).absolute()
    copy = folder / "smt-moses.input"
    with files.Writing(copy) as out:
        out.write(lines + b"\n")
    return copy


def filter_model(moses: Installation, ini: str, text: str, output: str) -> Path:
    """Filter the tables for a text with Moses' own script, into the new folder `output`. Returns the path of
    the moses.ini in it. ConfigError if the folder exists already or the script is missing; UserError if it
    fails; also the errors of `write_absolute_ini`."""
    folder = Path(output).absolute()
    if folder.exists():
        raise ConfigError(f"{output}: exists, but Moses' filter script needs a new folder; name another")
    with TemporaryDirectory(prefix="smt-moses.") as temporary:
        copy = write_absolute_ini(ini, Path(temporary))
        run_program(["perl", moses.program(FILTER), folder, copy, ended_text(text, Path(temporary))])
    filtered = folder / "moses.ini"
    if not filtered.is_file():
        raise UserError(f"{filtered}: Moses' filter script ended without it; its own messages are above")
    return filtered


def compact(moses: Installation, table: str, output: str, scores: int, threads: int) -> None:
    """Compile a text table to the file `output`, whose name ends in .minphr, with Moses' own program; an
    error leaves the file as it was. `scores`: number of columns, for -nscores; without it Moses assumes 4 and
    aborts on a fifth column. ConfigError if the program is missing, UserError if it fails or the file cannot
    be written."""
    program = moses.program("bin/processPhraseTableMin")
    stem = f"{output}.part{os.getpid()}"
    part = Path(f"{stem}.minphr")
    arguments = ["-in", table, "-out", stem, "-nscores", str(scores), "-threads", str(threads)]
    try:
        with files.parent_folders(output):
            run_program([program, *arguments])
            part.replace(output)
    except OSError as error:
        raise files.cannot_write(output, error) from error
    finally:
        part.unlink(missing_ok=True)


@dataclass
class DecodeOptions:
    """Options of translating a text with Moses."""

    threads: int = 1
    n_best_list: str | None = None  # file for an n-best list with segmentation and alignment
    n_best: int = number(100, least=1, help="distinct texts of each sentence in the list")


def decode(moses: Installation, ini: str, text: str, output: str, options: DecodeOptions) -> None:
    """Translate the file `text` with Moses' decoder. Outputs are written atomically; `-` is stdout, and .gz
    compresses. DataError if the decoder does not translate every line; ConfigError if it is missing;
    UserError if it fails or an output cannot be written."""
    program = moses.program("bin/moses")
    command: list[str | Path] = [program, "-f", ini, "-threads", str(options.threads), "-v", "0"]
    output_part, nbest_part = (
        f"{name}.part{os.getpid()}" if name else None for name in (output, options.n_best_list)
    )
    if nbest_part:
        command += ["-n-best-list", nbest_part, str(options.n_best), "distinct"]
        command += ["-include-segmentation-in-n-best", "-print-alignment-info-in-n-best"]
    try:
        with ExitStack() as stack:
            for file in filter(None, (output, options.n_best_list)):
                stack.enter_context(files.parent_folders(file))
            for part in filter(None, (output_part, nbest_part)):
                stack.callback(Path(part).unlink, missing_ok=True)
            input_file = stack.enter_context(TemporaryFile())
            sent = 0
            for line in files.read_byte_lines(text):
                input_file.write(line + b"\n")  # Moses skips a last line without a line end
                sent += 1
            input_file.seek(0)
            run_program(command, cast(BinaryIO, input_file), output_part)
            answered = files.count_lines(str(output_part))
            if sent != answered:
                raise DataError(
                    f"{output}: {numbers.counted(answered, 'line')}, but {text} has {sent:,}; "
                    "the decoder did not answer every line"
                )
            for part_path, name in ((nbest_part, options.n_best_list), (output_part, output)):
                if part_path and name:
                    with files.Writing(name) as out:
                        for block in files.read_blocks(part_path):
                            out.write(block)
    except OSError as error:
        raise files.cannot_write(error.filename or output, error) from error


# Options of mert-moses.pl for each optimizer.
METHODS = {"mert": (), "kbmira": ("--batch-mira",), "pro": ("--pairwise-ranked",)}


@dataclass
class TuneOptions:
    """Options for Moses' own tuning loop."""

    method: str = name_in(METHODS, help="Moses' optimizer of the weights")
    n_best: int = number(100, least=1, help="translations of each sentence in a list")
    iterations: int = number(25, least=1, help="maximum number of iterations")
    threads: int = 1
    filter: bool = True  # cut the tables to the development set first


def tune(
    moses: Installation, ini: str, text: str, references: Sequence[str], folder: str, options: TuneOptions
) -> Path:
    """Run Moses' own tuning loop in `folder`, with fixed seeds so that it is repeatable. `text`,
    `references`: paths of the development set. Returns the path of the tuned moses.ini.

    The folder is locked while the loop runs; UserError if it is in use, or if a program fails; the end of its
    log is then copied to ours. ConfigError if a program is missing or references do not have Moses' names;
    also the errors of `write_absolute_ini`.
    """
    if options.method == "pro":
        check_megam(moses)
    reference = references[0] if len(references) == 1 else common_stem(references)
    work = Path(folder).absolute()
    with locks.locked(work, "smt-moses tune"):
        command: list[str | Path] = ["perl", moses.program(TUNE)]
        command += [ended_text(text, work), Path(reference).absolute()]
        command += [moses.program("bin/moses"), write_absolute_ini(ini, work)]
        command += ["--mertdir", moses.root / "bin", "--working-dir", work]
        command += ["--nbest", str(options.n_best), "--predictable-seeds"]
        command += [f"--decoder-flags=-threads {options.threads} -v 0"]
        command += ["--maximum-iterations", str(options.iterations), *METHODS[options.method]]
        command += [] if options.filter else ["--no-filter-phrase-table"]
        started = time.time()
        try:
            run_program(command)
        except UserError as error:
            raise UserError(f"{error}{log_failure(work, started)}") from error
        tuned = work / "moses.ini"
        if not tuned.is_file():
            raise UserError(
                f"{tuned}: Moses' tuner ended without it; its own messages are above"
                f"{log_failure(work, started)}"
            )
    return tuned


def check_megam(moses: Installation) -> None:
    """ConfigError if the optimizer of `pro` is missing, as Moses' script would try to download it."""
    path = moses.root / "bin" / "megam_i686.opt"
    if not os.access(path, os.X_OK):
        raise ConfigError(
            f"--method pro: needs the program megam as {path}, which does not exist, and Moses would try to "
            "download it; give --method kbmira, or tune the lists of another method with smt-tune-nbest "
            "--method pro"
        )


def log_failure(folder: Path, started: float) -> str:
    """Copy the end of the newest log file in `folder` to our log: Moses' script writes the errors of the
    programs that it runs there. `started`: time of the start, in seconds since the epoch; older files are
    ignored. Returns text to append to the caller's message, empty if there is no log."""
    logs = [path for ending in ("err", "log", "out") for path in folder.glob(f"*.{ending}")]
    written = [
        (path.stat().st_mtime, path)
        for path in logs
        if path.stat().st_size and path.stat().st_mtime >= started - 1
    ]
    if not written:
        return ""
    newest = max(written)[1]
    lines = newest.read_bytes()[-LOG_BYTES:].decode("utf-8", "replace").rstrip("\n").split("\n")
    for line in lines[-LOG_LINES:]:
        log.error("%s: %s", newest.name, line)
    return f", and the end of {newest}"


def common_stem(references: Sequence[str]) -> str:
    """The stem of several references for Moses' scripts: ref0 ref1 ref2 -> ref. ConfigError for others."""
    stem = references[0].removesuffix("0")
    if list(references) != [f"{stem}{number}" for number in range(len(references))]:
        raise ConfigError(
            f"{' '.join(references)}: Moses needs several references to be named {stem}0 {stem}1 ..."
        )
    return stem
