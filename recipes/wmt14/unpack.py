"""Extract the texts of downloaded archives into a pair of files for each kind.

    python recipes/wmt14/unpack.py CORPORA.tsv DOWNLOADS OUT

OUT/parallel.en OUT/parallel.fr   all parallel corpora
OUT/mono.fr                       monolingual text
OUT/dev.en OUT/dev.fr             newstest2012 and 2013
OUT/test.en OUT/test.fr           newstest2014, from its SGML
"""

import gzip
import html
import re
import sys
import tarfile
import zlib
from pathlib import Path
from typing import IO

from nmt.errors import DataError, UserError
from nmt.io import files

BLOCK = 1 << 20
DAMAGES = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError)  # errors that unpacking raises
SEGMENT = re.compile(rb"<seg[^>]*>(.*?)</seg>", re.DOTALL)


def main(listing: str, downloads: Path, out: Path) -> None:
    """Extract the texts of a list from the folder `downloads` into the folder `out`; existing files are not
    written again. DataError for a list that cannot be read, for a missing or damaged archive, and for a
    missing member; UserError for a file that cannot be written."""
    parts: dict[str, list[tuple[Path, str]]] = {}
    for number, line in enumerate(files.read_lines(listing), 1):
        if not line or line.startswith("#"):
            continue
        columns = line.split("\t")
        if len(columns) != 4:
            raise DataError(
                f"{listing}:{number}: {len(columns)} columns, expected kind, name, address, members"
            )
        kind, _, address, members = columns
        archive = downloads / address.rpartition("/")[2]
        if not archive.exists():
            raise DataError(f"{archive}: does not exist; run download.py first")
        for member in members.split(" "):
            language = "en" if ".en" in member.rpartition("/")[2] else "fr"
            parts.setdefault(f"{kind}.{language}", []).append((archive, member))
    for name, sources in parts.items():
        if not (out / name).exists():
            with files.Writing(out / name) as sink:
                for archive, member in sources:
                    try:
                        copy(archive, member, sink)
                    except DAMAGES as error:
                        raise DataError(
                            f"{archive}: damaged ({error}); remove it and run download.py again"
                        ) from error


def copy(archive: Path, member: str, sink: files.Output) -> None:
    """Write the text of a member of a tar archive to `sink`; a file with the name of the member is the member
    itself. DataError if the archive lacks the member; one of DAMAGES if it cannot be unpacked."""
    if archive.name == member:
        with open(archive, "rb") as stream:
            copy_lines(stream, member, sink)
        return
    with tarfile.open(archive) as box:
        try:
            member_file = box.extractfile(member)
        except KeyError:
            member_file = None
        if member_file is None:
            raise DataError(f"{archive}: has no file {member}; it has {', '.join(box.getnames()[:6])} ...")
        copy_lines(member_file, member, sink)


def copy_lines(stream: IO[bytes], member: str, sink: files.Output) -> None:
    """Write the text of a member to `sink`: the content of a gzip file, the segments of SGML, one a line, or
    the file as it is. DataError for SGML that is not UTF-8."""
    if member.endswith(".gz"):
        with gzip.open(stream) as unpacked:
            copy_text(unpacked, sink)
    elif member.endswith(".sgm"):
        content = stream.read()
        for segment in SEGMENT.finditer(content):
            number = 1 + content.count(b"\n", 0, segment.start())
            text = html.unescape(files.decode(segment[1], member, number))
            sink.write(text.replace("\n", " ").strip().encode() + b"\n")
    else:
        copy_text(stream, sink)


def copy_text(stream: IO[bytes] | gzip.GzipFile, sink: files.Output) -> None:
    """Write a text to `sink`, with an end of its last line, since another text may follow."""
    last = b"\n"
    while block := stream.read(BLOCK):
        sink.write(block)
        last = block[-1:]
    if last != b"\n":
        sink.write(b"\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
    except UserError as error:
        print(f"unpack.py: {error}", file=sys.stderr)
        sys.exit(2)
