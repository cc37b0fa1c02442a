"""--memory: GB, units, and the MB of earlier versions."""

import argparse

import pytest

from smt_bridge.cli.memory import add_memory, gigabytes


@pytest.mark.parametrize(
    ("text", "expected"), [("1.5", 1.5), ("2G", 2.0), ("800M", 0.8), ("0.35", 0.35), ("99", 99.0)]
)
def test_units(text: str, expected: float, capsys: pytest.CaptureFixture[str]) -> None:
    assert gigabytes(text) == pytest.approx(expected)
    assert capsys.readouterr().err == ""


def test_a_number_that_can_only_be_megabytes(capsys: pytest.CaptureFixture[str]) -> None:
    assert gigabytes("2000") == pytest.approx(2.0)
    assert capsys.readouterr().err == (
        "--memory 2000: taken as MB; without a unit it is now in GB, write 2000M\n"
    )


@pytest.mark.parametrize("text", ["", "M", "x", "1T", "nan", "0.3", "300M", "-1"])
def test_what_is_no_amount(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"expected (GB|0\.35 or more)"):
        gigabytes(text)


def test_the_default_is_that_of_extraction() -> None:
    parser = argparse.ArgumentParser()
    add_memory(parser)
    assert parser.parse_args([]).memory == 1.0
