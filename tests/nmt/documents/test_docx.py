"""Paragraphs of WordprocessingML: formats and links follow their words, all else stays."""

import re
import zipfile
from io import BytesIO

import pytest

from nmt.documents import docx
from nmt.documents.inline import AlignedTranslation
from tests.nmt.documents import fake
from tests.nmt.documents.test_damaged import NAMESPACE
from tests.nmt.documents.test_damaged import docx as docx_file
from tests.nmt.documents.test_samples import parts


def body(paragraph: str) -> str:
    return f"<w:document {NAMESPACE}><w:body><w:p>{paragraph}</w:p></w:body></w:document>"


def lines(paragraph: str) -> list[str]:
    return docx.parse(docx_file(body(paragraph)), "a.docx").lines


def translated(paragraph: str, reverse: bool = False) -> str:
    """The paragraph in upper case, with runs as r(format: text) and without what is the same in each."""
    found = fake.translated(docx_file(body(paragraph)), "a.docx", reverse)
    text = (
        parts(found)["word/document.xml"]
        .decode()
        .partition("<w:body><w:p>")[2]
        .partition("</w:p></w:body>")[0]
    )
    return text.replace(' xml:space="preserve"', "").replace("w:", "")


def run(text: str, properties: str = "") -> str:
    properties = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f'<w:r>{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


def short(text: str, properties: str = "") -> str:
    return run(text, properties).replace(' xml:space="preserve"', "").replace("w:", "")


def test_a_format_follows_its_words() -> None:
    paragraph = run("one ") + run("two", "<w:b/>") + run(" three four")
    assert lines(paragraph) == ["one two three four"]
    assert translated(paragraph) == short("ONE ") + short("TWO", "<w:b/>") + short(" THREE FOUR")
    assert translated(paragraph, True) == short("FOUR THREE ") + short("TWO", "<w:b/>") + short(" ONE")


def test_runs_that_look_the_same_are_one() -> None:
    """However often an editor has cut them."""
    paragraph = (
        '<w:r w:rsidR="1"><w:t>on</w:t></w:r><w:proofErr w:type="spellStart"/>'
        '<w:r><w:rPr><w:lang w:val="en"/></w:rPr><w:t xml:space="preserve">e two</w:t></w:r>'
        "<w:r><w:lastRenderedPageBreak/><w:t>!</w:t></w:r>"
    )
    assert lines(paragraph) == ["one two!"]
    assert translated(paragraph) == '<r rsidR="1"><t>ONE TWO!</t></r>'


def test_hyphens_that_are_elements_are_part_of_their_words() -> None:
    paragraph = "<w:r><w:t>e</w:t><w:noBreakHyphen/><w:t>mail soft</w:t><w:softHyphen/><w:t>ware</w:t></w:r>"
    assert lines(paragraph) == ["e-mail software"]
    assert translated(paragraph) == short("E-MAIL SOFTWARE")


def test_blanks_stay_around_a_text() -> None:
    assert translated(run("  one. ") + run(" ", "<w:i/>")) == short("  ONE. ") + short(" ", "<w:i/>")
    assert lines("<w:r><w:t> one </w:t></w:r>") == ["one"]


@pytest.mark.parametrize("mark", ["<w:tab/>", "<w:br/>", "<w:cr/>", "<w:ptab/>"])
def test_breaks_in_a_run_end_a_text(mark: str) -> None:
    paragraph = f"<w:r><w:rPr><w:b/></w:rPr><w:t>one</w:t>{mark}<w:t>two</w:t></w:r>" + run(" three")
    found = translated(paragraph)
    assert lines(paragraph) == ["one", "two three"]
    mark = mark.replace("w:", "")
    start = "<r><rPr><b/></rPr>"
    assert found == f"{start}<t>ONE</t></r>{start}{mark}</r>{start}<t>TWO</t></r>" + short(" THREE")


def test_links_keep_their_words() -> None:
    link = '<w:hyperlink w:anchor="a">' + run("the ") + run("dog", "<w:b/>") + "</w:hyperlink>"
    assert translated(run("see ") + link + run(" now"), True) == (
        short("NOW ")
        + '<hyperlink anchor="a">'
        + short("DOG", "<w:b/>")
        + short(" THE")
        + "</hyperlink>"
        + short(" SEE")
    )


FIELD = (
    '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>{}</w:instrText></w:r>'
    '<w:r><w:fldChar w:fldCharType="separate"/></w:r>{}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
)


