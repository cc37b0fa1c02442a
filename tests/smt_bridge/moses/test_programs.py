"""smt-moses with stand-in programs that record their arguments; no real Moses is needed."""

import gzip
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.io import locks
from smt_bridge.cli.moses import main
from smt_bridge.moses.programs import ended_text
from tests.smt_bridge.moses.systems import INI, REORDERING, TABLE

Command = Callable[..., subprocess.CompletedProcess[str]]
LISTS = 'while [ $# -gt 0 ]; do [ "$1" = -n-best-list ] && echo list > "$2"; shift; done\n'
RECORD = 'printf "%s\\n" "$(basename "$0")" "$@" > "{log}"\n'


@pytest.fixture
def moses(tmp_path: Path) -> Path:
    """A system in tmp_path, and an installation in tmp_path/moses whose decoder echoes its input, and whose
    scripts write their outputs."""
    for name, text in (
        ("moses.ini", INI),
        ("t", TABLE),
        ("r", REORDERING),
        ("lm", "x"),
        ("text", "a b\n\nc\n"),
        ("ref", "x\ny\nz\n"),
    ):
        (tmp_path / name).write_text(text)
    root = tmp_path / "moses"
    (root / "bin").mkdir(parents=True)
    (root / "scripts" / "training").mkdir(parents=True)
    record = RECORD.format(log=tmp_path / "log")
    programs = {
        "bin/moses": f"#!/bin/sh\n{record}{LISTS}cat\n",
        "bin/processPhraseTableMin": f'#!/bin/sh\n{record}echo compact > "$4.minphr"\n',
    }
    perl = 'open(L, ">", "{log}"); print L map {{"$_\\n"}} "{name}", @ARGV; close L;\n{rest}'
    made = 'mkdir $d; open(I, ">", "$d/moses.ini"); print I "x"; close I;\n'
    scripts = {
        "scripts/training/filter-model-given-input.pl": perl.format(
            log=tmp_path / "log", name="filter", rest="$d = $ARGV[0]; " + made
        ),
        "scripts/training/mert-moses.pl": perl.format(
            log=tmp_path / "log",
            name="mert",
            rest='for $i (0..$#ARGV) { $d = $ARGV[$i + 1] if $ARGV[$i] eq "--working-dir" } ' + made,
        ),
    }
    for name, text in {**programs, **scripts}.items():
        (root / name).write_text(text)
        (root / name).chmod(0o755)
    return root


def arguments(folder: Path) -> list[str]:
    return (folder / "log").read_text().split("\n")[:-1]


def test_decode(moses: Path, command: Command, tmp_path: Path) -> None:
    words = "decode moses.ini -i text -o out --n-best-list list --threads 3".split()
    done = command("smt-moses", *words, cwd=tmp_path, MOSES_HOME=str(moses))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").read_text() == "a b\n\nc\n" and (tmp_path / "list").read_text() == "list\n"
    found = arguments(tmp_path)
    assert found[:7] == ["moses", "-f", "moses.ini", "-threads", "3", "-v", "0"]
    listed = "100 distinct -include-segmentation-in-n-best -print-alignment-info-in-n-best"
    assert found[7] == "-n-best-list" and " ".join(found[9:]) == listed


