"""smt-ini, and the checks of smt-moses before it starts a program of Moses."""

import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from smt_bridge.cli import ini
from smt_bridge.cli.moses import main
from smt_bridge.decoder import system as system_module
from smt_bridge.moses import ini as moses_ini
from tests.conftest import refusal
from tests.smt_bridge.decoder.features.test_sparse import model as sparse_model
from tests.smt_bridge.moses.systems import INI, write_system

# ---- test ini ----------------------------------------------------------------------------------------------
# smt-ini: features and weights change together, nothing else changes.


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def system(tmp_path: Path) -> Path:
    return write_system(tmp_path)


def changed_lines(before: str, after: str) -> list[tuple[str, str]]:
    return [pair for pair in zip(before.split("\n"), after.split("\n"), strict=True) if pair[0] != pair[1]]


def test_add_and_remove_a_column(system: Path, command: Command) -> None:
    words = "--name TM0 --weight 0.05 --path new.gz -o".split()
    done = command("smt-ini", "add-feature", system / "moses.ini", *words, system / "new.ini")
    assert done.returncode == 0, done.stderr
    text = (system / "new.ini").read_text()
    assert changed_lines(INI, text) == [
        (
            "PhraseDictionaryMemory name=TM0  num-features=2 path=t input-factor=0 output-factor=0",
            "PhraseDictionaryMemory name=TM0  num-features=3 path=new.gz input-factor=0 output-factor=0",
        ),
        ("TM0= 0.2  0.3", "TM0= 0.2 0.3 0.05"),
    ]
    back = command(
        "smt-ini", "remove-feature", system / "new.ini", "--name", "TM0", "--column", 3, "--path", "t"
    ).stdout
    assert back == INI.replace("TM0= 0.2  0.3", "TM0= 0.2 0.3")


def test_add_and_remove_a_whole_feature(system: Path, command: Command) -> None:
    words = ("--line", "KENLM name=LM1 factor=0 path=lm", "--weight", 0.1, "-o", system / "new.ini")
    done = command("smt-ini", "add-feature", system / "moses.ini", *words)
    assert done.returncode == 0, done.stderr
    text = (system / "new.ini").read_text()
    assert text == INI.replace("order=5\n", "order=5\nKENLM name=LM1 factor=0 path=lm\n").replace(
        "LM0= 0.5\n", "LM0= 0.5\nLM1= 0.1\n"
    )
    assert command("smt-ini", "remove-feature", system / "new.ini", "--name", "LM1").stdout == INI


