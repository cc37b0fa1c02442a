"""What a tuning asks of the decoder."""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import UserError
from nmt.work.config import ExecutorConfig
from nmt.work.executors import Local, Lost
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.translation import PhraseTranslation
from smt_bridge.moses import ini
from smt_bridge.tuning import decoding, pool
from smt_bridge.tuning.decoding import DecodingBlock, Redecoder, decode, decode_by_executor, whole_weights
from tests.conftest import ROOT

MODELS = ROOT / "tests" / "models"


@pytest.fixture
def decoder(tmp_path: Path) -> Decoder:
    shutil.copytree(MODELS / "phrase-based", tmp_path / "model")
    return Decoder.load(str(tmp_path / "model"), cache=False)


def test_other_weights_decode_as_an_ini_that_has_them(decoder: Decoder) -> None:
    lines = ["the nurses hear her .", "a black girl sleeps ."]
    weights = {name: [-value for value in decoder.weights[name]] for name in decoder.system.sizes}
    found = [one.text for one in decode(decoder, weights, lines, 1, "dev")]
    assert found == [one.text for one in Decoder(decoder.system, weights=weights).translate_all(lines)]
    assert found != [one.text for one in decoder.translate_all(lines)]


def shown(found: Iterable[PhraseTranslation]) -> list[object]:
    return [
        [(one.text, one.features.tolist(), one.total) for one in translation.derivations]
        for translation in found
    ]


def test_an_executor_decodes_as_threads_do(decoder: Decoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts, features and totals of all derivations, with one weights after the other."""
    monkeypatch.setattr(decoding, "BLOCK", 2)
    lines = ["the nurses hear her .", "", "a black girl sleeps .", "the nurses", "a b"]
    listing = Decoder(decoder.system, DecoderConfig(nbest=5, distinct=True))
    there = Redecoder(Decoder(decoder.system, DecoderConfig(nbest=5, distinct=True)))
    executor = Local(there.compute, lambda: there.compute, ExecutorConfig())
    found = []
    for sign in (1, -1, 1):
        weights = {name: [sign * value for value in decoder.weights[name]] for name in decoder.system.sizes}
        found.append(shown(decode_by_executor(executor, listing, weights, lines, "dev")))
        assert found[-1] == shown(decode(listing, weights, lines, 1, "dev"))
    assert found[0] == found[2] != found[1]


class Losing(Local[DecodingBlock, list[PhraseTranslation]]):
    def map(self, tasks: Iterable[DecodingBlock]) -> Iterator[list[PhraseTranslation] | Lost]:  # type: ignore[override]
        for number, task in enumerate(tasks):
            yield Lost("three workers died") if number % 2 else self.compute(task)


def test_lines_whose_workers_died_are_named(decoder: Decoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "BLOCK", 2)
    work = Redecoder(decoder).compute
    weights = {name: decoder.weights[name] for name in decoder.system.sizes}
    found = decode_by_executor(
        Losing(work, lambda: work, ExecutorConfig()), decoder, weights, ["zzz"] * 7, "dev"
    )
    assert [next(found).text for _ in range(4)] == [["zzz"]] * 4
    with pytest.raises(UserError, match=r"^dev: lines 3-4, 7: three workers died; start the tuning again"):
        next(found)


def test_the_weights_of_all_features_in_the_order_of_lists(decoder: Decoder) -> None:
    names = pool.column_names(decoder.system.sizes)
    whole = whole_weights(decoder.system, names, np.arange(len(names)).astype(float))
    assert list(whole) == list(decoder.system.sizes)
    assert [value for values in whole.values() for value in values] == list(range(len(names)))
    ini.set_weights(decoder.system.ini, whole)  # takes them


class Stateful:
    """All that a stateful feature is known by."""

    def __init__(self, name: str) -> None:
        self.name = name

    def start(self) -> None: ...


def test_a_tuning_starts_without_its_stateful_features_too(decoder: Decoder) -> None:
    names = pool.column_names(decoder.system.sizes)
    own = pool.from_weights(names, decoder.system.tuneable_weights())
    (only,) = decoding.starting_weights(decoder, names)
    assert (only == own).all()
    decoder.features = [Stateful("LM0"), Stateful("TranslationModel0")]  # type: ignore[list-item]
    without, whole = decoding.starting_weights(decoder, names)
    off = np.array([name.startswith(("LM0_", "TranslationModel0_")) for name in names])
    assert (whole == own).all() and off.sum() == 5
    assert not without[off].any() and (without[~off] == own[~off]).all()
    decoder.features = [Stateful(name) for name in decoder.system.sizes]  # type: ignore[misc]
    assert (
        len(decoding.starting_weights(decoder, names)) == 1
    )  # without all of them there is nothing to search by
