import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.errors import ConfigError
from nmt.text.clean import CleanConfig, CleanReport, clean, reason_against
from tests.spaceless import chinese

Command = Callable[..., subprocess.CompletedProcess[str]]

PAIRS = [
    ("a b", "x y"), ("", "x"), ("a", "  "), ("a b c d e f", "x"), ("a b", "x y"), ("a b", "x z"),
    ("a " * 9, "x " * 9), ("a", "x"),
]  # fmt: skip


def test_each_reason_by_hand() -> None:
    config, report = CleanConfig(min_length=2, max_length=8, ratio=2), CleanReport()
    kept = list(clean(PAIRS, config, report))
    assert kept == [("a b", "x y"), ("a b", "x z")]
    assert report.pairs == 8 and report.kept == 2
    assert report.dropped == {"empty": 2, "short": 2, "duplicate": 1, "long": 1}
    assert list(report.lines()) == [
        "reason\tpairs", "kept\t2", "empty\t2", "short\t2", "long\t1", "ratio\t0", "duplicate\t1",
    ]  # fmt: skip
    assert (
        reason_against("a b c d e", "x y", config) == "ratio"
        and reason_against("a b c d", "x y", config) == ""
    )
    assert reason_against("a b c d e", "x y", CleanConfig(ratio=0)) == ""
    assert len(list(clean(PAIRS, CleanConfig(keep_duplicates=True), CleanReport()))) == 6


def test_bad_options() -> None:
    for config in (CleanConfig(min_length=5, max_length=4), CleanConfig(ratio=0.5)):
        with pytest.raises(ConfigError):
            config.check()


def test_the_command(tmp_path: Path, command: Command, refused: Callable[..., str]) -> None:
    """Outputs stay parallel, U+2028 is data, counts are told; unequal files leave nothing behind."""
    (tmp_path / "s").write_text("a b\n\na\u2028b c\na b\n", encoding="utf-8")
    (tmp_path / "t").write_text("x y\nx\nx y\nx y\n", encoding="utf-8")
    paths = [
        "-s", tmp_path / "s", "-t", tmp_path / "t", "--output-source", tmp_path / "s2", "--output-target",
        tmp_path / "t2",
    ]  # fmt: skip
    done = command("nmt-clean", *paths, "--report", tmp_path / "report.tsv")
    assert (
        done.returncode == 0
        and done.stderr == "nmt-clean: 2 of 4 pairs kept; dropped: 1 empty, 1 duplicate\n"
    )
    assert (tmp_path / "s2").read_text(encoding="utf-8") == "a b\na\u2028b c\n" and (
        tmp_path / "t2"
    ).read_text(encoding="utf-8") == "x y\nx y\n"
    assert "empty\t1\n" in (tmp_path / "report.tsv").read_text()
    (tmp_path / "t").write_text("x\n")
    (tmp_path / "s2").unlink()
    assert f"{tmp_path}/t: 1 line, but {tmp_path}/s has 4" in refused(command("nmt-clean", "-q", *paths))
    assert not (tmp_path / "s2").exists() and (tmp_path / "t2").exists()
    assert "is also read" in refused(command("nmt-clean", *paths[:6], "--output-target", tmp_path / "s"))


def parallel() -> list[tuple[str, str]]:
    """1,000 English lines of 5 to 45 words beside Chinese ones as long as their translations."""
    draw = random.Random(4)
    lengths = [draw.randint(5, 45) for _ in range(1000)]
    return [
        (" ".join(f"w{draw.randrange(999)}" for _ in range(words)), chinese(words, seed))
        for seed, words in enumerate(lengths)
    ]


def test_pairs_with_a_script_without_blanks_are_kept() -> None:
    """Counted in words between blanks most of them were dropped as `ratio`, until 0.5; a line beside one of
    another length still is."""
    pairs = parallel()
    kept, old = CleanReport(), CleanReport()
    list(clean(pairs, CleanConfig(), kept))
    list(clean(pairs, CleanConfig(unit="word"), old))
    assert old.dropped["ratio"] > 800 and kept.kept == 1000
    report = CleanReport()
    list(clean([(pair[0], chinese(1)) for pair in pairs], CleanConfig(keep_duplicates=True), report))
    assert report.dropped["ratio"] == sum(len(pair[0].split()) > 18 for pair in pairs) > 500
    assert reason_against("w " * 50, chinese(120), CleanConfig()) == "long"
    assert reason_against("ab cd", "abcd", CleanConfig(unit="character", max_length=4)) == ""
    assert reason_against("ab cd", "abcde", CleanConfig(unit="character", max_length=4)) == "long"
