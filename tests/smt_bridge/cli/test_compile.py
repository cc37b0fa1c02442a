"""smt-compile: the same translations from a folder that is mapped, and one line for a folder that is not."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from nmt.cli import ngram
from nmt.errors import UserError
from nmt.io import files, manifest, mapped
from smt_bridge import compiled_model
from smt_bridge.cli import compile as command
from smt_bridge.cli import decode
from smt_bridge.decoder import system
from smt_bridge.decoder.cache import Cache
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.moses import check
from smt_bridge.moses import ini as moses_ini
from tests.smt_bridge.decoder.features.test_sparse import WEIGHTS
from tests.smt_bridge.decoder.features.test_sparse import model as sparse_model
from tests.smt_bridge.decoder.models import decoder, edit, sentence, write_model

LINES = [sentence(number, 5) for number in range(6)]


def compiled(folder: Path, **options: object) -> Path:
    write_model(folder / "model", 1, lms=1, **options)  # type: ignore[arg-type]
    assert command.main([str(folder / "model"), "-o", str(folder / "small")]) == 0
    return folder / "small"


def entries(made: Decoder, lines: Sequence[str] = LINES) -> list[str]:
    """The n-best lists of some lines."""
    results = enumerate(map(made.translate_line, lines))
    return [made.entry(number, result, each) for number, result in results for each in result.derivations]


@pytest.mark.parametrize("quantize", [[], ["--quantize", "8"], ["--quantize", "16"]])
def test_the_same_translations(quantize: list[str], tmp_path: Path) -> None:
    """Of a model of few scores, which any number of bits holds."""
    write_model(tmp_path / "model", 1)
    assert command.main([str(tmp_path / "model"), "-o", str(tmp_path / "small"), *quantize]) == 0
    one, other = (decoder(tmp_path / name, nbest=20, stack=20) for name in ("model", "small"))
    assert one.weights == other.weights and entries(one) == entries(other)


@pytest.mark.parametrize("quantize", [[], ["--quantize", "8"]])
def test_count_bins_take_one_byte(quantize: list[str], tmp_path: Path) -> None:
    """As smt-train --count-feature bins writes them."""
    model = write_model(tmp_path / "model", 1, columns=6)
    rows = (model / "table").read_text().split("\n")[:-1]
    for number, row in enumerate(rows):
        fields = row.split(" ||| ")
        scores = [*fields[2].split()[:3], *(["1"] * 3)]
        scores[3 + number % 3] = "2.718"
        rows[number] = " ||| ".join([*fields[:2], " ".join(scores), *fields[3:]])
    files.write_text(model / "table", rows)
    assert command.main([str(model), "-o", str(tmp_path / "small"), *quantize]) == 0
    settings = {"nbest": 20, "stack": 20, "xml_input": "exclusive"}
    one, other = (decoder(tmp_path / name, **settings) for name in ("model", "small"))
    table = other.system.table
    assert table.joined.tolist() == [3, 4, 5] and table.joined_row.nbytes == len(rows)
    assert entries(one) == entries(other)
    forced = ['b <x translation="x" prob="0.5">a</x> b']  # the probability is divided among all scores
    assert entries(one, forced) == entries(other, forced)


def test_language_models_are_compiled(tmp_path: Path) -> None:
    """Each as nmt-ngram compile does it; one that is compiled already is named where it is."""
    model = write_model(tmp_path / "model", 1, lms=2)
    given = [str(model / "lm0"), "-q", "-o", str(tmp_path / "lm0"), "--quantize", "2"]
    assert ngram.main(["compile", *given]) == 0
    assert command.main([str(model), "-o", str(tmp_path / "small"), "--quantize-lm", "2"]) == 0
    arrays = [path.name for path in (tmp_path / "lm0").glob("*.npy")]
    assert len(arrays) == 7
    for name in arrays:
        written = tmp_path / "small" / f"{compiled_model.LM}0" / name
        assert written.read_bytes() == (tmp_path / "lm0" / name).read_bytes()
    edit(model, ("path=lm0", f"path={tmp_path}/lm0"))
    assert command.main([str(model), "-o", str(tmp_path / "other"), "--quantize-lm", "2"]) == 0
    folders = [path.name for path in (tmp_path / "other").iterdir() if path.is_dir()]
    assert sorted(folders) == [f"{compiled_model.LM}1", compiled_model.TABLE]
    shutil.move(model, tmp_path / "gone")
    one, other = (decoder(tmp_path / name, stack=20) for name in ("small", "other"))
    assert entries(one) == entries(other)


def test_a_model_can_be_moved(tmp_path: Path) -> None:
    """With copies of its lists of words, each once, and of its sparse weights."""
    model = sparse_model(tmp_path / "model", weights=WEIGHTS)
    before = entries(decoder(model, nbest=10))
    assert command.main([str(model), "-o", str(tmp_path / "small"), "-q"]) == 0
    shutil.rmtree(model)
    assert entries(decoder((tmp_path / "small").rename(tmp_path / "moved"), nbest=10)) == before
    assert {path.name for path in (tmp_path / "moved").glob("*.*")} - {".lock"} == {
        "mapped-moses.sparse-weights", "mapped-words0.txt", "mapped-words1.txt", "moses.ini"
    }  # fmt: skip


def test_a_table_alone(tmp_path: Path) -> None:
    """A folder that an ini names, without the reordering table or with it."""
    model = write_model(tmp_path / "model", 2)
    expected = decoder(model).translate_line(LINES[0])
    table = [str(model / "table"), "-o", str(tmp_path / "both"), "--reordering", str(model / "reordering")]
    assert command.main(table) == 0
    edit(model, ("path=table", f"path={tmp_path}/both"), ("path=reordering", f"path={tmp_path}/both"))
    assert decoder(model).translate_line(LINES[0]).derivations[0].total == expected.derivations[0].total
    assert command.main([*table[:2], str(tmp_path / "alone")]) == 0
    edit(model, (f"path={tmp_path}/both", f"path={tmp_path}/alone"))
    with pytest.raises(UserError, match="holds no reordering table"):
        decoder(model)
    edit(model, (f"path={tmp_path}/alone\n", f"path={tmp_path}/both\n"))


def test_a_large_table_is_built_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same bytes, in files that have no name; without space for them nothing is left."""
    model = write_model(tmp_path / "model", 1)
    for name, large in (("memory", mapped.LARGE), ("disk", 0)):
        monkeypatch.setattr(mapped, "LARGE", large)
        assert command.main([str(model), "-o", str(tmp_path / name), "--quantize", "8"]) == 0
    one, other = (tmp_path / name / compiled_model.TABLE for name in ("memory", "disk"))
    assert sorted(path.name for path in other.iterdir()) == sorted(path.name for path in one.iterdir())
    for path in one.glob("*.npy"):
        assert path.read_bytes() == (other / path.name).read_bytes()

    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(mapped, "allocate", full)
    with pytest.raises(UserError, match=f"^{tmp_path}/full: cannot write: No space left"):
        command.command([str(model), "-o", str(tmp_path / "full")])
    assert not (tmp_path / "full").exists()


