"""The files of the page, as they are: nothing inline, nothing from elsewhere, a name for every control."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from nmt.serve import server

INDEX = server.PAGE / "index.html"
FILES = sorted(path for folder in (server.PAGE, server.SHARED_PAGE) for path in folder.iterdir())
SCRIPTS = [path for path in FILES if path.suffix == ".js"]
VOID = frozenset("br col hr img input link meta".split())
CONTROLS = frozenset("button input select textarea progress dialog".split())


class Tree(HTMLParser):
    """The elements of a page: tag, attributes, the elements around, the text inside."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.around: list[Element] = []
        self.found: list[Element] = []
        self.feed(text)
        assert not self.around, f"not closed: {self.around[-1].tag}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs}, list(self.around))
        self.found.append(made)
        if tag not in VOID:
            self.around.append(made)

    def handle_endtag(self, tag: str) -> None:
        assert self.around.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for one in self.around:
            one.text += data


class Element:
    def __init__(self, tag: str, attributes: dict[str, str], around: "list[Element]") -> None:
        self.tag, self.attributes, self.around, self.text = tag, attributes, around, ""

    def named(self, everything: "list[Element]") -> bool:
        """Has it a name that is read out?"""
        if self.attributes.get("aria-label", "").strip() or (self.tag == "button" and self.text.strip()):
            return True
        given = self.attributes.get("id")
        ids = {one.attributes.get("id") for one in everything}
        labels = {one.attributes.get("for") for one in everything if one.tag == "label"}
        return (
            any(one.tag == "label" and one.text.strip() for one in self.around)
            or (given is not None and given in labels)
            or self.attributes.get("aria-labelledby") in ids - {None}
        )


@pytest.fixture(scope="module")
def elements() -> list[Element]:
    return Tree(INDEX.read_text(encoding="utf-8")).found


def text_of(name: str) -> str:
    (path,) = [path for path in FILES if path.name == name]
    return path.read_text(encoding="utf-8")


def test_nothing_is_inline(elements: list[Element]) -> None:
    for one in elements:
        assert one.tag != "style" and "style" not in one.attributes, one.attributes
        assert not [name for name in one.attributes if name.startswith("on")], one.attributes
        if one.tag == "script":
            assert one.attributes["src"] and not one.text.strip()


def test_all_files_are_here_and_used(elements: list[Element]) -> None:
    used = {one.attributes.get("src") or one.attributes.get("href") for one in elements}
    used = {name for name in used if name and not name.startswith("#")}
    for path in SCRIPTS:
        imported = re.findall(r'from "\./([^"]+)"', path.read_text(encoding="utf-8"))
        assert len(imported) == path.read_text(encoding="utf-8").count("import "), path.name
        used |= set(imported)
    assert used == {path.name for path in FILES} - {"index.html"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_nothing_comes_from_elsewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")  # a name, no address
    assert not re.search(r"https?:|[\"'(]//|@import|url\(", text)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_texts_never_become_markup_or_code(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    forbidden = r"(inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|DOMParser"
    assert not re.search(forbidden, text)
    assert 'setAttribute("style"' not in text and "cssText" not in text


def test_every_control_has_a_name(elements: list[Element]) -> None:
    controls = [one for one in elements if one.tag in CONTROLS]
    assert len(controls) > 20
    for one in controls:
        assert one.named(elements), (one.tag, one.attributes)


def test_ids_are_unique_and_those_of_the_scripts_are_there(elements: list[Element]) -> None:
    ids = [one.attributes["id"] for one in elements if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    used = {name for path in FILES for name in re.findall(r'byId\("([^"]+)"\)', path.read_text("utf-8"))}
    assert used and used <= set(ids)
    for one in elements:
        for name in ("aria-labelledby", "aria-describedby", "for"):
            assert one.attributes.get(name, ids[0]) in ids


def test_colors_stand_in_the_shared_style_alone() -> None:
    own = re.sub(r"rgb\([\d ./]+\)", "", text_of("page.css"))  # shadows
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b(?=[;, )])", own)
    known = set(re.findall(r"(--[a-z0-9-]+):", text_of("common.css") + own)) | {"--weight", "--color"}
    assert set(re.findall(r"var\((--[a-z0-9-]+)", own)) <= known
