"""`--feature TYPE[:NAME]=PATH`: kinds, names, what comes of each."""

import argparse
from dataclasses import fields, replace

import pytest

from nmt.errors import ConfigError
from smt_bridge.cli.shared_options import add_features
from smt_bridge.features.registry import FEATURES, FeatureSettings, parse_features

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


def test_a_kind_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the help, in error messages and in names as soon as it is in the dict."""
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
    """The run's files, its checkpoint among them, the back-off file and the side are in identities too, where
    a feature reads them; threads and devices change nothing that a table could show."""
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
