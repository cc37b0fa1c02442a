"""The source distribution and the wheel made from it: complete, described correctly, and of use outside a
clone. Nothing is downloaded: the libraries are those of this environment."""

import configparser
import email
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import nmt
from tests.conftest import HANG, tiny_config, write_corpus

ROOT = Path(__file__).resolve().parents[1]
BUILD = "import sys; from setuptools import build_meta as b; getattr(b, 'build_' + sys.argv[1])(sys.argv[2])"


def run(line: list[str], folder: Path) -> str:
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "NMT_PLUGINS")}
    done = subprocess.run(
        line, cwd=folder, env=env, capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def untracked(folder: str, names: list[str]) -> set[str]:
    made = {"build", "dist", "runs"} if Path(folder) == ROOT else set()
    return {
        name for name in names if name.startswith(".") or name.endswith((".egg-info", "__pycache__"))
    } | made


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution of this tree."""
    pytest.importorskip("setuptools")
    folder = tmp_path_factory.mktemp("sdist")
    shutil.copytree(ROOT, folder / "clone", ignore=untracked)
    run([sys.executable, "-c", BUILD, "sdist", str(folder)], folder / "clone")
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    return next(path for path in folder.glob("nmt_smt-*") if path.is_dir())


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that pip makes of the source distribution."""
    folder = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-c", BUILD, "wheel", str(folder)], sdist)
    return next(folder.glob("*.whl"))


def ours(*folders: str) -> set[str]:
    found = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    return {str(path.relative_to(ROOT)) for path in found if "__pycache__" not in path.parts}


def test_the_conda_recipe_is_that_of_the_package() -> None:
    """Its version, what it needs and its commands are those of setup.cfg; PyTorch has another name there."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    recipe = yaml.safe_load(
        (ROOT / "docs/conda/meta.yaml").read_text("utf-8").replace("{{ PYTHON }}", "python")
    )
    needed = config["options"]["install_requires"].replace(" ", "").split()
    run = [line.replace(" ", "").replace("pytorch", "torch") for line in recipe["requirements"]["run"]]
    assert run == ["python" + config["options"]["python_requires"], *needed]
    commands = config["options.entry_points"]["console_scripts"].strip().split("\n")
    assert recipe["build"]["entry_points"] == commands
    assert recipe["package"]["version"] == nmt.__version__
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == nmt.__version__.removesuffix(".dev0")


@pytest.mark.ci
def test_the_source_distribution_is_a_clone(sdist: Path) -> None:
    there = {str(path.relative_to(sdist)) for path in sdist.rglob("*") if path.is_file()}
    assert ours("nmt", "smt_bridge", "docs", "recipes", "tests") - there == set()
    names = {path.name for path in ROOT.iterdir() if path.is_file() and not path.name.startswith(".")}
    assert names - there == set()


@pytest.mark.ci
def test_the_wheel_has_all_files_of_the_packages_and_no_others(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert ours("nmt", "smt_bridge") - names == set()
    assert {name.partition("/")[0].split("-")[0] for name in names} == {"nmt", "smt_bridge", "nmt_smt"}


@pytest.mark.ci
def test_the_description_is_that_of_the_readme(wheel: Path) -> None:
    """In the form of a package index; links in it that need no clone are whole."""
    archive = zipfile.ZipFile(wheel)
    text = archive.read(next(name for name in archive.namelist() if name.endswith("METADATA"))).decode()
    about = email.message_from_string(text)
    assert about["Description-Content-Type"] == "text/markdown" and about["License-File"] == "LICENSE"
    assert about.get_payload() == (ROOT / "README.md").read_text()
    torch = next(line for line in about.get_all("Requires-Dist", []) if line.startswith("torch"))
    version = next(
        row for row in (ROOT / "constraints.txt").read_text().split("\n") if row.startswith("torch==")
    )
    tested = tuple(map(int, re.findall(r"\d+", version)[:2]))
    least, limit = (tuple(map(int, found.split("."))) for found in re.findall(r"[<>]=?([\d.]+)", torch)[::-1])
    assert least <= tested < limit and limit[1] == tested[1] + 1, torch
    assert f"torch>=2.{least[1]},<2.{limit[1]}" in (ROOT / "README.md").read_text()


@pytest.mark.ci
def test_installed_it_trains_outside_a_clone(wheel: Path, tmp_path: Path, grammar: ModuleType) -> None:
    """A fresh environment, whose libraries are those of this one."""
    place = tmp_path / "venv"
    venv.create(place, symlinks=True)
    python, translate, train = (
        str(place / "bin" / name) for name in ("python", "nmt-translate", "nmt-train")
    )
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index"]
    run([*pip, str(wheel)], tmp_path)
    packages = run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], tmp_path).strip()
    (Path(packages) / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    assert packages in run([python, "-c", "import nmt; print(nmt.__file__)"], tmp_path)
    assert "RUN_DIR" in run([translate, "--help"], tmp_path)
    write_corpus(tmp_path, grammar, 100, seed=3)
    (tmp_path / "train.yaml").write_text(tiny_config(tmp_path).replace("max_steps: 60", "max_steps: 2"))
    run([train, "train.yaml", "-q"], tmp_path)
    text = run([translate, "run", "-i", "dev.en", "-q", "--max-length", "5"], tmp_path)
    assert text.count("\n") == 20
    run([train, "train.yaml", "--preset", "small", "--print-config"], tmp_path)
