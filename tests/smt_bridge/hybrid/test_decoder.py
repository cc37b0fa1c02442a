"""Hybrid systems translate raw text to raw text, with glossaries, markup and text that is copied."""

import random
import shutil
from pathlib import Path

import pytest

import nmt
import smt_bridge
from nmt.errors import ConfigError, DataError
from nmt.text import tokenize, truecase
from nmt.text.glossary import Glossary, Match, Term
from nmt.text.pipeline import SideConfig
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.xml_input import ForcedTranslation, MarkedLine, Markup
from smt_bridge.hybrid import decoder, folder
from smt_bridge.hybrid.decoder import GlossaryLines, RawLines
from smt_bridge.hybrid.side import TextSide

# ---- test lines --------------------------------------------------------------------------------------------
# Raw lines become words with their terms and tags, and translations raw text.


CASE = truecase.learn([["x", "the", "house", "is", "big", "Paris", "a"]])
TERMS = "the house\tLa MAISON (x)\nAcme Inc.\tAcme & Cie.\ndon't\tne pas\n"
PLAIN, XML = Markup(), Markup("exclusive")


@pytest.fixture(params=["truecase", "lower"])
def raw(request: pytest.FixtureRequest, tmp_path: Path) -> RawLines:
    source, target = (TextSide(SideConfig(language=name, case=request.param), CASE) for name in ("en", "fr"))
    (tmp_path / "terms").write_text(TERMS)
    return RawLines(source, target, 20, decoder.read_glossary(str(tmp_path / "terms"), source, target))


def forced(line: MarkedLine) -> list[tuple[str, str, str | None]]:
    """Source words, translation and raw text of each forced translation."""
    return [
        (" ".join(line.words[one.first : one.last + 1]), " ".join(one.words), one.raw) for one in line.forced
    ]


def test_a_match_forces_its_translation() -> None:
    found = decoder.forced_translation(Match(2, 4, Term(["x", "y"], "x  Y")))
    assert (found.first, found.last, found.words, found.raw) == (2, 3, ["x", "y"], "x  Y")
    assert found.exclusive and found.points == ((0, 0), (0, 1), (1, 0), (1, 1))


def test_terms_in_raw_text(raw: RawLines) -> None:
    found = raw.parse_line("The house is Acme Inc.'s, don't ask Acme Inc. now", PLAIN)
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
    assert not forced(raw.parse_line("In THE house, acme inc.", PLAIN))


def test_what_is_copied(raw: RawLines) -> None:
    found = raw.parse_line('See <a href="x y">Http://X.org</a> 3.5 10:30.', PLAIN)
    assert [(one, exact) for _, one, exact in forced(found)] == [
        ("&lt;a\u00a0href=&quot;x\u00a0y&quot;&gt;", '<a href="x y">'),
        ("Http://X.org", "Http://X.org"),
        ("&lt;/a&gt;", "</a>"),
    ]
    assert found.zones == [(1, 3)] and found.walls == [1, 2]


def test_tags_enclose_their_words(raw: RawLines) -> None:
    found = raw.parse_line("<b>the <i>big</i></b> <br> a <u></u>", PLAIN)
    assert found.zones == [(2, 4), (0, 5), (8, 9)] and found.walls == [0, 2, 3, 4, 8]
    assert len(found.forced) == 7
    raw.longest = 9  # a line that is cut
    found = raw.parse_line("<b>the <i>big</i></b> <br> a <u></u>", PLAIN)
    assert not found.zones and not found.walls and len(found.forced) == 7


def test_markup_gives_words_and_options(raw: RawLines) -> None:
    tag = '<np translation="grande \\"Maison\\"||l\'a|b" prob="0.8||0.2">'
    text = f"The {tag}house's</np> &lt;b&gt; is <zone>3 &lt; 5 x</zone>"
    found = raw.parse_line(text, XML)
    assert " ".join(found.words).lower() == "the house &apos;s &lt;b&gt; is 3 &lt; 5 x"
    first, second, copied = found.forced
    assert (first.first, first.last) == (second.first, second.last) == (1, 2) and copied.first == 3
    maison = "maison" if raw.target.case == "lower" else "Maison"
    assert first.words == ["grande", "&quot;", maison, "&quot;"]
    assert second.words == "l&apos; a &#124; b".split()
    assert not first.exclusive and first.raw is None and first.log_prob > second.log_prob
    assert copied.raw == "<b>" and found.zones == [(5, 8)]


def test_a_translation_in_the_line_wins_over_the_glossary(raw: RawLines) -> None:
    found = raw.parse_line('The <n translation="x">house</n>, the house', XML)
    assert [(one.first, one.last, one.raw) for one in found.forced] == [(1, 1, None), (3, 4, "La MAISON (x)")]


