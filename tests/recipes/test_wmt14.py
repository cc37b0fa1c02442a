"""The downloader of recipes/wmt14 against a server of ours: resume, checksums, errors; what unpack.py makes
of archives; the table of times and memory that measure.py writes."""

import gzip
import hashlib
import http.server
import io
import subprocess
import sys
import tarfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from recipes.wmt14 import generate, unpack
from tests.conftest import ROOT

HERE = ROOT / "recipes" / "wmt14"
CONTENT = bytes(range(256)) * 40


class Server(http.server.ThreadingHTTPServer):
    """Counts what it sends. `/plain` knows no ranges; `/broken` and `/chunked`, which sends no length, end
    early the first time."""

    sent: list[tuple[str, int]]
    content = CONTENT
    broken = True


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        content = self.server.content
        begin = 0
        if self.path.startswith("/missing"):
            self.send_error(404)
            return
        wanted = self.headers.get("Range")
        if wanted and not self.path.startswith("/plain"):
            begin = int(wanted.removeprefix("bytes=").rstrip("-"))
            if begin >= len(content):
                self.send_error(416)
                return
            self.send_response(206)
        else:
            self.send_response(200)
        chunked = self.path.startswith("/chunked") and self.server.broken
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        part = content[begin:]
        if chunked:
            self.server.broken = False
            self.wfile.write(b"%x\r\n%s" % (len(part), part[:50]))
            return
        if self.path.startswith("/broken") and self.server.broken:
            self.server.broken = False
            part = part[:100]
        self.server.sent.append((self.path, len(part)))
        self.wfile.write(part)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), Handler)
    made.sent = []
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def download(folder: Path, server: Server, *names: str) -> subprocess.CompletedProcess[str]:
    base = f"http://127.0.0.1:{server.server_address[1]}"
    paths = (
        "good whole/one.tgz plain plain/two.tgz broken broken/three.tgz missing missing/four.tgz "
        "chunked chunked/five.tgz"
    ).split()
    rows = [f"parallel\t{name}\t{base}/{path}\tx" for name, path in zip(paths[::2], paths[1::2], strict=True)]
    (folder / "list.tsv").write_text("\n".join(["# kind\tname\taddress", *rows, ""]))
    return script("download.py", folder / "list.tsv", folder / "out", *names)


def script(name: str, *options: object) -> subprocess.CompletedProcess[str]:
    given = [sys.executable, str(HERE / name), *map(str, options)]
    return subprocess.run(given, capture_output=True, text=True, timeout=1200, check=False)


@pytest.mark.ci
def test_resume(server: Server, tmp_path: Path) -> None:
    """A part of a file is there: only the rest is sent; a server without ranges sends all; a connection that
    ends early is taken up again."""
    (tmp_path / "out").mkdir()
    for name in ("one", "two"):
        (tmp_path / "out" / f"{name}.tgz.part").write_bytes(CONTENT[:1000])
    done = download(tmp_path, server, "good", "plain", "broken")
    assert done.returncode == 0, done.stderr
    for name in ("one", "two", "three"):
        assert (tmp_path / "out" / f"{name}.tgz").read_bytes() == CONTENT
    rest = len(CONTENT) - 1000
    assert server.sent == [
        ("/whole/one.tgz", rest),
        ("/plain/two.tgz", len(CONTENT)),
        ("/broken/three.tgz", 100),
        ("/broken/three.tgz", len(CONTENT) - 100),
    ]
    assert not list((tmp_path / "out").glob("*.part"))


@pytest.mark.ci
def test_a_chunked_answer_that_ends_early_is_asked_for_again(server: Server, tmp_path: Path) -> None:
    done = download(tmp_path, server, "chunked")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "five.tgz").read_bytes() == CONTENT


