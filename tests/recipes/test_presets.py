"""The recipe that tries variants of a preset: what it would run, and a run of it on the grammar."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.cli import average, train, translate
from nmt.training import config_file

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "recipes" / "presets" / "run.py"
PARSERS = {"nmt-average": average.parser, "nmt-translate": translate.parser}


def recipe(*options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, options)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        check=False,
    )


@pytest.mark.ci
def test_dry_run(tmp_path: Path) -> None:
    """Every variant is a configuration that is accepted, and every command one that can be parsed."""
    done = recipe("--dry-run", "--out", tmp_path)
    commands = [line.split() for line in done.stdout.split("\n")[:-1]]
    assert done.returncode == 0 and len(commands) == 3 * 4 * 11, done.stderr
    for name, *given in commands:
        if name != "nmt-train":
            PARSERS[name]().parse_args(given)
            continue
        args = train.parser().parse_intermixed_args(given)
        config = config_file.load(args.config, args.overrides, args.preset)
        assert config.training.max_epochs == 6 and config.threads == 1
        assert Path(config.run).name.startswith(("multi30k-", "tatoeba-", "generated-"))
    done = recipe("--variants", "lineer", "--out", tmp_path)
    assert done.returncode == 2 and "lineer: not in" in done.stderr


@pytest.mark.slow
def test_a_small_run_is_resumed(tmp_path: Path) -> None:
    """Two variants of tiny models on the grammar; what is finished is not done again."""
    variants = tmp_path / "variants"
    sizes = "model.embedding=8 model.hidden=8 model.encoder_hidden=8 model.attention=8 model.maxout=8"
    variants.write_text(f"base {sizes}\nlinear {sizes} training.schedule=linear\n")
    given = ["--directions", "generated:fr-en", "--variant-file", variants, "--size", 200, "--epochs", 2]
    done = recipe(*given, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in (tmp_path / "out/table.tsv").read_text().split("\n")[:-1]]
    assert [row[:2] for row in rows[1:]] == [["generated:fr-en", "base"], ["generated:fr-en", "linear"]]
    assert all(0 <= float(value) <= 100 for row in rows[1:] for value in row[2:5])
    run = tmp_path / "out/generated-fr-en.base"
    before = (run / "training.pt").stat().st_mtime_ns
    again = recipe(*given, "--out", tmp_path / "out")
    assert again.stdout == done.stdout and (run / "training.pt").stat().st_mtime_ns == before
