"""Download the corpora of a list, resuming interrupted downloads.

    python recipes/wmt14/download.py CORPORA.tsv DIR [NAME ...]

DIR/checksums.tsv records the SHA-256 of each file at its first download, since it is not known in advance;
later calls check it.
"""

import hashlib
import sys
import time
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path

from nmt.errors import DataError, UserError
from nmt.io import files

BLOCK = 1 << 20
TRIES = 5
PAUSE = 2.0  # seconds before the second try, doubled for each further one


def main(listing: str, folder: Path, names: list[str]) -> None:
    """Download the corpora of a list into a folder. `names`: those to download; empty for all. DataError for
    a name that the list lacks; also the errors of `fetch`."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = read_list(listing)
    unknown = set(names) - {name for name, _ in rows}
    if unknown:
        available = ", ".join(name for name, _ in rows)
        raise DataError(f"{listing}: no corpus {sorted(unknown)[0]}, expected one of {available}")
    for name, address in rows:
        if not names or name in names:
            fetch(name, address, folder)


def read_list(path: str) -> list[tuple[str, str]]:
    """Name and address of each corpus. DataError for a line with too few columns, or a missing list."""
    rows = []
    for number, line in enumerate(files.read_lines(path), 1):
        if line and not line.startswith("#"):
            fields = line.split("\t")
            if len(fields) < 3:
                raise DataError(f"{path}:{number}: {len(fields)} columns, expected kind, name, address")
            rows.append((fields[1], fields[2]))
    return rows


def fetch(name: str, address: str, folder: Path) -> None:
    """Download a file unless it exists, check or record its checksum, and print a line. `name`: of the
    corpus; `address`: its URL. UserError if the download fails, DataError for a different checksum."""
    target = folder / address.rpartition("/")[2]
    recorded = checksums(folder)
    if not target.exists():
        part = target.with_name(target.name + ".part")
        pause = PAUSE
        for attempt in range(1, TRIES + 1):
            try:
                resume(address, part)
                break
            except (urllib.error.URLError, HTTPException, ConnectionError, TimeoutError) as error:
                if attempt == TRIES or (
                    isinstance(error, urllib.error.HTTPError) and error.code in (401, 403, 404, 410)
                ):
                    raise UserError(
                        f"{address}: cannot download ({error}); {part} keeps what has arrived, and the same "
                        "command resumes from it"
                    ) from error
                time.sleep(pause)
                pause *= 2
        part.rename(target)
    checksum = digest(target)
    if target.name not in recorded:
        recorded[target.name] = checksum
        files.write_text(
            folder / "checksums.tsv", (f"{file}\t{value}" for file, value in sorted(recorded.items()))
        )
        print(f"{name}\t{target}\t{checksum}\trecorded")
    elif recorded[target.name] != checksum:
        raise DataError(
            f"{target}: its SHA-256 is {checksum[:16]}..., but {recorded[target.name][:16]}... was recorded "
            "at its first download; remove it to download it again"
        )
    else:
        print(f"{name}\t{target}\t{checksum}\tchecked")


def resume(address: str, part: Path) -> None:
    """Download a file to `part`. If this exists, it is the beginning of the file, and only the rest is
    downloaded where the server supports ranges. ConnectionError or HTTPException if the connection ends
    early; also the errors of urllib."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(address, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # it was complete
            return
        raise
    with answer:
        whole = answer.status != 206
        expected = int(answer.headers.get("Content-Length", -1))
        with open(part, "wb" if whole else "ab") as out:
            written = 0
            while block := answer.read(BLOCK):
                out.write(block)
                written += len(block)
        if 0 <= expected != written:
            raise ConnectionError(f"{written:,} bytes of {expected:,}")


def checksums(folder: Path) -> dict[str, str]:
    """The recorded checksums by file name; empty at the first download."""
    path = folder / "checksums.tsv"
    if not path.exists():
        return {}
    return {name: value for name, _, value in (line.partition("\t") for line in files.read_lines(path))}


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        print("usage: download.py CORPORA.tsv DIR [NAME ...]", file=sys.stderr)
        sys.exit(2)
    try:
        main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
    except UserError as error:
        print(f"download.py: {error}", file=sys.stderr)
        sys.exit(2)
