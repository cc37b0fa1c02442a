"""nmt-clean in process: outputs stay parallel, and the report accounts for every pair."""

from pathlib import Path

from nmt.cli import clean

PAIRS = [("a b", "x y"), ("a b", "x y"), ("", "x"), ("a " * 12, "x"), ("c", "z"), ("é", "ô")]


def cleaned(folder: Path, *options: str) -> tuple[list[tuple[str, str]], dict[str, int]]:
    for side, column in (("s", 0), ("t", 1)):
        (folder / side).write_text("".join(pair[column] + "\n" for pair in PAIRS), encoding="utf-8")
    out = [str(folder / "s.out"), str(folder / "t.out")]
    files = ["-s", str(folder / "s"), "-t", str(folder / "t")]
    given = [*files, "--output-source", out[0], "--output-target", out[1], "--report", str(folder / "r")]
    assert clean.main([*given, "-q", *options]) == 0
    sides = [Path(path).read_text(encoding="utf-8").split("\n")[:-1] for path in out]
    rows = [line.split("\t") for line in (folder / "r").read_text(encoding="utf-8").split("\n")[1:-1]]
    return list(zip(*sides, strict=True)), {name: int(count) for name, count, *_ in rows}


def test_kept_and_dropped_are_all(tmp_path: Path) -> None:
    kept, report = cleaned(tmp_path, "--max-length", "5")
    assert kept == [("a b", "x y"), ("c", "z"), ("é", "ô")]
    assert report["kept"] == len(kept)
    assert sum(count for name, count in report.items() if name != "pairs") == len(PAIRS)


def test_options_only_add_pairs_or_take_them_away(tmp_path: Path) -> None:
    kept, _ = cleaned(tmp_path)
    assert set(kept) < set(cleaned(tmp_path, "--ratio", "0")[0])
    assert cleaned(tmp_path, "--keep-duplicates")[0].count(("a b", "x y")) == 2
    assert cleaned(tmp_path, "--min-length", "2")[0] == [("a b", "x y")]
