"""Folders above an output are made when it is written, and are gone when it is not."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from nmt import files, folders, locks
from nmt.errors import UserError
from tests.conftest import Command


def test_missing_folders_are_made(tmp_path: Path) -> None:
    with files.Writing(tmp_path / "a" / "b" / "out") as out:
        out.write("x\n")
    assert (tmp_path / "a" / "b" / "out").read_text() == "x\n"


def test_after_an_error_they_are_gone_but_those_that_were_there_stay(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(ValueError, match="stop"), ExitStack() as stack:
        for name in ("there/new/a", "there/new/b", "other/c"):
            stack.enter_context(files.Writing(tmp_path / name))
        raise ValueError("stop")
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]


def test_a_folder_that_holds_another_file_by_now_stays(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stop"), files.Writing(tmp_path / "a" / "out"):
        (tmp_path / "a" / "other").touch()
        raise ValueError("stop")
    assert (tmp_path / "a" / "other").exists() and not (tmp_path / "a" / "out").exists()


def test_a_mistyped_name_below_the_root_is_refused() -> None:
    for name in ("/nosuchroot/out", "/nosuchroot/deep/out"):
        with pytest.raises(UserError, match=f"{name}: cannot write: No such file"), files.Writing(name):
            pass
    assert not Path("/nosuchroot").exists()


def test_a_file_in_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file/out", "file/deep/out"):
        with pytest.raises(UserError, match="Not a directory"), files.Writing(tmp_path / name):
            pass


def test_those_above_a_lock_go_with_it(tmp_path: Path) -> None:
    with locks.locked(tmp_path / "a" / "b" / "job", "me"):
        assert (tmp_path / "a" / "b" / "job").is_dir()
    assert list(tmp_path.iterdir()) == []
    with locks.locked(tmp_path / "a" / "job", "me"):
        (tmp_path / "a" / "out").touch()
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["out"]


def test_parents_of_nothing_missing(tmp_path: Path) -> None:
    with folders.parents(tmp_path / "out"):
        pass
    assert tmp_path.is_dir()


COMMANDS = {
    "nmt-clean": (
        ["--source", "train.en", "--target", "train.fr", "--output-source", "new/x/en", "--output-target"],
        ["new/x/fr"],
    ),
    "nmt-tokenize": (["-l", "en", "-i", "train.en", "-o"], ["new/x/en"]),
    "nmt-vocab": (["-i", "train.en", "-o"], ["new/x/vocab"]),
    "nmt-ngram": (["--order", "2", "-i", "train.fr", "-o"], ["new/x/lm.arpa.gz"]),
    "nmt-subword": (["learn", "--merges", "9", "-i", "train.fr", "-o"], ["new/x/codes"]),
    "smt-filter-table": (["table.gz", "--input", "dev.en", "--output"], ["new/x/table.gz"]),
    "smt-score-table": (["table.gz", "--feature", "lm=lm.arpa", "--output"], ["new/x/table.gz"]),
    "smt-align": (["-s", "train.en", "-t", "train.fr", "-o"], ["new/x/aligned.gz"]),
    "smt-ini": (
        ["add-feature", "model/moses.ini", "--name", "TranslationModel0", "--weight", "0", "-o"],
        ["new/x/ini"],
    ),
}


@pytest.mark.ci
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_make_them(name: str, examples: Path, command: Command, refused: Callable[..., str]) -> None:
    """Of every kind of writing; a command that fails leaves none behind."""
    given, output = COMMANDS[name]
    wrong = [
        word if word not in ("train.en", "table.gz", "train.fr", "model/moses.ini") else "bad"
        for word in given
    ]
    (examples / "bad").write_bytes(b"a \xe9\n")
    refused(command(name, *wrong, *output, cwd=examples))
    assert not (examples / "new").exists()
    done = command(name, *given, *output, cwd=examples)
    assert done.returncode == 0, done.stderr
    assert (examples / output[0]).stat().st_size
