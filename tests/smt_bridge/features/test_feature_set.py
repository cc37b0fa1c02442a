"""Features: the option --feature, its kinds and names; scores of pairs in chunks; identities."""

import argparse
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import ConfigError, DataError
from nmt.formats import phrase_table
from nmt.work.executors import ExecutorConfig, require_results
from smt_bridge.cli.shared_options import add_features
from smt_bridge.features.base import WordPairs, digest, of_phrases
from smt_bridge.features.feature_set import FeatureSet
from smt_bridge.features.registry import FEATURES, FeatureSettings, parse_features

# ---- test feature set --------------------------------------------------------------------------------------


PAIRS = WordPairs(
    sources=[["a", "girl"], ["a", "man"]],
    targets=[["une", "fille"], ["un", "homme"], ["un", "chien"]],
    source_of=[0, 1, 1],
)


@pytest.fixture
def folder(examples: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(examples)
    return examples


def test_each_feature_is_asked_for_its_own_pairs(folder: Path) -> None:
    features = FeatureSet(parse_features(["translation=runs/en-fr", "lm:L=lm.arpa"]), FeatureSettings())
    assert len(features) == 2 and features.names == ["RNN0", "L"]
    both = features.compute([PAIRS, PAIRS])
    some = features.compute([PAIRS.take([2]), PAIRS.take([])])
    assert [len(values) for values in both] == [3, 3] and [len(values) for values in some] == [1, 0]
    assert some[0][0] == pytest.approx(both[0][2], abs=1e-5)


@pytest.mark.ci
def test_executors_compute_the_same(folder: Path) -> None:
    features = FeatureSet(parse_features(["lm=lm.arpa"]), FeatureSettings())
    found = []
    for name in ("local", "processes"):
        tasks = [[PAIRS], [PAIRS.take([1])]]
        with features.executor(ExecutorConfig(name)) as running:
            found.append([values.tolist() for (values,) in require_results(running.map(tasks))])
    assert found[0] == found[1] and len(found[0][0]) == 3


def test_one_feature_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a list of features, found a str"):
        parse_features("lm=lm.arpa")


def test_precision_is_measured_where_a_feature_heeds_it(folder: Path) -> None:
    settings = FeatureSettings(precision="int8")
    line = FeatureSet(parse_features(["translation=runs/en-fr", "lm=lm.arpa"]), settings).precision_error(
        PAIRS
    )
    assert line.startswith("int8 against fp32 on 3 pairs: RNN0: error in log p ") and "KenLM" not in line
    assert FeatureSet(parse_features(["lm=lm.arpa"]), settings).precision_error(PAIRS) == ""


def test_inverse_is_the_other_direction(folder: Path) -> None:
    """log p(source | target) of the pairs is log p(target | source) of the swapped pairs."""
    direct, inverse = FeatureSet(
        parse_features(["translation=runs/en-fr", "inverse=runs/en-fr"]), FeatureSettings()
    ).features
    swapped = WordPairs(
        sources=PAIRS.targets, targets=[PAIRS.sources[row] for row in PAIRS.source_of], source_of=[0, 1, 2]
    )
    np.testing.assert_allclose(inverse.score(PAIRS), direct.score(swapped), atol=1e-5)


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        (np.zeros((3, 2)), r"shape \(3, 2\), expected \(3,\)"),
        (np.zeros(2), r"shape \(2,\), expected \(3,\)"),
        ([1.0], r"shape \(1,\), expected \(3,\)"),
        (0.5, r"shape \(\), expected \(3,\)"),
        (["a", "b", "c"], "gives no numbers"),
        ([[1], [1, 2], [3]], "gives no numbers"),
        (None, "gives "),
        ([1.0, float("nan"), 2.0], "gives nan for 1 of 3 pairs"),
    ],
)
def test_what_is_no_number_for_each_pair(values: object, wrong: str, folder: Path) -> None:
    """For example from a plugin: the message names the feature."""
    features = FeatureSet(parse_features(["lm=lm.arpa", "lm:Own=lm.arpa"]), FeatureSettings())
    features.features[1].score = lambda pairs: values  # type: ignore[method-assign, assignment, return-value]
    with pytest.raises(DataError, match=rf"--feature lm:Own=lm\.arpa: .*{wrong}"):
        features.compute([PAIRS, PAIRS])
    features.features[1].score = lambda pairs: [1, 2, 3]  # type: ignore[method-assign, assignment, return-value]
    assert features.compute([PAIRS, PAIRS])[1].tolist() == [1, 2, 3]


