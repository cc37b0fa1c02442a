"""Parallel text in the files of translators and shared tasks: TMX, XLIFF 1.2 and 2, TSV, WMT's SGML and XML.

A reader yields units, each a dictionary from language code to text, and knows nothing of the languages that
are asked for. XML may come from anywhere: no entity is expanded, no DTD and no network is read, and the parts
of a file are limited, so that memory is bounded whatever the file holds."""

import html
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.errors import ConfigError, DataError
from nmt.io import files

if TYPE_CHECKING:
    from lxml.etree import ElementBase as Element
    from lxml.etree import XMLSyntaxError

Unit = dict[str, str]  # text by language code; the code is empty where the file does not name the language

CHUNK = 1 << 16  # bytes that are parsed at a time
LARGEST_UNIT = 16 << 20  # bytes of a file in which at least one unit must end, and characters of a line
LARGEST_TEST_SET = 64 << 20  # bytes of an SGML file
UNPACKED, RATIO = 1 << 30, 200  # bytes that any gzip file may unpack to, and times its size for a larger one


@dataclass(frozen=True)
class Wanted:
    """Which text is read: the languages of both sides, and for TSV the numbers of their columns, from 1."""

    languages: tuple[str, str]
    columns: tuple[int, int] | None = None


@dataclass
class UnitCounts:
    """Numbers of units read, and of those that are skipped; and the language codes of all units."""

    units: int = 0
    missing: int = 0  # lack one of the languages
    empty: int = 0  # have it, but without text
    codes: set[str] = field(default_factory=set)

    @property
    def pairs(self) -> int:
        return self.units - self.missing - self.empty


# ---- languages ---------------------------------------------------------------------------------------------
# Codes match by their primary subtag: en = EN_us. An exact match takes precedence.


@lru_cache
def normalize_code(code: str) -> str:
    """Normalize a language code: en_US becomes en-us."""
    return code.strip().replace("_", "-").lower()


@lru_cache
def primary_subtag(code: str) -> str:
    """The language of a code without its region: en of en-US."""
    return normalize_code(code).partition("-")[0]


def match_codes(codes: Iterable[str], language: str, exact: bool = False) -> list[str]:
    """The codes that match a language: only the exact match if there is one, or if `exact`."""
    same = [code for code in codes if normalize_code(code) == normalize_code(language)]
    if same or exact:
        return same
    return [code for code in codes if primary_subtag(code) == primary_subtag(language)]


def choose_variant(codes: Iterable[str], language: str, name: str) -> tuple[str, bool]:
    """The code in a file that matches a language, or an empty string; and whether the file has other variants
    of the language. DataError for several variants without an exact match. `name`: of the file."""
    distinct = {normalize_code(code): code for code in codes}
    matching = match_codes(distinct.values(), language)
    if len(matching) > 1:
        raise DataError(
            f"{name}: has more than one variant of {language}: {', '.join(sorted(matching))}; name one of "
            "them exactly with --languages"
        )
    others = sum(primary_subtag(code) == primary_subtag(language) for code in distinct) > 1
    return next(iter(matching), ""), others


# ---- pairs -------------------------------------------------------------------------------------------------

BREAKS = re.compile("[ \t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")


