"""Raw lines become words with their terms and tags, and translations raw text."""

from pathlib import Path

import pytest

from nmt.text import truecase
from nmt.text.glossary import Glossary, Match, Term
from nmt.text.pipeline import SideConfig
from smt_bridge.decoder.xml_input import ForcedTranslation, MarkedLine, Markup
from smt_bridge.hybrid import lines
from smt_bridge.hybrid.lines import GlossaryLines, RawLines
from smt_bridge.hybrid.side import TextSide

CASE = truecase.learn([["x", "the", "house", "is", "big", "Paris", "a"]])
TERMS = "the house\tLa MAISON (x)\nAcme Inc.\tAcme & Cie.\ndon't\tne pas\n"
PLAIN, XML = Markup(), Markup("exclusive")


@pytest.fixture(params=["truecase", "lower"])
def raw(request: pytest.FixtureRequest, tmp_path: Path) -> RawLines:
    source, target = (TextSide(SideConfig(language=name, case=request.param), CASE) for name in ("en", "fr"))
    (tmp_path / "terms").write_text(TERMS)
    return RawLines(source, target, 20, lines.of_folder(str(tmp_path / "terms"), source, target))


def forced(line: MarkedLine) -> list[tuple[str, str, str | None]]:
    """Source words, translation, raw text."""
    return [
        (" ".join(line.words[one.begin : one.last + 1]), " ".join(one.words), one.raw) for one in line.forced
    ]


def test_a_match_forces_its_translation() -> None:
    found = lines.forced(Match(2, 4, Term(["x", "y"], "x  Y")))
    assert (found.begin, found.last, found.words, found.raw) == (2, 3, ["x", "y"], "x  Y")
    assert found.exclusive and found.points == ((0, 0), (0, 1), (1, 0), (1, 1))


def test_terms_in_raw_text(raw: RawLines) -> None:
    found = raw.marked("The house is Acme Inc.'s, don't ask Acme Inc. now", PLAIN)
    lower = raw.source.case == "lower"
    assert [(one.lower(), exact) for one, _, exact in forced(found)] == [
        ("the house", "La MAISON (x)"),
        ("acme inc .", "Acme & Cie."),  # as the tokenizer cuts it here
        ("don &apos;t", "ne pas"),
        ("acme inc.", "Acme & Cie."),
    ]
    assert found.forced[0].words == "la maison ( x )".split() if lower else "La MAISON ( x )".split()
    assert found.forced[1].words[1] == "&amp;"
    assert all(one.exclusive for one in found.forced)
    # the user's capitals count, also where the system reads lower case
    assert not forced(raw.marked("In THE house, acme inc.", PLAIN))


def test_what_is_copied(raw: RawLines) -> None:
    found = raw.marked('See <a href="x y">Http://X.org</a> 3.5 10:30.', PLAIN)
    assert [(one, exact) for _, one, exact in forced(found)] == [
        ("&lt;a\u00a0href=&quot;x\u00a0y&quot;&gt;", '<a href="x y">'),
        ("Http://X.org", "Http://X.org"),
        ("&lt;/a&gt;", "</a>"),
    ]
    assert found.zones == [(1, 3)] and found.walls == [1, 2]


def test_tags_enclose_their_words(raw: RawLines) -> None:
    found = raw.marked("<b>the <i>big</i></b> <br> a <u></u>", PLAIN)
    assert found.zones == [(2, 4), (0, 5), (8, 9)] and found.walls == [0, 2, 3, 4, 8]
    assert len(found.forced) == 7
    raw.longest = 9  # a line that is cut
    found = raw.marked("<b>the <i>big</i></b> <br> a <u></u>", PLAIN)
    assert not found.zones and not found.walls and len(found.forced) == 7


def test_markup_in_raw_text(raw: RawLines) -> None:
    tag = '<np translation="grande \\"Maison\\"||l\'a|b" prob="0.8||0.2">'
    text = f"The {tag}house's</np> &lt;b&gt; is <zone>3 &lt; 5 x</zone>"
    found = raw.marked(text, XML)
    assert " ".join(found.words).lower() == "the house &apos;s &lt;b&gt; is 3 &lt; 5 x"
    first, second, copied = found.forced
    assert (first.begin, first.last) == (second.begin, second.last) == (1, 2) and copied.begin == 3
    maison = "maison" if raw.target.case == "lower" else "Maison"
    assert first.words == ["grande", "&quot;", maison, "&quot;"]
    assert second.words == "l&apos; a &#124; b".split()
    assert not first.exclusive and first.raw is None and first.log_prob > second.log_prob
    assert copied.raw == "<b>" and found.zones == [(5, 8)]


def test_a_translation_in_the_line_wins_over_the_glossary(raw: RawLines) -> None:
    found = raw.marked('The <n translation="x">house</n>, the house', XML)
    assert [(one.begin, one.last, one.raw) for one in found.forced] == [(1, 1, None), (3, 4, "La MAISON (x)")]


@pytest.mark.parametrize(
    "text", ["<np>a", "a</np>", "<np translation='x'>a</np>", "3 <np a", '<np translation="x>a</np>']
)
def test_mistakes_in_the_markup(text: str, raw: RawLines) -> None:
    with pytest.raises(ValueError, match=r"np|tag"):
        raw.marked(text, XML)
    assert raw.marked(text, PLAIN).words


def test_no_words(raw: RawLines) -> None:
    for text in ("", " ", "\t \u00a0"):
        assert raw.marked(text, PLAIN) == raw.marked(text, XML) == MarkedLine([])


def test_tokenized_text_with_a_glossary() -> None:
    terms = Glossary({("the", "house"): Term(["La", "maison"], "La maison")})
    made = GlossaryLines(terms)
    points = tuple((one, other) for one in (0, 1) for other in (0, 1))
    term = ForcedTranslation(0, 1, ["La", "maison"], 0.0, True, points, "La maison")
    assert made.marked("The house is", PLAIN) == MarkedLine(["The", "house", "is"], [term])
    given = ForcedTranslation(1, 1, ["x"], 0.0)
    assert made.marked('the <n translation="x">house</n>', XML) == MarkedLine(["the", "house"], [given])
