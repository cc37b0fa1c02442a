"""The folder of a hybrid system: read(write(x)) is x wherever the folder is, and an incomplete or changed
folder is refused in one line."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError, UserError
from nmt.io import manifest
from nmt.text import truecase
from nmt.text.pipeline import SideConfig
from smt_bridge.build.config import WORK
from smt_bridge.build.pipeline import SETTINGS
from smt_bridge.hybrid import folder as folders
from smt_bridge.hybrid.folder import HybridConfig
from tests.smt_bridge.decoder.models import edit, write_model
from tests.smt_bridge.hybrid.systems import add_student, letters


@pytest.fixture
def system(tmp_path: Path) -> Path:
    return letters(tmp_path / "system")


def config(**given: object) -> HybridConfig:
    sides = {"source": SideConfig(language="en"), "target": SideConfig(language="fr")}
    return HybridConfig(**{**sides, **given})  # type: ignore[arg-type]


def test_what_is_written_is_read_wherever_the_folder_is(tmp_path: Path) -> None:
    system = write_model(tmp_path / "system", 1)
    (system / "terms").write_text("a\tb\n")
    truecase.save(truecase.learn([["a", "Paris"]]), system / "truecase.target")
    target = SideConfig(language="fr", case="truecase", normalize=False)
    given = config(target=target, glossary="terms", search={"stack": 7, "beam_threshold": 0.5})
    folders.write_system(system, given)
    moved = tmp_path / "elsewhere and moved"
    system.rename(moved)
    found = folders.read(moved)
    assert found.config == given
    assert found.decoder_config().stack == 7 and found.decoder_config().neural_beam == 500
    assert found.ini == f"{moved}/moses.ini" and found.glossary == f"{moved}/terms"
    assert set(found.parts) == {"moses.ini", "table", "reordering", "lm0", "terms", "truecase.target"}
    assert found.source.words("Don't go!") == ["Don", "&apos;t", "go", "!"]
    assert found.target.text(["vive", "Paris", "!"]) == "Vive Paris !"
    folders.verify(found)


def test_a_student_is_a_part_of_the_folder(system: Path) -> None:
    """A folder of an earlier version has none."""
    content = json.loads((system / folders.FILE).read_text())
    assert content.pop("fast") == ""
    (system / folders.FILE).write_text(json.dumps(content))
    before = folders.read(system)
    assert not before.fast
    with pytest.raises(ConfigError, match=f"{system}: has neither .* smt-build --student adds one"):
        folders.fast_run(before)
    found = folders.read(add_student(system))
    assert found.fast == folders.fast_run(found) == f"{system}/fast"
    added = found.parts.keys() - before.parts.keys()
    assert added == {f"fast/{path.name}" for path in (system / "fast").iterdir() if path.name != "matmul.tsv"}
    folders.verify(found)
    (system / "fast" / "target.vocab").unlink()
    with pytest.raises(DataError, match=r"target\.vocab: No such file"):
        folders.read(system)


def test_only_its_own_folders_are_hybrid(system: Path) -> None:
    assert folders.is_hybrid(system) and not folders.is_hybrid(system / "moses.ini")
    (system / folders.FILE).unlink()
    assert not folders.is_hybrid(system)


def test_a_system_that_is_not_finished(system: Path) -> None:
    """Its moses.ini is not loaded as a model of tokenized text."""
    (system / WORK).mkdir()
    (system / WORK / SETTINGS).touch()
    assert folders.is_hybrid(system)
    (system / folders.FILE).unlink()
    with pytest.raises(ConfigError, match="is not finished"):
        folders.is_hybrid(system)


def test_the_files_of_a_run_are_those_of_its_manifest(tmp_path: Path) -> None:
    system = write_model(tmp_path / "system", 1)
    run = system / "networks" / "joint"
    run.mkdir(parents=True)
    for name in ("version", "step-1.pt", "matmul.tsv"):
        (run / name).write_text(name)
    edit(system, ("Distortion\n", "Distortion\nNNJM name=NNJM0 path=networks/joint\n"))
    folders.write_system(system, config())
    names = {"networks/joint/version", "networks/joint/step-1.pt"}
    assert {name for name in folders.read(system).parts if "/" in name} == names
    manifest.write(run, ["version"])
    folders.write_system(system, config())
    names = {"networks/joint/version", "networks/joint/manifest.json"}
    assert {name for name in folders.read(system).parts if "/" in name} == names


def test_sparse_weights_are_a_part(tmp_path: Path) -> None:
    system = edit(write_model(tmp_path / "system", 1), weight_file="sparse")
    with pytest.raises(DataError, match="sparse: cannot read: No such file"):
        folders.write_system(system, config())
    (system / "sparse").write_text("")
    folders.write_system(system, config())
    assert "sparse" in folders.read(system).parts


def broken(system: Path, **changes: object) -> None:
    content = json.loads((system / folders.FILE).read_text())
    (system / folders.FILE).write_text(json.dumps({**content, **changes}))


BREAK: dict[str, tuple[Callable[[Path], object], str]] = {
    "a missing part": (lambda system: (system / "lm0").unlink(), "lm0: No such file or directory"),
    "another size": (lambda system: (system / "table").write_text("x"), "table: not the file that"),
    "another content": (
        lambda system: (system / "moses.ini").write_text(
            (system / "moses.ini").read_text().replace("3", "4")
        ),
        "moses.ini: not the file that system.json lists",
    ),
    "no system.json": (lambda system: (system / folders.FILE).unlink(), "cannot read"),
    "no JSON": (lambda system: (system / folders.FILE).write_text("{"), "it is not JSON"),
    "a list": (lambda system: (system / folders.FILE).write_text("[]"), "it has no format"),
    "a later version": (
        lambda system: broken(system, format="nmt-system 2"),
        "this version reads 'nmt-system 1': train again",
    ),
    "no files": (lambda system: broken(system, files=None), "damaged"),
    "no size": (lambda system: broken(system, files={"lm0": {}}), "damaged (missing or wrong: 'size')"),
    "its ini not listed": (lambda system: broken(system, files={}), "moses.ini is not in its list"),
    "a student outside": (lambda system: broken(system, fast="../x"), "leads out"),
    "a student not listed": (lambda system: broken(system, fast="x"), "x/version is not in its list"),
    "a path outside": (lambda system: broken(system, files={"../x": {"size": 1, "sha256": ""}}), "leads out"),
    "text settings": (
        lambda system: broken(system, source={"language": "en"}),
        "damaged (missing or wrong: 'case')",
    ),
    "another type": (
        lambda system: broken(
            system, source={"language": "en", "normalize": 1, "tokenize": True, "segment": "auto", "case": ""}
        ),
        "damaged (missing or wrong: normalize)",
    ),
    "no case": (
        lambda system: broken(
            system,
            source={"language": "en", "normalize": True, "tokenize": True, "segment": "auto", "case": "x"},
        ),
        "source.case: 'x' is unknown",
    ),
    "a setting": (lambda system: broken(system, search={"stak": 3}), "did you mean 'stack'"),
    "its range": (lambda system: broken(system, search={"stack": -3}), "search.stack: -3 is out of range"),
}


@pytest.mark.parametrize("name", BREAK)
def test_a_folder_that_is_not_whole_is_refused(name: str, system: Path) -> None:
    harm, message = BREAK[name]
    harm(system)
    with pytest.raises(UserError) as error:
        folders.read(system)
    assert message in str(error.value) and str(system) in str(error.value)


def test_checksums_of_large_parts_are_compared_when_asked(
    system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "QUICK", 100)
    text = (system / "table").read_text()
    (system / "table").write_text(text.replace("a", "b", 1))
    found = folders.read(system)
    with pytest.raises(DataError, match="table: not the file"):
        folders.verify(found)
    (system / "table").write_text(text + "\n")
    with pytest.raises(DataError, match="table: not the file"):
        folders.read(system)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ini": "../moses.ini"}, "leads out of the system's folder"),
        ({"ini": "other.ini"}, "other.ini: cannot read"),
        ({"glossary": "terms"}, "terms: cannot read"),
        ({"search": {"nbest": 3}}, "nbest is not a setting of a system"),
        ({"search": {"explain": True}}, "explain is not a setting of a system"),
        ({"source": SideConfig(language="xx")}, "source.language: 'xx' is unknown"),
        ({"source": SideConfig(language="en", escaped=True)}, "source.escaped"),
        ({"target": SideConfig(language="fr", case="truecase")}, "truecase.target: cannot read"),
    ],
)
def test_nothing_is_written_of_a_system_that_is_not_whole(
    changes: dict[str, object], message: str, tmp_path: Path
) -> None:
    system = write_model(tmp_path / "system", 1)
    with pytest.raises(UserError, match=message):
        folders.write_system(system, config(**changes))
    assert not (system / folders.FILE).exists()


def test_an_absolute_path_in_the_ini_is_refused(tmp_path: Path) -> None:
    system = write_model(tmp_path / "system", 1)
    edit(system, ("path=lm0", f"path={system}/lm0"))
    with pytest.raises(ConfigError, match=r"moses.ini:\d+: path=.*leads out"):
        folders.write_system(system, config())


@pytest.mark.parametrize("name", ["system.json", "moses.ini", "table"])
@pytest.mark.parametrize("harm", ["pipe", "device", "secret"])
def test_a_file_that_a_stranger_put_there(
    harm: str, name: str, system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pipes and devices are not read, and no line of a file elsewhere is shown, not even of a large one of
    the right size."""
    path = system / name
    size = path.stat().st_size
    path.unlink()
    monkeypatch.setattr(folders, "QUICK", 0)
    if harm == "pipe":
        os.mkfifo(path)
    else:
        (system.parent / "secret").write_text("SECRET" * (size // 6) + "X" * (size % 6))
        path.symlink_to("/dev/zero" if harm == "device" else system.parent / "secret")
    with pytest.raises(DataError, match=name) as error:
        folders.read(system)
    assert "SECRET" not in str(error.value)


def test_a_link_to_a_large_part_is_followed(system: Path) -> None:
    """Tables may be on another disk: the file to which the link leads is compared with its checksum."""
    (system / "table").rename(system.parent / "table")
    (system / "table").symlink_to(system.parent / "table")
    assert folders.read(system).folder == system
