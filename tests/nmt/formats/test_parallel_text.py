"""Parallel text in TMX, XLIFF, TSV, WMT's SGML and XML: what is read, and what is refused."""

import gzip
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from nmt.errors import DataError, UserError
from nmt.formats import parallel_text
from nmt.formats.parallel_text import UnitCounts, Wanted, write_pairs

Pairs = list[tuple[str, str]]
PAIRS: Pairs = [
    ("A man & a dog.", "Un homme et un chien."),
    ("1 < 2 > 0", "« 1 < 2 > 0 »"),
    ('He said "no".', "Il a dit\u00a0: « non »."),
    ("e\u0301 and \u00e9", "𝄞 &amp; l'été"),
] * 5
EN_FR = Wanted(("en", "fr"))

# ---- writers -----------------------------------------------------------------------------------------------
# Each writes pairs as a file that a tool would write; returns the paths to read.


def omegat_tmx(folder: Path, pairs: Pairs) -> list[Path]:
    """TMX 1.1 with the name of a DTD, and `lang`."""
    units = "".join(
        f'    <tu>\n      <tuv lang="EN-US">\n        <seg>{escape(a)}</seg>\n      </tuv>\n'
        f'      <tuv lang="FR">\n        <seg>{escape(b)}</seg>\n      </tuv>\n    </tu>\n'
        for a, b in pairs
    )
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tmx SYSTEM "tmx11.dtd">\n<tmx version="1.1">\n'
        f'  <header srclang="EN-US" segtype="sentence"/>\n  <body>\n{units}  </body>\n</tmx>\n'
    )
    return [written(folder / "omegat.tmx", text)]


def trados_tmx(folder: Path, pairs: Pairs) -> list[Path]:
    """TMX 1.4 in UTF-16, with inline codes, properties and notes."""
    units = "".join(
        f'<tu creationid="X"><prop type="x-Field">skipped</prop><tuv xml:lang="en_us"><note>no</note><seg>'
        f'<bpt i="1" type="bold">{{\\b <sub>not this</sub></bpt>{escape(a[:2])}<hi>{escape(a[2:])}</hi>'
        f'<ept i="1">}}</ept></seg></tuv><tuv xml:lang="fr-FR"><seg>{escape(b)}<ph x="1">&lt;br/></ph>'
        "<ut>{tag}</ut><it pos='begin'>&lt;i></it></seg></tuv></tu>\r\n"
        for a, b in pairs
    )
    text = f'<?xml version="1.0" encoding="utf-16"?>\r\n<tmx version="1.4"><body>{units}</body></tmx>'
    path = folder / "trados.tmx"
    path.write_bytes(text.encode("utf-16"))
    return [path]


def xliff_12(folder: Path, pairs: Pairs) -> list[Path]:
    """XLIFF 1.2 with inline codes, a proposal of a memory, and units that are not to be translated."""
    units = "".join(
        f'<trans-unit id="{n}" approved="no"><source><g id="1">{escape(a)}</g><x id="2"/></source>'
        f'<target state="new"><bpt id="3">&lt;b></bpt>{escape(b)}<mrk mtype="x-term"/></target>'
        "<alt-trans><source>other</source><target>autre</target></alt-trans></trans-unit>\n"
        f'<trans-unit id="no{n}" translate="no"><source>code</source><target>code</target></trans-unit>\n'
        for n, (a, b) in enumerate(pairs)
    )
    text = (
        '<?xml version="1.0"?>\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
        '<file original="a" source-language="en-GB" target-language="fr"><header/><body><group>'
        f"{units}</group></body></file></xliff>"
    )
    return [written(folder / "file.xlf", text)]


