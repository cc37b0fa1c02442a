"""Results of chunks on disk."""

from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.jobs.records import Records

RESULTS = {0: b"first", 2: b"", 1: "é\n".encode(), 7: bytes(1000)}


def filled(path: Path) -> Records:
    records = Records(path)
    for number, result in RESULTS.items():
        records.add(number, result)
    return records


def held(records: Records) -> dict[int, bytes]:
    return {number: records.read(number) for number in range(10) if number in records}


def test_what_is_added_is_read(tmp_path: Path) -> None:
    assert held(filled(tmp_path / "lines")) == held(Records(tmp_path / "lines")) == RESULTS
    assert len(Records(tmp_path / "lines")) == 4 and len(Records(tmp_path / "none")) == 0


def test_a_file_that_ends_anywhere_holds_its_whole_records(tmp_path: Path) -> None:
    """And goes on after them, as if it had never been longer."""
    path = tmp_path / "lines"
    filled(path)
    whole = path.read_bytes()
    for end in range(80):
        path.write_bytes(whole[:end])
        records = Records(path)
        assert held(records) == dict(list(RESULTS.items())[: len(records)])
        assert records.end <= end
        for number, result in list(RESULTS.items())[len(records) :]:
            records.add(number, result)
        assert path.read_bytes() == whole


def test_each_byte_is_checked(tmp_path: Path) -> None:
    """Whatever byte is damaged, the records from there on are no results."""
    path = tmp_path / "lines"
    filled(path)
    whole = path.read_bytes()
    for place in range(70):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        found = Records(path)
        assert len(found) < 4 and held(found) == dict(list(RESULTS.items())[: len(found)])


def test_bytes_that_were_never_written_are_no_records(tmp_path: Path) -> None:
    """A machine without power may leave a file of its new size that ends in zeros."""
    filled(tmp_path / "lines")
    with open(tmp_path / "lines", "ab") as stream:
        stream.write(bytes(1000))
    assert held(Records(tmp_path / "lines")) == RESULTS


def test_a_disk_that_takes_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot write"):
        Records(tmp_path / "no folder" / "lines").add(0, b"")