def write_pairs(
    paths: Sequence[str],
    wanted: Wanted,
    outputs: tuple[Path, Path],
    advance: Callable[[int], None] = lambda count: None,
) -> UnitCounts:
    """Write the pairs of files to two line files, a pair a line. Units without text on both sides are skipped
    and counted. `advance` is called with the number of units read since its last call.

    ConfigError for a file whose ending is unknown; DataError for damaged files, for several variants of a
    language without an exact match, and if there is no pair. Then nothing is written.
    """
    texts = group_files(paths)
    exact: dict[int, tuple[str, str]] = {}  # the languages to read from texts with several variants
    while True:
        counts, read_again = UnitCounts(), False
        with ExitStack() as stack:
            sides = [stack.enter_context(files.Writing(path)) for path in outputs]
            for number, text in enumerate(texts):
                codes, languages = set[str](), exact.get(number, wanted.languages)
                for unit in choose_reader(text[0])(text, wanted):
                    codes.update(unit)
                    for out, line in zip(
                        sides, make_pair(unit, languages, number in exact, counts), strict=False
                    ):
                        out.write(line + "\n")
                    advance(1)
                counts.codes |= codes
                chosen = [choose_variant(codes, language, text[0]) for language in languages]
                if number not in exact and any(others for _, others in chosen):
                    # It has en, and en-US, too: read again, for the exact match alone.
                    exact[number], read_again = (chosen[0][0], chosen[1][0]), True
            if not counts.pairs:
                raise no_pairs_error(paths, wanted, counts)
        if not read_again:
            return counts


def group_files(paths: Sequence[str]) -> list[list[str]]:
    """Split files into texts: SGML files belong together, any other file is a text of its own. ConfigError
    for a file whose ending is unknown."""
    texts: dict[str, list[str]] = {}
    for path in paths:
        texts.setdefault("SGML" if choose_reader(path) is read_sgml else path, []).append(path)
    return list(texts.values())


def make_pair(unit: Unit, languages: Sequence[str], exact: bool, counts: UnitCounts) -> tuple[str, ...]:
    """The texts of both sides of a unit, each as one line; nothing if one is missing. A side without a code
    is in the language that is missing. `exact`: whether other variants of a language count as missing."""
    counts.units += 1
    keys = [next(iter(match_codes(unit, language, exact)), "") for language in languages]
    if keys[0] == keys[1] or not all(key in unit for key in keys):
        counts.missing += 1
        return ()
    pair = tuple(as_line(unit[key]) for key in keys)
    if not all(map(str.strip, pair)):
        counts.empty += 1
        return ()
    return pair


def as_line(text: str) -> str:
    """The text with white space as single blanks, and none at its ends; NBSP is part of the text."""
    if "  " in text or not text.isprintable():
        text = BREAKS.sub(" ", text)
    return text.strip(" ")


def no_pairs_error(paths: Sequence[str], wanted: Wanted, counts: UnitCounts) -> DataError:
    """The error for files without any pair."""
    name = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    codes = sorted({normalize_code(code): code for code in counts.codes if code}.values())
    missing = [language for language in wanted.languages if not match_codes(codes, language)]
    if missing and ("" not in counts.codes or len(missing) > 1):
        return DataError(
            f"{name}: has no text in {' or '.join(missing)}, only in {', '.join(codes) or 'no language'}; "
            "name two of its languages with --languages"
        )
    return DataError(
        f"{name}: {counts.units:,} units, none with text in both {' and '.join(wanted.languages)}; are "
        "source and translation in these files?"
    )


# ---- XML ---------------------------------------------------------------------------------------------------

# An entity that XML does not declare by itself.
REFERENCE = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos);)([A-Za-z][\w.-]{0,40});")
SEVERE = {"no_network": True, "load_dtd": False, "dtd_validation": False, "resolve_entities": False}
LIMITS = {"huge_tree": False, "remove_comments": True, "remove_pis": True}


def read_chunks(path: str) -> Iterator[bytes]:
    """Yield the bytes of a plain or gzip file. DataError for one that cannot be read, and for gzip that
    unpacks to far more than text does."""
    packed, size = files.status(path).st_size, 0
    with files.open_bytes(path) as stream, files.naming_unread(path):
        while chunk := stream.read(CHUNK):
            size += len(chunk)
            if size > max(UNPACKED, RATIO * packed):
                raise DataError(
                    f"{path}: unpacks to more than {RATIO} times its size, expected text; if you trust it "
                    "unpack it with gunzip"
                )
            yield chunk


