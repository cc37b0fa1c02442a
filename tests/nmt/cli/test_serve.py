"""The options of nmt-serve."""

import pytest

from nmt.cli import serve


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "the following arguments are required: NAME=PATH"),
        (["path"], "'path': expected NAME=PATH"),
        (["a=x", "b=y", "a=z"], "a: two engines of this name; give each its own"),
        (["a=x", "--port", "70000"], "70000 is out of range, expected 0 to 65535"),
    ],
)
def test_what_is_refused(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        assert serve.main(options) == 2
    except SystemExit as error:
        assert error.code == 2
    printed = capsys.readouterr().err
    assert message in printed and printed.count("\n") == 1