def sdl_xliff(folder: Path, pairs: Pairs) -> list[Path]:
    """XLIFF 1.2 whose units are cut into segments, two in each."""
    units = []
    for n in range(0, len(pairs), 2):
        cut = list(enumerate(pairs[n : n + 2]))
        sources, targets = (
            " ".join(f'<mrk mtype="seg" mid="{mid}">{escape(pair[side])}</mrk>' for mid, pair in cut)
            for side in (0, 1)
        )
        units.append(
            f'<trans-unit id="{n}"><source>{escape(" ".join(a for _, (a, _) in cut))}</source>'
            f"<seg-source><g id='1'>{sources}</g></seg-source><target>{targets}</target></trans-unit>"
        )
    text = (
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en-US" '
        f'target-language="fr-FR"><body>{"".join(units)}</body></file></xliff>'
    )
    return [written(folder / "file.sdlxliff", text)]


def xliff_20(folder: Path, pairs: Pairs) -> list[Path]:
    units = "".join(
        f'<unit id="{n}"><originalData><data id="d">&lt;b></data></originalData><segment><source>'
        f'<pc id="1">{escape(a)}</pc><ph id="2"/></source><target><mrk id="m">{escape(b)}</mrk><ec/></target>'
        "</segment><ignorable><source> </source></ignorable></unit>"
        f'<unit id="no{n}" translate="no"><segment><source>x</source><target>x</target></segment></unit>'
        for n, (a, b) in enumerate(pairs)
    )
    text = (
        '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="fr">'
        f'<file id="f">{units}</file></xliff>'
    )
    return [written(folder / "file.xliff", text)]


def tsv(folder: Path, pairs: Pairs) -> list[Path]:
    return [written(folder / "two.tsv", "".join(f"{a}\t{b}\n" for a, b in pairs))]


def tsv_with_header(folder: Path, pairs: Pairs) -> list[Path]:
    rows = "".join(f"{n}\t{b}\t{a}\r\n" for n, (a, b) in enumerate(pairs))
    return [written(folder / "named.tsv", f"id\tfr\ten\r\n{rows}")]


def wmt_sgml(folder: Path, pairs: Pairs) -> list[Path]:
    """Two files whose documents are in different orders; & is sometimes escaped, sometimes not."""
    documents = [(f"news/{n}", pairs[n : n + 7]) for n in range(0, len(pairs), 7)]

    def text(name: str, attributes: str, side: int, order: int) -> str:
        return f"<{name} {attributes}>\n" + "".join(
            f'<DOC sysid="ref" docid="{docid}" genre="news">\n<p>\n'
            + "".join(
                f'<seg id="{n}"> {pair[side] if "&" not in pair[side] else escape(pair[side])} </seg>\n'
                for n, pair in enumerate(rows, 1)
            )
            + "</p>\n</DOC>\n"
            for docid, rows in documents[::order]
        ) + f"</{name}>\n"  # fmt: skip

    return [
        written(folder / "src.sgm", text("srcset", 'setid="test" srclang="any"', 0, 1)),
        written(folder / "ref.sgm", text("refset", 'setid="test" srclang="any" trglang="fr"', 1, -1)),
    ]


def wmt_xml(folder: Path, pairs: Pairs) -> list[Path]:
    def side(name: str, language: str, number: int) -> str:
        segments = "".join(f'<seg id="{n}">{escape(pair[number])}</seg>' for n, pair in enumerate(pairs, 1))
        return f'<{name} lang="{language}" translator="A"><p>{segments}</p></{name}>'

    other = '<ref lang="fr" translator="B"><p><seg id="1">autre</seg></p></ref><hyp system="x"/>'
    document = f'<doc id="1" origlang="en">{side("src", "en", 0)}{side("ref", "fr", 1)}{other}</doc>'
    return [written(folder / "test.xml", f"<dataset id='test'>\n{document}</dataset>\n")]


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


Writer = Callable[[Path, Pairs], list[Path]]
WRITERS: list[Writer] = [
    omegat_tmx, trados_tmx, xliff_12, sdl_xliff, xliff_20, tsv, tsv_with_header, wmt_sgml, wmt_xml,
]  # fmt: skip
XML_WRITERS = [writer for writer in WRITERS if writer not in (tsv, tsv_with_header, wmt_sgml)]
every_format = pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.__name__)
every_xml = pytest.mark.parametrize("writer", XML_WRITERS, ids=lambda writer: writer.__name__)


