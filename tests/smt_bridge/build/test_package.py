"""The folder that a build ends with."""

import json
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.io import files, manifest
from smt_bridge import train_system
from smt_bridge.build import package
from smt_bridge.build.config import Build, BuildConfig
from smt_bridge.config import TrainConfig
from smt_bridge.hybrid import folder as hybrid
from smt_bridge.moses import ini as moses_ini
from tests.smt_bridge.build.builds import small_plan


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Up to its last step, with files of no meaning."""
    (tmp_path / "terms").write_text("a\tb\n")
    config = BuildConfig(
        "a.en", "a.fr", "b.en", "b.fr", str(tmp_path / "system"), glossary=str(tmp_path / "terms")
    )
    made = Build(config, small_plan("joint"))
    for name in package.TABLES:
        files.write_text(made.work / "model" / name, [f"all of {name}"])
    for name in ("source", "target"):
        files.write_text(made.work / "corpus" / f"truecase.{name}", ["the (1/1)"])
    train_system.write_ini(made.work / "dev" / "hybrid.ini", TrainConfig("a", "b"))
    ini = moses_ini.read(str(made.work / "dev" / "hybrid.ini"))
    ini = moses_ini.set_path(ini, "LM0", "../model/lm.arpa.gz")
    ini = moses_ini.add_feature(ini, "NNJM name=NNJM0 factor=0 path=../networks/joint", [0.1])
    files.write_text(made.work / "dev" / "hybrid.ini", ini.lines)
    run = made.work / "networks" / "joint"
    files.write_text(run / "config.yaml", ["run: runs/joint"])
    manifest.write(run, ["config.yaml"])
    found = {"chosen": "hybrid", "whole": {}, "lists": 0.5, "without": {}}
    (made.work / "evaluation.json").write_text(json.dumps(found))
    monkeypatch.setattr("smt_bridge.build.report.gather_facts", lambda build: None)
    monkeypatch.setattr("smt_bridge.build.report.write", lambda path, facts: path.write_text("report"))
    return made


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "build" not in path.relative_to(folder).parts
    }


def test_the_folder_works_wherever_it_is_moved(build: Build, tmp_path: Path) -> None:
    package.package(build)
    moved = tmp_path / "else where" / "copy"
    shutil.copytree(build.folder, moved)
    shutil.rmtree(build.folder)
    shutil.rmtree(moved / "build")
    found = hybrid.read(moved)
    ini = moses_ini.read(found.ini)
    paths = [feature.options["path"] for feature in ini.features if "path" in feature.options]
    assert paths == [*package.TABLES, "networks/joint"] and all((moved / path).exists() for path in paths)
    assert found.decoder_config().stack == 100 and found.decoder_config().neural_beam == 200
    assert (moved / "glossary.tsv").read_text() == "a\tb\n"
    assert found.glossary == str(moved / "glossary.tsv")
    assert "networks/joint/config.yaml" in found.parts


def test_the_tables_are_the_full_ones_byte_for_byte(build: Build) -> None:
    package.package(build)
    for name in package.TABLES:
        assert (build.folder / name).read_bytes() == (build.work / "model" / name).read_bytes()


def test_packing_again_after_a_kill_gives_the_same_folder(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    package.package(build)
    whole = contents(build.folder)
    for name in ("moses.ini", "networks/joint/config.yaml", hybrid.FILE):
        (build.folder / name).unlink()
    (build.folder / "networks" / "joint.part").mkdir()
    package.package(build)
    assert contents(build.folder) == whole


@pytest.fixture
def small_files() -> Iterator[None]:
    """Files of at most 5,000 bytes, as `ulimit -f` sets it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("name", ["networks/joint/step-1.pt", "model/lm.arpa.gz"])
def test_a_file_that_grows_too_large_is_named_and_nothing_of_it_is_left(
    name: str, build: Build, request: pytest.FixtureRequest
) -> None:
    (build.work / name).write_bytes(bytes(9000))
    request.getfixturevalue("small_files")
    with pytest.raises(UserError, match=f"{Path(name).name}.*: cannot write: File too large"):
        package.package(build)
    assert not list(build.folder.rglob("*.part*")) and not (build.folder / hybrid.FILE).exists()
    assert not (build.folder / "networks" / "joint").exists()


def test_a_phrase_based_system_has_no_networks(build: Build) -> None:
    found = {"chosen": "phrase-based", "whole": {}, "lists": 0.5, "without": {}}
    (build.work / "evaluation.json").write_text(json.dumps(found))
    train_system.write_ini(build.work / "dev" / "phrase-based.ini", TrainConfig("a", "b"))
    package.package(build)
    assert not (build.folder / "networks").exists()
    assert "NNJM" not in (build.folder / "moses.ini").read_text()
