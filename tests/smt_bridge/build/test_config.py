"""What a build reads and where it works."""

import shlex
from pathlib import Path

from nmt.cli.arguments import settings_of
from smt_bridge.build.config import Build, BuildConfig
from smt_bridge.cli.build import parser
from tests.smt_bridge.build.builds import small_plan


def test_the_texts_are_those_that_were_given() -> None:
    config = BuildConfig("a.en", "a.fr", "b.en", "b.fr", "system")
    assert config.texts() == ["a.en", "a.fr", "b.en", "b.fr"]
    config.glossary = "terms"
    assert config.texts() == ["a.en", "a.fr", "b.en", "b.fr", "terms"]


def test_the_command_that_asks_for_it_has_what_was_given() -> None:
    config = BuildConfig("a.en", "a b.fr", "b.en", "b.fr", "system", seed=3, budget=300)
    given = shlex.split(config.command())
    assert (
        given[0] == "smt-build"
        and "--workers" not in given
        and given[given.index("--target") + 1] == "a b.fr"
    )
    args = parser().parse_args(given[1:])
    assert settings_of(BuildConfig, args) == config


def test_all_that_decoding_does_not_need_is_in_one_folder() -> None:
    made = Build(BuildConfig("a", "b", "c", "d", "system"), small_plan())
    assert made.work.parent == made.folder == Path("system")