def read_elements(path: str, root: str, *names: str) -> Iterator["Element"]:
    """Yield the elements of these names once they are complete, and free them afterwards. `root`: the name of
    the outermost element. DataError, with the line, for a file that is not well-formed XML, has another root,
    declares entities, or has larger parts than any document."""
    from lxml import etree

    parser = etree.XMLPullParser(("end",), tag=[f"{{*}}{name}" for name in names], **SEVERE, **LIMITS)
    line, since, reference = 1, 0, ""  # bytes since the last unit; an entity that might be undeclared
    try:
        for number, chunk in enumerate(read_chunks(path)):
            if number == 0:
                check_root(path, chunk, root)
            if not reference and (match := REFERENCE.search(chunk)):
                reference = f"{line + chunk[: match.start()].count(10)}: the entity &{match[1].decode()};"
            line += chunk.count(10)
            parser.feed(chunk)
            since += len(chunk)
            for _, element in parser.read_events():
                since = 0
                yield element
                free(element)
            if since > LARGEST_UNIT:
                raise DataError(
                    f"{path}:{line}: no <{names[0]}> ends within {LARGEST_UNIT >> 20} MiB, expected short "
                    "units of text"
                )
        parser.close()
    except etree.XMLSyntaxError as error:
        if reference and (not error.lineno or error.msg.startswith("Extra content")):  # libxml2 is silent
            raise DataError(
                f"{path}:{reference} is not declared in XML; write the character itself"
            ) from error
        raise malformed(path, error, root) from error


def check_root(path: str, chunk: bytes, root: str) -> None:
    """Check the beginning of an XML file. DataError for another root, and for declared entities. Reading a
    DTD is never needed: its name is ignored."""
    from lxml import etree

    parser = etree.XMLPullParser(("start",), **SEVERE, **LIMITS)
    failure: XMLSyntaxError | None = None
    try:
        parser.feed(chunk)
    except etree.XMLSyntaxError as error:
        failure = error
    element = next((element for _, element in parser.read_events()), None)
    if element is None:
        if failure:
            raise malformed(path, failure, root) from failure
        if len(chunk) == CHUNK:
            raise DataError(f"{path}:1: no element begins in {CHUNK >> 10} KiB, expected <{root}>")
        return  # a short file that ends here: close() says what is wrong
    check_entities(element, f"{path}:{element.sourceline}")
    if local_name(element) != root:
        raise DataError(
            f"{path}:{element.sourceline}: begins with <{local_name(element)}>, expected <{root}>; is its "
            f"ending right? ({', '.join(FORMATS)})"
        )


def malformed(path: str, error: "XMLSyntaxError", root: str = "") -> DataError:
    """The error for a file that is not well-formed XML. `root`: the expected root; empty: any."""
    what = " ".join(re.sub(r"(, line \d+, column \d+)+$", "", error.msg or "empty").split())
    if "XML_PARSE_HUGE" in what:
        what = "a text of more than 10 MB, or more than 256 elements inside each other"
    expected = f", expected <{root}>" if root else ""
    return DataError(
        f"{path}:{error.lineno or 1}: not well-formed XML ({what}){expected}; was it copied whole?"
    )


def check_entities(element: "Element", location: str) -> None:
    """DataError, which begins with `location`, if the document of an element declares entities, which could
    grow without bound, or name other files."""
    dtd = element.getroottree().docinfo.internalDTD
    if dtd is not None and (names := [entity.name for entity in dtd.iterentities()]):
        raise DataError(
            f"{location}: declares the entity {names[0]}, and entities are not read; write the characters "
            "into the text, and remove <!ENTITY ...>"
        )


def free(element: "Element") -> None:
    """Free an element that has been read, and all that precedes it, so that memory stays constant."""
    element.clear()
    for node in (element, *element.iterancestors()):
        while node.getprevious() is not None:
            del node.getparent()[0]


def local_name(element: "Element") -> str:
    """The name of an element without its namespace; empty for what is not an element."""
    return str(element.tag).rpartition("}")[2] if isinstance(element.tag, str) else ""