def test_a_field_stays_whole() -> None:
    field = FIELD.format(" PAGE ", run("three"))
    found = translated(run("on page ") + field + run(" of it"), True)
    assert lines(run("on page ") + field + run(" of it")) == ["on page of it"]
    assert field.replace("w:", "").replace(' xml:space="preserve"', "") in found
    simple = '<w:fldSimple w:instr="DATE">' + run("today") + "</w:fldSimple>"
    assert lines(run("on ") + simple + run(" we")) == ["on we"]


def test_a_link_as_a_field_is_translated() -> None:
    field = FIELD.format(' HYPERLINK "http://x" ', run("the dog"))
    found = translated(run("see ") + field + run(" now"), True)
    marks = re.findall(r'fldCharType="(\w+)"|<t>([^<]*)', found)
    assert [a or b for a, b in marks] == ["NOW ", "begin", "separate", "DOG THE", "end", " SEE"]


def test_a_field_of_several_paragraphs_ends_texts() -> None:
    start, _, end = FIELD.format(" TOC ", "|").partition("|")
    text = run("one ") + start + run("two")
    assert lines(text) == ["one", "two"]
    assert translated(text).endswith(f"{start}".replace("w:", "") + short("TWO"))
    assert lines(run("one") + end + run("two")) == ["one", "two"]


def test_a_field_that_crosses_tags_ends_texts() -> None:
    start, _, end = FIELD.format(" PAGE ", "|").partition("|")
    assert lines(run("one ") + f"<w:ins>{start}</w:ins>" + run("two") + end) == ["one", "two"]


def test_what_is_deleted_stays_and_what_is_inserted_is_translated() -> None:
    deleted = '<w:del w:id="1"><w:r><w:delText>old</w:delText></w:r></w:del>'
    found = translated(run("one ") + deleted + '<w:ins w:id="2">' + run("two") + "</w:ins>" + run(" three"))
    assert deleted.replace("w:", "") in found
    assert '<ins id="2">' + short("TWO") + "</ins>" in found


def test_notes_bookmarks_and_pictures_stay_at_their_words() -> None:
    note = '<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:footnoteReference w:id="1"/></w:r>'
    mark = '<w:bookmarkStart w:id="0" w:name="a"/>{}<w:bookmarkEnd w:id="0"/>'
    found = translated(run("one") + note + run(" ") + mark.format(run("two")) + run(" three"), True)
    assert found == (
        short("THREE ")
        + mark.format(run("TWO")).replace("w:", "").replace(' xml:space="preserve"', "")
        + short(" ONE")
        + note.replace("w:", "")
    )


def test_a_bookmark_between_runs_that_all_have_a_format() -> None:
    mark, bold = '<w:bookmarkStart w:id="1"/>', "<w:b/>"
    paragraph = run("one ", bold) + mark + run("two", bold)
    assert translated(paragraph) == short("ONE ", bold) + mark.replace("w:", "") + short("TWO", bold)


def test_a_text_box_is_translated_by_itself() -> None:
    box = f"<w:r><w:pict><w:txbxContent><w:p>{run('inside')}</w:p></w:txbxContent></w:pict></w:r>"
    paragraph = run("before ") + box + run("after")
    assert sorted(lines(paragraph)) == ["after", "before", "inside"]
    changed = box.replace("inside", "INSIDE").replace("w:", "").replace(' xml:space="preserve"', "")
    assert translated(paragraph) == short("BEFORE ") + changed + short("AFTER")


def test_content_controls() -> None:
    control = "<w:sdt><w:sdtPr><w:id/></w:sdtPr><w:sdtContent>{}</w:sdtContent></w:sdt>"
    assert translated(run("a ") + control.format(run("b"))) == (
        short("A ") + control.format(run("B")).replace("w:", "").replace(' xml:space="preserve"', "")
    )
    assert lines(run("a ") + "<w:sdt><w:sdtPr/></w:sdt>" + run("b")) == ["a b"]


def test_a_translation_cannot_become_markup() -> None:
    document = docx.parse(docx_file(body(run("a"))), "a.docx")
    found = parts(document.write([AlignedTranslation("<w:br/>&\x00\ud800")]))["word/document.xml"].decode()
    assert "&lt;w:br/&gt;&amp;" in found and "\x00" not in found


def test_the_same_file_gives_the_same_bytes() -> None:
    data = docx_file(body(run("a")))
    assert fake.translated(data, "a.docx") == fake.translated(data, "a.docx")
    with zipfile.ZipFile(BytesIO(fake.translated(data, "a.docx"))) as archive:
        assert archive.testzip() is None
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_DEFLATED}