@pytest.mark.parametrize(
    "text", ["<np>a", "a</np>", "<np translation='x'>a</np>", "3 <np a", '<np translation="x>a</np>']
)
def test_mistakes_in_the_markup(text: str, raw: RawLines) -> None:
    with pytest.raises(ValueError, match=r"np|tag"):
        raw.parse_line(text, XML)
    assert raw.parse_line(text, PLAIN).words


def test_no_words(raw: RawLines) -> None:
    for text in ("", " ", "\t \u00a0"):
        assert raw.parse_line(text, PLAIN) == raw.parse_line(text, XML) == MarkedLine([])


def test_tokenized_text_with_a_glossary() -> None:
    terms = Glossary({("the", "house"): Term(["La", "maison"], "La maison")})
    made = GlossaryLines(terms)
    points = tuple((one, other) for one in (0, 1) for other in (0, 1))
    term = ForcedTranslation(0, 1, ["La", "maison"], 0.0, True, points, "La maison")
    assert made.parse_line("The house is", PLAIN) == MarkedLine(["The", "house", "is"], [term])
    given = ForcedTranslation(1, 1, ["x"], 0.0)
    assert made.parse_line('the <n translation="x">house</n>', XML) == MarkedLine(["the", "house"], [given])


# ---- test decoder ------------------------------------------------------------------------------------------


def test_raw_text(hybrid_system: Path) -> None:
    made = smt_bridge.load(str(hybrid_system))
    assert made.translate(["The house isn't big. I see the man's house!", "", "  "]) == [
        "La maison n'est pas grande. Je vois la maison de l'homme !",
        "",
        "",
    ]


def test_sentences_of_a_line_are_translated_by_themselves(hybrid_system: Path) -> None:
    made, line = smt_bridge.load(str(hybrid_system)), "I see the house.  The man is big."
    first, second = made.translate(["I see the house.", "The man is big."])
    assert made.translate(["", line], split_sentences=True) == ["", f"{first}  {second}"]
    engine = Decoder.load(str(hybrid_system / "moses.ini"))
    with pytest.raises(ConfigError, match="split_sentences"):
        engine.translate(["a . b ."], split_sentences=True)


def test_raw_text_is_the_chain_of_commands(hybrid_system: Path) -> None:
    """The result is that of the source text settings, the engine, and the target text settings in turn."""
    made, hybrid = smt_bridge.load(str(hybrid_system)), folder.read(hybrid_system)
    engine = Decoder.load(str(hybrid_system / "moses.ini"))
    for line in ["Paris is small.", '"I see," the man isn\'t: Paris']:
        words = engine.translate([" ".join(hybrid.source.words(line))])[0].split(" ")
        assert made.translate([line]) == [hybrid.target.text(words)]


KEPT = (
    "http://Paris.org/the_man?house=big&x=%20 Mail.Me+the@house.org <br/> 3.5 1,000 1,234,567.89 -5 2024 "
    "10:30 31/12/2024 A4 &amp; &nbsp;"
)


@pytest.mark.parametrize("kept", KEPT.split())
def test_what_no_table_has_survives(kept: str, hybrid_system: Path) -> None:
    """Numbers too, which the tables have never seen."""
    made = smt_bridge.load(str(hybrid_system))
    (found,) = made.translate([f"The man sees {kept} in the house."])
    assert found.split(" ").count(kept) == 1 and found.startswith("L'homme ")


def test_tags_stay_around_their_words(hybrid_system: Path) -> None:
    made = smt_bridge.load(str(hybrid_system), DecoderConfig(distortion_limit=-1))
    assert made.translate(['<b>The <i>big</i> house</b> is <a href="x y">small</a>.']) == [
        '<b>La <i>grande</i> maison</b> est <a href="x y">petit</a>.'
    ]


def random_text(rng: random.Random, depth: int = 0) -> str:
    """Random words and protected text, with tags around some of them."""
    words = (
        "the house Paris is big . ! man isn't 3.5 1,000 10:30 http://x.org/a a@b.org <br/> &amp; zz".split()
    )
    parts = []
    for _ in range(rng.randint(0, 4)):
        tag = rng.choice("bi")
        inside = depth < 3 and rng.random() < 0.3
        parts.append(f"<{tag}>{random_text(rng, depth + 1)}</{tag}>" if inside else rng.choice(words))
    return " ".join(parts)


@pytest.mark.parametrize("longest", [250, 7])
def test_nothing_protected_is_lost(longest: int, hybrid_system: Path) -> None:
    """Protected text occurs as often as in the line, and tags are nested as in the line, unless it is
    translated in parts."""
    config = DecoderConfig(distortion_limit=-1, stack=20, max_line_words=longest)
    plain, rng = smt_bridge.load(str(hybrid_system), config), random.Random(1)
    jumps = {**plain.system.tuneable_weights(), "Distortion0": [-1.0]}  # each is rewarded
    made = Decoder(plain.system, config, jumps, lines=plain.lines)
    lines = [random_text(rng) for _ in range(100)]
    for line, found in zip(lines, made.translate(lines), strict=True):
        before, after = (tokenize.PROTECTED.findall(text) for text in (line, found))
        assert sorted(before) == sorted(after), line
        assert all(line.split(" ").count(number) <= found.count(number) for number in ("3.5", "1,000"))
        if longest == 250:
            assert len(tokenize.tag_pairs(before)) == len(tokenize.tag_pairs(after)), line