LINE_BREAKS = ("lb", "xlf:lb")


def segment_text(element: "Element", spans: frozenset[str], path: str) -> str:
    """The text of a segment. `spans`: the names of inline elements that enclose text; the content of all
    others is code of the document's format. A code for a line break is a blank. DataError for an entity."""
    parts = [element.text or ""]
    for child in element:
        name = local_name(child)
        if name in spans:
            parts.append(segment_text(child, spans, path))
        elif not name:
            raise DataError(
                f"{path}:{child.sourceline}: entity {child.text}, and entities are not expanded; write the "
                "character itself"
            )
        elif any(child.get(key) in LINE_BREAKS for key in ("type", "ctype", "subType")):
            parts.append(" ")
        parts.append(child.tail or "")
    return "".join(parts)


# ---- formats -----------------------------------------------------------------------------------------------

XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
TMX_SPANS = frozenset(("hi",))
XLIFF_SPANS = frozenset(("g", "mrk", "pc"))
NO_SPANS = frozenset[str]()


def read_tmx(paths: Sequence[str], wanted: Wanted) -> Iterator[Unit]:
    """Yield the units of TMX 1.1 to 1.4b. Of several translations into a language, the first counts."""
    for path in paths:
        for unit in read_elements(path, "tmx", "tu"):
            texts: Unit = {}
            for variant in unit.iterchildren("{*}tuv"):
                segment = variant.find("{*}seg")
                code = variant.get(XML_LANG) or variant.get("lang")
                if segment is not None and code:
                    texts.setdefault(code, segment_text(segment, TMX_SPANS, path))
            yield texts


def read_xliff(paths: Sequence[str], wanted: Wanted) -> Iterator[Unit]:
    """Yield the segments of XLIFF 1.2 and 2.x: those that are to be translated. A unit of version 1.2 whose
    source and target are cut into segments yields these."""
    for path in paths:
        for unit in read_elements(path, "xliff", "trans-unit", "unit"):
            above = (unit, *unit.iterancestors())
            if next((node.get("translate") for node in above if node.get("translate")), "yes") == "no":
                yield {}
            elif local_name(unit) == "unit":
                root = above[-1]
                codes = root.get("srcLang", ""), root.get("trgLang", "")
                for segment in unit.iterchildren("{*}segment"):
                    yield read_sides(segment, codes, path)
            else:
                top = next((node for node in above if local_name(node) == "file"), unit)
                codes = top.get("source-language", ""), top.get("target-language", "")
                yield from read_segments(unit, codes, path) or [read_sides(unit, codes, path)]


def read_sides(segment: "Element", codes: tuple[str, str], path: str) -> Unit:
    """The text of both sides of an XLIFF segment. `codes`: the languages that the file names."""
    unit: Unit = {}
    for name, code in zip(("source", "target"), codes, strict=True):
        side = segment.find(f"{{*}}{name}")
        if side is not None:
            unit.setdefault(code or side.get(XML_LANG, ""), segment_text(side, XLIFF_SPANS, path))
    return unit


def read_segments(unit: "Element", codes: tuple[str, str], path: str) -> list[Unit]:
    """The segments of an XLIFF 1.2 unit; empty if it is not cut into segments on both sides."""
    source, target = (
        {
            mark.get("mid"): segment_text(mark, XLIFF_SPANS, path)
            for side in unit.iterchildren(f"{{*}}{name}")
            for mark in side.iter("{*}mrk")
            if mark.get("mtype") == "seg"
        }
        for name in ("seg-source", "target")
    )
    if not source or not target:
        return []
    return [
        {codes[0]: text} | ({codes[1]: target[number]} if number in target else {})
        for number, text in source.items()
    ]


