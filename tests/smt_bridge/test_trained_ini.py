"""The sparse features that smt-train writes: lists of frequent words, and an ini that the engine reads."""

from pathlib import Path

import pytest

from nmt.io import files
from smt_bridge import train_system
from smt_bridge.config import TrainConfig
from smt_bridge.decoder import system
from smt_bridge.moses import ini as moses_ini
from smt_bridge.trained_ini import write_frequent


def test_the_most_frequent_words_come_first(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("b a c\n\nc b é\nb ~\n", encoding="utf-8")
    for count, words in ((2, "b c"), (4, "b c a ~"), (9, "b c a ~ é")):
        write_frequent(str(tmp_path / "text"), tmp_path / "words", count)
        assert list(files.read_lines(tmp_path / "words")) == words.split()


@pytest.mark.ci
def test_a_trained_model_has_them(tmp_path: Path) -> None:
    """Also one to which pairs are added, with the tuned weights of its model."""
    files.write_text(tmp_path / "s", ["a b", "b c a", "a"] * 4)
    files.write_text(tmp_path / "t", ["x y", "y z x", "x"] * 4)
    config = TrainConfig(str(tmp_path / "s"), str(tmp_path / "t"), sparse_features=2)
    train_system.train(tmp_path / "m", config)
    loaded = system.load(str(tmp_path / "m"), use_cache=False)
    assert loaded.sparse == ["TWI", "SWD", "WT", "PL"]
    assert list(files.read_lines(tmp_path / "m" / "frequent-source.txt")) == ["a", "b"]
    ini = moses_ini.read(str(tmp_path / "m" / "moses.ini"))
    files.write_text(tmp_path / "m" / "moses.tuned.sparse-weights", ["WT_a~x 0.5"])
    tuned = moses_ini.with_weight_file(ini, "moses.tuned.sparse-weights")
    moses_ini.write(tmp_path / "m" / "moses.tuned.ini", tuned)
    added = train_system.add_config(str(tmp_path / "m"), config.source, config.target)
    train_system.train(tmp_path / "more", added)
    again = system.load(str(tmp_path / "more" / "moses.tuned.ini"), use_cache=False)
    assert again.sparse_weights == {"WT_a~x": 0.5}
    assert {path.parent for path in system.system_files(again.ini)} == {tmp_path / "more"}
