"""Makes the documents in tests/nmt/documents/samples from sentences of the quickstart, by other programs:
LibreOffice (soffice), pandoc, python-docx, and translate-toolkit.

    python -m tests.nmt.documents.make_samples PYTHON

PYTHON has python-docx and translate-toolkit installed, with their commands beside it.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path

from nmt.sample_corpus import grammar

Run = Callable[..., None]
SAMPLES = Path(__file__).parent / "samples"

PYTHON_DOCX = """
import sys, docx
from docx.shared import RGBColor
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
lines = sys.stdin.read().split("\\n")
document = docx.Document()
for section in document.styles.element.findall(qn("w:latentStyles")):
    document.styles.element.remove(section)
document.sections[0].header.paragraphs[0].text = lines[0]
document.sections[0].footer.paragraphs[0].text = lines[1]
document.add_heading(lines[2], 1)
for line in lines[3:7]:
    words = line.split(" ")
    paragraph = document.add_paragraph(words[0] + " ")
    paragraph.add_run(words[1]).bold = True
    paragraph.add_run(" " + " ".join(words[2:-2]) + " ")
    last = paragraph.add_run(words[-2] + " ")
    last.italic, last.font.color.rgb = True, RGBColor(255, 0, 0)
    paragraph.add_run(words[-1] + " " + lines[7])
    paragraph.add_run("Page:\\t")
    for kind, text in (("begin", ""), ("", "PAGE"), ("separate", ""), ("t", "3"), ("end", "")):
        run = paragraph.add_run()
        if kind == "t":
            run.text = text
            continue
        mark = OxmlElement("w:fldChar" if kind else "w:instrText")
        if kind:
            mark.set(qn("w:fldCharType"), kind)
        mark.text = text
        run._r.append(mark)
