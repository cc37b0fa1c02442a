"""Lines of files, whole files or none, folders above them, and files of strangers."""

import gzip
import logging
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError, UserError
from nmt.io import files, locks, numbers
from tests.conftest import Command

# ---- test files --------------------------------------------------------------------------------------------

ODD = "a\u2028b\x85c\x0cd\xa0e\rf"  # line ends elsewhere, data here


def test_only_newline_ends_a_line(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(f"{ODD}\n\n{ODD}".encode())
    assert list(files.read_lines(tmp_path / "x")) == [ODD, "", ODD]


def test_gzip_is_known_by_content(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(gzip.compress(b"one\ntwo\n"))
    (tmp_path / "y.gz").write_bytes(b"one\ntwo\n")
    assert (
        list(files.read_lines(tmp_path / "x")) == list(files.read_lines(tmp_path / "y.gz")) == ["one", "two"]
    )


def test_carriage_return_and_byte_order_mark_are_removed_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n\xef\xbb\xbfthree")
    with caplog.at_level(logging.WARNING):
        logging.getLogger("nmt").propagate = True
        assert list(files.read_lines(tmp_path / "x")) == ["one", "two", "\ufeffthree"]
    assert [record.getMessage().split(": ")[0] for record in caplog.records] == [
        f"{tmp_path}/x:1",
        f"{tmp_path}/x:1",
    ]


@pytest.mark.parametrize("content", [b"one\rtwo\r", b"one\rtwo\rthree", b"one\rtwo\rthree\n\nfour\n"])
def test_carriage_returns_instead_of_line_ends_are_pointed_out(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A single one inside a line may be meant."""
    monkeypatch.setattr(logging.getLogger("nmt"), "propagate", True)
    (tmp_path / "x").write_bytes(b"one\rtwo\n")
    assert [*files.read_lines(tmp_path / "x")] == ["one\rtwo"] and not caplog.messages
    (tmp_path / "x").write_bytes(content)
    assert next(files.read_lines(tmp_path / "x")).startswith("one\rtwo")
    message = f"{tmp_path}/x:1: carriage returns inside are data; if they end lines, run tr '\\r' '\\n'"
    assert caplog.messages[0] == message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"good\nb\xe9d\n", ":2: byte 0xe9 at column 2 is not UTF-8"),
        (b"good\n\na\0b\n", ":3: NUL"),
        (gzip.compress(b"x\n" * 9999, mtime=0)[:-20], "broken gzip"),
        (b"surrogate \xed\xa0\x80\n", ":1: byte 0xed"),
    ],
)
def test_bad_bytes_are_named_by_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(files.read_lines(tmp_path / "x"))


def test_blocks_are_read_as_single_lines_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The same lines, warnings and errors, wherever a block ends."""
    monkeypatch.setattr(files, "BUFFER", 5)
    monkeypatch.setattr(logging.getLogger("nmt"), "propagate", True)
    pieces, draw = (b"a b", ODD.encode(), b"", b"c\r", b"\xef\xbb\xbf", b"\xff", b"\0"), random.Random(1)
    path = tmp_path / "x"

    def outcome(lines: Iterator[str]) -> tuple[list[str], str, list[str]]:
        rows, problem = [], ""
        caplog.clear()
        try:
            for line in lines:
                rows.append(line)
        except DataError as error:
            problem = str(error)
        return rows, problem, list(caplog.messages)

    for _ in range(300):
        path.write_bytes(b"\n".join(draw.choices(pieces, (9, 9, 9, 1, 1, 1, 1), k=draw.randrange(9))))
        single = files.decode_lines(enumerate(files.read_byte_lines(path), 1), path)
        assert outcome(files.read_lines(path)) == outcome(single), path.read_bytes()


def test_parallel_names_the_shorter_file_and_both_numbers(tmp_path: Path) -> None:
    (tmp_path / "long").write_text("1\n2\n3\n4\n")
    (tmp_path / "short").write_text("1\n2\n")
    assert list(files.parallel(tmp_path / "short", tmp_path / "short")) == [("1", "1"), ("2", "2")]
    for order in (["long", "short"], ["short", "long"]):
        with pytest.raises(DataError, match=r"short: 2 lines, but .*long has 4"):
            list(files.parallel(*(tmp_path / name for name in order)))


def test_writing_is_all_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), files.Writing(path) as out:
        out.write("half")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    with files.Writing(path) as out:
        out.write("new\n")
        assert path.read_text() == "old"
    assert path.read_text() == "new\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_a_private_file_stays_private(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    path.chmod(0o600)
    files.write_text(path, ["new"])
    assert path.stat().st_mode & 0o777 == 0o600 and path.read_text() == "new\n"


def test_gzip_output_has_no_date(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        files.write_text(tmp_path / name, ["x"])
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert list(files.read_lines(tmp_path / "a.gz")) == ["x"]


def test_full_disk_is_a_user_error() -> None:
    with pytest.raises(UserError, match="/dev/full: cannot write: No space left"):
        files.write_text("/dev/full", ["x"])


def test_two_processes_of_one_number_write_apart() -> None:
    """As in two containers that share a folder: often both have process 7."""
    code = (
        "import os; os.getpid = lambda: 7; from nmt.io.files import Writing; print(Writing('x').unfinished)"
    )
    names = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout for _ in range(2)
    }
    assert len(names) == 2 and all(b".part7-" in name for name in names)


def test_a_name_that_ends_in_a_slash_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="new/: cannot write: Is a directory"):
        files.write_text(f"{tmp_path}/new/", ["x"])
    assert not (tmp_path / "new").exists()


def test_split_words_knows_space_and_tab_only() -> None:
    assert files.split_words(" a\xa0b\t c\u2028 ") == ["a\xa0b", "c\u2028"]


def test_a_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    files.write_text(tmp_path / "link", ["new"])
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "new\n"


def test_pipes_are_left_for_the_reading_that_counts(tmp_path: Path) -> None:
    """`nmt-score -s <(zcat a) -t <(zcat b)`: what is read through once before would be empty when it
    counts."""
    (tmp_path / "text").write_text("a\n", encoding="utf-8")
    os.mkfifo(tmp_path / "pipe")
    files.check_parallel(tmp_path / "text", tmp_path / "pipe")  # opens neither: the pipe has no writer
    files.check_parallel(tmp_path / "text", "-")
    with pytest.raises(DataError, match="missing: cannot read"):
        files.check_parallel(tmp_path / "pipe", tmp_path / "missing")


def test_what_is_read_twice_is_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "text").write_text("a\n")
    files.require_files([tmp_path / "text", tmp_path / "missing"], "it is read twice")
    for path in ("-", tmp_path / "pipe"):
        with pytest.raises(ConfigError, match=r"^(<stdin>|.*/pipe): it is read twice; give files"):
            files.require_files([tmp_path / "text", path], "it is read twice")


