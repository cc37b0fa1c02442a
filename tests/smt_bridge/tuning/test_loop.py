"""The tuning loop: step lengths and stopping rules; and the folder of a tuning: any damage is one error and
never changes weights, and it belongs to one tuning of one process."""

import logging
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from nmt.config.settings import check
from nmt.errors import ConfigError, DataError, UserError
from nmt.io import locks, manifest
from nmt.work.executors import ExecutorConfig, Local, Lost
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.translation import Derivation, PhraseTranslation
from smt_bridge.moses import ini
from smt_bridge.moses.ini import Weights
from smt_bridge.tuning import loop, pool
from smt_bridge.tuning.kbmira import Kbmira
from smt_bridge.tuning.loop import (
    FINAL_SEED,
    NO_OPTIONS,
    DecodingBlock,
    Iteration,
    Redecoder,
    Tuning,
    check_folder,
    decode,
    decode_by_executor,
    make_references,
    open_folder,
    run,
    whole_weights,
)
from smt_bridge.tuning.mert import Mert
from smt_bridge.tuning.pool import Floats, Pool
from smt_bridge.tuning.registry import TuneConfig
from smt_bridge.tuning.tuner import TuningPoint
from tests.conftest import ROOT
from tests.smt_bridge.decoder.models import Stateful

# ---- test loop ---------------------------------------------------------------------------------------------


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
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["00.npz", "01.npz", "manifest.json", "tune.json"]


