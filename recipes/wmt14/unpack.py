"""Extract the texts of downloaded archives into a pair of files for each kind: unpack.py CORPORA.tsv
DOWNLOADS OUT

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
from pathlib import Path
from typing import IO

from nmt.errors import DataError, UserError
from nmt.io import files

BLOCK = 1 << 20
SEGMENT = re.compile(rb"<seg[^>]*>(.*?)</seg>", re.DOTALL)


def main(listing: str, downloads: Path, out: Path) -> None:
    """Extract the texts of a list from the folder `downloads` into the folder `out`; existing files are not
    written again. DataError for a list that cannot be read, and for a missing archive or member; UserError
    for a file that cannot be written."""
    out.mkdir(parents=True, exist_ok=True)
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
                    copy(archive, member, sink)


def copy(archive: Path, member: str, sink: files.Output) -> None:
    """Write the text of a member of an archive to `sink`; a file that is not an archive is itself the member.
    DataError if the archive lacks the member."""
    if not tarfile.is_tarfile(archive):
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
    the file as it is."""
    if member.endswith(".gz"):
        with gzip.open(stream) as unpacked:
            copy_text(unpacked, sink)
    elif member.endswith(".sgm"):
        for segment in SEGMENT.findall(stream.read()):
            sink.write(html.unescape(segment.decode("utf-8")).strip().encode() + b"\n")
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
