"""smt-build as installed: from raw text to a hybrid folder; killed at any moment, with any number of workers,
the same bytes."""

import json
import resource
import shutil
import subprocess
import time
from pathlib import Path
from subprocess import DEVNULL
from types import ModuleType

import pytest

from smt_bridge.build import evaluation, plan, plan_file
from smt_bridge.build.corpus import Texts
from smt_bridge.hybrid import folder as hybrid
from tests.conftest import BIN, HANG, Command, load_recipe
from tests.smt_bridge.build.builds import config, write_plan

NETWORKS = ("attention", "joint", "cslm")
UNEQUAL = (".lock", "report.html")  # who worked there; how long it took


def words(folder: Path, grammar: ModuleType, *more: str) -> list[str]:
    """The command of a small build."""
    made = config(folder, grammar, 200)
    plan = write_plan(folder / "plan.json", *NETWORKS)
    texts = ["--source", made.source, "--target", made.target]
    dev = ["--dev-source", made.dev_source, "--dev-target", made.dev_target]
    return ["smt-build", *texts, *dev, "--plan", plan, "--output", made.output, "-q", *more]


def system(folder: Path) -> dict[str, bytes]:
    """The files of a hybrid folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in UNEQUAL and path.relative_to(folder).parts[0] != "build"
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, grammar: ModuleType, command: Command) -> Path:
    """A system with all networks, never disturbed."""
    folder = tmp_path_factory.mktemp("built")
    done = command(*words(folder, grammar, "--workers", "1"))
    assert done.returncode == 0, done.stderr
    return folder / "system"


@pytest.mark.ci
def test_two_workers_build_the_same_as_one(
    built: Path, tmp_path: Path, grammar: ModuleType, command: Command
) -> None:
    done = command(*words(tmp_path, grammar, "--workers", "2"))
    assert done.returncode == 0, done.stderr
    assert system(tmp_path / "system") == system(built)
    assert set(hybrid.read(built).parts) <= set(system(built))


@pytest.mark.ci
def test_killed_again_and_again_the_same_system(
    built: Path, tmp_path: Path, grammar: ModuleType, command: Command
) -> None:
    """kill -9 as soon as each of these appears, from the first record to the last step."""
    place = tmp_path / "with a blank"
    place.mkdir()
    given, folder = words(place, grammar), place / "system"
    for after in (
        "build/build.json*", "build/corpus/train.source*", "build/model/train.json",
        "build/dev/phrase-based.tuning/00.npz",
        "build/runs/joint/version", "build/runs/attention/step-*", "build/dev/hybrid.tuning/00.npz",
        "build/dev/outputs/*", "networks/joint*", "moses.ini*",
    ):  # fmt: skip
        process = subprocess.Popen([str(BIN / given[0]), *given[1:]], stdout=DEVNULL, stderr=DEVNULL)
        end = time.monotonic() + HANG
        while not list(folder.glob(after)) and process.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        assert process.poll() is None, f"it ended before {after} was there"
        process.kill()
        process.wait()
    done = command(*given)
    assert done.returncode == 0, done.stderr
    assert system(folder) == system(built)
    assert not list(folder.rglob("*.part*"))


@pytest.mark.ci
def test_a_moved_system_translates_the_same(built: Path, tmp_path: Path, command: Command) -> None:
    """Raw text to raw text, as the build itself has translated it."""
    moved = tmp_path / "else where"
    shutil.copytree(built, moved, ignore=shutil.ignore_patterns("build"))
    texts = Texts(built / "build")
    chosen = json.loads((built / "build" / evaluation.FILE).read_text())["chosen"]
    words = (built / "build" / "dev" / evaluation.OUTPUTS / chosen).read_text().split("\n")[:5]
    expected = [hybrid.read(built).target_text(line.split(" ")) for line in words]
    done = command(
        "smt-decode", moved, "-q", input="".join(f"{line}\n" for line in texts.lines("raw.source")[:5])
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(f"{line}\n" for line in expected)


@pytest.mark.slow  # five minutes are what it is about
def test_a_budget_of_five_minutes_is_kept(tmp_path: Path, command: Command) -> None:
    """On a few thousand pairs of the quickstart's grammar. What counts is processor time, whatever else the
    machine does: two processors have ten minutes of it in five."""
    corpus, writer = load_recipe("corpus"), load_recipe("grammar").Writer(7)
    pairs = corpus.sentences(writer, 4500)
    grammar = load_recipe("grammar")
    for name, some in (("train", pairs[:4000]), ("dev", pairs[4000:])):
        for side, language in (("source", "en"), ("target", "fr")):
            text = "".join(grammar.text(getattr(pair, side)) + "\n" for pair in some)
            (tmp_path / f"{name}.{language}").write_text(text, encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = command(
        "smt-build", "--source", "train.en", "--target", "train.fr", "--dev-source", "dev.en", "--dev-target",
        "dev.fr", "--output", "system", "--budget", "5m", "-q", cwd=tmp_path, installed=True,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    found = hybrid.read(tmp_path / "system")
    assert "networks/joint/config.yaml" in found.parts
    planned = plan_file.read(tmp_path / "system" / "build" / plan.FILE)
    assert planned.has("joint") and planned.total() <= 300
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert took < 1.2 * 300, f"{took:.0f} s of processor time"