def test_a_copied_word_is_not_translated(hybrid_system: Path) -> None:
    """Not even if the table has a translation of it."""
    made = smt_bridge.load(str(hybrid_system))
    assert len(made.system.table.find_rows("www.house.org"))
    assert made.translate(["I see www.house.org."]) == ["Je vois www.house.org."]


def test_terms(hybrid_system: Path, tmp_path: Path) -> None:
    """Their translations are written as in the glossary, also at the start of a sentence."""
    terms = tmp_path / "terms"
    terms.write_text('the house\tle  "CHÂTEAU" ( n° 1 )\nman\tiPhone\n', encoding="utf-8")
    made = smt_bridge.load(str(hybrid_system), glossary=str(terms))
    assert made.translate(["The house is big. I see the house!", "Man, I see Paris"]) == [
        'le  "CHÂTEAU" ( n° 1 ) est grande. Je vois le  "CHÂTEAU" ( n° 1 ) !',
        "iPhone, Je vois Paris",
    ]


def test_the_systems_own_terms(hybrid_system: Path, tmp_path: Path) -> None:
    system = shutil.copytree(hybrid_system, tmp_path / "a system")
    (system / "terms.tsv").write_text("Paris\tPANAME\n")
    config = folder.read(system).config
    config.glossary, config.search = "terms.tsv", {"stack": 7}
    folder.write_system(system, config)
    made = smt_bridge.load(str(system))
    assert made.settings.stack == 7 and made.translate(["Paris is big."]) == ["PANAME est grande."]
    (tmp_path / "others").write_text("Paris\tLutèce\n")
    made = smt_bridge.load(str(system), DecoderConfig(stack=8), glossary=str(tmp_path / "others"))
    assert made.settings.stack == 8 and made.translate(["Paris is big."]) == ["Lutèce est grande."]


def test_markup_in_raw_text(hybrid_system: Path) -> None:
    made = smt_bridge.load(str(hybrid_system), DecoderConfig(xml_input="exclusive"))
    line = 'I see <np translation="l\'homme">the house</np> &lt; 3 in "Paris"!'
    assert made.translate([line]) == ['Je vois l\'homme < 3 dans "Paris" !']
    with pytest.raises(DataError, match="input:2: tag 'np' is never closed"):
        made.translate(["x", "<np>a"])


def test_long_lines_keep_terms_and_copies(hybrid_system: Path, tmp_path: Path) -> None:
    (tmp_path / "terms").write_text("the house is\tX\n")
    config = DecoderConfig(max_line_words=4)
    made = smt_bridge.load(str(hybrid_system), config, glossary=str(tmp_path / "terms"))
    line = "I see the man. <b>The house is</b> big in http://x.org, the house is small in Paris!"
    (found,) = made.translate([line])
    assert found.count("X") == 2 and "<b>X</b>" in found and "http://x.org" in found
    assert found.startswith("Je vois l'homme. ") and found.endswith("Paris !")


def test_tables_are_those_of_the_folder(
    hybrid_system: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files in the working directory are ignored."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "phrase-table.gz").write_text("no table")
    moved = shutil.copytree(hybrid_system, tmp_path / "moved and copied")
    assert smt_bridge.load(str(moved)).translate(["Paris is big."]) == ["Paris est grand."]


# ---- the student -------------------------------------------------------------------------------------------


def test_the_student_from_python(hybrid_system: Path, system_with_student: Path) -> None:
    lines = ["The man sees the house.", "", "A boy does not follow the man."]
    student = smt_bridge.load(str(system_with_student), quality="fast")
    assert student.translate(lines) == nmt.Run.load(system_with_student / "fast").translate(lines)
    best = smt_bridge.load(str(system_with_student), quality="best")
    assert best.translate(lines) == smt_bridge.load(str(hybrid_system)).translate(lines)
    with pytest.raises(ConfigError, match="has neither an attention model"):
        smt_bridge.load(str(hybrid_system), quality="fast")
    with pytest.raises(ConfigError, match="no settings of the search and no glossary"):
        smt_bridge.load(str(system_with_student), glossary="terms.tsv", quality="fast")
    with pytest.raises(ConfigError, match="'quick' is unknown, expected 'best' or 'fast'"):
        smt_bridge.load(str(system_with_student), quality="quick")  # type: ignore[call-overload]