def read_wmt_xml(paths: Sequence[str], wanted: Wanted) -> Iterator[Unit]:
    """Yield the segments of WMT's test sets from 2021 on, with the first reference of each document."""
    for path in paths:
        for document in read_elements(path, "dataset", "doc"):
            sides = [(document.find(name), name) for name in ("src", "ref")]
            texts = [
                (side.get("lang", ""), {
                    segment.get("id"): segment_text(segment, NO_SPANS, path) for segment in side.iter("seg")
                })
                for side, _ in sides if side is not None
            ]  # fmt: skip
            for number in texts[0][1] if texts else ():
                yield {code: segments[number] for code, segments in texts if number in segments}


TAG = re.compile(r"<(/?)(srcset|refset|tstset|doc|seg)\b([^<>]*)>", re.IGNORECASE)
ATTRIBUTE = re.compile(r"""(?<![\w:-])([\w:-]++)\s*+=\s*+(?:"([^"]*)"|'([^']*)')""")
LEVELS = {"srcset": 0, "refset": 0, "tstset": 0, "doc": 1, "seg": 2}  # elements around each
CHARACTER = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9a-f]{1,6});", re.IGNORECASE)


def read_sgml(paths: Sequence[str], wanted: Wanted) -> Iterator[Unit]:
    """Yield the segments of NIST's and WMT's test sets: source and translation are in different files, and
    match by the ids of documents and segments. Of several translations, the first counts."""
    sources: dict[tuple[str, str], Unit] = {}
    translations: dict[tuple[str, str], Unit] = {}
    for path in paths:
        for is_source, key, unit in read_sgml_file(path):
            (sources if is_source else translations).setdefault(key, unit)
    if not sources or not translations:
        raise DataError(
            f"{paths[0]}: no {'<srcset>' if not sources else '<refset>'} in the SGML files; give the source "
            "and the reference of a test set, both with --parallel"
        )
    for key, unit in sources.items():
        yield unit | translations.get(key, {})


def read_sgml_file(path: str) -> Iterator[tuple[bool, tuple[str, str], Unit]]:
    """Yield the segments of an SGML file: whether it is a source, its ids, its text. It is no XML: in many of
    these files, & and < stand for themselves. DataError, with the line, for other files."""
    text = "\n".join(read_bounded_lines(path, LARGEST_TEST_SET))
    language = document = number = ""
    opened: list[str] = []  # elements that enclose the current position
    is_source, start, line, end = False, 0, 1, 0
    for tag in TAG.finditer(text):
        line, end = line + text.count("\n", end, tag.start()), tag.start()
        name, attributes = tag[2].lower(), {key.lower(): a or b for key, a, b in ATTRIBUTE.findall(tag[3])}
        if tag[1] and opened[-1:] == [name]:
            opened.pop()
            if name == "seg":
                yield is_source, (document, number), {language: unescape(text[start:end])}
        elif tag[1] or len(opened) != LEVELS[name]:
            raise DataError(
                f"{path}:{line}: {tag[0]} is out of order, expected <seg> inside <doc> inside a set, each "
                "with its end; was the file copied whole?"
            )
        else:
            opened.append(name)
            if name == "doc":
                document = attributes.get("docid", "")
            elif name == "seg":
                number, start = attributes.get("id", ""), tag.end()
            else:
                is_source = name == "srcset"
                language = attributes.get("srclang" if is_source else "trglang", "")
                language = "" if language.lower() == "any" else language
    if opened:
        raise DataError(f"{path}:{line}: <{opened[-1]}> has no end; was the file copied whole?")
    if not end:
        raise DataError(f"{path}:1: expected <srcset>, <refset> or <tstset>; is this a test set in SGML?")


def unescape(text: str) -> str:
    """Replace the characters that are written as &amp;, &lt;, &gt;, &quot;, &apos; or by their number, as
    NIST's scorer mteval-v13a.pl does. Any other & is text."""
    return CHARACTER.sub(lambda match: html.unescape(match[0]), text)


