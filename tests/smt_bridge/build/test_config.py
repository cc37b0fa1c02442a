"""What a build reads and where it works."""

from pathlib import Path

from smt_bridge.build.config import Build, BuildConfig
from tests.smt_bridge.build.builds import small_plan


def test_the_texts_are_those_that_were_given() -> None:
    config = BuildConfig("a.en", "a.fr", "b.en", "b.fr", "system")
    assert config.texts() == ["a.en", "a.fr", "b.en", "b.fr"]
    config.glossary = "terms"
    assert config.texts() == ["a.en", "a.fr", "b.en", "b.fr", "terms"]


def test_all_that_decoding_does_not_need_is_in_one_folder() -> None:
    made = Build(BuildConfig("a", "b", "c", "d", "system"), small_plan())
    assert made.work.parent == made.folder == Path("system")
