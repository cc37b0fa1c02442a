"""KenLM's own estimator, where it is installed. It works on disk, so text may be larger than memory."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from nmt import files, folders
from nmt.errors import ConfigError, UserError
from nmt.ngram.kneser_ney import FALLBACK, KneserNeyConfig


def find() -> str | None:
    """The program on the PATH, None where there is none."""
    return shutil.which("lmplz")


def arguments(program: str, config: KneserNeyConfig, memory: float, folder: str) -> list[str]:
    """The command line for the same model. `memory`: bytes; `folder`: for temporary files."""
    found = [
        program,
        "--order",
        str(config.order),
        "--memory",
        f"{int(memory / 1e6)}M",
        "--temp_prefix",
        f"{folder}/",
        "--prune",
        *map(str, config.prune),
    ]
    found += ["--interpolate_unigrams", str(int(config.interpolate_unigrams))]
    if config.discount_fallback:
        found += [
            "--discount_fallback",
            *([] if config.discount_fallback == FALLBACK else map(str, config.discount_fallback)),
        ]
    return found + (["--skip_symbols"] if config.skip_symbols else [])


def estimate(text: str, output: str, config: KneserNeyConfig, memory: float) -> None:
    """Write the ARPA file. ConfigError where lmplz is not installed, UserError with its last line where it
    fails."""
    program = find()
    if not program:
        raise ConfigError(
            "--estimator lmplz: there is no lmplz on the PATH; install KenLM, or use --estimator own"
        )
    beside = None if output == "-" else Path(output).resolve().parent
    with folders.parents(output), tempfile.TemporaryDirectory(dir=beside) as folder:
        plain, arpa = f"{folder}/text", f"{folder}/lm.arpa"
        with files.Writing(plain) as out:
            out.write_lines(files.read_lines(text))
        done = subprocess.run(
            [*arguments(program, config, memory, folder), "--text", plain, "--arpa", arpa],
            capture_output=True,
            check=False,
        )
        if done.returncode:
            last = [line for line in done.stderr.decode(errors="replace").split("\n") if line.strip()]
            raise UserError(f"lmplz failed: {last[-1].strip() if last else f'exit status {done.returncode}'}")
        with files.Writing(output) as out:
            out.write_lines(files.read_lines(arpa))
