"""The recipe of the other source documents, its dry run."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_language_models_of_the_dry_run(tmp_path: Path) -> None:
    """From generated text to perplexities of all models and of their mixtures, and neighbors of words."""
    for name in ("nmt", "recipes"):
        (tmp_path / name).symlink_to(ROOT / name)
    script = (ROOT / "recipes" / "seeds" / "language_models.sh").read_text(encoding="utf-8")
    (tmp_path / "run.sh").write_text(
        script.replace('cd "$(dirname "$0")/../.."', f"cd {tmp_path}"), encoding="utf-8"
    )
    environment = {**os.environ, "NMT_DATA": ""}
    done = subprocess.run(
        ["bash", str(tmp_path / "run.sh"), "--quick"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    out = tmp_path / "runs" / "seeds" / "lm_quick"
    rows = [line.split("\t") for line in (out / "perplexities.tsv").read_text().splitlines()[1:]]
    found = {name: float(test) for name, _, test in rows}
    single = {"word", "characters", "kn5", "ngrams", "rnn", "lstm"}
    assert found.keys() == single | {"mix", "mix_by_context"}
    assert found["mix"] <= 1.01 * min(found[name] for name in single)
    assert (out / "neighbors" / "neighbors.tsv").exists()
