"""nmt-dictionary, in process: learn, show, segment, count arcs."""

from pathlib import Path

from nmt.papers.multiscale import command


def test_the_way_of_a_dictionary(tmp_path: Path) -> None:
    text, learned, out = (str(tmp_path / name) for name in ("text", "dictionary", "out"))
    Path(text).write_text("ab ab\nab c\n")
    assert command.main(["learn", "--size", "5", "--characters", "-i", text, "-o", learned, "-q"]) == 0
    assert command.main(["table", learned, "-o", out, "-q"]) == 0
    rows = Path(out).read_text().split("\n")
    assert rows[0] == "rank\ttoken\tcount" and any(row.endswith("\tab\t3") for row in rows)
    assert command.main(["segment", learned, "--characters", "--mark", "|", "-i", text, "-o", out, "-q"]) == 0
    assert Path(out).read_text() == "ab|_|ab\nab|_|c\n"
    assert command.main(["arcs", learned, "--characters", "-i", text, "-o", out, "-q"]) == 0
    symbols, arcs, mean = Path(out).read_text().split("\n")[1].split("\t")
    assert (symbols, arcs) == ("9", "12") and float(mean) == round(12 / 9, 4), "one a symbol, and 3 of ab"