def test_a_preview_reads_files_without_warnings_and_leaves_streams_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "text").write_bytes(b"a\r\nb\n")
    assert list(files.preview(tmp_path / "text")) == ["a\r", "b"] and not caplog.text
    assert list(files.preview("-")) == [] == list(files.preview(tmp_path))


def test_lines_are_counted_in_text_alone(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"a\n\nb")
    assert files.count_lines(tmp_path / "text") == 3
    (tmp_path / "latin").write_bytes(b"a\n\xe9\n")
    with pytest.raises(DataError, match="latin:2: byte 0xe9"):
        files.count_lines(tmp_path / "latin")
    with pytest.raises(DataError, match="missing: cannot read"):
        files.count_lines(tmp_path / "missing")
    files.count_lines("-")


# ---- test folders ------------------------------------------------------------------------------------------
# Folders above an output are made when it is written, and are gone when it is not.


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


COMMANDS = {
    "nmt-clean": (
        ["--source", "train.en", "--target", "train.fr", "--output-source", "new/x/en", "--output-target"],
        ["new/x/fr"],
    ),
    "smt-score-table": (["table.gz", "--feature", "lm=lm.arpa", "--output"], ["new/x/table.gz"]),
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


# ---- test foreign ------------------------------------------------------------------------------------------
# Files of folders that strangers made: nothing blocks, nothing of other files is shown.


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    """Through a link inside of its folder too, and where the folder is a link itself."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "b").write_bytes(b"text")
    (tmp_path / "run" / "a").symlink_to("b")
    (tmp_path / "link").symlink_to("run")
    for name in ("run/a", "run/b", "link/a", "link/b"):
        files.check_regular(tmp_path / name, 4)
        assert files.read_small(tmp_path / name) == b"text"
    files.check_regular(tmp_path / "run" / "missing")


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "large", "loop"])
def test_what_is_no_regular_file(kind: str, tmp_path: Path) -> None:
    """No process waits for a writer, none reads zeros for ever."""
    path = tmp_path / "x"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "large":
        path.touch()
        os.truncate(path, files.SMALL_FILE + 1)
    else:
        path.symlink_to("/dev/zero" if kind == "device" else path)
    with pytest.raises(OSError, match=r"regular|directory|expected|levels") as error:
        files.read_small(path)
    assert error.value.strerror and str(path) == error.value.filename
    with pytest.raises(DataError, match=r"x: cannot read: "):
        files.check_regular(path, files.SMALL_FILE, inside=False)


def test_a_link_that_leads_out(tmp_path: Path) -> None:
    """`..` in it counts by where it ends."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run-2").mkdir()
    (tmp_path / "run-2" / "secret").write_text("secret")
    (tmp_path / "run" / "vocab").symlink_to("../run-2/secret")
    (tmp_path / "run" / "own").symlink_to("../run/x")
    (tmp_path / "run" / "x").touch()
    assert files.leads_out(tmp_path / "run" / "vocab") and not files.leads_out(tmp_path / "run" / "own")
    with pytest.raises(DataError, match=r"vocab: a link that leads out") as error:
        files.check_regular(tmp_path / "run" / "vocab")
    assert "secret" not in str(error.value)
    files.check_regular(tmp_path / "run" / "vocab", inside=False)


