"""Options of commands on tables: what belongs together is asked for together."""

import argparse

import pytest

from nmt.cli.options import Parser
from nmt.errors import ConfigError
from smt_bridge.cli import tables


def parsed(*words: str) -> argparse.Namespace:
    parser = Parser("smt-x", "Tables.")
    tables.add_table(parser)
    tables.add_outputs(parser, "of a test", "its rows")
    tables.add_unsorted(parser)
    return parser.parse_args(["table", "-i", "a", "b", *words])


def test_both_options_of_the_reordering_table_or_none() -> None:
    tables.check_reordering(parsed())
    tables.check_reordering(parsed("--reordering", "r", "--reordering-output", "o"))
    for alone in (["--reordering", "r"], ["--reordering-output", "o"]):
        with pytest.raises(ConfigError, match="--reordering and --reordering-output go together"):
            tables.check_reordering(parsed(*alone))


def test_what_is_parsed(capsys: pytest.CaptureFixture[str]) -> None:
    found = parsed("--unsorted")
    assert (found.table, found.input, found.output, found.unsorted) == ("table", ["a", "b"], "-", True)
    with pytest.raises(ConfigError, match="is read too"):
        parsed("-o", "table")
    with pytest.raises(SystemExit):
        Parser("smt-x", "Tables.").parse_args(["--nothing"])
    assert capsys.readouterr().err.count("\n") == 1