@pytest.mark.ci
def test_checksum_is_recorded_then_checked(server: Server, tmp_path: Path) -> None:
    first = download(tmp_path, server, "good")
    assert first.returncode == 0 and first.stdout.endswith("recorded\n")
    assert (tmp_path / "out/checksums.tsv").read_text() == f"one.tgz\t{hashlib.sha256(CONTENT).hexdigest()}\n"
    assert download(tmp_path, server, "good").stdout.endswith("checked\n")
    assert len(server.sent) == 1
    (tmp_path / "out/one.tgz").write_bytes(CONTENT[:-1] + b"x")
    again = download(tmp_path, server, "good")
    assert again.returncode == 2 and again.stderr.count("\n") == 1
    assert "was recorded at its first download" in again.stderr
    (tmp_path / "out/one.tgz").unlink()
    server.content = CONTENT[::-1]  # the server has another file now
    assert "was recorded at its first download" in download(tmp_path, server, "good").stderr


@pytest.mark.parametrize(
    ("name", "message"), [("missing", "404"), ("nothing", "no corpus nothing, expected one of good")]
)
def test_errors(name: str, message: str, server: Server, tmp_path: Path) -> None:
    done = download(tmp_path, server, name)
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1


def test_unpack(tmp_path: Path) -> None:
    """Archives, archives of compressed files, compressed files alone, SGML: one text for each kind and
    side."""
    downloads = tmp_path / "downloads"
    downloads.mkdir()

    def archive(name: str, members: dict[str, bytes]) -> None:
        with tarfile.open(downloads / name, "w:gz" if name.endswith("gz") else "w") as box:
            for member, content in members.items():
                info = tarfile.TarInfo(member)
                info.size = len(content)
                box.addfile(info, io.BytesIO(content))

    archive("a.tgz", {"t/a.en": b"one\n", "t/a.fr": b"un\n"})
    archive("b.tar", {"b.en.gz": gzip.compress(b"two\n"), "b.fr.gz": gzip.compress(b"deux\n")})
    (downloads / "m.fr.gz").write_bytes(gzip.compress(b"mono\n"))
    sgml = '<doc>\n<seg id="1"> A &amp;\nB </seg>\n<seg id="2">C</seg></doc>'
    archive("test.tgz", {"src.en.sgm": sgml.encode(), "ref.fr.sgm": sgml.replace("C", "é").encode()})
    (tmp_path / "list.tsv").write_text(
        "parallel\ta\thttp://x/a.tgz\tt/a.en t/a.fr\nparallel\tb\thttp://x/b.tar\tb.en.gz "
        "b.fr.gz\nmono\tm\thttp://x/m.fr.gz\tm.fr.gz\n"
        "test\tt\thttp://x/test.tgz\tsrc.en.sgm ref.fr.sgm\n"
    )
    given = "unpack.py", tmp_path / "list.tsv", downloads, tmp_path / "text"
    done = script(*given)
    assert done.returncode == 0, done.stderr
    text = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "text").iterdir()}
    assert text["parallel.fr"] == "un\ndeux\n" and text["parallel.en"].endswith("two\n")
    assert text["mono.fr"] == "mono\n"
    assert text["test.en"] == "A & B\nC\n" and text["test.fr"] == "A & B\né\n"
    (downloads / "a.tgz").write_text("<html>not found</html>")  # what a server sends where the file has moved
    (tmp_path / "text" / "parallel.en").unlink()
    done = script(*given)
    assert done.returncode == 2 and "a.tgz: damaged" in done.stderr and done.stderr.count("\n") == 1
    archive("a.tgz", {"t/a.en": b"one\n"})
    archive("test.tgz", {"src.en.sgm": b"<seg>a</seg>\n<seg>\xe9</seg>", "ref.fr.sgm": b""})
    (tmp_path / "text" / "test.en").unlink()
    done = script(*given)
    assert done.returncode == 2 and "src.en.sgm:2: byte 0xe9" in done.stderr
    archive("test.tgz", {"src.en.sgm": sgml.encode()})
    (downloads / "m.fr.gz").write_bytes(gzip.compress(b"mono\n")[:-9])
    (tmp_path / "text" / "mono.fr").unlink()
    done = script(*given)
    assert done.returncode == 2 and "m.fr.gz: damaged" in done.stderr and done.stderr.count("\n") == 1
    (downloads / "m.fr.gz").unlink()
    done = script(*given)
    assert done.returncode == 2 and "m.fr.gz: does not exist; run download.py first" in done.stderr


