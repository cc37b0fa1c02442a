"""CONTRIBUTING.md is true: each example is executed as it stands, and used by the ordinary command."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import HANG, Command

ROOT = Path(__file__).resolve().parents[1]
SECTION = re.compile(r"^### (.+)$", re.MULTILINE)
BLOCK = re.compile(r"^```(python|sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\w+)\.py")


def sections() -> dict[str, str]:
    parts = SECTION.split((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.ci
@pytest.mark.parametrize("name", [name for name, text in sections().items() if "```" in text])
def test_an_example_works_as_it_stands(name: str, examples: Path) -> None:
    modules: list[str] = []
    printed = None
    for kind, text in BLOCK.findall(sections()[name]):
        if kind == "python":
            found = FILE.match(text)
            assert found, f"{name}: a block of Python begins with a comment that names its file"
            modules.append(found[1])
            (examples / f"{found[1]}.py").write_text(text, encoding="utf-8")
        elif kind == "sh":
            path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
            own = os.pathsep.join([str(examples), os.environ.get("PYTHONPATH", "")])
            done = subprocess.run(
                ["bash", "-e", "-c", text],
                cwd=examples,
                env={**os.environ, "PATH": path, "PYTHONPATH": own, "NMT_PLUGINS": ",".join(modules)},
                capture_output=True,
                text=True,
                timeout=HANG,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            printed = done.stdout
        else:
            assert printed == text
    assert modules and printed is not None, f"{name}: a part, and a command that uses it"


@pytest.mark.ci
def test_what_examples_work_on(examples: Path, command: Command) -> None:
    """Each is read by its command; the texts go together."""
    for source, target in (("train.en", "train.fr"), ("dev.en", "dev.fr")):
        counts = [(examples / name).read_text(encoding="utf-8").count("\n") for name in (source, target)]
        assert counts[0] == counts[1] > 10
    for line in (
        ["nmt-translate", "runs/en-fr", "-i", "dev.en", "-o", "out"],
        ["nmt-score", "runs/lm", "-i", "dev.fr"],
        ["nmt-score", "lm.arpa", "-i", "dev.fr"],
        ["smt-score-table", "table.gz", "-f", "translation=runs/en-fr", "-o", "scored.gz"],
        ["smt-decode", "model", "-i", "dev.en"],
    ):
        done = command(*line, cwd=examples)
        assert done.returncode == 0, done.stderr