def test_verified_once(tmp_path: Path) -> None:
    """The stamp lies in the cache; smt-cache clear removes it."""
    small, store = compiled(tmp_path), Cache(tmp_path / "cache")
    for _ in range(2):
        system.load(str(small), store)
        assert store.stamp(small / compiled_model.TABLE).exists()
    store.clear()
    assert not store.stamp(small / compiled_model.TABLE).exists()


def test_what_is_damaged_is_refused(tmp_path: Path) -> None:
    """With one line that names the file."""
    small, store = compiled(tmp_path), Cache(tmp_path / "cache")
    whole = {
        path: path.read_bytes() for path in (small / compiled_model.TABLE).iterdir() if path.name != ".lock"
    }
    system.load(str(small), store)
    for path, content in whole.items():
        place = len(content) * 2 // 3
        for damaged in (
            content[:place],
            content[:place] + bytes([content[place] ^ 0x40]) + content[place + 1 :],
        ):
            path.write_bytes(damaged)
            with pytest.raises(UserError, match=f"^{small / compiled_model.TABLE}"):
                system.load(str(small), store)
        path.unlink()
        with pytest.raises(UserError, match=r"missing|expected a text table"):
            system.load(str(small), store)
        path.write_bytes(content)
    system.load(str(small), store)


def test_foreign_folders_are_refused(tmp_path: Path) -> None:
    """Another folder, arrays of another kind, tables of two folders."""
    small = compiled(tmp_path)
    with pytest.raises(UserError, match="compiled already"):
        command.command([str(small), "-o", str(tmp_path / "again")])
    assert not (tmp_path / "again").exists()
    store = Cache(tmp_path / "cache")
    system.load(str(tmp_path / "model"), store)
    (other,) = (entry for entry in store.entries() if "lm0" in entry.sources()[0])
    ini = (small / "moses.ini").read_text(encoding="utf-8")
    (tmp_path / "empty").mkdir()
    shutil.copytree(small / compiled_model.TABLE, tmp_path / "copy")
    for path, count, message in (
        (other.path, -1, "holds 'TrieModel'"),
        (tmp_path / "empty", -1, "expected a text table, or a folder made by smt-compile"),
        (tmp_path / "copy", 1, "give the same path="),
    ):
        changed = ini.replace(f"path={compiled_model.TABLE}", f"path={path}", count)
        (small / "moses.ini").write_text(changed, encoding="utf-8")
        with pytest.raises(UserError, match=message):
            system.load(str(small), use_cache=False)


