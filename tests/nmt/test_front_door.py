"""The names of the Python API."""

import doctest

import pytest

import nmt


def test_every_public_name_is_there_with_an_example() -> None:
    for name in set(nmt.__all__) - {"__version__"}:
        found = doctest.DocTestFinder().find(getattr(nmt, name), name)
        assert any(part.examples for part in found), f"nmt.{name} has no example"
    assert set(nmt.__all__) <= set(dir(nmt)) and set(nmt.HOMES) == set(nmt.__all__) - {"__version__"}
    with pytest.raises(AttributeError, match="'nmt' has no attribute 'nothing'"):
        nmt.nothing  # noqa: B018
