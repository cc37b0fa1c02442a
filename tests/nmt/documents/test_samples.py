"""Documents that other programs made (make_samples.py) go through in every format: all text is translated,
all else stays, and the result can be read again. lxml and justhtml, not our own code, say what is in them."""

import zipfile
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lxml import etree

from nmt.documents import formats
from nmt.documents.inline import AlignedTranslation
from tests.nmt.documents.fake import translated
from tests.nmt.documents.test_html_text import parts_of

if TYPE_CHECKING:
    from lxml.etree import ElementBase as Element

SAMPLES = sorted((Path(__file__).parent / "samples").iterdir())
NAMES = [path.name for path in SAMPLES]
WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
CODES = ("ph", "bpt", "ept", "it")  # whose content is no text


def test_there_are_enough_in_every_format() -> None:
    kinds = Counter(formats.choose_format(name) for name in NAMES)
    assert sum(kinds.values()) >= 40 and len(kinds) == 4 and min(kinds.values()) >= 8
    assert sum(path.stat().st_size for path in SAMPLES) < 400_000


def parts(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def local(node: "Element") -> str:
    return etree.QName(node).localname if isinstance(node.tag, str) else ""


def element(node: "Element") -> str:
    return f"{node.tag} {sorted(node.attrib.items())}"


def docx_elements(data: bytes) -> Counter[str]:
    """All elements but runs, their formats and their texts, which follow the words."""
    dropped = {f"{WORD}{name}" for name in ("r", "t", "proofErr", "lastRenderedPageBreak")}
    return Counter(
        element(node)
        for node in etree.fromstring(data).iter(etree.Element)
        if node.tag not in dropped
        and not any(
            above.tag == f"{WORD}rPr" and above.getparent().tag == f"{WORD}r"
            for above in (node, *node.iterancestors())
        )
    )


def docx_formats(data: bytes) -> Counter[str]:
    """The formats of runs that have text, each once."""
    return Counter({
        etree.tostring(run.find(f"{WORD}rPr") if run.find(f"{WORD}rPr") is not None else b"").decode()
        for run in etree.fromstring(data).iter(f"{WORD}r")
        if run.find(f"{WORD}rPr") is not None and "".join(run.itertext(f"{WORD}t")).strip()
    })  # fmt: skip


def docx_texts(data: bytes) -> list[str]:
    """The text of each paragraph without blanks, which are kept in other runs."""
    return [
        "".join("".join(node.text or "" for node in paragraph.iter(f"{WORD}t")).split())
        for paragraph in etree.fromstring(data).iter(f"{WORD}p")
    ]


def xliff_texts(node: "Element") -> Iterator[str]:
    """The text of a source or target without the content of codes."""
    if local(node) not in CODES:
        yield node.text or ""
        for child in node:
            yield from xliff_texts(child)
            yield child.tail or ""


def xliff_units(data: bytes) -> "list[Element]":
    return list(etree.fromstring(data).iter("{*}trans-unit", "{*}segment"))


def xliff_pairs(data: bytes, found: bytes) -> "Iterator[tuple[Element, Element]]":
    """The source before, and the target after, of each unit that was to be translated."""
    for before, after in zip(xliff_units(data), xliff_units(found), strict=True):
        target = before.find("{*}target")
        states = (before.get("state"), None if target is None else target.get("state"))
        done = before.get("approved") == "yes" or not {"final", "translated"}.isdisjoint(states)
        if done or any(above.get("translate") == "no" for above in (before, *before.iterancestors())):
            assert etree.tostring(before) == etree.tostring(after)
            continue
        cut = before.find("{*}seg-source")
        source, target = before.find("{*}source") if cut is None else cut, after.find("{*}target")
        assert source is not None and target is not None
        yield source, target


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("path", SAMPLES, ids=NAMES)
def test_all_text_is_translated_and_all_else_stays(path: Path, reverse: bool) -> None:
    data = path.read_bytes()
    found = translated(data, path.name, reverse)
    kind = formats.choose_format(path.name)
    lines = formats.parse(data, path.name).lines
    again = formats.parse(found, path.name).lines
    assert lines
    if kind == "text":
        assert found.decode().lower().split() == data.decode().lower().split() or reverse
        assert "".join(again).isupper()
        assert reverse or len(found.splitlines()) == len(data.splitlines())
    elif kind == "html":
        assert len(again) == len(lines) and "".join(again) == "".join(again).upper()
        for fragment in (False, True):
            before, after = (parts_of(text.decode(), fragment, False) for text in (data, found))
            assert after == before
    elif kind == "docx":
        assert len(again) == len(lines)
        check_docx(data, found)
    else:
        for source, target in xliff_pairs(data, found):
            texts = ["".join(xliff_texts(side)) for side in (source, target)]
            assert sorted("".join(texts[0].upper().split())) == sorted("".join(texts[1].split()))
            assert Counter(map(element, source.iterdescendants())) == Counter(
                map(element, target.iterdescendants())
            )


def check_docx(data: bytes, found: bytes) -> None:
    """The same parts in the same order; texts in upper case; the same elements and formats."""
    before, after = parts(data), parts(found)
    assert list(before) == list(after)
    for name in before:
        if before[name] == after[name]:
            assert not name.endswith("document.xml")
            continue
        texts = [(sorted(old.upper()), sorted(new)) for old, new in zip(
            docx_texts(before[name]), docx_texts(after[name]), strict=True
        )]  # fmt: skip
        assert texts and all(old == new for old, new in texts), name
        assert docx_elements(after[name]) == docx_elements(before[name]), name
        assert docx_formats(after[name]) == docx_formats(before[name]), name


@pytest.mark.parametrize("path", SAMPLES, ids=NAMES)
def test_without_translations_nothing_changes(path: Path) -> None:
    data = path.read_bytes()
    document = formats.parse(data, path.name)
    document.set_languages("en", "fr")
    found = document.write([AlignedTranslation("")] * len(document.lines))
    kind = formats.choose_format(path.name)
    if kind in ("text", "html"):
        assert found == data
    elif kind == "docx":
        assert formats.parse(found, path.name).lines == document.lines
        for name, part in parts(data).items():
            if name.endswith(".xml"):
                assert docx_texts(parts(found)[name]) == docx_texts(part)
    else:
        for source, target in xliff_pairs(data, found):
            assert list(xliff_texts(source)) == list(xliff_texts(target))