def test_a_larger_pool_needs_new_final_seeds(folder: Path) -> None:
    path = folder / FINAL_SEED.format(1)
    path.write_text("LM0= 1\n")
    load(folder).save(made(0.75))
    assert not path.exists()


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
    """Files with a right checksum: BadZipFile, zlib.error and wrong arrays are also reported in one line."""
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
    with pytest.raises(DataError, match=r"manifest\.json: missing"):
        load(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"', "[" * 100_000])
def test_foreign_settings(text: str, tmp_path: Path) -> None:
    (tmp_path / "tune.json").write_text(text)
    with pytest.raises(DataError, match=r"tune\.json: damaged; remove"):
        open_folder(tmp_path, {}, TuneConfig(), Mert())


def test_a_folder_belongs_to_one_tuning(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.raises(ConfigError, match="was started with another seed"):
        open_folder(folder, {"lines": 2}, TuneConfig(seed=2), Mert())
    open_folder(folder, {"lines": 2}, TuneConfig(iterations=20, patience=9), Mert())  # more may be asked for
    check_folder(folder)
    other = tmp_path_factory.mktemp("other")
    (other / "report.part1").write_text("mine")
    with pytest.raises(ConfigError, match="is not empty, and not a folder of smt-tune"):
        check_folder(other)
    (folder / "notes.part1").write_text("mine")
    for name in ("02.npz.part77", "100.npz.part77", "02.part.npz"):  # the latter: of earlier versions
        (folder / name).write_text("half")
    open_folder(folder, {"lines": 2}, TuneConfig(), Mert())
    assert {path.name for path in folder.glob("*part*")} == {"notes.part1"}


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
    """A tuner that finds the same weights for all lists."""

    weights: Floats

    def tune(self, pool: Pool, start: Floats | None, seed: int, **unused: object) -> TuningPoint:
        return TuningPoint(self.weights, 1.0)


Wrong = Callable[[float], int]  # weight of B -> words of 8 that the decoder gets wrong


def decoder(wrong: Wrong) -> Callable[[Weights], Generator[PhraseTranslation]]:
    """A stand-in decoder whose translations depend on the weight of B; no weights find the perfect
    translation of each list."""

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
    """The search does well up to a weight of 0.3 and badly beyond, although the tuner wants 1."""
    tuning, reason = finished(tmp_path, lambda b: 1 if 0.1 < b < 0.3 else 4 if b > 0.3 else 2, [START], ALL)
    assert steps(tuning)[:4] == [0, 1, 0.5, 0.25] and tuning.best() == 3
    # from there again towards 1, a longer step first
    assert steps(tuning)[4] == 0.625 and all(0.25 < b < 0.625 for b in steps(tuning)[5:])
    assert reason == "9 iterations"


def test_the_share_of_the_way_follows_from_the_decodings(tmp_path: Path) -> None:
    """It is halved after each tuned decoding that is not better, and doubled after one that is; starting
    weights do not count."""
    tuning = Tuning(tmp_path, NAMES, LINES, ALL, Constant(START))
    shares = []
    for bleu, promised in ((0.5, 0), (0.6, 0), (0.3, 0.7), (0.6, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 0.9)):
        tuning.iterations.append(replace(made(bleu), promised=promised))
        shares.append(tuning.share())
    assert shares == [1, 1, 0.5, 0.25, 0.5, 1, 1]


def test_steps_that_slump_do_not_wear_out_patience(tmp_path: Path) -> None:
    """Three large losses in a row are no reason to stop, but three decodings that are nearly as good are."""
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


def test_later_starts_are_refined_by_the_lists_before_them(tmp_path: Path) -> None:
    """The first start is decoded as it is; a resumed tuning refines the second one in the same way."""
    given: list[tuple[int, list[float]]] = []

    def refine(pool: Pool, weights: Floats) -> Floats:
        given.append((len(pool.features), weights.tolist()))
        return np.array([3.0, 1.0])

    def take(name: str, count: int) -> Tuning:
        tuning = Tuning(tmp_path / name, NAMES, LINES, replace(ALL, iterations=count), Constant(START))
        tuning.folder.mkdir(exist_ok=True)
        texts = make_references([[REFERENCE] * LINES])
        run(tuning, [START, START[::-1]], decoder(lambda b: 2), texts, refine)
        return tuning

    for parts in ([], [1], [1, 2]):
        for count in parts:
            take(str(parts), count)
        assert steps(take(str(parts), 9))[:2] == [0, 0.25]
        assert given.pop() == (2 * LINES, [0, 1]) and not given


def test_a_tuning_says_where_it_gained_nothing(tmp_path: Path) -> None:
    tuning, _ = finished(tmp_path / "worse", lambda b: 4 if b else 2, [START], ALL)
    bleu, promised = 100 * tuning.iterations[0].bleu, 100 * max(one.promised for one in tuning.iterations)
    assert tuning.best() == 0 and f"{bleu:.2f}" in tuning.gain_warning()
    assert f"promised up to {promised:.2f}" in tuning.gain_warning()
    tuning, _ = finished(tmp_path / "better", lambda b: 1 if b else 2, [START], ALL)
    assert tuning.gain_warning() == ""
    tuning, reason = finished(tmp_path / "still", lambda b: 2, [START[::-1]], ALL)
    assert reason == "the weights have converged" and "promised" not in tuning.gain_warning()
    assert "without" not in tuning.gain_warning()
    tuning, _ = finished(tmp_path / "without", lambda b: 4 if b else 2, [START, np.array([1.0, 0.5])], ALL)
    assert tuning.best() == 0 and tuning.gain_warning().startswith(
        f"the tuning gained nothing: the best BLEU, {100 * tuning.iterations[0].bleu:.2f}, is that of the "
        "initial weights without B; "
    )


def test_translations_that_the_search_lost_are_counted(tmp_path: Path) -> None:
    """Sentence 1 has a better translation in the first lists than in the best decoding."""
    right, wrong = [8, 8, 7, 7, 6, 6, 5, 5, 8], [4, 8, 2, 7, 1, 6, 1, 5, 8]
    rows = np.array([[1.0, 1.0], [1.0, 2.0]]), np.array([[1.0, 1.0], [1.0, 0.5]])
    tuning = Tuning(tmp_path, NAMES, 2, TuneConfig(), Mert())
    for bleu, features, stats in ((0.2, rows[0], [right, right]), (0.5, rows[1], [right, wrong])):
        tuning.iterations.append(
            Iteration(np.array([0.5, 0.5]), bleu, np.array([0, 1]), features, np.array(stats, np.float64))
        )
    assert tuning.search_errors() == (1, 1.0)
    tuning.iterations[0].features = rows[1]
    assert tuning.search_errors()[0] == 0


def test_a_tuning_logs_translations_that_the_search_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """At its end, also when it is started again. The list of the first weights has a translation that the
    second one lacks."""
    tuning = Tuning(tmp_path, NAMES, 2, TuneConfig(iterations=2), Mert())
    for bleu, better in ((0.2, 2.0), (0.5, 0.5)):
        tuning.save(replace(made(bleu), features=np.array([[1, 1], [1, 1], [1, 1], [1, better]]) * 1.0))
    caplog.set_level(logging.INFO)
    assert run(tuning, [], decoder(lambda b: 0), make_references([[REFERENCE] * 2])) == "2 iterations"
    assert "missed a higher-scoring translation in 1 of 2 sentences" in caplog.text


# ---- test decoding -----------------------------------------------------------------------------------------
# What a tuning asks of the decoder.


MODELS = ROOT / "tests" / "models"


@pytest.fixture
def grammar_decoder(tmp_path: Path) -> Decoder:
    shutil.copytree(MODELS / "phrase-based", tmp_path / "model")
    return Decoder.load(str(tmp_path / "model"), cache=False)


def scaled_weights(decoder: Decoder, factor: float) -> Weights:
    return {name: [factor * value for value in decoder.weights[name]] for name in decoder.system.sizes}


def test_other_weights_decode_as_an_ini_that_has_them(grammar_decoder: Decoder) -> None:
    lines = ["the nurses hear her .", "a black girl sleeps ."]
    weights = scaled_weights(grammar_decoder, -1)
    found = [one.text for one in decode(grammar_decoder, weights, lines, 1, "dev")]
    other = Decoder(grammar_decoder.system, weights=weights)
    assert found == [one.text for one in other.translate_all(lines)]
    assert found != [one.text for one in grammar_decoder.translate_all(lines)]


def shown(found: Iterable[PhraseTranslation]) -> list[object]:
    return [
        [(one.text, one.features.tolist(), one.total) for one in translation.derivations]
        for translation in found
    ]


def test_an_executor_decodes_as_threads_do(grammar_decoder: Decoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts, features and totals of all derivations, with several weights in turn."""
    monkeypatch.setattr("smt_bridge.tuning.loop.BLOCK", 2)
    lines = ["the nurses hear her .", "", "a black girl sleeps .", "the nurses", "a b"]
    listing = Decoder(grammar_decoder.system, DecoderConfig(nbest=5, distinct=True))
    there = Redecoder(Decoder(grammar_decoder.system, DecoderConfig(nbest=5, distinct=True)))
    executor = Local(there.compute, lambda: there.compute, ExecutorConfig())
    found = []
    for sign in (1, -1, 1):
        weights = scaled_weights(grammar_decoder, sign)
        found.append(shown(decode_by_executor(executor, listing, weights, lines, "dev")))
        assert found[-1] == shown(decode(listing, weights, lines, 1, "dev"))
    assert found[0] == found[2] != found[1]


class Losing(Local[DecodingBlock, list[PhraseTranslation]]):
    def map(self, tasks: Iterable[DecodingBlock]) -> Iterator[list[PhraseTranslation] | Lost]:  # type: ignore[override]
        for number, task in enumerate(tasks):
            yield Lost("three workers died") if number % 2 else self.compute(task)


def test_lines_whose_workers_died_are_named(
    grammar_decoder: Decoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smt_bridge.tuning.loop.BLOCK", 2)
    work = Redecoder(grammar_decoder).compute
    weights = scaled_weights(grammar_decoder, 1)
    found = decode_by_executor(
        Losing(work, lambda: work, ExecutorConfig()), grammar_decoder, weights, ["zzz"] * 7, "dev"
    )
    assert [next(found).text for _ in range(4)] == [["zzz"]] * 4
    with pytest.raises(UserError, match=r"^dev: lines 3-4, 7: three workers died; start the tuning again"):
        next(found)


def test_the_weights_of_all_features_in_the_order_of_lists(grammar_decoder: Decoder) -> None:
    names = pool.column_names(grammar_decoder.system.sizes)
    whole = whole_weights(grammar_decoder.system, names, np.arange(len(names)).astype(float))
    assert list(whole) == list(grammar_decoder.system.sizes)
    assert [value for values in whole.values() for value in values] == list(range(len(names)))
    ini.set_weights(grammar_decoder.system.ini, whole)  # takes them


def test_a_tuning_starts_without_its_stateful_features_too(grammar_decoder: Decoder) -> None:
    names = pool.column_names(grammar_decoder.system.sizes)
    own = pool.from_weights(names, grammar_decoder.system.tuneable_weights())
    (only,) = loop.starting_weights(grammar_decoder, names)
    assert (only == own).all()
    grammar_decoder.features = [Stateful("LM0"), Stateful("TranslationModel0")]
    without, whole = loop.starting_weights(grammar_decoder, names)
    off = np.array([name.startswith(("LM0_", "TranslationModel0_")) for name in names])
    assert (whole == own).all() and off.sum() == 5
    assert not without[off].any() and (without[~off] == own[~off]).all()
    grammar_decoder.features = [Stateful(name) for name in grammar_decoder.system.sizes]
    # without all of them there is nothing to search by
    assert len(loop.starting_weights(grammar_decoder, names)) == 1
