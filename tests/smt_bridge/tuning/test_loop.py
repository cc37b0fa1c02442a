"""The loop: how far a step goes, when it ends; and the folder of a tuning: damage of any kind is one error,
never other weights; it belongs to one tuning, of one process."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from nmt.config.settings import check
from nmt.errors import ConfigError, DataError, UserError
from nmt.io import locks, manifest
from smt_bridge.decoder.translation import Derivation, PhraseTranslation
from smt_bridge.moses.weights import Weights
from smt_bridge.tuning.decoding import NO_OPTIONS
from smt_bridge.tuning.kbmira import Kbmira
from smt_bridge.tuning.loop import Iteration, Tuning, check_folder, make_references, open_folder, run
from smt_bridge.tuning.mert import Mert
from smt_bridge.tuning.pool import Floats, Pool
from smt_bridge.tuning.registry import TuneConfig
from smt_bridge.tuning.tuner import Progress, TuningPoint, silent

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


def test_damage_below_a_right_checksum(folder: Path) -> None:
    """Files whose checksum is right: BadZipFile, zlib.error and wrong arrays are one line too."""
    whole = (folder / "01.npz").read_bytes()
    for place in [*range(0, len(whole), 53), -1]:
        (folder / "01.npz").write_bytes(
            whole[:place] + bytes([whole[place] ^ 255]) + (whole[place + 1 :] if place >= 0 else b"")
        )
        manifest.write(folder, ["00.npz", "01.npz"])
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
        whole_arrays = {name: np.asarray(value) for name, value in vars(made(0.5)).items()}
        with open(folder / "01.npz", "wb") as out:
            np.savez(out, allow_pickle=False, **whole_arrays | arrays)
        manifest.write(folder, ["00.npz", "01.npz"])
        with pytest.raises(DataError, match=r"01\.npz: damaged"):
            load(folder)


def test_a_lost_manifest_is_missed(folder: Path) -> None:
    (folder / manifest.FILE).unlink()
    with pytest.raises(DataError, match=r"manifest\.json: not there"):
        load(folder)


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


# ---- steps -------------------------------------------------------------------------------------------------

REFERENCE = "a b c d e f g h"
LINES = 3


@dataclass
class Constant:
    """A tuner that finds the same weights whatever the lists are."""

    weights: Floats

    def tune(
        self,
        pool: Pool,
        start: Floats | None,
        seed: int,
        *,
        others: Sequence[Floats] = (),
        threads: int = 1,
        progress: Progress = silent,
    ) -> TuningPoint:
        return TuningPoint(self.weights, 1.0)


Wrong = Callable[[float], int]  # weight of B -> words of 8 that the decoder gets wrong


def decoder(wrong: Wrong) -> Callable[[Weights], Generator[PhraseTranslation]]:
    """Translations that depend on the weight of B; no weights find the perfect one of each list."""

    def decode(weights: Weights) -> Generator[PhraseTranslation]:
        errors = wrong(weights["B"][0])
        text = [*["x"] * errors, *REFERENCE.split()[errors:]]
        for _ in range(LINES):
            yield PhraseTranslation(
                None,
                [
                    Derivation(NO_OPTIONS, text, np.array([1.0, 1.0]), 1.0),
                    Derivation(NO_OPTIONS, REFERENCE.split(), np.array([0.9, 2.0]), 0.9),
                ],
            )

    return decode


def finished(folder: Path, wrong: Wrong, starts: Sequence[Floats], config: TuneConfig) -> tuple[Tuning, str]:
    folder.mkdir(exist_ok=True)
    tuning = Tuning(folder, NAMES, LINES, config, Constant(np.array([0.0, 1.0])))
    reason = run(tuning, starts, decoder(wrong), make_references([[REFERENCE] * LINES]))
    return tuning, reason


def steps(tuning: Tuning) -> list[float]:
    """The weight of B in each iteration."""
    return [round(float(one.weights[1]), 4) for one in tuning.iterations]


START = np.array([1.0, 0.0])
ALL = TuneConfig(iterations=9)


def test_a_step_that_is_too_long_is_halved_until_it_gains(tmp_path: Path) -> None:
    """The search does well up to a weight of 0.3, and badly beyond, although the tuner wants 1."""
    tuning, reason = finished(tmp_path, lambda b: 1 if 0.1 < b < 0.3 else 4 if b > 0.3 else 2, [START], ALL)
    assert steps(tuning)[:4] == [0, 1, 0.5, 0.25] and tuning.best() == 3
    # from there again towards 1, a longer step first
    assert steps(tuning)[4] == 0.625 and all(0.25 < b < 0.625 for b in steps(tuning)[5:])
    assert reason == "9 iterations"


def test_steps_that_slump_do_not_wear_out_patience(tmp_path: Path) -> None:
    """Three slumps in a row are no reason to stop; three decodings that are nearly as good are."""
    config = replace(ALL, patience=2)
    tuning, _ = finished(tmp_path / "slumps", lambda b: 4 if b > 0.1 else 1 if b else 2, [START], config)
    assert steps(tuning)[:5] == [0, 1, 0.5, 0.25, 0.125] and tuning.iterations[5].bleu > 0.8
    tuning, reason = finished(tmp_path / "level", lambda b: 2, [START], config)
    assert steps(tuning) == [0, 1, 0.5] and reason == "2 iterations without a better BLEU"


def next_of(numbers: Iterator[int], weight: float) -> int:
    return next(numbers)


def test_whatever_the_search_does_the_best_decoding_is_the_result(tmp_path: Path) -> None:
    for seed in range(20):
        wrongs = iter(np.random.default_rng(seed).integers(0, 5, 9).tolist())
        tuning, _ = finished(tmp_path / str(seed), partial(next_of, wrongs), [START], ALL)
        bleus = [one.bleu for one in tuning.iterations]
        assert bleus[tuning.best()] == max(bleus) >= bleus[0]
        for number in range(2, len(bleus)):  # from the best so far, towards the tuner's
            from_best = steps(tuning)[int(np.argmax(bleus[:number]))]
            assert from_best < steps(tuning)[number] <= 1


def test_a_resumed_tuning_takes_the_same_steps(tmp_path: Path) -> None:
    def wrong(b: float) -> int:
        return 1 if 0.1 < b < 0.3 else 4 if b > 0.3 else 2

    whole, _ = finished(tmp_path / "whole", wrong, [START, START[::-1]], ALL)
    for count in range(1, 9):
        finished(tmp_path / "parts", wrong, [START, START[::-1]], replace(ALL, iterations=count))
    parts, _ = finished(tmp_path / "parts", wrong, [START, START[::-1]], ALL)
    assert [one.promised for one in parts.iterations] == [one.promised for one in whole.iterations]
    names = sorted(path.name for path in (tmp_path / "whole").glob("*.npz"))
    assert len(names) == 9
    for name in names:
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_tuning_says_where_it_gained_nothing(tmp_path: Path) -> None:
    tuning, _ = finished(tmp_path / "worse", lambda b: 4 if b else 2, [START], ALL)
    bleu, promised = 100 * tuning.iterations[0].bleu, 100 * max(one.promised for one in tuning.iterations)
    assert tuning.best() == 0 and f"{bleu:.2f}" in tuning.nothing_gained()
    assert f"promised up to {promised:.2f}" in tuning.nothing_gained()
    tuning, _ = finished(tmp_path / "better", lambda b: 1 if b else 2, [START], ALL)
    assert tuning.nothing_gained() == ""
    tuning, reason = finished(tmp_path / "still", lambda b: 2, [START[::-1]], ALL)
    assert reason == "the weights have converged" and "promised" not in tuning.nothing_gained()
