"""Which files are ours, how they get their names, and that nothing else is ever removed."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from nmt.errors import CheckpointError, UserError
from nmt.io import locks, manifest
from nmt.runs import directory as run_directory

# ---- test directory ----------------------------------------------------------------------------------------


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

    monkeypatch.setattr("nmt.io.manifest.publish", noting)
    make(tmp_path / "run")
    assert order == ["config.yaml", "step-1.pt", "checkpoints.json", "version"]
    assert names(tmp_path / "run") == {*order, "manifest.json"}
    manifest.verify(tmp_path / "run", order)
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
    manifest.write(tmp_path, ["checkpoints.json"])
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
        "new.part/step-5.pt step-5.pt.part77 manifest.json.part1-2 mine.part train.en.part3"
    ).split():
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


def test_a_file_that_the_manifest_lists_or_does_not_list(tmp_path: Path) -> None:
    """A lost file of codes would leave words uncut, one put there would cut them: both are told."""
    make(tmp_path)
    (tmp_path / "source.codes").write_text("#version: 0.2\n")
    with pytest.raises(CheckpointError, match=r"source\.codes: not in manifest"):
        run_directory.verify(tmp_path)
    (tmp_path / "source.codes").unlink()
    (tmp_path / "config.yaml").unlink()
    with pytest.raises(CheckpointError, match=r"config\.yaml: missing, but manifest\.json lists it"):
        run_directory.verify(tmp_path)


def test_the_files_of_a_model(tmp_path: Path) -> None:
    """Of run directories those that their manifest lists, else all that no machine adds."""
    for name in ("weights", "matmul.tsv", ".lock", "log"):
        (tmp_path / name).touch()
    assert run_directory.model_files(tmp_path / "log") == [tmp_path / "log"]
    assert sorted(run_directory.model_files(tmp_path)) == [tmp_path / "log", tmp_path / "weights"]
    manifest.write(tmp_path, ["weights"])
    assert sorted(run_directory.model_files(tmp_path)) == [tmp_path / "manifest.json", tmp_path / "weights"]


# ---- test removal ------------------------------------------------------------------------------------------
# Nothing but a run is ever removed, and nothing of it stays.


def version(folder: Path) -> None:
    (folder / "version").write_text("1.2.3\n")


def right_version(folder: Path) -> None:
    (folder / "version").write_text("nmt-run 2\n")
    (folder / "config.yaml").write_text("site: mine\n")


def no_config(folder: Path) -> None:
    (folder / "version").write_text("nmt-run 2\n")
    (folder / "source.vocab").write_text("mine")


def another_version(folder: Path) -> None:
    make(folder)
    (folder / "version").write_text("nmt-run 3\n")


@pytest.mark.parametrize(
    "fill",
    [version, right_version, no_config, another_version, lambda folder: None],
    ids=lambda fill: fill.__name__,
)
def test_only_what_is_provably_a_run_is_removed(fill: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.c").write_text("years of work")
    fill(tmp_path)
    before = names(tmp_path)
    with pytest.raises(CheckpointError, match="does not remove it"):
        run_directory.remove_run(tmp_path)
    assert names(tmp_path) == before


def test_only_files_of_a_run_are_removed(tmp_path: Path) -> None:
    make(tmp_path)
    mine = (
        "notes.txt src/main.c data/train.en tensorboard/plot.png step-mine.pt step-3.pt.bak thesis.part "
        "source.vocab.old"
    ).split()
    ours = (
        "data/source.ids data/stamp.json data/manifest.json data/.lock data/target.ids.part "
        "tensorboard/events.out.tfevents.1.x"
    ).split()
    ours += (
        "train.tsv dev.tsv matmul.tsv training.pt source.codes dictionary step-7.pt step-8.pt.part12 "
        "inputs.json new.part/step-9.pt"
    ).split()
    for name in (*mine, *ours):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    run_directory.remove_run(tmp_path)
    assert names(tmp_path) == {*mine, "src", "data", "tensorboard"}


def test_a_removal_that_was_cut_off_can_be_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off before each file in turn."""
    real, removed = Path.unlink, 0
    for limit in range(99):
        make(tmp_path)
        removed = 0

        def cut(self: Path, missing_ok: bool = False, limit: int = limit) -> None:
            nonlocal removed
            if self.exists():
                if removed == limit:
                    raise OSError(5, "Input/output error", str(self))
                removed += 1
            real(self, missing_ok=missing_ok)

        monkeypatch.setattr(Path, "unlink", cut)
        if limit < 5:
            with pytest.raises(UserError, match="cannot remove"):
                run_directory.remove_run(tmp_path)
        monkeypatch.setattr(Path, "unlink", real)
        run_directory.remove_run(tmp_path)
        assert locks.is_empty(tmp_path)
        if limit == 5:
            return


def test_a_link_to_data_is_not_followed(tmp_path: Path) -> None:
    make(tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "source.ids").write_text("x")
    (tmp_path / "run" / "data").symlink_to(tmp_path / "elsewhere")
    run_directory.remove_run(tmp_path / "run")
    assert (tmp_path / "elsewhere" / "source.ids").exists()


def refused(folder: Path) -> bool:
    try:
        run_directory.check_folder(folder, overwrite=False)
    except CheckpointError as error:
        assert "exists and is not a run directory" in str(error)
        return True
    return False


def test_a_start_of_ours_is_told_from_a_folder_of_the_users(tmp_path: Path) -> None:
    assert not refused(tmp_path) and not refused(tmp_path / "nosuch")
    make(tmp_path)
    assert not refused(tmp_path)
    (tmp_path / "version").unlink()
    for name in ("manifest.json.part1-2", ".lock", "new.part"):
        (tmp_path / name).write_text("")
    assert not refused(tmp_path)
    (tmp_path / "notes").write_text("")
    assert refused(tmp_path) and refused(tmp_path / "notes")
    for name in ("config.yaml", "data", "x.part"):
        (tmp_path / name[0]).mkdir()
        (tmp_path / name[0] / name).write_text("")
        assert refused(tmp_path / name[0])
