"""What an ini names, found, loaded and weighted."""

from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError, UserError
from smt_bridge.decoder import system
from smt_bridge.decoder import system as systems
from smt_bridge.decoder.cache import Cache
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.system import feature_names, score_names
from smt_bridge.moses import ini as moses_ini
from tests.smt_bridge.decoder.models import decoder, edit, write_model

# ---- test system -------------------------------------------------------------------------------------------


def test_weights_of_nothing(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 0))
    with pytest.raises(UserError, match="weights of 'LM7', but the model has no such feature"):
        Decoder(made.system, DecoderConfig(), {**made.weights, "LM7": [1.0]})


def test_a_folder_or_its_ini(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model", 0)
    assert system.ini_of(str(folder)) == system.ini_of(str(folder / "moses.ini")) == str(folder / "moses.ini")
    with pytest.raises(DataError, match=r"no moses\.ini in this folder"):
        system.ini_of(str(tmp_path))


def test_files_from_here_then_beside_the_ini(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compressed ones too; a file that is nowhere is told with the line that names it."""
    folder, here = write_model(tmp_path / "model", 0), tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    ini = moses_ini.read(str(folder / "moses.ini"))
    line = ini.feature("TranslationModel0")
    assert system.feature_path(ini, line) == str(folder / "table")
    (here / "table.gz").write_bytes(b"")
    assert Path(system.feature_path(ini, line)).resolve() == here / "table.gz"
    (here / "table.gz").unlink()
    (folder / "table").unlink()
    with pytest.raises(DataError, match=rf"moses.ini:{line.row + 1}: table is there neither from here"):
        system.feature_path(ini, line)


def test_files_of_a_system(tmp_path: Path) -> None:
    ini = moses_ini.read(str(write_model(tmp_path, 1) / "moses.ini"))
    assert {path.name for path in system.files_of(ini)} == {"moses.ini", "table", "reordering", "lm0"}


def test_weights_of_all_scores_or_of_the_printed_ones(tmp_path: Path) -> None:
    edit(write_model(tmp_path, 1), ("path=table", "path=table tuneable-components=1,0,1,0"))
    made = system.load(str(tmp_path), use_cache=False)
    printed, before = made.tuneable_weights(), made.weights["TranslationModel0"]
    assert printed["TranslationModel0"] == before[::2] and list(printed) == list(made.sizes)
    assert {name: len(values) for name, values in printed.items()} == made.sizes
    assert made.with_weights(printed) == made.with_weights(made.weights) == made.weights
    more = {**printed, "TranslationModel0": [7.0, 8.0]}
    assert made.with_weights(more)["TranslationModel0"] == [7.0, before[1], 8.0, before[3]]
    with pytest.raises(ConfigError, match="TranslationModel0 has 4 scores, but 3 weights"):
        made.with_weights({**printed, "TranslationModel0": [1.0] * 3})
    del more["Distortion0"]
    with pytest.raises(ConfigError, match="no weights for Distortion0, which has 1 scores"):
        made.with_weights(more)


def test_a_feature_that_is_not_there(tmp_path: Path) -> None:
    """No name and no weight; without a language model a silent one."""
    made = system.load(str(write_model(tmp_path, 1, lms=0, reordering=False)), use_cache=False)
    assert made.name("Distortion") == "Distortion0" and made.weight("Distortion", made.weights) == 0.2
    assert made.name("KENLM") == "" and made.weight("KENLM", made.weights) == 0.0
    (lm,) = made.word_lms
    assert not made.lms and lm.sentence([lm.number("p")]) == 0.0
    assert made.reordering_name == "" and made.default_reordering == [0.0] * 6


def test_scores_that_the_ini_does_not_count(tmp_path: Path) -> None:
    """Also where the table comes from the cache, which knows nothing of the ini."""
    folder, store = write_model(tmp_path / "model", 1), Cache(tmp_path / "cache")
    system.load(str(folder), store)
    weights = next(
        row for row in (folder / "moses.ini").read_text().split("\n") if row.startswith("TranslationModel0=")
    )
    edit(
        folder,
        ("num-features=4 path", "num-features=5 path"),
        (weights, f"{weights} 0.1"),
    )
    for cache in (False, store):
        with pytest.raises(DataError, match="num-features=5"):
            system.load(str(folder), cache)


# ---- test feature names ------------------------------------------------------------------------------------
# The features of a system in words.


MODEL = Path(__file__).resolve().parents[2] / "models" / "phrase-based"


def test_each_printed_score_has_its_weight() -> None:
    system = systems.load(str(MODEL), False)
    rows = feature_names(system)
    assert {one.name: len(one.weights) for one in rows} == system.sizes
    assert all(one.what for one in rows)
    assert all(len(one.scores) in (0, len(one.weights)) for one in rows)


def test_columns_beyond_those_of_moses_are_numbered() -> None:
    assert score_names("PhraseDictionaryMemory", 6)[4:] == ["column 5", "column 6"]
    assert score_names("PhraseDictionaryMemory", 2) == [] and len(score_names("LexicalReordering", 6)) == 6
    assert score_names("LexicalReordering", 3) == [] and score_names("Mine", 2) == []