# ---- test base ---------------------------------------------------------------------------------------------
# Pairs of words, and identities.


LINES = [b"a b ||| x ||| 1", b"a b ||| y z ||| 1", b"c ||| x ||| 1", b"c ||| w ||| 1"]


def pairs() -> WordPairs:
    return of_phrases([phrase_table.parse(line, "t:1") for line in LINES])


def test_a_source_stands_once() -> None:
    found = pairs()
    assert found.sources == [["a", "b"], ["c"]] and found.source_of == [0, 0, 1, 1]
    assert found.targets == [["x"], ["y", "z"], ["x"], ["w"]] and len(found) == 4 and not found.whole


def test_taking_rows_keeps_each_pair() -> None:
    rows = np.array([3, 1])
    found, whole = pairs().take(rows), pairs()
    for place, row in enumerate(rows):
        assert found.targets[place] == whole.targets[row]
        assert found.sources[found.source_of[place]] == whole.sources[whole.source_of[row]]
    assert pairs().take([2, 3]).sources == [["c"]]  # a source without pairs is not read


def test_an_identity_is_of_names_contents_and_settings(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("1")
    one, two = tmp_path / "a", tmp_path / "b"
    first = digest("lm", [one])
    assert first == digest("lm", [one]) and len(first) == 32
    others = [digest("lm", [two]), digest("translation", [one]), digest("lm", [one], b"x")]
    (tmp_path / "a").write_text("2")
    assert len({first, *others, digest("lm", [one])}) == 5


# ---- the option --feature ----------------------------------------------------------------------------------


# ---- test registry -----------------------------------------------------------------------------------------


def names(*texts: str, taken: tuple[str, ...] = ()) -> list[str]:
    return [spec.name for spec in parse_features(texts, taken)]


def test_names() -> None:
    assert names("lm=a", "lm:Own=b", "translation=c", "lm=d=e") == ["KenLM0", "Own", "RNN0", "KenLM1"]
    assert names("lm=a", "lm=b", taken=("KenLM0", "KenLM2")) == ["KenLM1", "KenLM3"]
    assert parse_features(["lm=d=e"])[0].path == "d=e"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lm", "expected TYPE"),
        ("lm=", "expected TYPE"),
        ("lm:=a", "expected TYPE"),
        ("nmt=a", "'nmt' is unknown, expected one of translation, inverse, lm, "),
        ("lm:R_0=a", "split names at '_'"),
        ("lm:0=a", "expected a letter"),
        ("lm:Taken=a", "the name Taken is taken"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_features([text], ["Taken"])


class Own:
    """A kind of a plugin."""

    column = "Own"
    help = "100% of what I need"

    @staticmethod
    def load(spec: object, settings: object) -> None:
        """By mistake, nothing is loaded."""


def test_a_kind_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind of a plugin is in the help, in error messages and in default names once it is in the dict."""
    monkeypatch.setitem(FEATURES, "own", Own)
    parser = argparse.ArgumentParser()
    add_features(parser)
    assert "own: 100% of what I need" in " ".join(parser.format_help().split())
    assert names("own=a") == ["Own0"]
    with pytest.raises(ConfigError, match=r"unknown-words, own$"):
        parse_features(["other=a"])


# ---- test spec ---------------------------------------------------------------------------------------------
# Settings of features: those that a network's numbers depend on, and no others, are in identities.


OTHERS = {
    "checkpoint": "last", "device": "cuda", "threads": 7, "back_end": "eigen", "precision": "int8",
    "unknown": "split", "side": "source", "assume_normalized": True, "backoff": "lm.arpa",
}  # fmt: skip


def test_what_numbers_depend_on() -> None:
    """The run's files with its checkpoint, the back-off file and the side are in identities of features that
    read them; threads and devices do not change the digits of a table."""
    settings = FeatureSettings()
    assert set(OTHERS) == {item.name for item in fields(FeatureSettings)}
    changed = {
        name
        for name, value in OTHERS.items()
        if replace(settings, **{name: value}).arithmetic() != settings.arithmetic()  # type: ignore[arg-type]
    }
    assert changed == {"precision", "unknown", "assume_normalized"}
    both = replace(settings, precision="int8", unknown="split").arithmetic()
    assert len({both, replace(settings, precision="int8").arithmetic(), settings.arithmetic()}) == 3
