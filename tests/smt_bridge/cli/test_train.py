"""smt-train: the folder that the library makes, from options; what cannot be read is told first."""

from pathlib import Path

import pytest

from smt_bridge import train_system
from smt_bridge.cli.train import main
from smt_bridge.config import TrainConfig
from smt_bridge.extraction.config import ExtractConfig
from tests.conftest import refusal
from tests.smt_bridge.extraction.test_tables import write


def test_it_makes_what_the_library_makes(tmp_path: Path) -> None:
    """With settings other than the defaults, from points of another tool."""
    corpus = [(["a", "b"], ["x", "y"], [(0, 0), (1, 1)]), (["b"], ["y"], [(0, 0)])] * 3
    inputs = write(corpus, tmp_path)
    (tmp_path / "lm").write_text("x y y\ny x\n" * 3)
    config = TrainConfig(
        inputs.source, inputs.target, inputs.alignment, str(tmp_path / "lm"), order=2, reordering=False,
        distortion_limit=3, extract=ExtractConfig(max_length=2), osm=2,
    )  # fmt: skip
    train_system.train(tmp_path / "made", config)
    given = ["-s", inputs.source, "-t", inputs.target, "-a", inputs.alignment, "-q", "--no-reordering"]
    given += ["--lm-text", f"{tmp_path}/lm", "--order", "2", "--distortion-limit", "3", "--max-length", "2"]
    given += ["--osm", "2"]
    assert main([f"{tmp_path}/own", *given]) == 0
    made, own = (
        {
            name: (tmp_path / folder / name).read_bytes()
            for name in (*train_system.RESULTS, train_system.OPERATIONS, train_system.OSM)
            if (tmp_path / folder / name).exists()
        }
        for folder in ("made", "own")
    )
    assert made == own and set(train_system.RESULTS) - set(made) == {train_system.REORDERING}


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("-s", "-", "the texts are read more than once; give files, not -"),
        ("-s", "bar", "bar:1: '|' in 'a|b': Moses' tables cannot hold it"),
        ("-a", "none", "none"),
        ("-a", "long", "s: 1 line, but long has 2"),
        ("-a", "outside", "outside:1: point 1-0 is outside the sentence pair"),
        ("--lm-text", "none", "none"),
        ("--order", "0", "argument --order"),
        ("--quantize-lm", "8", "--quantize-lm: goes with --compile"),
        ("--method", "hmm", "--method: --alignment has the links"),
        ("--symmetrization", "union", "--symmetrization: --alignment has the links"),
        ("--quantize", "7", "argument --quantize"),
        ("--symmetrization", "shrink", "argument --symmetrization"),
        ("--distortion-limit", "-2", "argument --distortion-limit"),
        ("--osm", "11", "argument --osm"),
    ],
)
def test_refused_before_a_folder_is_made(
    option: str,
    value: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    inputs = write([(["a"], ["x"], [(0, 0)])], tmp_path)
    (tmp_path / "bar").write_text("a|b\n")
    (tmp_path / "outside").write_text("1-0\n")
    (tmp_path / "long").write_text("0-0\n\n")
    given = {"-s": inputs.source, "-t": inputs.target, "-a": inputs.alignment, option: value}
    words = [word for pair in given.items() for word in pair]
    assert message in refusal(main, capsys, tmp_path / "model", *words)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("option", ["--osm-classes", "--sparse-features"])
def test_added_pairs_get_the_settings_of_their_model(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["new", "-s", "a", "-t", "b", "--add", "trained", option, "5"]
    assert f"{option}: --add keeps the settings of trained" in refusal(main, capsys, *given)
