"""What is translated of an HTML document."""

import time

import pytest

from nmt.serve import html_text

DOCUMENT = """<!doctype html><p class="a>b">It's <b>big</b> &amp; small.</p>
<script>if (a < b) alert("no")</script> 1 < 2 <!-- <p>no</p> --><br/>
<STYLE>p {}</STYLE><pre>keep  it</pre><styled>yes</styled>"""


def texts(document: str) -> list[str]:
    return [piece.text for piece in html_text.pieces(document) if piece.text]


def test_text_between_tags_is_found() -> None:
    found = texts(DOCUMENT.replace(' class="a>b"', ""))
    assert found == ["It's", "big", "& small.", "1 < 2", "yes"]


def test_the_rest_stays_as_it_is() -> None:
    found = html_text.pieces(DOCUMENT)
    assert "".join(piece.raw for piece in found) == DOCUMENT
    made = html_text.joined(found, [text.upper() for text in texts(DOCUMENT)])
    assert "<b>BIG</b> &amp; SMALL." in made and "1 &lt; 2" in made
    assert 'alert("no")' in made and "<!-- <p>no</p> -->" in made and "keep  it" in made


def test_a_translation_cannot_become_markup() -> None:
    assert html_text.joined(html_text.pieces("<p> x </p>"), ["<script>&"]) == "<p> &lt;script&gt;&amp; </p>"


@pytest.mark.parametrize(
    "document", ["", "<", "a<", "<p", "<!--", "<script>x", "</", "<p>a</p", "&#0;", "a < b"]
)
def test_broken_documents_stay_whole(document: str) -> None:
    found = html_text.pieces(document)
    assert "".join(piece.raw for piece in found) == document
    html_text.joined(found, [piece.text for piece in found if piece.text])


def test_letters_whose_lower_case_is_longer() -> None:
    assert texts("İİİİ<SCRIPT>no</SCRIPT>yes") == ["İİİİ", "yes"]


@pytest.mark.parametrize("part", ["<!--", "<p", "<script>", "< ", "<!", "&", "</script"])
def test_time_is_linear(part: str) -> None:
    """A quadratic search would take minutes."""
    begin = time.process_time()
    html_text.pieces(part * 100_000)
    assert time.process_time() - begin < 10