def read(paths: list[Path], folder: Path, wanted: Wanted = EN_FR) -> tuple[Pairs, UnitCounts]:
    """The pairs that are written for files."""
    outputs = folder / "out.source", folder / "out.target"
    counts = write_pairs(list(map(str, paths)), wanted, outputs)
    source, target = (path.read_text(encoding="utf-8").split("\n")[:-1] for path in outputs)
    assert counts.pairs == len(source)
    return list(zip(source, target, strict=True)), counts


def one_file(folder: Path, name: str, text: str, wanted: Wanted = EN_FR) -> tuple[Pairs, UnitCounts]:
    return read([written(folder / name, text)], folder, wanted)


def tmx(*units: str) -> str:
    return "<tmx><body>{}</body></tmx>".format("".join(f"<tu>{unit}</tu>" for unit in units))


def tuv(language: str, text: str) -> str:
    return f'<tuv xml:lang="{language}"><seg>{text}</seg></tuv>'


# ---- reading -----------------------------------------------------------------------------------------------


@every_format
def test_pairs_are_read_as_they_were_written(
    writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also backwards, from gzip, and whatever the size of the chunks that are parsed."""
    paths = writer(tmp_path, PAIRS)
    expected = [(a, b.replace("&amp;", "&") if writer is wmt_sgml and "&" not in b else b) for a, b in PAIRS]
    assert read(paths, tmp_path)[0] == expected
    if writer is not tsv:  # its columns have no names
        assert read(paths, tmp_path, Wanted(("fr", "EN")))[0] == [(b, a) for a, b in expected]
    packed = [path.with_name(f"{path.name}.gz") for path in paths]
    for path, original in zip(packed, paths, strict=True):
        path.write_bytes(gzip.compress(original.read_bytes()))
    monkeypatch.setattr(parallel_text, "check_root", lambda *given: None)
    for size in (1, 7, 100):
        monkeypatch.setattr(parallel_text, "CHUNK", size)
        assert read(packed, tmp_path)[0] == expected


def test_several_files_and_formats(tmp_path: Path) -> None:
    """Each has its own variants of the languages; the files of a test set in SGML are one text."""
    sgml = wmt_sgml(tmp_path, PAIRS[5:6])
    paths = [
        *sgml,
        *tsv(tmp_path, PAIRS[:3]),
        *wmt_xml(tmp_path, PAIRS[3:5]),
        *omegat_tmx(tmp_path, PAIRS[6:]),
    ]
    assert read(paths, tmp_path)[0] == [PAIRS[5], *PAIRS[:5], *PAIRS[6:]]


def test_white_space_becomes_one_blank_and_other_characters_stay(tmp_path: Path) -> None:
    text = " a\tb \r\n c\u2028d\x85e <hi>\n</hi>f\u00a0g e\u0301 "
    pairs, _ = one_file(tmp_path, "x.tmx", tmx(tuv("en", text) + tuv("fr", "<![CDATA[x\n<y]]><!-- z -->z")))
    assert pairs == [("a b c d e f\u00a0g e\u0301", "x <yz")]


def test_a_line_break_among_the_codes_is_a_blank(tmp_path: Path) -> None:
    pairs, _ = one_file(
        tmp_path, "x.tmx", tmx(tuv("en", 'a<ph type="lb">x</ph>b<ph type="image"/>c') + tuv("fr", "d"))
    )
    assert pairs == [("a bc", "d")]


def test_what_is_skipped_is_counted(tmp_path: Path) -> None:
    units = [tuv("en", "a") + tuv("de", "b"), tuv("en", " ") + tuv("fr", "b"), tuv("fr", "c"), ""]
    pairs, counts = one_file(tmp_path, "x.tmx", tmx(tuv("en", "a") + tuv("fr", "b") + tuv("fr", "c"), *units))
    assert pairs == [("a", "b")] and (counts.units, counts.missing, counts.empty) == (5, 3, 1)


def test_the_exact_language_comes_first(tmp_path: Path) -> None:
    """Wherever it occurs; and then it is the only one."""
    units = [
        tuv("en-US", "us") + tuv("fr-FR", "1"),
        tuv("en-GB", "gb") + tuv("en", "plain") + tuv("fr-FR", "2"),
    ]
    text = tmx(*units, tuv("EN", "more") + tuv("fr_fr", "3"))
    assert one_file(tmp_path, "x.tmx", text)[0] == [("plain", "2"), ("more", "3")]
    assert one_file(tmp_path, "x.tmx", text, Wanted(("en_gb", "fr")))[0] == [("gb", "2")]
    both = tmx(tuv("pt-BR", "a") + tuv("pt-PT", "b"))
    assert one_file(tmp_path, "x.tmx", both, Wanted(("pt-PT", "pt-BR")))[0] == [("b", "a")]


def test_columns_of_a_tsv_file(tmp_path: Path) -> None:
    """Quotes are text. A first line of languages is no pair, also if columns are given."""
    rows = 'x.org\t"a\tb"\t0.5\n'
    wanted = Wanted(("en", "fr"), (2, 3))
    assert one_file(tmp_path, "x.tsv", rows, wanted)[0] == [('"a', 'b"')]
    assert one_file(tmp_path, "x.tsv", "url\ten\tfr-CA\tscore\n" + rows, wanted)[0] == [('"a', 'b"')]
    assert one_file(tmp_path, "x.tsv", rows, Wanted(("en", "fr"), (3, 1)))[0] == [('b"', "x.org")]


def test_xliff_without_a_target_language(tmp_path: Path) -> None:
    text = (
        '<xliff version="1.2"><file source-language="en"><trans-unit><source>a</source>{}</trans-unit>'
        "</file></xliff>"
    )
    assert one_file(tmp_path, "x.xlf", text.format("<target>b</target>"))[0] == [("a", "b")]
    assert one_file(tmp_path, "x.xlf", text.format('<target xml:lang="fr">b</target>'))[0] == [("a", "b")]
    with pytest.raises(DataError, match=r"x\.xlf: has no text in fr, only in en; name"):
        one_file(tmp_path, "x.xlf", text.format(""))


def test_translations_of_a_test_set_match_by_document_and_segment(tmp_path: Path) -> None:
    source = '<srcset srclang="en"><doc docid="1"><seg id="1">a</seg><seg id="2">b\n c</seg></doc></srcset>'
    target = (
        '<tstset trglang="fr"><doc docid="0"><seg id="1">no</seg></doc>'
        '<doc docid="1" sysid="A"><seg id="2">B &amp; R&D &#233;</seg></doc>'
        '<doc docid="1" sysid="B"><seg id="2">second</seg></doc></tstset>'
    )
    paths = [written(tmp_path / "t.sgm", target), written(tmp_path / "s.sgm", source)]
    pairs, counts = read(paths, tmp_path)
    assert pairs == [("b c", "B & R&D é")] and counts.missing == 1


def test_a_tag_of_sgml_with_a_long_name(tmp_path: Path) -> None:
    """A quadratic search would take an hour."""
    source = written(tmp_path / "s.sgm", f'<srcset {"a" * 400_000} srclang="en"><doc></doc></srcset>')
    assert "no <srcset> in the SGML files" in refused(tmp_path, [source])


@every_xml
def test_what_was_read_is_freed(writer: Writer, tmp_path: Path) -> None:
    """When a unit is read, nothing before it is in memory but emptied elements that it needs."""
    (path,) = writer(tmp_path, PAIRS)
    root, names = "xliff", ["trans-unit", "unit"]
    if writer is wmt_xml:
        root, names = "dataset", ["doc"]
    elif writer in (omegat_tmx, trados_tmx):
        root, names = "tmx", ["tu"]
    units = 0
    for unit in parallel_text.read_elements(str(path), root, *names):
        units += 1
        for node in (unit, *unit.iterancestors()):
            before = list(node.itersiblings(preceding=True))
            assert units == 1 or not before or (len(before) == 1 and node is unit and not len(before[0]))
    assert units


# ---- refusals ----------------------------------------------------------------------------------------------


def refused(folder: Path, paths: list[Path], wanted: Wanted = EN_FR) -> str:
    """The message for files of which nothing is written."""
    before = sorted(folder.rglob("*"))
    with pytest.raises(UserError) as caught:
        read(paths, folder, wanted)
    assert sorted(folder.rglob("*")) == before and "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.tmx", tmx(tuv("en-US", "a") + tuv("de", "b")), "x.tmx: has no text in fr, only in de, en-US; na"),
        ("x.tmx", tmx(tuv("en-US", "a") + tuv("fr", "b"), tuv("en-GB", "a")), "of en: en-GB, en-US; name"),
        ("x.tmx", tmx(tuv("en", "a"), tuv("fr", "b")), "x.tmx: 2 units, none with text in both en and fr; "),
        ("x.tmx", tmx(), "x.tmx: has no text in en or fr, only in no language"),
        ("x.tmx", "", "x.tmx:1: not well-formed XML (no element found), expected <tmx>; was"),
        ("x.tmx", "plain text", "x.tmx:1: not well-formed XML (Start tag expected"),
        ("x.tmx", "<html><p/></html>", "x.tmx:1: begins with <html>, expected <tmx>; is its"),
        ("x.tmx", "<tmx>\n<body>\n<tu></tuv>", "x.tmx:3: not well-formed XML (Opening and ending tag"),
        ("x.tmx", tmx(tuv("en", "a&nbsp;b")), "x.tmx:1: the entity &nbsp; is not declared in XML; write the"),
        ("x.tmx", '<!DOCTYPE tmx SYSTEM "x.dtd">' + tmx(tuv("en", "a&nbsp;b")), ":1: entity &nbsp;, and"),
        ("x.tmx", '<?xml version="1.0" encoding="klingon"?>' + tmx(), "Unsupported encoding: klingon"),
        ("x.tmx", '<?xml version="1.0" encoding="utf-16"?>' + tmx(), "x.tmx:1: not well-formed XML"),
        ("x.tmx", "<tmx>" + "<a>" * 300, "or more than 256 elements inside each other), expected"),
        ("x.tmx", tmx(tuv("en", "a" * 11_000_000)), "a text of more than 10 MB, or"),
        ("x.xml", tmx(), "x.xml:1: begins with <tmx>, expected <dataset>"),
        ("x.tsv", "a\tb\nc\n", "x.tsv:2: 1 columns, expected 2 as in line 1; is there a tab"),
        ("x.tsv", "a\tb\tc\n", "x.tsv:1: 3 columns, expected 2, with tabs between them; name"),
        ("x.tsv", "a b\n", "x.tsv:1: 1 columns, expected 2,"),
        ("x.tsv", "en\tde\na\tb\n", "x.tsv: has no text in fr, only in de, en;"),
        ("x.tsv", "a\tb\n\0\tb\n", "x.tsv:2: NUL character"),
        ("x.sgm", "<srcset><doc><seg>a</seg></doc></srcset>", "x.sgm: no <refset> in the SGML files; give"),
        ("x.sgm", "<refset><doc><seg>a</doc>", "x.sgm:1: </doc> is out of order, expected <seg>"),
        ("x.sgm", "\n<refset>\n<doc>", "x.sgm:3: <doc> has no end; was the file copied whole?"),
        ("x.sgm", "plain", "x.sgm:1: expected <srcset>, <refset> or <tstset>; is"),
        ("x.txt", "a\tb\n", "x.txt: its ending says no format, expected one of .tmx, .tsv,"),
        ("x.tmx.gz", "plain", "x.tmx.gz:1: not well-formed"),
    ],
)  # fmt: skip
def test_refusals(name: str, text: str, message: str, tmp_path: Path) -> None:
    assert message in refused(tmp_path, [written(tmp_path / name, text)])


@every_format
def test_files_that_end_early(writer: Writer, tmp_path: Path) -> None:
    """Cut at every tenth byte: one line, or fewer pairs."""
    paths = writer(tmp_path, PAIRS[:4])
    given, whole = list(map(str, paths)), paths[-1].read_bytes()

    def units() -> list[dict[str, str]]:
        return list(parallel_text.choose_reader(given[0])(given, EN_FR))

    all_units = units()
    for end in range(0, len(whole) - 2, 10):
        paths[-1].write_bytes(whole[:end])
        try:
            cut = units()
        except UserError as error:
            assert any(path in str(error) for path in given) and "\n" not in str(error)
        else:
            assert writer in (tsv, tsv_with_header) and cut[:-1] == all_units[: len(cut[:-1])]


@every_xml
def test_entities_are_not_expanded(writer: Writer, tmp_path: Path) -> None:
    """Neither many that grow into gigabytes, nor a file, nor what another file declares."""
    secret = written(tmp_path / "secret", "the secret")
    dtd = written(tmp_path / "evil.dtd", f'<!ENTITY e SYSTEM "{secret}">')
    (path,) = writer(tmp_path, PAIRS)
    text = path.read_bytes().decode("utf-16" if writer is trados_tmx else "utf-8")
    begin = text.index("<", text.index("?>") if "?>" in text else 0)
    root = text[begin:].partition(">")[2] if "<!DOCTYPE" in text else text[begin:]
    root = root.replace(escape(PAIRS[0][0]), "&e;").replace(escape(PAIRS[0][0][2:]), "&e;")
    assert "&e;" in root
    laughs = '<!ENTITY a0 "ha">' + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    name = root.split()[0].strip("<>")
    for subset, message in (
        (f'[{laughs}<!ENTITY e "&a9;">]', "declares the entity a0, and entities are not read"),
        (f'[<!ENTITY e SYSTEM "{secret}">]', "declares the entity e, and"),
        (f'[<!ENTITY % e SYSTEM "{dtd}"> %e;]', "declares the entity e, and"),
        (f'SYSTEM "{dtd}"', "entity &e;, and entities are not expanded; write the character itself"),
    ):
        path.write_text(f"<!DOCTYPE {name} {subset}>{root}", encoding="utf-8")
        assert message in (found := refused(tmp_path, [path])) and "the secret" not in found


@pytest.mark.parametrize("inner", ['<tu q="&a9;"/>', "&a9;"])
def test_a_bomb_in_an_attribute_of_the_root(inner: str, tmp_path: Path) -> None:
    laughs = '<!ENTITY a0 "ha">' + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    path = written(tmp_path / "x.tmx", f'<!DOCTYPE tmx [{laughs}]><tmx q="&a9;">{inner}</tmx>')
    assert "x.tmx:1: " in refused(tmp_path, [path])


def test_gzip_bombs_and_units_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_text, "UNPACKED", 1 << 16)
    path = tmp_path / "x.tmx.gz"
    path.write_bytes(gzip.compress(tmx(*[tuv("en", "a") + tuv("fr", "b")] * 20_000).encode()))
    assert "unpacks to more than 200 times its size, expected text;" in refused(tmp_path, [path])
    monkeypatch.setattr(parallel_text, "LARGEST_UNIT", 1 << 17)
    assert ":1: no <tu> ends within 0 MiB, expected short units" in refused(
        tmp_path, [written(tmp_path / "x.tmx", tmx("<a/>" * 50_000))]
    )
    assert "x.tsv:1: a line of more than 0 MiB" in refused(
        tmp_path, [written(tmp_path / "x.tsv", "a" * 200_000)]
    )


def test_broken_gzip(tmp_path: Path) -> None:
    path = tmp_path / "x.tmx.gz"
    path.write_bytes(gzip.compress(tmx(tuv("en", "a") + tuv("fr", "b")).encode())[:-9])
    assert "broken gzip file" in refused(tmp_path, [path])
    assert "cannot read: No such file" in refused(tmp_path, [tmp_path / "none.tmx"])
