"""Damaged and hostile documents: nmt-translate refuses each in one line, and writes nothing."""

import random
import struct
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path

import pytest

from nmt.cli import translate
from nmt.documents.docx import MOST_PARTS, OLD_OFFICE, read_package
from nmt.errors import DataError
from tests.conftest import ROOT, refusal
from tests.nmt.documents.test_samples import SAMPLES, parts

RUN = ROOT / "tests" / "models" / "translator"
NAMESPACE = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
BODY = f"<w:document {NAMESPACE}><w:body><w:p><w:r><w:t>A man.</w:t></w:r></w:p></w:body></w:document>"
TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override '
    'PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    'wordprocessingml.document.main+xml"/></Types>'
)
LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10 if n else "ha"}">' for n in range(10))


def docx(
    body: str | bytes = BODY,
    types: str = TYPES,
    method: int = zipfile.ZIP_DEFLATED,
    more: Mapping[str, str] | None = None,
) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("[Content_Types].xml", types)
        archive.writestr("word/document.xml", body)
        for name, text in (more or {}).items():
            archive.writestr(name, text)
    return out.getvalue()


def renamed(data: bytes, old: str, new: str) -> bytes:
    """A ZIP file in which a part has another name of the same length."""
    assert len(old) == len(new)
    return data.replace(old.encode(), new.encode())


def twice() -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = BytesIO(docx())
        with zipfile.ZipFile(out, "a") as archive:
            archive.writestr("word/document.xml", BODY)
    return out.getvalue()


def many_parts() -> bytes:
    return docx(more={f"x/{number}": "" for number in range(MOST_PARTS)})


def bomb(blocks: int) -> bytes:
    """A part of so many MiB of blanks."""
    return docx(BODY[:-13] + " " * (blocks << 20) + BODY[-13:])


def several_bombs() -> bytes:
    return docx(more={f"x{number}": " " * (40 << 20) for number in range(3)})


def large_part() -> bytes:
    """The whole is not much larger than the file, which is full of noise."""
    return docx(more={"x": " " * (70 << 20), "noise": random.Random(1).randbytes(3 << 20).hex()})


