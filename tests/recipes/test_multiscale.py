"""The multi-scale recipe on our own text, cut short."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_recipe_runs_on_generated_text(tmp_path: Path) -> None:
    """From nothing to bits a character, dictionary, samples, arcs and curves; the multi-scale model is ahead
    after 60 updates."""
    for name in ("nmt", "recipes"):
        (tmp_path / name).symlink_to(ROOT / name)
    script = (ROOT / "recipes" / "multiscale_ptb" / "run.sh").read_text(encoding="utf-8")
    (tmp_path / "run.sh").write_text(
        script.replace('cd "$(dirname "$0")/../.."', f"cd {tmp_path}"), encoding="utf-8"
    )
    line = [
        "bash",
        str(tmp_path / "run.sh"),
        "generated",
        "training.max_steps=60",
        "training.validate_every=60",
        "training.max_minutes=0",
        "threads=1",
    ]
    done = subprocess.run(
        line, capture_output=True, text=True, env={**os.environ, "NMT_DATA": ""}, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = dict(row.split("\t") for row in done.stdout.split("\n") if "bits a character" in row)
    bits = {name: float(text.split()[0]) for name, text in rows.items()}
    assert 0.5 < bits["multiscale"] < bits["recurrent"] < 5.5
    out = tmp_path / "runs" / "multiscale_generated"
    assert len((out / "dictionary.tsv").read_text(encoding="utf-8").split("\n")) > 900
    assert (out / "samples.txt").read_text(encoding="utf-8").count("\n") == 10 and "·" in (
        out / "samples.txt"
    ).read_text(encoding="utf-8")
    symbols, arcs, mean = (out / "arcs.tsv").read_text(encoding="utf-8").split("\n")[1].split("\t")
    assert (
        int(symbols) < int(arcs)
        and 1 < float(mean) < 10
        and (out / "analysis" / "curves.png").stat().st_size > 5000
    )
