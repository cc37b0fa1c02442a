"""An installation of Moses and the four of its programs that the bridge runs. The only file that starts programs of others."""

import os
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt import files
from nmt.errors import ConfigError, DataError, UserError

FILTER = "scripts/training/filter-model-given-input.pl"
TUNE = "scripts/training/mert-moses.pl"


@dataclass
class Installation:
    """A built checkout of mosesdecoder: bin/ and scripts/."""

    root: Path

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    def program(self, name: str) -> Path:
        """ConfigError when it is not there."""
        path = self.root / name
        if not path.is_file():
            raise ConfigError(f"{path}: not there; is {self.root} a Moses that was built (bin/ and scripts/)?")
        return path


def find(given: str | None) -> Installation:
    """The folder given, or the environment variable MOSES_HOME. ConfigError with advice when there is no Moses in it."""
    root = given or os.environ.get("MOSES_HOME", "")
    if not root:
        raise ConfigError("no Moses: give --moses DIR, or set MOSES_HOME to the folder with bin/ and scripts/")
    installation = Installation(Path(root).absolute())
    if not os.access(installation.program("bin/moses"), os.X_OK):
        raise ConfigError(f"{installation.bin / 'moses'}: cannot be executed")
    return installation


def run(command: Sequence[str | Path], stdin: str | None = None, stdout: str | None = None) -> None:
    """A program from start to end; its messages go to stderr. UserError with its exit status when it fails.

    `stdout` is written beside and renamed, so a decoder that dies leaves no half translation.
    """
    line = shlex.join(map(str, command))
    beside = f"{stdout}.part{os.getpid()}" if stdout else None
    try:
        source = open(stdin, "rb") if stdin else subprocess.DEVNULL
        sink = open(beside, "wb") if beside else None
        try:
            done = subprocess.run(list(map(str, command)), stdin=source, stdout=sink, check=False)
        finally:
            for stream in (source, sink):
                if hasattr(stream, "close"):
                    stream.close()  # type: ignore[union-attr]
        if done.returncode:
            fate = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
            raise UserError(f"{line}: failed with {fate}; its own messages are above")
        if beside and stdout:
            os.replace(beside, stdout)
    except FileNotFoundError as error:
        raise ConfigError(f"{line}: {error.filename} is not installed") from error
    except OSError as error:
        raise UserError(f"{line}: {error.strerror or error}") from error
    finally:
        if beside:
            Path(beside).unlink(missing_ok=True)


def filter_model(moses: Installation, ini: str, text: str, output: str) -> Path:
    """Tables cut to a text, by Moses' own script: a folder with a moses.ini of its own."""
    if Path(output).exists():
        raise ConfigError(f"{output}: exists, and Moses' filter script makes a new folder; name another")
    run(["perl", moses.program(FILTER), output, ini, text])
    made = Path(output) / "moses.ini"
    if not made.is_file():
        raise UserError(f"{made}: Moses' filter script ended without it; its own messages are above")
    return made


def compact(moses: Installation, table: str, output: str, scores: int, threads: int) -> None:
    """OUTPUT.minphr of a text table. `-nscores` has to be told: without it Moses takes 4 and aborts on a fifth column."""
    run([moses.program("bin/processPhraseTableMin"), "-in", table, "-out", output, "-nscores", str(scores), "-threads", str(threads)])


@dataclass
class DecodeOptions:
    threads: int = 1
    nbest: str | None = None  # file for an n-best list with segmentation and alignment
    size: int = 100  # of it, distinct texts


def decode(moses: Installation, ini: str, text: str, output: str, options: DecodeOptions) -> None:
    """Translate a text. DataError when the decoder did not answer every line."""
    command: list[str | Path] = [moses.program("bin/moses"), "-f", ini, "-threads", str(options.threads), "-v", "0"]
    beside = f"{options.nbest}.part{os.getpid()}" if options.nbest else None
    if beside:
        command += ["-n-best-list", beside, str(options.size), "distinct", "-include-segmentation-in-n-best", "-print-alignment-info-in-n-best"]
    try:
        run(command, text, output)
        asked, answered = sum(1 for _ in files.read_byte_lines(text)), sum(1 for _ in files.read_byte_lines(output))
        if asked != answered:
            raise DataError(f"{output}: {answered} lines, but {text} has {asked}; the decoder did not answer every line")
        if beside and options.nbest:
            os.replace(beside, options.nbest)
    finally:
        if beside:
            Path(beside).unlink(missing_ok=True)


@dataclass
class TuneOptions:
    method: str = "mert"  # mert | kbmira | pro
    nbest: int = 100
    iterations: int = 25
    threads: int = 1
    filter: bool = True  # off for compact tables


def tune(moses: Installation, ini: str, text: str, references: Sequence[str], folder: str, options: TuneOptions) -> Path:
    """Moses' own tuning loop, with seeds that make it repeatable; returns the tuned moses.ini."""
    flags = {"mert": [], "kbmira": ["--batch-mira"], "pro": ["--pairwise-ranked"]}[options.method]
    reference = references[0]
    if len(references) > 1:
        reference = common_stem(references)
    command: list[str | Path] = [
        "perl",
        moses.program(TUNE),
        Path(text).absolute(),
        Path(reference).absolute(),
        moses.program("bin/moses"),
        Path(ini).absolute(),
    ]
    command += ["--mertdir", moses.bin, "--working-dir", Path(folder).absolute(), "--nbest", str(options.nbest), "--predictable-seeds"]
    command += [f"--decoder-flags=-threads {options.threads} -v 0", "--maximum-iterations", str(options.iterations), *flags]
    run([*command, *([] if options.filter else ["--no-filter-phrase-table"])])
    made = Path(folder) / "moses.ini"
    if not made.is_file():
        raise UserError(f"{made}: Moses' tuner ended without it; its own messages are above")
    return made


def common_stem(references: Sequence[str]) -> str:
    """ref0 ref1 ref2 -> ref, the way in which Moses' scripts take several references."""
    stem = references[0].removesuffix("0")
    if list(references) != [f"{stem}{number}" for number in range(len(references))]:
        raise ConfigError(f"{' '.join(references)}: Moses wants several references named {stem}0 {stem}1 ...")
    return stem
