"""smt-score-table as installed: one exact column, every other byte kept."""

import gzip
import math
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt import checkpoint
from nmt.phrase_table import PhrasePair
from smt_bridge.features.translation import Translation
from smt_bridge.score_table import add_columns, moses_score

Command = Callable[..., subprocess.CompletedProcess[str]]
TABLE = (
    b"&apos;s dog ||| le chien ||| 0.5 0.25 1 2.718 ||| 0-1 1-0 ||| 1 1 1 ||| |||\n"
    b"the dog ||| le chien ||| 0.5 0.25 1 2.718 ||| 0-0 1-1 ||| 1 2 1 ||| |||\n"
    b"the dog ||| l&apos; un\xc2\xa0x ||| 1e-19 0.25 1 2.718 ||| |||  1 1 ||| s 1 ||| {{A b}}\n"
)


def test_column_is_exp_of_the_pairs_own_score(tiny: Path, command: Command, tmp_path: Path) -> None:
    (tmp_path / "t.gz").write_bytes(gzip.compress(TABLE))
    done = command("smt-score-table", tmp_path / "t.gz", "--feature", f"translation={tiny / 'run'}", "--output", tmp_path / "o.gz")
    assert done.returncode == 0, done.stderr
    lines = gzip.decompress((tmp_path / "o.gz").read_bytes()).split(b"\n")
    assert lines.pop() == b""
    (tmp_path / "s").write_text("'s dog\nthe dog\nthe dog\n")
    (tmp_path / "f").write_text("le chien\nle chien\nl' un\xa0x\n")
    scorer = command("nmt-score", tiny / "run", "-q", "--tokenized", "-s", tmp_path / "s", "-t", tmp_path / "f")
    for old, new, log_prob in zip(TABLE.split(b"\n"), lines, scorer.stdout.split(), strict=False):
        before, scores, after = old.split(b" ||| ")[:2], old.split(b" ||| ")[2], old.split(b" ||| ", 3)[3]
        column = new[len(b" ||| ".join(before)) + 5 + len(scores) + 1 : -len(b" ||| " + after)]
        assert new == b" ||| ".join([*before, scores + b" " + column, after])
        assert math.log(float(column)) == pytest.approx(float(log_prob), abs=1e-4)


def test_the_model_sees_no_escapes(tiny: Path) -> None:
    run = checkpoint.load(tiny / "run")
    run.source_words.ids["'s"], run.target_words.ids['"'] = 5, 6  # known words, which the tiny corpus lacks
    pairs = [(b"&apos;s dog", b"x &quot;"), (b"'s dog", b'x "'), (b"unknown dog", b"x &quot;"), (b"&apos;s dog", b"x unknown")]
    escaped, plain, other_source, other_target = Translation(run).score([PhrasePair(*pair, b"1", b"") for pair in pairs])
    assert escaped == pytest.approx(plain, abs=1e-5)
    assert abs(escaped - other_source) > 1e-3 and abs(escaped - other_target) > 1e-3


def test_stream_and_two_features(tiny: Path, command: Command) -> None:
    feature = ["--feature", f"translation={tiny / 'run'}"]
    one = command("smt-score-table", "-", "-q", *feature, input=TABLE).stdout
    two = command("smt-score-table", "-", "-q", *feature, *feature, input=TABLE).stdout
    for a, b in zip(one.split("\n")[:-1], two.split("\n")[:-1], strict=True):
        scores = a.split(" ||| ")[2].split()
        assert b.split(" ||| ")[2].split() == [*scores, scores[-1]]


def test_chunks_do_not_matter(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from smt_bridge import score_table

    feature = Translation(checkpoint.load(tiny / "run"))
    pairs = [PhrasePair(b"the dog" + b" x" * (n % 3), b"le chien" + b" y" * (n % 2), b"1", b"") for n in range(30)]
    whole = list(add_columns(pairs, [feature]))
    monkeypatch.setattr(score_table, "CHUNK", 7)
    for a, b in zip(whole, add_columns(pairs, [feature]), strict=True):
        assert float(a.split()[-1]) == pytest.approx(float(b.split()[-1]), rel=1e-4)


def test_scores_that_moses_can_hold() -> None:
    assert moses_score(math.log(0.25)) == b"0.25"
    assert moses_score(-1000.0) == moses_score(-math.inf) == b"1e-38"
    with pytest.raises(ValueError, match="not a number"):
        moses_score(math.nan)


REFUSALS = {
    "two fields": (b"a ||| b ||| 1\na ||| b\n", "<stdin>:2: 2 fields"),
    "another number of scores": (b"a ||| b ||| 1\na ||| c ||| 1 1\n", "<stdin>:2: 2 scores, but the lines above have 1"),
    "empty table": (b"", "empty file"),
    "empty line": (b"a ||| b ||| 1\n\n", "<stdin>:2: 1 fields"),
    "latin-1": (b"a ||| \xe9 ||| 1\n", "is not UTF-8"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case: str, tiny: Path, tmp_path: Path, command: Command, refused: Callable[..., str]) -> None:
    table, message = REFUSALS[case]
    done = command("smt-score-table", "-", "-q", "-f", f"translation={tiny / 'run'}", "-o", tmp_path / "o", input=table)
    assert message in refused(done)
    assert not list(tmp_path.iterdir())


def test_bad_features_are_refused(tiny: Path, command: Command, refused: Callable[..., str]) -> None:
    assert "expected TYPE=PATH" in refused(command("smt-score-table", "-", "-f", "translation"))
    assert "expected one of translation" in refused(command("smt-score-table", "-", "-f", f"lm={tiny}"))
    assert "no such run directory" in refused(command("smt-score-table", "-", "-q", "-f", "translation=nosuch"))
    assert "nosuch: cannot read" in refused(command("smt-score-table", "nosuch", "-q", "-f", f"translation={tiny / 'run'}"))


def test_real_table(tiny: Path, command: Command, nmt_data: Path, tmp_path: Path) -> None:
    """3,000 lines of a real Moses table: every line keeps its bytes but for one more number."""
    lines = gzip.open(nmt_data / "moses-multi30k" / "phrase-table.gz").read(1 << 20).split(b"\n")[:3000]
    done = command("smt-score-table", "-", "-q", "-f", f"translation={tiny / 'run'}", input=b"\n".join(lines) + b"\n")
    out = done.stdout.encode().split(b"\n")
    assert out.pop() == b"" and len(out) == 3000
    for old, new in zip(lines, out, strict=True):
        left, right = old.split(b" ||| "), new.split(b" ||| ")
        assert [*right[:2], right[2].rpartition(b" ")[0], *right[3:]] == left
        assert 0 < float(right[2].split()[-1]) <= 1