def lying_bomb() -> bytes:
    """Its directory says that it is small."""
    data = bytearray(bomb(80))
    entry = data.rindex(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = struct.pack("<I", 100)
    return bytes(data)


def encrypted() -> bytes:
    data = bytearray(docx())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    return bytes(data)


def xliff(text: str = "", doctype: str = "", **attributes: str) -> bytes:
    names = {"version": "1.2"} | attributes
    written = " ".join(f'{name}="{value}"' for name, value in names.items())
    unit = f"<trans-unit id='1'><source>{text}</source></trans-unit>"
    return f"{doctype}<xliff {written}><file source-language='en'><body>{unit}</body></file></xliff>".encode()


HOSTILE: dict[str, tuple[str, Callable[[], bytes]]] = {
    "laughs": (".xlf", lambda: xliff("&a9;", f"<!DOCTYPE xliff [{LAUGHS}]>")),
    "external entity": (".xlf", lambda: xliff("&a;", '<!DOCTYPE x [<!ENTITY a SYSTEM "/etc/passwd">]>')),
    "parameter entity": (".xlf", lambda: xliff("", '<!DOCTYPE x [<!ENTITY % a SYSTEM "http://[::1]/">%a;]>')),
    "external DTD": (".xlf", lambda: xliff("&a;", '<!DOCTYPE x SYSTEM "http://[::1]/x.dtd">')),
    "deep": (".xlf", lambda: xliff("<g>" * 5000 + "a" + "</g>" * 5000)),
    "unclosed": (".xlf", lambda: xliff("<g>" * 5000)),
    "long text": (".xlf", lambda: xliff("a" * (11 << 20))),
    "utf-7": (".xlf", lambda: b'<?xml version="1.0" encoding="utf-7"?>' + xliff("a")),
    "utf-32": (".xlf", lambda: xliff("a").decode().encode("utf-32")),
    "version": (".xlf", lambda: xliff(version="9")),
    "language": (".xlf", lambda: xliff("a").replace(b"'en'", b"'de'")),
    "control character": (".xlf", lambda: xliff("a\x00b")),
    "no xml": (".xlf", lambda: b"%PDF-1.7"),
    "other root": (".xliff", lambda: b"<tmx><body/></tmx>"),
    "empty xliff": (".xlf", lambda: b""),
    "deep html": (".html", lambda: b"<div>" * 100_000),
    "html of another encoding": (".html", lambda: b"<meta charset=shift_jis><p>a"),
    "html in utf-16": (".html", lambda: "<p>a".encode("utf-16")),
    "binary text": (".txt", lambda: bytes(range(256)) * 10),
    "zeros": (".txt", lambda: bytes(1000)),
    "traversal": (".docx", lambda: docx(more={"../../x": "x"})),
    "absolute name": (".docx", lambda: docx(more={"/etc/x": "x"})),
    "backslash": (".docx", lambda: docx(more={"..\\x": "x"})),
    "twice": (".docx", twice),
    "many parts": (".docx", many_parts),
    "bomb": (".docx", lambda: bomb(100)),
    "several bombs": (".docx", several_bombs),
    "large part": (".docx", large_part),
    "lying bomb": (".docx", lying_bomb),
    "encrypted": (".docx", encrypted),
    "bzip2": (".docx", lambda: docx(method=zipfile.ZIP_BZIP2)),
    "lzma": (".docx", lambda: docx(method=zipfile.ZIP_LZMA)),
    "laughs inside": (".docx", lambda: docx(f"<!DOCTYPE w [{LAUGHS}]>{BODY.replace('A man', '&a9;')}")),
    "entity in types": (".docx", lambda: docx(types=f'<!DOCTYPE Types [<!ENTITY a "b">]>{TYPES}')),
    "deep inside": (".docx", lambda: docx(BODY.replace("A man.", "<w:t>" * 300 + "</w:t>" * 300))),
    "no body": (".docx", lambda: renamed(docx(), "word/document.xml", "word/documenT.xml")),
    "no types": (".docx", lambda: renamed(docx(), "[Content_Types].xml", "[Content_TypeS].xml")),
    "spreadsheet": (".docx", lambda: docx(types=TYPES.replace("wordprocessingml", "spreadsheetml"))),
    "bad bytes inside": (".docx", lambda: docx(BODY.encode().replace(b"A man", b"\xff\xfe"))),
    "latin1 inside": (".docx", lambda: docx('<?xml version="1.0" encoding="latin1"?>' + BODY)),
    "old word": (".docx", lambda: OLD_OFFICE + bytes(5000)),
    "empty docx": (".docx", lambda: b""),
    "no zip": (".docx", lambda: b"PK\x03\x04" + bytes(100)),
}  # fmt: skip


def truncated(data: bytes, kind: str, rng: random.Random) -> bytes:
    """The beginning of a file. That of a text or a page is no damage: it ends inside a character."""
    if kind in (".txt", ".html", ".xhtml"):
        return data[: rng.randrange(len(data))] + "é".encode()[:1]
    return data[: rng.randrange(len(data.rstrip()) - 22 if kind == ".docx" else len(data.rstrip()) - 1)]


def bad_byte(data: bytes, kind: str, rng: random.Random) -> bytes:
    """A byte that is not UTF-8; in a ZIP file, another byte in the middle of a compressed part."""
    if kind != ".docx":
        at = rng.randrange(len(data) + 1)
        return data[:at] + bytes([rng.choice((0xC0, 0xF8, 0xFF))]) + data[at:]
    with zipfile.ZipFile(BytesIO(data)) as archive:
        entry = rng.choice([entry for entry in archive.infolist() if entry.compress_size > 100])
    at = entry.header_offset + 30 + len(entry.filename) + rng.randrange(50, entry.compress_size - 20)
    return data[:at] + bytes([data[at] ^ rng.randrange(1, 256)]) + data[at + 1 :]


def cut_inside(data: bytes, kind: str, rng: random.Random) -> bytes:
    """Without a stretch of tags; a text or page with a NUL or in UTF-16."""
    if kind == ".txt":
        at = rng.randrange(len(data))
        return data[:at] + b"\0" + data[at:]
    if kind in (".html", ".xhtml"):
        return data.decode().encode("utf-16")
    if kind == ".docx":
        changed = parts(data)
        body = changed["word/document.xml"]
        return docx(cut_inside(body, ".xlf", rng), changed["[Content_Types].xml"].decode())
    ends = [at for at in range(len(data)) if data.startswith(b"</", at)]
    at = rng.choice(ends)
    return data[:at] + data[data.index(b">", at) + 1 :]


def other_kind(data: bytes, kind: str, rng: random.Random) -> bytes:
    """A file of another kind under this name."""
    others = {".docx": b"<xliff/>", ".txt": docx(), ".html": docx(), ".xhtml": docx()}
    return others.get(kind, docx())


DAMAGES = (truncated, bad_byte, cut_inside, other_kind)
DAMAGED = [(path, damage) for path in SAMPLES for damage in DAMAGES]


def check_refused(folder: Path, name: str, data: bytes, capsys: pytest.CaptureFixture[str]) -> str:
    (folder / name).write_bytes(data)
    message = refusal(translate.main, capsys, RUN, "--document", folder / name, "-o", folder / "out", "-q")
    assert str(folder / name) in message and [path.name for path in folder.iterdir()] == [name], message
    return message


@pytest.mark.ci
@pytest.mark.parametrize(
    "path, damage", DAMAGED, ids=[f"{damage.__name__}-{path.name}" for path, damage in DAMAGED]
)
def test_damaged_documents(
    path: Path,
    damage: Callable[[bytes, str, random.Random], bytes],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = damage(path.read_bytes(), path.suffix, random.Random(f"{path.name} {damage.__name__}"))
    check_refused(tmp_path, path.name, data, capsys)


@pytest.mark.ci
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_documents(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ending, make = HOSTILE[name]
    check_refused(tmp_path, f"a{ending}", make(), capsys)


def test_no_more_is_unpacked_than_the_directory_says() -> None:
    data = lying_bomb()
    tracemalloc.start()
    with pytest.raises(DataError, match="damaged ZIP file"):
        read_package(data, "a.docx")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 8 << 20  # of 80 MiB


def test_what_is_small_and_whole_is_read(tmp_path: Path) -> None:
    """The file that the hostile ones are made of is a document."""
    for name, data in (("a.docx", docx()), ("a.xlf", xliff("A man."))):
        (tmp_path / name).write_bytes(data)
        words = [RUN, "--document", tmp_path / name, "-o", tmp_path / f"out-{name}", "-q"]
        assert translate.main(list(map(str, words))) == 0
        assert (tmp_path / f"out-{name}").read_bytes() != data
    assert len(DAMAGED) + len(HOSTILE) >= 200
