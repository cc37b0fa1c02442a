"""Small neural models for tests of the decoder, trained on the target words of models.py."""

from collections.abc import Sequence
from pathlib import Path

from tests.conftest import Command

TEXT = ["p q r", "q t ' s", "r r p u", "s q", "t ' u p q r", "u u s"] * 4


def train_cslm(folder: Path, command: Command, order: int = 4, layers: Sequence[int] = (8,)) -> Path:
    """The run of a CSLM over the target words of models.py, without their escapes; r is rare enough to be
    unknown."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "text").write_text("".join(line.replace("t '", "t'") + "\n" for line in TEXT), encoding="utf-8")
    given = [
        f"run={folder}/run",
        f"data.train_text={folder}/text",
        "data.target.tokenize=false",
        "data.target.normalize=false",
        "data.target.vocabulary=6",
    ]
    (folder / "train.yaml").write_text(
        f"lm: {{type: cslm, order: {order}, embedding: 6, layers: {list(layers)}, "
        "normalizer: 0.1, init: uniform, init_scale: 0.8}\n"
        "training: {optimizer: adam, learning_rate: 0.02, cost: word, batch_size: 8, max_steps: 30, "
        "dev_beam: 0, metric: cost, tensorboard: false}\n"
    )
    done = command("nmt-train", folder / "train.yaml", *given)
    assert done.returncode == 0, done.stderr
    return folder / "run"
