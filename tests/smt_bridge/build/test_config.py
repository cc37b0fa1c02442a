"""What a build reads and where it works."""

import shlex
from pathlib import Path

import pytest

from nmt.cli.arguments import parse_settings
from nmt.errors import DataError
from nmt.io import files, manifest
from smt_bridge.build import config
from smt_bridge.build.config import Build, BuildConfig
from smt_bridge.cli.build import parser
from tests.smt_bridge.build.builds import small_plan

# ---- test config -------------------------------------------------------------------------------------------


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
    assert parse_settings(BuildConfig, args) == config


def test_all_that_decoding_does_not_need_is_in_one_folder() -> None:
    made = Build(BuildConfig("a", "b", "c", "d", "system"), small_plan())
    assert made.work.parent == made.folder == Path("system")


# ---- test finished -----------------------------------------------------------------------------------------
# What finished steps have made, and whether it is still so.


FIXED = ("plan.json",)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "system" / "build"
    for name in ("plan.json", "corpus/a", "corpus/b", "networks/joint/step-1.pt", "networks/done"):
        files.write_text(folder / name, [name])
    for name in ("corpus/a.part7-1", "networks/joint/.lock", "dev/x"):
        files.write_text(folder / name, [name])
    config.record_files(folder, ["plan.json"])
    config.record_files(folder, config.matching_files(folder, ("corpus/*", "networks/**/*")))
    return folder


def test_files_that_fit_the_patterns_are_noted(work: Path) -> None:
    assert list(manifest.read(work) or {}) == [
        "corpus/a", "corpus/b", "networks/done", "networks/joint/step-1.pt", "plan.json",
    ]  # fmt: skip
    assert config.recorded_files(work, ("corpus/*",)) == {"corpus/a", "corpus/b"}
    assert config.recorded_files(work, ("networks/**/*",)) == {"networks/done", "networks/joint/step-1.pt"}
    assert config.check_files(work, FIXED) == []


@pytest.mark.parametrize("name", ["corpus/a", "networks/joint/step-1.pt"])
@pytest.mark.parametrize("content", ["", "corpus/c\n", "other\n"])
def test_a_changed_file_is_named(work: Path, name: str, content: str) -> None:
    (work / name).write_text(content)
    with pytest.raises(DataError, match=rf"{name}: was changed .*; restore it, or remove it, and it is made"):
        config.check_files(work, FIXED)


def test_what_no_step_makes_again_has_to_be_there(work: Path) -> None:
    (work / "plan.json").write_text("{}")
    with pytest.raises(DataError, match=rf"plan\.json: was changed .*, or remove {work.parent} to"):
        config.check_files(work, FIXED)
    (work / "plan.json").unlink()
    with pytest.raises(DataError, match=r"plan\.json: not there any more"):
        config.check_files(work, FIXED)


def test_a_removed_file_is_forgotten_with_all_of_its_step(work: Path) -> None:
    (work / "corpus" / "a").unlink()
    assert config.check_files(work, FIXED) == ["corpus/a"]
    config.forget_files(work, config.recorded_files(work, ("corpus/*",)))
    assert not (work / "corpus" / "b").exists() and (work / "networks" / "done").exists()
    assert config.check_files(work, FIXED) == [] and not config.recorded_files(work, ("corpus/*",))
