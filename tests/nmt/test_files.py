import gzip
import logging
import os
from pathlib import Path

import pytest

from nmt import files
from nmt.errors import DataError, UserError

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


def test_gzip_output_has_no_date(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        files.write_text(tmp_path / name, ["x"])
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert list(files.read_lines(tmp_path / "a.gz")) == ["x"]


def test_full_disk_is_a_user_error() -> None:
    with pytest.raises(UserError, match="/dev/full: cannot write: No space left"):
        files.write_text("/dev/full", ["x"])


def test_split_words_knows_space_and_tab_only() -> None:
    assert files.split_words(" a\xa0b\t c\u2028 ") == ["a\xa0b", "c\u2028"]


def test_a_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    files.write_text(tmp_path / "link", ["new"])
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "new\n"


def test_a_broken_gzip_file_is_told_whoever_reads_it(tmp_path: Path) -> None:
    (tmp_path / "text.gz").write_bytes(gzip.compress(b"a b\n" * 1000)[:-5])
    with (
        pytest.raises(DataError, match=r"text\.gz: broken gzip file"),
        files.open_bytes(tmp_path / "text.gz") as stream,
    ):
        stream.read()


def test_pipes_are_left_for_the_reading_that_counts(tmp_path: Path) -> None:
    """`nmt-score -s <(zcat a) -t <(zcat b)`: what is read through once before would be empty when it
    counts."""
    (tmp_path / "text").write_text("a\n", encoding="utf-8")
    os.mkfifo(tmp_path / "pipe")
    files.check_parallel(tmp_path / "text", tmp_path / "pipe")  # opens neither: the pipe has no writer
    files.check_parallel(tmp_path / "text", "-")
    with pytest.raises(DataError, match="missing: cannot read"):
        files.check_parallel(tmp_path / "pipe", tmp_path / "missing")


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
        files.check_text(tmp_path / "latin")
    with pytest.raises(DataError, match="missing: cannot read"):
        files.count_lines(tmp_path / "missing")
    files.check_text("-")