def test_add_a_sparse_feature(system: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It has no weight in the ini."""
    given = ["add-feature", str(system / "moses.ini")]
    assert ini.main([*given, "--line", "PhraseLengthFeature name=PL"]) == 0
    assert capsys.readouterr().out == INI.replace("order=5\n", "order=5\nPhraseLengthFeature name=PL\n")
    for line in ("", " ", "# x", "[weight]", "WordPenalty name=A\nWordPenalty name=B"):
        assert "is not a line of [feature]" in refusal(
            ini.main, capsys, *given, "--line", line, "--weight", 1
        )
    assert "1 scores, but 0 weights" in refusal(ini.main, capsys, *given, "--line", "WordPenalty name=A")
    assert "give --weight for each" in refusal(ini.main, capsys, *given, "--name", "TM0")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.removesuffix("\n"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text + "\n\n",
    ],
)
def test_ends_of_lines_stay(change: Callable[[str], str], system: Path, command: Command) -> None:
    (system / "moses.ini").write_bytes(change(INI).encode())
    text = command("smt-ini", "add-feature", system / "moses.ini", "--name", "TM0", "--weight", "0.05").stdout
    assert text == change(
        INI.replace("num-features=2", "num-features=3").replace("TM0= 0.2  0.3", "TM0= 0.2 0.3 0.05")
    )


@pytest.mark.ci
def test_set_weights(system: Path, command: Command, refused: Callable[..., str]) -> None:
    (system / "w").write_text("# BLEU 0.5\nTM0= 0.125 -0.25\nLM0= 1e-05\n")
    text = command("smt-ini", "set-weights", system / "moses.ini", "-w", system / "w").stdout
    assert changed_lines(INI, text) == [("TM0= 0.2  0.3", "TM0= 0.125 -0.25"), ("LM0= 0.5", "LM0= 1e-05")]
    assert moses_ini.read_weights(system / "moses.ini")["TM0"] == [0.2, 0.3]
    for line, message in (
        ("XX0= 1", "no feature XX0"),
        ("TM0= 1", "TM0 has 2 scores, but 1 weights"),
        ("TM0=1 2", "is not a weight"),
        ("TM0= a", "not a number"),
    ):
        (system / "w").write_text(line + "\n")
        assert message in refused(command("smt-ini", "set-weights", system / "moses.ini", "-w", system / "w"))


def test_set_sparse_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of a file of smt-tune go to a file beside the output, with others that the ini has; weights are
    read from there, too."""
    model = sparse_model(tmp_path / "model", weights={"WT_a~p": 0.5, "PL_2,1": 0.25, "TWI_p": 1.0})
    weights = moses_ini.read_weights(model / "moses.ini")
    assert (
        weights["WT_a~p"] == [0.5] and weights["LM0"] == moses_ini.read(f"{model}/moses.ini").weights["LM0"]
    )
    tuned = {**weights, "LM0": [0.75], "WT_a~p": [0.125], "SourceWordDeletionFeature0_OTHER": [-2.0]}
    del tuned["PL_2,1"]
    moses_ini.write_weights(tmp_path / "w", tuned)
    given = ["set-weights", str(model / "moses.ini"), "-w", str(tmp_path / "w"), "-q"]
    assert ini.main([*given, "-o", str(tmp_path / "new" / "new.ini")]) == 0
    assert moses_ini.read_weights(tmp_path / "new" / "new.ini") == {**tuned, "PL_2,1": [0.25]}
    assert (tmp_path / "new" / "new.sparse-weights").exists()
    assert ini.main([*given, "-o", str(tmp_path / "new" / "tuned.seed1")]) == 0
    assert (tmp_path / "new" / "tuned.seed1.sparse-weights").exists()  # not that of tuned.seed2, too
    capsys.readouterr()
    assert ini.main(["show", str(tmp_path / "new" / "new.ini")]) == 0
    assert "PL\tPhraseLengthFeature\t0\t(sparse: new.sparse-weights)\t\n" in capsys.readouterr().out
    loaded = system_module.load(str(tmp_path / "new" / "new.ini"), use_cache=False)
    assert loaded.weights["LM0"] == [0.75] and loaded.sparse_weights["WT_a~p"] == 0.125
    assert "go to a file beside the new moses.ini; name a file" in refusal(ini.main, capsys, *given)
    for name, values, message in (
        ("XX_a", [1.0], "a weight of 'XX_a', but the model has no such sparse feature"),
        ("TWI_p", [1.0, 2.0], "TWI_p has 2 weights; give it one"),
    ):
        moses_ini.write_weights(tmp_path / "w", {**weights, name: values})
        assert message in refusal(ini.main, capsys, *given, "-o", tmp_path / "other.ini")


def test_another_file_for_a_feature(system: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ini.main(["set-path", str(system / "moses.ini"), "--name", "LM0", "--path", "other"]) == 0
    assert changed_lines(INI, capsys.readouterr().out) == [
        ("KENLM name=LM0 factor=0 path=lm order=5", "KENLM name=LM0 factor=0 path=other order=5")
    ]
    assert ini.main(["set-path", str(system / "moses.ini"), "--name", "LM7", "--path", "other"]) == 2
    assert "no feature LM7, expected one of" in capsys.readouterr().err


def test_a_path_of_an_option_is_that_of_the_current_folder(
    system: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if a file of the same name is beside the ini, where relative paths are looked up first."""
    new = tmp_path / "filtered"
    new.mkdir()
    (new / "t").write_bytes((system / "t").read_bytes())
    monkeypatch.chdir(new)
    edits = ("set-path", "add-feature --weight 1", "remove-feature --column 1")
    for edit, output in product(edits, (new / "moses.ini", system / "other.ini")):
        words = [*edit.split(), system / "moses.ini", "--name", "TM0", "--path", "t", "-o", output]
        assert ini.main(list(map(str, words))) == 0
        assert moses_ini.read(str(output)).feature("TM0").options["path"] == str(new / "t")


@pytest.mark.ci
def test_edited_into_another_folder_it_is_the_same_system(system: Path, command: Command) -> None:
    """`check` looks up tables relative to the ini, as smt-tune does, unless --root says where Moses will
    start."""
    add = ["smt-ini", "set-weights", system / "moses.ini", "-w", system / "moses.ini"]
    done = command(*add, "-o", "elsewhere/moses.ini", cwd=system.parent)
    assert done.returncode == 0, done.stderr
    for name in (system / "moses.ini", "elsewhere/moses.ini"):
        done = command("smt-ini", "check", name, cwd=system.parent)
        assert done.stdout == f"{name}: nothing wrong\n"
        assert (f"start Moses in {system}" in done.stderr) == (name == system / "moses.ini")
    done = command("smt-ini", "check", system / "moses.ini", "--root", ".", cwd=system.parent)
    assert done.returncode == 2 and "does not exist; it exists relative to" in done.stdout
    assert " path=t " in command(*add, cwd=system.parent).stdout  # no folder, no other paths


def test_paths_relative_to_two_folders(system: Path, command: Command) -> None:
    """Moses looks up all paths in the folder where it is started, so no folder is right."""
    here, ini = system.parent, system / "moses.ini"
    table = f"{system.name}/t"
    mixed = system / "mixed.ini"
    command("smt-ini", "set-path", ini, "--name", "TM0", "--path", table, "-o", mixed, cwd=here)
    done = command("smt-ini", "check", mixed, cwd=here)
    assert done.returncode == 2 and "write absolute paths" in done.stdout and "start Moses" not in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("set-path --name LM0 --path lm -o t", "-o t: is also read"),
        ("set-weights -w w -o r", "-o r: is also read"),
        ("set-weights -w w -o used.ini", "used.sparse-weights: is also read"),
        ("remove-feature --name LM0 --path lm -o new", "--path goes with --column"),
    ],
)
def test_edits_that_are_refused(
    words: str,
    message: str,
    system: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No output replaces a file that the ini names."""
    monkeypatch.chdir(system)
    (system / "moses.ini").write_text(
        INI.replace("[weight]", "WordTranslationFeature name=WT\n[weight]")
        + "[weight-file]\nused.sparse-weights\n"
    )
    (system / "used.sparse-weights").write_text("WT_a~b 1\n")
    (system / "w").write_text("LM0= 1\nWT_a~b= 2\n")
    before = {path.name: path.read_bytes() for path in system.iterdir()}
    action, *more = words.split()
    assert message.replace("-o", "--output") in refusal(ini.main, capsys, action, "moses.ini", *more)
    assert {path.name: path.read_bytes() for path in system.iterdir()} == before


def test_show(system: Path, command: Command) -> None:
    rows = [line.split("\t") for line in command("smt-ini", "show", system / "moses.ini").stdout.split("\n")]
    assert ["TM0", "PhraseDictionaryMemory", "2", "0.2 0.3", "t"] in rows
    assert ["WordPenalty0", "WordPenalty", "1", "-1", ""] in rows


@pytest.mark.ci
def test_real_ini(nmt_data: Path, command: Command) -> None:
    folder = nmt_data / "moses-multi30k"
    done = command("smt-ini", "check", "moses.tuned.ini", cwd=folder)
    assert done.returncode == 0 and done.stdout == "moses.tuned.ini: nothing wrong\n", done.stdout
    text = (folder / "moses.tuned.ini").read_text()
    assert (
        command("smt-ini", "set-weights", folder / "moses.tuned.ini", "-w", folder / "moses.tuned.ini").stdout
        == text
    )


# ---- test moses --------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system in the working directory, and an installation whose programs must not be started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOSES_HOME", str(tmp_path / "moses"))
    for name in ("bin/moses", "bin/processPhraseTableMin"):
        path = tmp_path / "moses" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
        path.chmod(0o755)
    (tmp_path / "text").write_text("a\n")
    return write_system(tmp_path)


DECODE = ["decode", "moses.ini", "-i", "text", "-o", "out"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*DECODE, "-i", "none"], "none"),
        ([*DECODE, "--threads", "0"], "argument --threads"),
        ([*DECODE, "--n-best", "0"], "argument --n-best"),
        ([*DECODE, "--n-best", "5"], "--n-best goes with --n-best-list"),
        ([*DECODE, "--moses", "elsewhere"], "does not exist; is"),
        (["compact", "none", "-o", "x"], "none"),
        (["tune", "moses.ini", "-i", "text", "-r", "none", "--working-dir", "w"], "none"),
        (["train"], "argument ACTION"),
    ],
)
def test_refused(words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in refusal(main, capsys, *words)
    assert not (folder / "started").exists() and not (folder / "out").exists()


@pytest.mark.parametrize("count", [1, 2])
def test_the_first_problem_of_a_system(count: int, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message also has the number of further problems; tables are not read to their ends."""
    changed = INI.replace("LM0= 0.5\n", "").replace("path=lm", "path=gone" if count == 2 else "path=lm")
    (folder / "moses.ini").write_text(changed)
    (folder / "t").write_text((folder / "t").read_text() + "damaged\n")
    line = refusal(main, capsys, *DECODE)
    assert "LM0 has no line in [weight]" in line
    assert ("(1 more: smt-ini check)" in line) == (count == 2)
    assert not (folder / "started").exists()


def test_a_table_is_not_its_own_compact_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "t").rename(folder / "t.minphr")
    assert "is also read" in refusal(main, capsys, "compact", "t.minphr", "-o", "t")
    assert not (folder / "started").exists()