def test_nothing_is_left_of_a_table_that_is_refused(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model", 1)
    with open(model / "table", "a", encoding="utf-8") as stream:
        stream.write("a ||| b ||| one\n")
    with pytest.raises(UserError, match="table:"):
        command.command([str(model), "-o", str(tmp_path / "small")])
    (tmp_path / "empty").touch()
    with pytest.raises(UserError, match="empty: the file is empty, expected a phrase table"):
        command.command([str(tmp_path / "empty"), "-o", str(tmp_path / "small")])
    assert not (tmp_path / "small").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(UserError, match="exists already"):
        command.command([str(model), "-o", str(tmp_path / "full")])


# Kills itself in a call of a function, when the file that it writes is half there.
KILLED = """
import os, signal, sys
from nmt.io import mapped
from smt_bridge.cli import compile as command
from smt_bridge.moses import ini
module, name, left = {"mapped": mapped, "ini": ini}[sys.argv[1]], sys.argv[2], int(sys.argv[3])
write = getattr(module, name)
def kill(path, *rest):
    global left
    left -= 1
    if left == 0:
        with open(f"{path}.part1-0" if module is ini else path, "wb") as stream:
            stream.write(b"half")
        os.kill(os.getpid(), signal.SIGKILL)
    write(path, *rest)
setattr(module, name, kill)
command.main(sys.argv[4:])
"""


@pytest.mark.ci  # 2 s: processes of their own
@pytest.mark.parametrize(
    ("given", "moment"),
    [
        (["model"], ["mapped", "save_array", "3"]),
        (["model"], ["mapped", "save_array", "20"]),
        (["model"], ["ini", "write", "1"]),
        (["model/table", "--reordering", "model/reordering"], ["mapped", "save_array", "5"]),
    ],
)
def test_a_killed_start_is_repeated(
    given: list[str], moment: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same bytes as one that was not killed."""
    write_model(tmp_path / "model", 1)
    monkeypatch.chdir(tmp_path)
    assert command.main([*given, "-o", "whole"]) == 0
    environment = dict(os.environ, PYTHONPATH=str(Path(command.__file__).parents[2]))
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, *moment, *given, "-o", "small"], env=environment, check=False
    )
    assert killed.returncode == -signal.SIGKILL and len(list(Path("small").iterdir())) > 1
    assert command.main([*given, "-o", "small"]) == 0
    contents = [
        {path.relative_to(name): path.read_bytes() for path in Path(name).rglob("*") if path.is_file()}
        for name in ("whole", "small")
    ]
    for content in contents:
        content.pop(Path(".lock"), None)
    assert contents[0] == contents[1]


@pytest.mark.parametrize(
    ("holder", "names"),
    [
        ("smt-compile", ["mapped-table/word.npy", "thesis.txt"]),
        ("smt-compile", ["mapped-table/word.npy", "mapped-table/thesis.npz"]),
        ("smt-compile", ["mapped-table/manifest.json", "moses.ini"]),
        ("nmt-ngram compile", ["mapped-table/word.npy"]),
        ("", ["mapped-table/word.npy"]),
    ],
)
def test_only_what_it_left_itself_is_removed(holder: str, names: list[str], tmp_path: Path) -> None:
    """Not what has other files, is finished, or was last locked by another command."""
    model = write_model(tmp_path / "model", 1)
    for name in names:
        path = tmp_path / "small" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x", encoding="utf-8")
    if holder:
        (tmp_path / "small" / ".lock").write_text(f"{holder}, process 1 on x, since then", encoding="utf-8")
    with pytest.raises(UserError, match="small: exists already"):
        command.command([str(model), "-o", str(tmp_path / "small")])
    assert all((tmp_path / "small" / name).exists() for name in names)


def test_what_it_left_itself_is_removed(tmp_path: Path) -> None:
    """Also copies of words and weights, and an ini that was not renamed."""
    model, folder = write_model(tmp_path / "model", 1), tmp_path / "small"
    names = (
        "mapped-table/word.npy", "mapped-words0.txt", "mapped-words12.txt.part3-0", "moses.ini.part12-0",
        "mapped-lm7/manifest.json", "mapped-moses.sparse-weights",
    )  # fmt: skip
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x", encoding="utf-8")
    (folder / ".lock").write_text("smt-compile, process 1 on x, since then", encoding="utf-8")
    assert command.main([str(model), "-o", str(folder)]) == 0
    assert (folder / "moses.ini").exists() and not any((folder / name).exists() for name in names)


@pytest.mark.parametrize("full", [1, 12])
def test_a_full_disk_leaves_nothing(full: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of the tables nor of the language model."""
    model, left, write = write_model(tmp_path / "model", 1), iter(range(full)), mapped.save_array

    def save(path: str | Path, array: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]") -> None:
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, array)

    monkeypatch.setattr(mapped, "save_array", save)
    with pytest.raises(UserError, match=f"^{tmp_path}/small.*: cannot write: No space left"):
        command.command([str(model), "-o", str(tmp_path / "small")])
    assert not (tmp_path / "small").exists()


def test_verify(tmp_path: Path) -> None:
    """smt-decode --verify reads everything, also what a stamp says is whole."""
    small = compiled(tmp_path)
    (tmp_path / "in").write_text("a b\n", encoding="utf-8")
    given = [str(small), "--verify", "-i", str(tmp_path / "in"), "-o", str(tmp_path / "out")]
    assert decode.main(given) == 0
    path = small / compiled_model.TABLE / "scores.npy"
    status, content = path.stat(), path.read_bytes()
    with open(path, "r+b") as stream:
        stream.write(content[:-1] + bytes([content[-1] ^ 1]))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    (tmp_path / "out").unlink()
    assert decode.main(given[:1] + given[2:]) == 0  # its time and size are those of the stamp
    (tmp_path / "out").unlink()
    assert decode.main(given) == 2 and not (tmp_path / "out").exists()
    with pytest.raises(UserError, match=r"--verify: .* has neither"):
        decode.command([str(tmp_path / "model"), *given[1:]])


def test_moses_gets_the_text(tmp_path: Path) -> None:
    """smt-ini check says that Moses cannot read the folder."""
    ini = moses_ini.read(str(compiled(tmp_path) / "moses.ini"))
    problems = list(check.problems(ini, [str(tmp_path / "small")]))
    assert any("is a folder of smt-compile, which Moses cannot read" in line for line in problems)


def test_the_size_is_that_of_the_arrays(tmp_path: Path) -> None:
    """A row has 4 bytes of target, 4 a score, and one of its alignment."""
    table = system.load(str(compiled(tmp_path)), use_cache=False).table
    assert table.target.itemsize == 4 and table.scores.dtype == np.float32 and table.alignment.itemsize == 1
    assert set(manifest.load(tmp_path / "small" / compiled_model.TABLE)) >= {"scores.npy", "contents.json"}
