"""Small hybrid systems for tests: one over letters, with a model of tests/smt_bridge/decoder/models.py, and
one that is trained on a few pairs of sentences."""

import shutil
from dataclasses import replace
from pathlib import Path

from nmt.text import truecase
from nmt.text.pipeline import SideConfig
from smt_bridge import train_system
from smt_bridge.config import TrainConfig
from smt_bridge.hybrid import folder as folders
from smt_bridge.hybrid.folder import HybridConfig
from smt_bridge.hybrid.side import TextSide
from tests.smt_bridge.decoder.models import write_model

PAIRS = [
    ("The house is big.", "La maison est grande."),
    ("The house isn't small.", "La maison n'est pas petite."),
    ("I see the house.", "Je vois la maison."),
    ("I see the man.", "Je vois l'homme."),
    ("The man is small.", "L'homme est petit."),
    ("The man's house is big.", "La maison de l'homme est grande."),
    ("Paris is big.", "Paris est grand."),
    ("I see Paris in the house.", "Je vois Paris dans la maison."),
    ("The man is in the house.", "L'homme est dans la maison."),
    ("I see the big house in Paris!", "Je vois la grande maison à Paris !"),
    ("I see www.house.org!", "Je vois www.maison.org !"),
] * 3


def letters(folder: Path, seed: int = 1, case: str = "keep") -> Path:
    """A system whose words are letters."""
    write_model(folder, seed)
    one, other = (SideConfig(language=name, case=case) for name in ("en", "fr"))
    folders.write_system(folder, HybridConfig(one, other))
    return folder


def train(folder: Path, case: str = "truecase") -> Path:
    """Train a system on PAIRS in the way of smt-build."""
    build = folder / "build"
    build.mkdir(parents=True)
    texts = {}
    for name, language, number in (("source", "en", 0), ("target", "fr", 1)):
        config = SideConfig(language=language, case=case)
        side, lines = TextSide(config), [pair[number] for pair in PAIRS]
        if case == "truecase":
            truecaser = truecase.learn(side.split(line) for line in lines)
            truecase.save(truecaser, folder / f"truecase.{name}")
            side = TextSide(config, truecaser)
        text = "".join(" ".join(side.words(line)) + "\n" for line in lines)
        (build / f"train.{name}").write_text(text, encoding="utf-8")
        texts[name] = config
    train_system.train(
        build / "model",
        TrainConfig(source=str(build / "train.source"), target=str(build / "train.target"), order=3),
    )
    for name in ("moses.ini", train_system.TABLE, train_system.REORDERING, train_system.LM):
        shutil.copy(build / "model" / name, folder / name)
    folders.write_system(folder, HybridConfig(texts["source"], texts["target"]))
    return folder


def add_student(system: Path) -> Path:
    """Add the translator of tests/models to a system as its student, although it has learned from others."""
    shutil.copytree(Path(__file__).parents[2] / "models" / "translator", system / folders.FAST)
    config = folders.read(system).config
    folders.write_system(system, replace(config, fast=folders.FAST))
    return system
