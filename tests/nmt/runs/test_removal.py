"""Nothing but a run is ever removed, and nothing of it stays."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nmt import locks
from nmt.errors import CheckpointError, UserError
from nmt.runs import directory as run_directory
from nmt.runs import removal


def make(directory: Path, step: int = 1) -> None:
    with run_directory.writing(directory) as new:
        (new / "config.yaml").write_text("run: x\n")
        (new / f"step-{step}.pt").write_text("weights")
        run_directory.write_index(new, step, step)
        run_directory.write_version(new)


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def version(folder: Path) -> None:
    (folder / "version").write_text("1.2.3\n")


def right_version(folder: Path) -> None:
    (folder / "version").write_text("nmt-run 1\n")
    (folder / "config.yaml").write_text("site: mine\n")


def no_config(folder: Path) -> None:
    (folder / "version").write_text("nmt-run 1\n")
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
        removal.remove(tmp_path)
    assert names(tmp_path) == before


def test_only_files_of_a_run_are_removed(tmp_path: Path) -> None:
    make(tmp_path)
    mine = [
        "notes.txt",
        "src/main.c",
        "data/train.en",
        "tensorboard/plot.png",
        "step-mine.pt",
        "step-3.pt.bak",
        "thesis.part",
        "source.vocab.old",
    ]
    ours = [
        "data/source.ids",
        "data/stamp.json",
        "data/manifest.json",
        "data/.lock",
        "data/target.ids.part",
        "tensorboard/events.out.tfevents.1.x",
    ]
    ours += [
        "train.tsv",
        "dev.tsv",
        "matmul.tsv",
        "training.pt",
        "source.codes",
        "dictionary",
        "step-7.pt",
        "step-8.pt.part12",
        "inputs.json",
        "new.part/step-9.pt",
    ]
    for name in (*mine, *ours):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    removal.remove(tmp_path)
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
                removal.remove(tmp_path)
        monkeypatch.setattr(Path, "unlink", real)
        removal.remove(tmp_path)
        assert locks.is_empty(tmp_path)
        if limit == 5:
            return


def test_a_link_to_data_is_not_followed(tmp_path: Path) -> None:
    make(tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "source.ids").write_text("x")
    (tmp_path / "run" / "data").symlink_to(tmp_path / "elsewhere")
    removal.remove(tmp_path / "run")
    assert (tmp_path / "elsewhere" / "source.ids").exists()


def refused(folder: Path) -> bool:
    try:
        removal.check_place(folder, overwrite=False)
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
    for name in (
        "config.yaml",
        "data",
        "x.part",
    ):  # version 0.5 took such a folder for its own and wrote over config.yaml
        (tmp_path / name[0]).mkdir()
        (tmp_path / name[0] / name).write_text("")
        assert refused(tmp_path / name[0])
