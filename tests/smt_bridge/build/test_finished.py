"""What finished steps have made, and whether it is still so."""

from pathlib import Path

import pytest

from nmt import files, manifest
from nmt.errors import DataError
from smt_bridge.build import finished

FIXED = ("plan.json",)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "system" / "build"
    for name in ("plan.json", "corpus/a", "corpus/b", "networks/joint/step-1.pt", "networks/done"):
        files.write_text(folder / name, [name])
    for name in ("corpus/a.part7-1", "networks/joint/.lock", "dev/x"):
        files.write_text(folder / name, [name])
    finished.record(folder, ["plan.json"])
    finished.record(folder, finished.files_of(folder, ("corpus/*", "networks/**/*")))
    return folder


def test_files_that_fit_the_patterns_are_noted(work: Path) -> None:
    assert list(manifest.read(work) or {}) == [
        "corpus/a", "corpus/b", "networks/done", "networks/joint/step-1.pt", "plan.json",
    ]  # fmt: skip
    assert finished.listed(work, ("corpus/*",)) == {"corpus/a", "corpus/b"}
    assert finished.listed(work, ("networks/**/*",)) == {"networks/done", "networks/joint/step-1.pt"}
    assert finished.check(work, FIXED) == []


@pytest.mark.parametrize("name", ["corpus/a", "networks/joint/step-1.pt"])
@pytest.mark.parametrize("content", ["", "corpus/c\n", "other\n"])
def test_a_changed_file_is_named(work: Path, name: str, content: str) -> None:
    (work / name).write_text(content)
    with pytest.raises(DataError, match=rf"{name}: was changed .*; restore it, or remove it, and it is made"):
        finished.check(work, FIXED)


def test_what_no_step_makes_again_has_to_be_there(work: Path) -> None:
    (work / "plan.json").write_text("{}")
    with pytest.raises(DataError, match=rf"plan\.json: was changed .*, or remove {work.parent} to"):
        finished.check(work, FIXED)
    (work / "plan.json").unlink()
    with pytest.raises(DataError, match=r"plan\.json: not there any more"):
        finished.check(work, FIXED)


def test_a_removed_file_is_forgotten_with_all_of_its_step(work: Path) -> None:
    (work / "corpus" / "a").unlink()
    assert finished.check(work, FIXED) == ["corpus/a"]
    finished.forget(work, finished.listed(work, ("corpus/*",)))
    assert not (work / "corpus" / "b").exists() and (work / "networks" / "done").exists()
    assert finished.check(work, FIXED) == [] and not finished.listed(work, ("corpus/*",))
