"""The source phrases that are shown."""

from pathlib import Path

from nmt.analysis.phrase_choice import PhrasesConfig, choose


def test_the_most_frequent_and_the_rarest_long_sources_with_enough_targets(tmp_path: Path) -> None:
    """`a b` 5 times, `c d` 3, `e f` 9 but with one target, `g` 9 but of one word."""
    lines = [
        f"{source} ||| {target} ||| 1 ||| ||| 1 {count} 1"
        for source, count, targets in (("a b", 5, "xy"), ("c d", 3, "xy"), ("e f", 9, "x"), ("g", 9, "xy"))
        for target in targets
    ]
    (tmp_path / "table").write_text("\n".join(lines) + "\n")
    config = PhrasesConfig(sources=1, min_words=2, min_targets=2)
    found = [(kind, pairs[0].source, len(pairs)) for kind, pairs in choose(str(tmp_path / "table"), config)]
    assert found == [("frequent", b"a b", 2), ("rare", b"c d", 2)]
