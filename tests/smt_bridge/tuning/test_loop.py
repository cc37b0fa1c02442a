"""The folder of a tuning: damage of any kind is one error, never other weights; it belongs to one tuning, of
one process."""

import json
from pathlib import Path

import numpy as np
import pytest

from nmt import locks, manifest
from nmt.errors import ConfigError, DataError, UserError
from nmt.settings import check
from smt_bridge.tuning.config import TuneConfig
from smt_bridge.tuning.kbmira import Kbmira
from smt_bridge.tuning.loop import Iteration, Tuning, check_folder, open_folder
from smt_bridge.tuning.mert import Mert

NAMES = ["A_0", "B_0"]


def made(bleu: float) -> Iteration:
    rng = np.random.default_rng(int(100 * bleu))
    return Iteration(
        weights=rng.random(2),
        bleu=bleu,
        owner=np.array([0, 0, 1, 1]),
        features=rng.random((4, 2)),
        stats=rng.integers(0, 5, (4, 9)).astype(np.float64),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tuning of two iterations."""
    open_folder(tmp_path, {"lines": 2}, TuneConfig(), Mert())
    tuning = Tuning(tmp_path, NAMES, 2, TuneConfig(), Mert())
    for bleu in (0.25, 0.5):
        tuning.save(made(bleu))
    return tmp_path


def load(folder: Path) -> Tuning:
    tuning = Tuning(folder, NAMES, 2, TuneConfig(), Mert())
    tuning.load()
    return tuning


def test_what_is_saved_is_read(folder: Path) -> None:
    found = load(folder).iterations
    assert [iteration.bleu for iteration in found] == [0.25, 0.5]
    assert (found[1].features == made(0.5).features).all() and (found[1].weights == made(0.5).weights).all()
    assert sorted(path.name for path in folder.iterdir()) == [
        "00.npz",
        "01.npz",
        "manifest.json",
        "tune.json",
    ]


def test_a_flipped_bit_anywhere_is_seen(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    whole = (folder / "01.npz").read_bytes()
    for place in range(0, len(whole), 101):
        (folder / "01.npz").write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(DataError, match=r"01\.npz: damaged"):
            load(folder)
    (folder / "01.npz").write_bytes(whole[:-1])
    with pytest.raises(DataError, match=r"01\.npz: damaged"):
        load(folder)


def test_damage_without_checksums(folder: Path) -> None:
    """As in folders of version 0.5: BadZipFile, zlib.error and wrong arrays are one line too."""
    whole = (folder / "01.npz").read_bytes()
    for place in [*range(0, len(whole), 53), -1]:
        (folder / manifest.FILE).unlink(missing_ok=True)
        (folder / "01.npz").write_bytes(
            whole[:place] + bytes([whole[place] ^ 255]) + (whole[place + 1 :] if place >= 0 else b"")
        )
        try:
            load(folder)
        except DataError as error:
            assert "01.npz: damaged" in str(error)
    for arrays in (
        {"weights": np.zeros(3)},
        {"features": np.full((4, 2), np.nan)},
        {"owner": np.array([0, 0, 1, 2])},
        {"bleu": np.zeros(2)},
        {"stats": np.zeros((4, 8))},
    ):
        (folder / manifest.FILE).unlink(missing_ok=True)
        whole_arrays = {name: np.asarray(value) for name, value in vars(made(0.5)).items()}
        with open(folder / "01.npz", "wb") as out:
            np.savez(out, allow_pickle=False, **whole_arrays | arrays)
        with pytest.raises(DataError, match=r"01\.npz: damaged"):
            load(folder)


def test_a_folder_of_version_05_gets_checksums(folder: Path) -> None:
    (folder / manifest.FILE).unlink()
    assert len(load(folder).iterations) == 2
    assert manifest.verify(folder, ["00.npz", "01.npz"])


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"', "[" * 100_000])
def test_foreign_settings(text: str, tmp_path: Path) -> None:
    (tmp_path / "tune.json").write_text(text)
    with pytest.raises(DataError, match=r"tune\.json: damaged; remove"):
        open_folder(tmp_path, {}, TuneConfig(), Mert())


def test_a_folder_belongs_to_one_tuning(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.raises(ConfigError, match="was started with another seed"):
        open_folder(folder, {"lines": 2}, TuneConfig(seed=2), Mert())
    open_folder(folder, {"lines": 2}, TuneConfig(iterations=20), Mert())  # more may be asked for later
    check_folder(folder)
    other = tmp_path_factory.mktemp("other")
    (other / "report.part1").write_text("mine")
    with pytest.raises(ConfigError, match="is not empty, and not a folder of smt-tune"):
        check_folder(other)
    (folder / "notes.part1").write_text("mine")
    (folder / "02.part.npz").write_text("half")
    open_folder(folder, {"lines": 2}, TuneConfig(), Mert())
    assert (folder / "notes.part1").exists() and not (folder / "02.part.npz").exists()


def test_one_process_at_a_time(folder: Path) -> None:
    with (
        locks.locked(folder, "smt-tune"),
        pytest.raises(UserError, match="in use by smt-tune, process"),
        locks.locked(folder, "smt-tune"),
    ):
        pass


@pytest.mark.parametrize(
    "config",
    [
        TuneConfig(method="em"),
        TuneConfig(iterations=0),
        Mert(restarts=-1),
        Kbmira(passes=0),
        TuneConfig(seed=-1),
        TuneConfig(still=np.nan),
    ],
)
def test_settings_out_of_range(config: TuneConfig | Mert | Kbmira) -> None:
    with pytest.raises(ConfigError):
        check(config)


def test_settings_that_an_older_version_did_not_know(tmp_path: Path) -> None:
    """They had the values that are the defaults today."""
    open_folder(tmp_path, {"lines": 2}, TuneConfig(method="kbmira"), Kbmira())
    path = tmp_path / "tune.json"
    path.write_text(json.dumps({"lines": 2, "method": "kbmira", "restarts": 20, "seed": 1, "still": 1e-4}))
    open_folder(tmp_path, {"lines": 2}, TuneConfig(method="kbmira"), Kbmira())
    with pytest.raises(ConfigError, match="was started with another passes"):
        open_folder(tmp_path, {"lines": 2}, TuneConfig(method="kbmira"), Kbmira(passes=30))