def test_unpack_ends_the_last_line_of_each_text(tmp_path: Path) -> None:
    """Otherwise it would be one line with the first of the next text."""
    for name in ("a", "b"):
        with tarfile.open(tmp_path / f"{name}.tar", "w") as box:
            for language, content in (("en", b"x"), ("fr", b"y\n" if name == "a" else b"")):
                info = tarfile.TarInfo(f"{name}.{language}")
                info.size = len(content)
                box.addfile(info, io.BytesIO(content))
    rows = [f"parallel\t{name}\thttp://x/{name}.tar\t{name}.en {name}.fr\n" for name in ("a", "b")]
    (tmp_path / "list.tsv").write_text("".join(rows))
    done = script("unpack.py", tmp_path / "list.tsv", tmp_path, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "parallel.en").read_text() == "x\nx\n"
    assert (tmp_path / "parallel.fr").read_text() == "y\n"


def test_unpack_refuses_a_line_without_members(tmp_path: Path) -> None:
    (tmp_path / "list.tsv").write_text("# kind\nparallel\ta\thttp://x/a.tgz\n")
    done = script("unpack.py", tmp_path / "list.tsv", tmp_path, tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "list.tsv:2: 3 columns, expected kind, name, address, members" in done.stderr


def test_the_list_is_whole() -> None:
    """Each corpus has an address of its own; the pairs of members are a source and its target."""
    lines = (HERE / "corpora.tsv").read_text().split("\n")
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    assert {row[0] for row in rows} == {"parallel", "mono", "dev", "test"}
    assert len({row[2] for row in rows}) == len(rows)
    for kind, _, address, members in rows:
        assert address.startswith("https://www.statmt.org/")
        assert len(members.split(" ")) in ((1,) if kind == "mono" else (2, 4))


@pytest.mark.slow
def test_sample_walks_every_step(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", str(HERE / "run.sh"), "--sample", "--out", str(tmp_path / "out"), "--devices", "2"],
        timeout=1500,
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows = (tmp_path / "out/table-4.1/table.tsv").read_text().split("\n")
    assert [row.split("\t")[0] for row in rows[1:5]] == ["baseline", "rnn", "cslm-rnn", "cslm-rnn-wp"]


ALLOCATE = (
    "import time; data = bytearray({size}); data[::4096] = b'x' * len(data[::4096]); {more}time.sleep(1.5)"
)
OF_A_CHILD = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]]); "


@pytest.mark.ci
@pytest.mark.skipif(sys.platform != "linux", reason="measure.py reads /proc")
def test_time_and_memory_of_a_command_and_its_children(tmp_path: Path) -> None:
    def measure(name: str, *command: str) -> int:
        line = [sys.executable, str(HERE / "measure.py"), str(table), name, *command]
        return subprocess.run(line, check=False).returncode

    table = tmp_path / "steps.tsv"
    parent = ALLOCATE.format(size=200_000_000, more=OF_A_CHILD)
    assert (
        measure("two processes", sys.executable, "-c", parent, ALLOCATE.format(size=100_000_000, more=""))
        == 0
    )
    assert measure("one", sys.executable, "-c", "pass") == 0
    assert measure("fails", sys.executable, "-c", "raise SystemExit(3)") == 3
    header, both, one = [row.split("\t") for row in table.read_text(encoding="utf-8").split("\n")[:-1]]
    assert [header[0], both[0], one[0]] == ["step", "two processes", "one"]
    assert float(both[1]) >= 1.5 > float(both[2])
    assert 300 <= int(both[3]) < 400 and 200 <= int(both[4]) < 300


# ---- the generated corpus ----------------------------------------------------------------------------------
# The same seed gives the same bytes, a smaller corpus begins a larger one, and its words and lines have the
# properties that it promises.


def text(lines: int, seed: int = 1, part: int = 0) -> list[str]:
    """Both sides of a part of the corpus."""
    sides = list(generate.texts(seed, part, lines, lambda count: None))
    return ["".join(column) for column in zip(*sides, strict=True)]


