"""XLIFF as a document: targets, states, languages and inline codes, and everything else byte for byte."""

import re
from collections import Counter

import pytest
from lxml import etree

from nmt.documents import xliff
from nmt.documents.inline import AlignedTranslation
from nmt.errors import DataError
from tests.nmt.documents.fake import translated

OLD = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
 <file original="a" source-language="en-US" datatype="plaintext"><body>
  %s
 </body></file>
</xliff>
"""
NEW = """<xliff version="2.1" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="fr-CA">
 <file id="f"><unit id="u">
  %s
 </unit></file>
</xliff>
"""


def old(units: str, reverse: bool = False) -> str:
    return translated((OLD % units).encode(), "a.xlf", reverse).decode()


def new(units: str, reverse: bool = False) -> str:
    return translated((NEW % units).encode(), "a.xlf", reverse).decode()


def targets(text: str) -> list[str]:
    return re.findall(r"<target[^>]*>(.*?)</target>", text, re.DOTALL)


def test_a_target_is_added_after_its_source() -> None:
    found = old('<trans-unit id="1">\n   <source>A dog.</source>\n   <note>x</note></trans-unit>')
    target = '<target state="needs-review-translation" state-qualifier="leveraged-mt">A DOG.</target>'
    unit = f'<trans-unit id="1">\n   <source>A dog.</source>\n   {target}\n   <note>x</note></trans-unit>'
    assert found == (OLD % unit).replace('"plaintext"', '"plaintext" target-language="fr"')


def test_the_state_of_version_2_belongs_to_the_segment() -> None:
    found = new('<segment id="s" state="initial" subState="x:y"><source>A dog.</source></segment>')
    assert found == NEW % (
        '<segment id="s" state="translated"><source>A dog.</source><target>A DOG.</target></segment>'
    )


def test_a_unit_without_text_is_left_as_it_is() -> None:
    unit = '<trans-unit id="1"><source> </source></trans-unit>'
    assert old(unit) == (OLD % unit).replace('"plaintext"', '"plaintext" target-language="fr"')
    segment = '<segment state="initial"><source></source></segment>'
    assert new(segment) == NEW % segment


@pytest.mark.parametrize(
    "unit, replaced",
    [
        ('<trans-unit id="1" approved="yes"><source>A</source><target>B</target></trans-unit>', False),
        ('<trans-unit id="1"><source>A</source><target state="final">B</target></trans-unit>', False),
        ('<trans-unit id="1"><source>A</source><target state="translated">B</target></trans-unit>', False),
        ('<trans-unit id="1"><source>A</source><target state="new">B</target></trans-unit>', True),
        ('<trans-unit id="1"><source>A</source><target>B</target></trans-unit>', True),
        ('<trans-unit id="1" approved="yes"><source>A</source><target/></trans-unit>', True),
        ('<trans-unit id="1" translate="no"><source>A</source></trans-unit>', False),
        ('<group translate="no"><trans-unit id="1"><source>A</source></trans-unit></group>', False),
        ("<alt-trans><source>A</source></alt-trans>", False),
    ],
)
def test_what_is_done_stays(unit: str, replaced: bool) -> None:
    assert (">A</target>" in old(unit)) == replaced
    if not replaced:
        assert unit in old(unit)


def test_what_has_no_target_is_not_done() -> None:
    """Whatever its state says, and with or without a declaration before the first tag."""
    assert ">A</target>" in new('<segment id="s" state="translated"><source>A</source></segment>')
    text = OLD % '<trans-unit id="1" approved="yes"><source>A</source></trans-unit>'
    for start in ("", text.split("\n")[0] + "\n"):
        data = start + text.partition("\n")[2]
        assert xliff.parse(data.encode(), "a.xlf").lines == ["A"]


def test_a_new_target_is_not_approved() -> None:
    units = '<trans-unit id="1" approved="yes"><source>A</source><target{}</trans-unit>'
    assert '<trans-unit id="1" approved="no"><source>A</source><target ' in old(units.format("/>"))
    assert 'approved="yes"' in old(units.format(">B</target>"))


def test_a_second_time_nothing_changes() -> None:
    unit = "<source>A</source>"
    for found in (old(f"<trans-unit id='1'>{unit}</trans-unit>"), new(f"<segment>{unit}</segment>")):
        assert translated(found.encode(), "a.xlf").decode() == found


def test_codes_follow_their_words() -> None:
    found = old(
        '<trans-unit id="1"><source>one <g id="1">two</g><x id="2"/> <bx id="3"/>three<ex id="3"/> four'
        "</source></trans-unit>",
        reverse=True,
    )
    assert targets(found) == ['FOUR <bx id="3"/>THREE<ex id="3"/> <g id="1">TWO</g><x id="2"/> ONE']
    found = new(
        '<segment><source>one <pc id="1">two <ph id="2"/></pc>and <sc id="3"/>three<ec startRef="3"/>'
        "</source></segment>",
        reverse=True,
    )
    assert targets(found) == ['<sc id="3"/>THREE<ec startRef="3"/> AND <pc id="1">TWO <ph id="2"/></pc> ONE']


def test_codes_that_overlap_keep_their_order() -> None:
    source = '<bx id="1"/>one <g id="2">two<ex id="1"/> three</g> four'
    [target] = targets(old(f"<trans-unit id='1'><source>a {source}</source></trans-unit>", reverse=True))
    assert target.index("<bx") < target.index("<ex") and target.count("<g") == 1


def test_what_is_inside_a_code_is_not_text() -> None:
    source = 'see <ph id="1">&lt;img alt="no"></ph> and <mrk mtype="protected">Acme</mrk> now'
    document = xliff.parse((OLD % f"<trans-unit id='1'><source>{source}</source></trans-unit>").encode(), "a")
    assert document.lines == ["see and now"]
    [target] = targets(document.write([AlignedTranslation("voir <et>\x01")]).decode())
    assert "&lt;et&gt;" in target and "\x01" not in target
    assert '<ph id="1">&lt;img alt="no"></ph>' in target and '<mrk mtype="protected">Acme</mrk>' in target


def test_segments_of_version_1() -> None:
    source = '<mrk mtype="seg" mid="0">A dog.</mrk> <mrk mtype="seg" mid="1">A <g id="1">cat</g>.</mrk>'
    plain = "<source>A dog. A <g id='1'>cat</g>.</source>"
    found = old(f"<trans-unit id='1'>{plain}<seg-source>{source}</seg-source></trans-unit>")
    assert targets(found) == [source.replace("dog", "DOG").replace("cat", "CAT")]
    assert found.index("</seg-source>") < found.index("<target")


def test_line_breaks_that_are_part_of_the_text_stay() -> None:
    unit = '<trans-unit id="1" xml:space="{}"><source>one\n  two</source></trans-unit>'
    assert targets(old(unit.format("preserve"))) == ["ONE\n  TWO"]
    assert targets(old(unit.format("default"))) == ["ONE TWO"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-8-sig"])
def test_encodings_stay(encoding: str) -> None:
    declared = OLD.replace("UTF-8", encoding.removesuffix("-sig"))
    data = (declared % "<trans-unit id='1'><source>café</source></trans-unit>").encode(encoding)
    found = translated(data, "a.xlf")
    assert found[:3] == data[:3] and targets(found.decode(encoding)) == ["CAFÉ"]
    assert etree.fromstring(found) is not None


def test_prefixes_of_names() -> None:
    data = (
        b'<x:xliff version="1.2" xmlns:x="urn:oasis:names:tc:xliff:document:1.2">'
        b'<x:file source-language="en">'
        b"<x:body><x:trans-unit id='1'><x:source>A <x:g id='1'>b</x:g></x:source></x:trans-unit></x:body>"
        b"</x:file></x:xliff>"
    )
    found = translated(data, "a.xlf")
    assert b"A <x:g id='1'>B</x:g></x:target>" in found
    names = Counter(node.tag for node in etree.fromstring(found).iter())
    assert names["{urn:oasis:names:tc:xliff:document:1.2}target"] == 1


@pytest.mark.parametrize(
    "data, message",
    [
        (b"", r"a.xlf:1: not well-formed"),
        (OLD.encode()[:-9], r"a.xlf:\d: not well-formed"),
        (b"<tmx/>", "a.xlf:1: begins with <tmx>"),
        (b"<xliff/>", "a.xlf:1: version missing"),
        (b"<xliff version='3.0'/>", "a.xlf:1: version 3.0"),
        (b"\n<!DOCTYPE xliff [<!ENTITY a 'b'>]>\n<xliff version='1.2'/>", "declares the entity a"),
        (
            b"<!DOCTYPE xliff SYSTEM 'x.dtd'>\n<xliff version='1.2'><file><body><trans-unit><source>\n&a;"
            b"</source></trans-unit></body></file></xliff>",
            "a.xlf:3: the entity &a;",
        ),
        (OLD.replace("UTF-8", "latin1").encode(), "a.xlf:1: declares the encoding latin1"),
        (b"<xliff version='1.2'>\n\xff</xliff>", "a.xlf:2: byte 0xff"),
        ((OLD % "").replace("en-US", "de").encode(), "a.xlf:3: source-language=de"),
        ((NEW % "").replace("fr-CA", "de").encode(), "a.xlf:1: trgLang=de"),
    ],
)
def test_what_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as error:
        translated(data, "a.xlf")
    assert "\n" not in str(error.value)


def test_version_2_needs_a_target_language() -> None:
    data = (NEW % "<segment><source>A</source></segment>").replace(' trgLang="fr-CA"', "").encode()
    document = xliff.parse(data, "a.xlf")
    with pytest.raises(DataError, match="1: names no target language"):
        document.set_languages("", "")
    document.set_languages("en", "fr")
    assert b'srcLang="en" trgLang="fr">' in document.write([AlignedTranslation("B")])


def test_characters_by_number() -> None:
    units = "<trans-unit id='1'><source>A &#x0000e9; &#000000233; &#x1F600;</source></trans-unit>"
    assert targets(old(units)) == ["A É É \U0001f600"]


@pytest.mark.ci
def test_a_tag_full_of_blanks() -> None:
    """A quadratic search would take minutes."""
    units = f"<trans-unit{' ' * 100_000} id='1'><source>a</source></trans-unit>"
    assert targets(old(units)) == ["A"]


@pytest.mark.ci
@pytest.mark.parametrize(
    "code", ['<bx id="1"/>a ', 'a<ex id="2"/> ', '<g id="1">a</g> ', "<mrk>a", "a<x id='1'/>"]
)
def test_work_grows_with_the_document(code: str) -> None:
    """A quadratic search would take minutes."""
    closing = "</mrk>" * 200 if code == "<mrk>a" else ""
    old(f"<trans-unit id='1'><source>{code * (200 if closing else 10_000)}{closing}</source></trans-unit>")