def test_compressed_and_printed(
    moses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As all commands do: .gz compresses, - is stdout."""
    decode = ("decode", "moses.ini", "-i", "text")
    assert run(tmp_path, monkeypatch, *decode, "-o", "-", "--n-best-list", "list.gz") == 0
    assert gzip.decompress((tmp_path / "list.gz").read_bytes()) == b"list\n"
    assert capfd.readouterr().out == "a b\n\nc\n"
    assert not [path.name for path in tmp_path.iterdir() if path.name[0] == "-" or ".part" in path.name]


def test_tune(moses: Path, command: Command, tmp_path: Path) -> None:
    words = "tune moses.ini -i text -r ref --working-dir w --method kbmira --moses".split()
    done = command("smt-moses", *words, moses, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = arguments(tmp_path)
    paths = (tmp_path / "text", tmp_path / "ref", moses / "bin/moses", tmp_path / "w" / "smt-moses.ini")
    assert found[:5] == ["mert", *map(str, paths)]
    used = (tmp_path / "w" / "smt-moses.ini").read_text()  # Moses' script changes folders
    assert used != INI and used.replace(f"path={tmp_path}/", "path=") == INI
    assert {"--predictable-seeds", "--batch-mira", "--decoder-flags=-threads 1 -v 0"} <= set(found)
    assert (tmp_path / "w" / "moses.ini").exists()


def test_texts_for_scripts_have_a_last_line_end(tmp_path: Path) -> None:
    """Moses skips the last line without one, so tuning and filtering would miss a sentence."""
    text, folder = tmp_path / "text", tmp_path / "work"
    for lines in ("", "a\n", "a\nb\n"):
        text.write_text(lines)
        assert ended_text(str(text), folder) == text
    text.write_text("a\nb")
    copy = ended_text(str(text), folder)
    assert copy.parent == folder and copy.read_text() == "a\nb\n" and text.read_text() == "a\nb"


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.chdir(tmp_path)
    return main([*map(str, words), "--moses", str(tmp_path / "moses")])


TUNE = ("tune", "moses.ini", "-i", "text", "-r", "ref", "--working-dir", "w")


def test_tune_that_fails_shows_the_log(
    moses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = f'open(L, ">", "{tmp_path}/w/filterphrases.err"); print L "one\\ntable not found\\n"; close L;'
    (moses / "scripts/training/mert-moses.pl").write_text(f"{log} exit 3")
    assert run(tmp_path, monkeypatch, *TUNE) == 2
    told = capsys.readouterr().err.split("\n")
    assert told[:2] == ["smt-moses: filterphrases.err: one", "smt-moses: filterphrases.err: table not found"]
    assert (
        "failed with exit status 3" in told[2]
        and told[2].endswith(f"above, and the end of {tmp_path}/w/filterphrases.err")
        and told[3:] == [""]
    )


def test_pro_downloads_nothing(
    moses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, monkeypatch, *TUNE, "--method", "pro") == 2
    assert (
        "megam_i686.opt, which does not exist, and Moses would try to download it" in capsys.readouterr().err
    )
    assert not (tmp_path / "w").exists() and not (tmp_path / "log").exists()
    (moses / "bin" / "megam_i686.opt").write_text("")
    (moses / "bin" / "megam_i686.opt").chmod(0o755)
    assert run(tmp_path, monkeypatch, *TUNE, "--method", "pro") == 0 and "--pairwise-ranked" in arguments(
        tmp_path
    )


def test_one_tuning_in_a_folder(
    moses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with locks.locked(tmp_path / "w", "smt-moses tune"):
        assert run(tmp_path, monkeypatch, *TUNE) == 2
    assert (
        "w: in use by smt-moses tune, process" in capsys.readouterr().err and not (tmp_path / "log").exists()
    )


def test_the_last_line_needs_no_end(
    moses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stand-in drops a last line without an end, as Moses does. If lines are missing all the same, there
    is no output."""
    decode = ("decode", "moses.ini", "-i", "text", "-o", "out", "--n-best-list", "list")
    (tmp_path / "text").write_text("a b\n\nc")
    moses_bin = moses / "bin" / "moses"
    moses_bin.write_text(f'#!/bin/sh\n{LISTS}while IFS= read -r line; do echo "$line"; done\n')
    assert run(tmp_path, monkeypatch, *decode) == 0
    assert (tmp_path / "out").read_text() == "a b\n\nc\n"
    (tmp_path / "out").unlink()
    (tmp_path / "list").unlink()
    moses_bin.write_text(f"#!/bin/sh\n{LISTS}head -1\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    assert run(tmp_path, monkeypatch, *decode) == 2
    assert "out: 1 line, but text has 3" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_filter_and_compact(moses: Path, command: Command, tmp_path: Path) -> None:
    words = "filter moses.ini -i text -o f --moses".split()
    assert command("smt-moses", *words, moses, cwd=tmp_path).returncode == 0
    found = arguments(tmp_path)
    assert found[:2] == ["filter", str(tmp_path / "f")] and found[2].endswith("/smt-moses.ini")
    assert found[3:] == [str(tmp_path / "text")]
    assert command("smt-moses", "compact", "t", "-o", "pt", "--moses", moses, cwd=tmp_path).returncode == 0
    found = arguments(tmp_path)
    assert found[:4] == "processPhraseTableMin -in t -out".split()
    assert found[5:] == "-nscores 2 -threads 1".split() and (tmp_path / "pt.minphr").exists()


def test_a_compact_table_is_whole_or_not_written(
    moses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Moses stops at half a table ('vector::_M_fill_insert'), and an abort must not cost the earlier one. The
    ending may be given, too."""
    program = moses / "bin" / "processPhraseTableMin"
    whole = program.read_text()
    assert run(tmp_path, monkeypatch, "compact", "t", "-o", "pt.minphr") == 0
    before = sorted(path.name for path in tmp_path.iterdir())
    assert "pt.minphr" in before and "pt.minphr.minphr" not in before
    program.write_text(f"{whole}exit 134\n")
    for output in ("pt", "other"):
        assert run(tmp_path, monkeypatch, "compact", "t", "-o", output) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    program.write_text(whole.replace("echo compact", "echo half") + "exit 134\n")
    assert run(tmp_path, monkeypatch, "compact", "t", "-o", "pt") == 2
    assert (tmp_path / "pt.minphr").read_text() == "compact\n"


@pytest.mark.ci
def test_failures_are_one_line(
    moses: Path, command: Command, refused: Callable[..., str], tmp_path: Path
) -> None:
    decode = ["smt-moses", "decode", "moses.ini", "-i", "text", "-o", "out"]
    assert "give --moses DIR, or set MOSES_HOME" in refused(command(*decode, cwd=tmp_path, MOSES_HOME=""))
    lost = refused(command(*decode, cwd=tmp_path, MOSES_HOME="/nowhere"))
    assert "is /nowhere a built Moses" in lost
    (moses / "bin" / "moses").write_text("#!/bin/sh\necho half\nexit 3\n")
    assert "failed with exit status 3" in refused(command(*decode, cwd=tmp_path, MOSES_HOME=str(moses)))
    (moses / "bin" / "moses").write_text("#!/bin/sh\necho one line\n")
    assert "1 line, but text has 3" in refused(command(*decode, cwd=tmp_path, MOSES_HOME=str(moses)))
    (tmp_path / "moses.ini").write_text(INI.replace("num-features=2", "num-features=5"))
    assert "(1 more: smt-ini check)" in refused(command(*decode, cwd=tmp_path, MOSES_HOME=str(moses)))