def test_same_seed_same_text() -> None:
    assert text(300) == text(300)
    assert text(300)[0] != text(300, seed=2)[0]
    assert text(300)[0] != text(300, part=1)[0]


def test_a_smaller_corpus_begins_a_larger_one() -> None:
    more = generate.CHUNK + 10
    for small, large in zip(text(300), text(more), strict=True):
        assert small.count("\n") == 300 and large.count("\n") == more
        assert large.startswith(small)


def test_lines() -> None:
    """22 words on average, punctuation included; as many lines on both sides, each with a capital and a
    stop."""
    for side in text(generate.CHUNK):
        lines = side.split("\n")[:-1]
        words = np.array([len(line.replace("'s", " 's").replace(",", " ,").split()) + 1 for line in lines])
        assert 20 < words.mean() < 24 and words.min() >= 3 and words.max() > 50
        assert all(line[0] == line[0].upper() and line[-1] in ".?" for line in lines)
        assert "  " not in side


def test_words_follow_zipf() -> None:
    """Frequency falls by rank with a slope of about -1, and half of the different words occur once."""
    source, _ = text(2 * generate.CHUNK)
    counts = np.sort(np.array(list(Counter(source.split()).values())))[::-1]
    ranks = np.geomspace(20, 2000, 20).astype(int)
    slope = np.polyfit(np.log(ranks), np.log(counts[ranks]), 1)[0]
    assert -1.3 < slope < -0.8
    assert 0.35 < (counts == 1).mean() < 0.75


def test_types_grow_with_the_text() -> None:
    """By Heaps' law, with an exponent near 0.5: no side runs out of words."""
    for side in text(4 * generate.CHUNK):
        lines = side.split("\n")
        few, many = (len(set(" ".join(lines[:count]).split())) for count in (generate.CHUNK, len(lines)))
        assert 4**0.35 < many / few < 4**0.8


def test_ambiguity() -> None:
    """A word of a class has several translations, and a word of the other side several sources."""
    chance = generate.Chance(np.random.default_rng(1), 4000)
    word, context = np.repeat(np.arange(40), 100), np.tile(np.arange(100), 40)
    target = chance.translation(generate.NOUN, word, context)
    senses = [len(set(target[word == number].tolist())) for number in range(40)]
    sources = Counter(other for _, other in {*zip(word.tolist(), target.tolist(), strict=True)})
    assert 1.5 < np.mean(senses) < 4 and max(senses) >= 3
    assert max(sources.values()) > 1


@pytest.mark.ci
def test_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """unpack.py reads the archives as it reads those of WMT; written twice they have the same bytes."""
    for folder in ("first", "second"):
        monkeypatch.setattr(sys, "argv", ["generate.py", str(tmp_path / folder), "--pairs=60", "--mono=20"])
        generate.main()
    names = sorted(path.name for path in (tmp_path / "first").iterdir())
    assert len(names) == 5
    for name in names:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    unpack.main(str(tmp_path / "first" / "corpora.tsv"), tmp_path / "first", tmp_path / "text")
    lines = {path.name: path.read_text("utf-8").count("\n") for path in (tmp_path / "text").iterdir()}
    assert lines == {
        **dict.fromkeys(("parallel.en", "parallel.fr"), 60), "mono.fr": 20,
        **dict.fromkeys(("dev.en", "dev.fr"), 12), **dict.fromkeys(("test.en", "test.fr"), 6),
    }  # fmt: skip
    assert (tmp_path / "text" / "parallel.en").read_text("utf-8") == text(60)[0]
    assert (tmp_path / "text" / "test.fr").read_text("utf-8") == text(6, part=generate.TEST)[1]


@pytest.mark.ci
def test_words_of_two_hundred_thousand_pairs() -> None:
    """95 and 118 thousand different ones were seen with seed 1; 2 million pairs have 222 and 267 thousand."""
    words = [set(side.split()) for side in text(200_000)]
    assert [80_000 < len(side) < 140_000 for side in words] == [True, True]