# ---- numbers -----------------------------------------------------------------------------------------------

BAD = [
    "", " 1", "1 ", "1\n", "²", "١٢", "1_000", "nan", "inf", "-inf", "0x10", "1e", "e5", ".", "--1",
    "1.2.3", "9" * 5000, "\0", "½",
]  # fmt: skip


@pytest.mark.parametrize("parse", [numbers.integer, numbers.count, numbers.real])
@pytest.mark.parametrize("text", BAD, ids=lambda text: ascii(text)[:12])
def test_what_is_no_number_is_refused(parse: Callable[[str], float], text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a|too large") as error:
        parse(text)
    assert len(str(error.value)) < 100
    with pytest.raises(ValueError, match=r"is not a|too large"):
        numbers.reals(["1", text])


def test_kinds() -> None:
    assert (numbers.integer("-12"), numbers.integer("+7"), numbers.count("007")) == (-12, 7, 7)
    assert (numbers.real("-1.5e3"), numbers.real(".5"), numbers.real("5.")) == (-1500.0, 0.5, 5.0)
    for parse, text in (
        (numbers.count, "-1"),
        (numbers.count, "+1"),
        (numbers.integer, "1.0"),
        (numbers.integer, str(2**63)),
        (numbers.real, "1e999"),
        (numbers.real, "0" * 401),
    ):
        with pytest.raises(ValueError, match=r"is not a|too large"):
            parse(text)
    assert numbers.integer(str(2**63 - 1)) == numbers.LARGEST


def test_many_at_once_are_each_of_them() -> None:
    rng = random.Random(1)
    words = [rng.choice(["%d", "%.3f", "%g", "%e"]) % rng.uniform(-1e6, 1e6) for _ in range(200)]
    assert numbers.reals(words) == [numbers.real(word) for word in words] == [float(word) for word in words]


def test_messages_bear_any_token() -> None:
    assert len(numbers.shown("x" * 10**6)) < 60 and numbers.shown(b"\xff") == repr("\\xff")


def test_the_error_of_a_file_that_cannot_be_read() -> None:
    """It says what the system says, or else the error itself; stdin has a name."""
    missing = FileNotFoundError(2, "No such file or directory", "elsewhere")
    assert str(files.cannot_read("a", missing)) == "a: cannot read: No such file or directory"
    assert str(files.cannot_read(Path("a"), OSError("a bad block"))) == "a: cannot read: a bad block"
    assert str(files.cannot_read("-", ValueError("NUL"))) == "<stdin>: cannot read: NUL"
