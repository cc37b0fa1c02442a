"""Aligned text in which each source word has a translation of its own, and joint models trained with it."""

import random
from pathlib import Path

from nmt.training import config_file as configuration
from nmt.training.train import run_training

WORDS = {"a": ["p"], "b": ["q"], "c": ["r"], "d": ["s", "p"], "e": ["t'"]}


def write_text(folder: Path, name: str, lines: int, seed: int) -> None:
    """name.s, name.t and name.align; now and then two words change places, or a word has no translation."""
    rng = random.Random(seed)
    rows: list[tuple[str, str, str]] = []
    for _ in range(lines):
        source = [rng.choice("abcde") for _ in range(rng.randint(1, 6))]
        order = list(range(len(source)))
        place = rng.randrange(len(source))
        order[place : place + 2] = order[place : place + 2][::-1]
        target: list[str] = []
        points: list[str] = []
        for at in order:
            if rng.random() < 0.9 or not target:
                points += [f"{at}-{len(target) + k}" for k in range(len(WORDS[source[at]]))]
                target += WORDS[source[at]]
            if rng.random() < 0.2:
                target.append("u")
        rows.append((" ".join(source), " ".join(target), " ".join(points)))
    for ending, column in zip(("s", "t", "align"), zip(*rows, strict=True), strict=True):
        (folder / f"{name}.{ending}").write_text("".join(f"{line}\n" for line in column), encoding="utf-8")


def joint_config(folder: Path, run: str, *more: str) -> list[str]:
    """Arguments of nmt-train for a joint model over the text of `folder`, which is made where it is not."""
    if not (folder / "train.s").exists():
        folder.mkdir(exist_ok=True)
        write_text(folder, "train", 200, 1)
        write_text(folder, "dev", 30, 2)
    files = [
        f"data.{name}_{side}={folder}/{name}.{side[0]}"
        for name in ("train", "dev")
        for side in ("source", "target")
    ]
    text = [
        f"data.{side}.{key}"
        for side in ("source", "target")
        for key in ("tokenize=false", "normalize=false", "case=keep")
    ]
    (folder / "joint.yaml").write_text(
        "model: {type: joint, order: 3, window: 5, embedding: 8, layers: [16, 12], init_scale: 0.3}\n"
        "training: {optimizer: adam, learning_rate: 0.01, cost: word, batch_size: 16, max_steps: 60, "
        "validate_every: 20, tensorboard: false}\nthreads: 1\nmatmul: mkl\n",
        encoding="utf-8",
    )
    alignments = [f"data.alignment={folder}/train.align", f"data.dev_alignment={folder}/dev.align"]
    return [str(folder / "joint.yaml"), f"run={folder / run}", *files, *text, *alignments, *more]


def joint_run(folder: Path, *more: str) -> Path:
    """A trained run."""
    path, *overrides = joint_config(folder, "run", *more)
    run_training(configuration.load(path, overrides))
    return folder / "run"