table = document.add_table(2, 2)
for number, line in enumerate(lines[8:12]):
    table.cell(number // 2, number % 2).text = line
document.add_paragraph(lines[12], style="List Bullet")
document.save(sys.argv[1])
"""

XLIFF2 = """
import sys
from translate.storage.xliff2 import Xliff2File
lines = sys.stdin.read().split("\\n")
store = Xliff2File()
store.setsourcelanguage("en")
store.settargetlanguage("fr")
for line in lines:
    store.addsourceunit(line)
store.savefile(sys.argv[1])
"""

MARKDOWN = """# {0}

{1} The **{2}** said: [{3}](https://example.org/a?b=1&c=2) {4}[^1] And `code --x` *{5}*

- {6}
- {7} **{8}**

> {9}

| {10} | **{11}** |
|---|---|
| {12} | {13} |

[^1]: {14}
"""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{0}</title><style>p {{ color: red }}</style></head>
<body><h1>{1}</h1><p class="a">{2} <b>{3}</b> <a href="https://example.org/">{4}</a><img src="a.png" alt="x">
{5}</p><ul><li>{6}<li><i>{7}</i></ul><table border="1"><tr><td>{8}</td><td><u>{9}</u></td></tr></table>
<pre>{10}</pre><p>{11}<br>{12} &amp; {13}</p><script>var a = "<p>{14}</p>";</script></body></html>
"""

XLIFF12 = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="{0}.html" source-language="en-us" target-language="fr-fr" datatype="html"><body>
<trans-unit id="1"><source>{1} <g id="1">{2}</g> <x id="2"/>{3}</source></trans-unit>
<trans-unit id="2"><source>{4}</source><target state="needs-translation">{4}</target></trans-unit>
<trans-unit id="3" approved="yes"><source>{5}</source><target>Bon.</target><note>{6}</note></trans-unit>
<group id="4"><trans-unit id="5" xml:space="preserve"><source>{7} <bpt id="1">&lt;b></bpt>{8}<ept id="1"/>
{9}</source><seg-source><mrk mid="0" mtype="seg">{7} <bpt id="1">&lt;b></bpt>{8}<ept id="1"/></mrk>
<mrk mid="1" mtype="seg">{9}</mrk></seg-source></trans-unit></group>
</body></file></xliff>
"""

XLIFF21 = """<?xml version="1.0"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.1" srcLang="en" trgLang="fr">
<file id="f1" original="{0}.html"><unit id="u1"><originalData><data id="d1">&lt;b></data></originalData>
<segment id="s1"><source>{1} <pc id="1" dataRefStart="d1">{2}</pc></source></segment>
<ignorable><source> </source></ignorable>
<segment id="s2" state="initial"><source>{3} <ph id="2"/> <sc id="3"/>{4}<ec startRef="3"/></source></segment>
</unit>
<unit id="u2"><segment state="final"><source>{5}</source><target>Fini.</target></segment></unit>
<unit id="u3" translate="no"><segment><source>{6}</source></segment></unit>
<unit id="u4"><segment><source><mrk id="m1" type="term">{7}</mrk> <cp hex="0007"/>{8}</source></segment>
</unit>
</file></xliff>
"""


def main() -> None:
    SAMPLES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        make(Path(sys.argv[1]), Path(name))


def make(python: Path, folder: Path) -> None:
    """Make all documents. `python`: the program with the libraries; `folder`: for other files."""
    seeds = count(100)

    def run(*words: object, text: str = "") -> None:
        argv = [str(word) for word in words]
        subprocess.run(argv, input=text, text=True, check=True, capture_output=True, cwd=folder)

    def sentences() -> list[str]:
        writer = grammar.Writer(next(seeds))
        return [grammar.text(writer.sentence(4).source) for _ in range(16)]

    for number in range(1, 5):
        make_office(folder, number, sentences(), run)
        make_pandoc(number, sentences(), run)
        make_xliff(folder, number, sentences(), run, python.parent)
    for number in (1, 2):
        text = "\n".join(sentences())
        run(python, "-c", PYTHON_DOCX, SAMPLES / f"python-docx-{number}.docx", text=text)


def make_office(folder: Path, number: int, lines: list[str], run: Run) -> None:
    """A page in the formats of LibreOffice."""
    page = folder / f"libreoffice-{number}.html"
    page.write_text(PAGE.format(*lines), encoding="utf-8")
    (SAMPLES / f"page-{number}.html").write_text(PAGE.format(*lines), encoding="utf-8")
    for kind in ("docx:MS Word 2007 XML", "odt", "txt:Text (encoded):UTF8", "xhtml:XHTML Writer File"):
        run("soffice", "--headless", "--convert-to", kind, "--outdir", folder, page)
    for ending in ("docx", "txt"):
        (folder / f"libreoffice-{number}.{ending}").rename(SAMPLES / f"libreoffice-{number}.{ending}")
    (folder / f"libreoffice-{number}.xhtml").rename(SAMPLES / f"libreoffice-{number}.xhtml")


def make_pandoc(number: int, lines: list[str], run: Run) -> None:
    """A page of Markdown in the formats of pandoc."""
    text = MARKDOWN.format(*lines)
    run("pandoc", "-s", "-M", "title=x", "-o", SAMPLES / f"pandoc-{number}.html", text=text)
    run("pandoc", "-o", SAMPLES / f"pandoc-{number}.docx", text=text)
    run("pandoc", "-t", "plain", "--columns", 60, "-o", SAMPLES / f"pandoc-{number}.txt", text=text)


def make_xliff(folder: Path, number: int, lines: list[str], run: Run, commands: Path) -> None:
    """Files of translate-toolkit, whose `commands` are in that folder, and two in the style of Okapi."""
    (folder / "page.txt").write_text("\n\n".join(lines), encoding="utf-8")
    run(commands / "txt2po", "page.txt", "page.po")
    run(commands / "po2xliff", "page.po", SAMPLES / f"toolkit-{number}.xlf")
    run(commands / "python", "-c", XLIFF2, SAMPLES / f"toolkit-{number}.xliff", text="\n".join(lines))
    run(commands / "odf2xliff", folder / f"libreoffice-{number}.odt", SAMPLES / f"odf-{number}.xlf")
    (SAMPLES / f"codes-{number}.xlf").write_text(XLIFF12.format(*lines), encoding="utf-8")
    (SAMPLES / f"codes-{number}.xliff").write_text(XLIFF21.format(*lines), encoding="utf-8")


if __name__ == "__main__":
    main()