def read_bounded_lines(path: str, most: int) -> Iterator[str]:
    """Yield the lines of a text file. DataError as from `nmt.io.files.read_lines`, for a line of more than
    LARGEST_UNIT bytes, and for a file of more than `most` bytes."""

    def lines() -> Iterator[tuple[int, bytes]]:
        with files.open_bytes(path) as stream:
            size = number = 0
            while line := stream.readline(LARGEST_UNIT):
                size, number = size + len(line), number + 1
                if len(line) == LARGEST_UNIT or size > most:
                    raise DataError(
                        f"{path}:{number}: {'a line' if size <= most else 'a file'} of more than "
                        f"{min(most, LARGEST_UNIT) >> 20} MiB; is this text?"
                    )
                yield number, line.removesuffix(b"\n")

    return files.decode_lines(lines(), path)


LANGUAGE_CODE = re.compile("[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")


def read_tsv(paths: Sequence[str], wanted: Wanted) -> Iterator[Unit]:
    """Yield the rows of files of tab-separated values, without quotes or escapes. The columns are those that
    `wanted` gives; else those that a first line of language codes names; else there must be two."""
    for path in paths:
        names: list[str] = []  # of the columns; empty for those that are not read
        for number, line in enumerate(read_bounded_lines(path, sys.maxsize), 1):
            cells = line.split("\t")
            if number == 1:
                names = name_columns(cells, wanted, path)
                if is_header(cells, wanted):
                    continue
            if len(cells) != len(names):
                raise DataError(
                    f"{path}:{number}: {len(cells)} columns, expected {len(names)} as in line 1; is there a "
                    "tab or a line break in a text?"
                )
            yield {name: cell for name, cell in zip(names, cells, strict=True) if name}


def name_columns(first: Sequence[str], wanted: Wanted, path: str) -> list[str]:
    """The language of each column of a TSV file, empty for one that is not read. If `wanted` has columns,
    only these are read; otherwise all that a header names; without a header there must be two. `first`: the
    cells of the first line; `path`: for messages. DataError for too few columns, and for more than two that
    neither `wanted` nor a header names."""
    if not wanted.columns and is_header(first, wanted):
        return list(first)
    columns = wanted.columns or (1, 2)
    if max(columns) > len(first) or not (wanted.columns or len(first) == 2):
        raise DataError(
            f"{path}:1: {len(first)} columns, expected {max(columns)}, with tabs between them; name those to "
            "read with --columns, or all in a first line of language codes"
        )
    named = dict(zip(columns, wanted.languages, strict=True))
    return [named.get(number, "") for number in range(1, len(first) + 1)]


def is_header(cells: Sequence[str], wanted: Wanted) -> bool:
    """Whether the first line of a TSV file names languages: both that are wanted, or only language codes."""
    matched = sum(bool(match_codes(cells, language)) for language in wanted.languages)
    return matched == 2 or (matched == 1 and all(map(LANGUAGE_CODE.fullmatch, cells)))


Reader = Callable[[Sequence[str], Wanted], Iterator[Unit]]
FORMATS: dict[str, Reader] = {  # by the ending of a file's name
    ".tmx": read_tmx,
    ".tsv": read_tsv,
    ".xlf": read_xliff,
    ".xliff": read_xliff,
    ".sdlxliff": read_xliff,
    ".mqxliff": read_xliff,
    ".sgm": read_sgml,
    ".sgml": read_sgml,
    ".xml": read_wmt_xml,
}


def choose_reader(path: str) -> Reader:
    """The reader for a file, by the ending of its name before any .gz. ConfigError if there is none."""
    ending = os.path.splitext(path.removesuffix(".gz"))[1].lower()
    if ending not in FORMATS:
        raise ConfigError(
            f"{files.name_of(path)}: its ending says no format, expected one of {', '.join(FORMATS)}, also "
            "with .gz; rename the file, or give line files with --source and --target"
        )
    return FORMATS[ending]
