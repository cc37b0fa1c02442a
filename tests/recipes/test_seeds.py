"""The recipes of the other source documents, their dry runs."""

import os
import subprocess
from pathlib import Path

import pytest

from nmt.models.transformer import TransformerConfig
from nmt.training import config_file
from tests.conftest import BIN

ROOT = Path(__file__).resolve().parents[2]


def dry_run(folder: Path, name: str, *options: str) -> Path:
    """Runs a script on generated text; where its output is."""
    for part in ("nmt", "recipes"):
        (folder / part).symlink_to(ROOT / part)
    script = (ROOT / "recipes" / "seeds" / name).read_text(encoding="utf-8")
    (folder / "run.sh").write_text(
        script.replace('cd "$(dirname "$0")/../.."', f"cd {folder}"), encoding="utf-8"
    )
    done = subprocess.run(
        ["bash", str(folder / "run.sh"), "--quick", *options],
        capture_output=True,
        text=True,
        env={**os.environ, "NMT_DATA": "", "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "runs" / "seeds"


@pytest.mark.slow
def test_language_models_of_the_dry_run(tmp_path: Path) -> None:
    """From generated text to perplexities of all models and of their mixtures, and neighbors of words."""
    out = dry_run(tmp_path, "language_models.sh") / "lm_quick"
    rows = [line.split("\t") for line in (out / "perplexities.tsv").read_text().splitlines()[1:]]
    found = {name: float(test) for name, _, test in rows}
    single = {"word", "characters", "kn5", "ngrams", "rnn", "lstm"}
    assert found.keys() == single | {"mix", "mix_by_context"}
    assert found["mix"] <= 1.01 * min(found[name] for name in single)
    assert (out / "neighbors" / "neighbors.tsv").exists()


@pytest.mark.slow
def test_transformers_of_the_dry_run(tmp_path: Path) -> None:
    """Two seeds, the means of their checkpoints, and a comparison."""
    out = dry_run(tmp_path, "transformer.sh") / "transformer_quick"
    lines = (out / "text" / "val.tok.en").read_text(encoding="utf-8").count("\n")
    for seed in (1, 2):
        assert (out / f"val.{seed}.mean.fr").read_text(encoding="utf-8").count("\n") == lines
    assert len((out / "val" / "compare.tsv").read_text(encoding="utf-8").splitlines()) == 4


def test_the_transformer_of_the_recipe() -> None:
    """Tokens as they are, one vocabulary, enough checkpoints for the mean of ten."""
    recipe = ROOT / "recipes" / "seeds" / "transformer.yaml"
    config = config_file.load(
        str(recipe), ["run=r", "data.train_source=a.en", "data.train_target=a.fr"], preset="transformer-small"
    )
    assert isinstance(config.model, TransformerConfig) and config.model.tied == "all"
    assert config.data.shared_vocabulary and not config.data.target.tokenize
    assert config.data.source.case == config.data.target.case == "keep"
    assert config.training.keep == 10 and config.training.max_minutes == 85


@pytest.mark.slow
def test_variable_computation_of_the_dry_run(tmp_path: Path) -> None:
    """Two models, the second with as many units as the first one's operations are worth."""
    out = dry_run(tmp_path, "variable_computation.sh") / "computation_quick"
    rows = [line.split("\t") for line in (out / "computation.tsv").read_text().splitlines()[1:]]
    assert [row[0] for row in rows] == ["rnn", "vcrnn"] and rows[0][1] == rows[1][1]
    assert 0 < int(rows[0][1]) <= 48 and all(0 < float(value) < 8 for row in rows for value in row[2:])
    assert f"hidden: {rows[0][1]}\n" in (out / "rnn" / "config.yaml").read_text()
    assert (out / "vcrnn.computation" / "computation.svg").exists()


@pytest.mark.slow
def test_discourse_of_the_dry_run(tmp_path: Path) -> None:
    """A pre-trained encoder, a translator from scratch and one that starts from the encoder."""
    out = dry_run(tmp_path, "discourse.sh") / "discourse_quick"
    header, *rows = (line.split("\t") for line in (out / "discourse.tsv").read_text().splitlines())
    assert header == ["model", "update", "dev cost"] and [row[0] for row in rows] == ["scratch", "started"]
    assert rows[0][2] != rows[1][2] and all(0 < float(row[2]) < 12 for row in rows)
    assert "accuracy order 0." in (out / "pretrained" / "dev.tsv").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("model", ["output_layers", "output_layers_large"])
def test_output_layers_of_the_dry_run(model: str, tmp_path: Path) -> None:
    """Perplexities of all layers, and of those that are named."""
    options, layers = [], ["flat", "learned", "huffman", "random", "classes", "clusters", "nce"]
    if model == "output_layers_large":
        layers = ["flat", "clusters"]
        options = ["--large", *layers]
    out = dry_run(tmp_path, "output_layers.sh", *options) / f"{model}_quick"
    header, *rows = (line.split("\t") for line in (out / "perplexities.tsv").read_text().splitlines())
    assert header == ["layer", "dev", "test", "words/s in training"] and [row[0] for row in rows] == layers
    assert all(1 < float(value) < 400 for row in rows for value in row[1:3])
    uses = {"output_layers": "type: cslm", "output_layers_large": "type: recurrent"}[model]
    assert uses in (out / "flat" / "config.yaml").read_text()
