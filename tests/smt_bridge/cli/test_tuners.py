"""The dict of tuners decides what --method accepts, and which settings are options."""

import argparse
from dataclasses import dataclass

import pytest

from nmt.config.settings import check, number
from nmt.errors import ConfigError
from smt_bridge.cli.tuners import add_tuner, parse_tuner
from smt_bridge.tuning.mert import Mert
from smt_bridge.tuning.registry import TUNERS, TuneConfig


@dataclass
class Careful(Mert):
    """Shares the option of a setting that it has in common with mert."""

    care: float = number(0.5, least=0, help="more is slower")


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_tuner(parser)
    return parser.parse_args(words)


def test_a_tuner_added_later_is_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit):
        parsed("--method", "careful")
    with pytest.raises(ConfigError, match=r"method: 'careful' is unknown, expected one of 'mert'"):
        check(TuneConfig(method="careful"))
    monkeypatch.setitem(TUNERS, "careful", Careful)
    check(TuneConfig(method="careful"))
    assert parse_tuner(parsed("--method", "careful", "--care", "2")) == Careful(restarts=20, care=2.0)
    assert parse_tuner(parsed("--restarts", "3")) == Mert(restarts=3)


@pytest.mark.parametrize("name", TUNERS)
def test_defaults_are_those_of_the_class(name: str) -> None:
    assert parse_tuner(parsed("--method", name)) == TUNERS[name]()
