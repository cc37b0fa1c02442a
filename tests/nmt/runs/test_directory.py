"""Which files are ours, how they get their names, and that nothing else is ever removed."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from nmt import manifest
from nmt.errors import CheckpointError
from nmt.runs import directory as run_directory


def make(directory: Path, step: int = 1) -> None:
    with run_directory.writing(directory) as new:
        (new / "config.yaml").write_text("run: x\n")
        (new / f"step-{step}.pt").write_text("weights")
        run_directory.write_index(new, step, step)
        run_directory.write_version(new)


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_files_come_together_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    publish = manifest.publish

    def noting(folder: str | Path, parts: Mapping[str, Path], drop: Iterable[str]) -> None:
        order.extend(parts)
        publish(folder, parts, drop)

    monkeypatch.setattr(manifest, "publish", noting)
    make(tmp_path / "run")
    assert order == ["config.yaml", "step-1.pt", "checkpoints.json", "version"]
    assert names(tmp_path / "run") == {*order, "manifest.json"} and manifest.verify(tmp_path / "run", order)
    assert (
        run_directory.find_step(tmp_path / "run", "best")
        == 1
        == run_directory.find_step(tmp_path / "run", "1")
    )


def test_a_folder_with_a_configuration_stands_for_its_run(tmp_path: Path) -> None:
    """As nmt-init makes it. A run has a configuration, too, and stands for itself."""
    (tmp_path / "new").mkdir()
    assert run_directory.resolve(tmp_path / "new") == tmp_path / "new"
    (tmp_path / "new" / "config.yaml").write_text("run: new/en-fr\n")
    assert run_directory.resolve(tmp_path / "new") == tmp_path / "new"
    with pytest.raises(CheckpointError, match=r"no run yet; train it: nmt-train .*new$"):
        run_directory.check_version(tmp_path / "new")
    make(tmp_path / "new" / "en-fr")
    assert run_directory.resolve(tmp_path / "new") == tmp_path / "new" / "en-fr"
    make(tmp_path / "new" / "en-fr" / "below")
    assert run_directory.resolve(tmp_path / "new" / "en-fr") == tmp_path / "new" / "en-fr"
    make(tmp_path / "new" / "second")
    with pytest.raises(CheckpointError, match=r"several runs.*new/en-fr, .*new/second$"):
        run_directory.check_version(run_directory.resolve(tmp_path / "new"))
    for name in ("missing", "x" * 5000, "\0"):
        assert run_directory.resolve(name) == Path(name)


def test_a_checkpoint_that_is_not_there_lists_those_that_are(tmp_path: Path) -> None:
    make(tmp_path / "run", 7)
    (tmp_path / "run" / "step-12.pt").write_text("weights")
    with pytest.raises(CheckpointError, match=r"update 99; it has those of 7, 12 "):
        run_directory.find_step(tmp_path / "run", "99")


def test_an_error_changes_nothing(tmp_path: Path) -> None:
    make(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(KeyError), run_directory.writing(tmp_path, drop=("step-1.pt",)) as new:
        (new / "config.yaml").write_text("other")
        raise KeyError
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def test_steps_are_those_of_digits(tmp_path: Path) -> None:
    for name in (
        "step-10.pt",
        "step-9.pt",
        "step-².pt",
        "step-mine.pt",
        "step-1.pt.part",
        f"step-{'9' * 200}.pt",
    ):
        (tmp_path / name).write_text("")
    assert run_directory.steps(tmp_path) == [9, 10]


@pytest.mark.parametrize(
    "text", ["", "[]", "7", '{"best": "²"}', '{"best": null}', '{"best": ' + "9" * 5000 + "}", "[" * 9000]
)
def test_a_damaged_index_is_one_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "checkpoints.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"checkpoints\.json: cannot find checkpoint 'best'"):
        run_directory.find_step(tmp_path, "best")


@pytest.mark.parametrize("which", ["²", "", "-1", "newest", "9" * 5000])
def test_what_is_no_step_is_refused(which: str, tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(CheckpointError) as error:
        run_directory.find_step(tmp_path, which)
    assert len(str(error.value)) < 300 + len(str(tmp_path))


def test_a_sweep_takes_what_a_kill_has_left(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "new.part").mkdir()
    for name in (
        "new.part/step-5.pt",
        "step-5.pt.part77",
        "manifest.json.part1-2",
        "mine.part",
        "train.en.part3",
    ):
        (tmp_path / name).write_text("x")
    run_directory.sweep(tmp_path)
    assert names(tmp_path) == {
        "config.yaml",
        "step-1.pt",
        "checkpoints.json",
        "version",
        "manifest.json",
        "mine.part",
        "train.en.part3",
    }


def test_an_old_run_gets_a_manifest_once(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "manifest.json").unlink()
    run_directory.verify(tmp_path)
    run_directory.adopt(tmp_path)
    content = json.loads((tmp_path / "manifest.json").read_text())
    assert sorted(content["files"]) == ["checkpoints.json", "config.yaml", "step-1.pt", "version"]
    (tmp_path / "config.yaml").write_text("run: y\n")
    run_directory.adopt(tmp_path)  # what it knows stays
    with pytest.raises(CheckpointError, match=r"config\.yaml: damaged"):
        run_directory.verify(tmp_path)


def test_a_file_that_the_manifest_lists_or_does_not_list(tmp_path: Path) -> None:
    """A lost file of codes would leave words uncut, one put there would cut them: both are told."""
    make(tmp_path)
    (tmp_path / "source.codes").write_text("#version: 0.2\n")
    with pytest.raises(CheckpointError, match=r"source\.codes: not in manifest"):
        run_directory.verify(tmp_path)
    (tmp_path / "source.codes").unlink()
    (tmp_path / "config.yaml").unlink()
    with pytest.raises(CheckpointError, match=r"config\.yaml: not there, but manifest\.json lists it"):
        run_directory.verify(tmp_path)


def test_the_files_of_a_model(tmp_path: Path) -> None:
    """Of run directories those that their manifest lists, else all that no machine adds."""
    for name in ("weights", "matmul.tsv", ".lock", "log"):
        (tmp_path / name).touch()
    assert run_directory.parts_of(tmp_path / "log") == [tmp_path / "log"]
    assert sorted(run_directory.parts_of(tmp_path)) == [tmp_path / "log", tmp_path / "weights"]
    manifest.write(tmp_path, ["weights"])
    assert sorted(run_directory.parts_of(tmp_path)) == [tmp_path / "manifest.json", tmp_path / "weights"]
