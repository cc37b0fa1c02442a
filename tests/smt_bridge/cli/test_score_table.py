"""smt-score-table as installed: one exact column, every other byte kept."""

import gzip
import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.runs import checkpoint
from nmt.scoring import word_scores
from tests.conftest import Command
from tests.smt_bridge.cli.scored_tables import ARPA, arpa_score, columns_of, write_table

TABLE = (
    b"&apos;s dog ||| le chien ||| 0.5 0.25 1 2.718 ||| 0-1 1-0 ||| 1 1 1 ||| |||\n"
    b"the dog ||| l&apos; un\xc2\xa0x ||| 1e-19 0.25 1 2.718 ||| |||  1 1 ||| s 1 ||| {{Orientation b}}\n"
    b"the dog ||| le chien ||| 0.5 0.25 1 2.718 ||| 0-0 1-1 ||| 1 2 1 ||| |||\n"
)


def test_column_is_exp_of_the_pairs_own_score(tiny: Path, command: Command, tmp_path: Path) -> None:
    (tmp_path / "t.gz").write_bytes(gzip.compress(TABLE))
    done = command(
        "smt-score-table",
        tmp_path / "t.gz",
        "--feature",
        f"translation={tiny / 'run'}",
        "--output",
        tmp_path / "o.gz",
    )
    assert done.returncode == 0, done.stderr
    lines = gzip.decompress((tmp_path / "o.gz").read_bytes()).split(b"\n")
    assert lines.pop() == b""
    (tmp_path / "s").write_text("'s dog\nthe dog\nthe dog\n")
    (tmp_path / "f").write_text("le chien\nl' un\xa0x\nle chien\n")
    scorer = command(
        "nmt-score", tiny / "run", "-q", "--tokenized", "-s", tmp_path / "s", "-t", tmp_path / "f"
    )
    for old, new, log_prob in zip(TABLE.split(b"\n"), lines, scorer.stdout.split(), strict=False):
        before, scores, after = old.split(b" ||| ")[:2], old.split(b" ||| ")[2], old.split(b" ||| ", 3)[3]
        column = new[len(b" ||| ".join(before)) + 5 + len(scores) + 1 : -len(b" ||| " + after)]
        assert new == b" ||| ".join([*before, scores + b" " + column, after])
        assert math.log(float(column)) == pytest.approx(float(log_prob), abs=1e-4)


def test_unsorted_is_told_once(tiny: Path, command: Command, tmp_path: Path) -> None:
    lines = [b"b ||| x ||| 0.5", b"a ||| x ||| 0.5", b"c ||| x ||| 0.5", b"b ||| x ||| 0.5"]
    (tmp_path / "t").write_bytes(b"".join(line + b"\n" for line in lines))
    for table, text in ((tmp_path / "t", b""), ("-", (tmp_path / "t").read_bytes())):
        done = command(
            "smt-score-table", table, "-q", "--unsorted", "-f", f"unknown-words={tiny / 'run'}", input=text
        )
        assert (
            done.returncode == 0
            and done.stderr.count("\n") == 1
            and "t:2: not in" in done.stderr.replace("<stdin>", "t")
        ), done.stderr
        assert [line.rpartition(" ")[0].encode() for line in done.stdout.split("\n")[:-1]] == lines


@pytest.mark.ci
def test_stream_and_two_features(tiny: Path, command: Command) -> None:
    feature = ["--feature", f"translation={tiny / 'run'}"]
    one = command("smt-score-table", "-", "-q", *feature, input=TABLE).stdout
    two = command("smt-score-table", "-", "-q", *feature, *feature, input=TABLE).stdout
    for a, b in zip(one.split("\n")[:-1], two.split("\n")[:-1], strict=True):
        scores = a.split(" ||| ")[2].split()
        assert b.split(" ||| ")[2].split() == [*scores, scores[-1]]


def test_kinds_of_features(tiny: Path, command: Command, tmp_path: Path) -> None:
    """Each column is what its model says of the pair alone."""
    text = write_table(tmp_path / "t")
    (tmp_path / "lm").write_text(ARPA, encoding="utf-8")
    features = [
        f"translation={tiny / 'run'}",
        f"inverse:Back={tiny / 'run'}",
        f"lm={tmp_path / 'lm'}",
        f"unknown-words={tiny / 'run'}",
    ]
    done = command(
        "smt-score-table", tmp_path / "t", "-q", *[word for feature in features for word in ("-f", feature)]
    )
    assert done.returncode == 0, done.stderr
    run = checkpoint.load(tiny / "run")
    for line, (direct, inverse, lm, unknown) in zip(
        text.split(b"\n"), columns_of(done.stdout.encode()), strict=False
    ):
        source, target = (part.decode().split() for part in line.split(b" ||| ")[:2])
        for value, (one, other) in ((direct, (source, target)), (inverse, (target, source))):
            expected = sum(
                word_scores(run.model, [(run.source_words.encode(one), run.target_words.encode(other))])[0]
            )
            assert math.log(value) == pytest.approx(expected, abs=1e-4)
        assert math.log(lm) == pytest.approx(math.log(10) * arpa_score(target), abs=1e-4)
        assert math.log(unknown) == pytest.approx(
            sum(word not in run.target_words.ids for word in target), abs=1e-4
        )


@pytest.mark.ci
def test_estimate_and_precision(tiny: Path, command: Command, tmp_path: Path) -> None:
    write_table(tmp_path / "t")
    done = command(
        "smt-score-table",
        tmp_path / "t",
        "-f",
        f"translation={tiny / 'run'}",
        "--estimate",
        "-o",
        tmp_path / "o",
    )
    assert [line.split("\t")[0] for line in done.stdout.split("\n")[:-1]] == [
        "pairs",
        "rate",
        "time",
        "memory",
    ]
    assert not (tmp_path / "o").exists() and not (tmp_path / "o.job").exists()
    done = command(
        "smt-score-table",
        tmp_path / "t",
        "-f",
        f"translation={tiny / 'run'}",
        "--precision",
        "int8",
        "-o",
        tmp_path / "o",
    )
    error = re.search(r"int8 against fp32 on \d+ pairs: RNN0: error in log p (\S+) on average", done.stderr)
    assert error and 0 < float(error[1]) < 0.5, done.stderr
    assert columns_of((tmp_path / "o").read_bytes())


def test_report(tiny: Path, command: Command, tmp_path: Path) -> None:
    lines = [
        b"the dog sees ||| t%d ||| 0.5 0.5 %g 0.5 ||| ||| 1 %d 1 ||| |||\n" % (n, 0.5**n, 7) for n in range(5)
    ]
    (tmp_path / "t").write_bytes(b"".join(lines))
    done = command(
        "smt-score-table",
        tmp_path / "t",
        "-q",
        "-f",
        f"translation={tiny / 'run'}",
        "--report",
        tmp_path / "r",
        "-o",
        tmp_path / "o",
    )
    assert done.returncode == 0, done.stderr
    scatter = [
        line.split("\t") for line in (tmp_path / "r" / "scatter-RNN0.tsv").read_text().split("\n")[1:-1]
    ]
    assert [float(row[3]) for row in scatter] == pytest.approx(
        [n * math.log(0.5) for n in range(5)], rel=1e-4
    )
    assert [float(row[4]) for row in scatter] == pytest.approx(
        [math.log(row[0]) for row in columns_of((tmp_path / "o").read_bytes())], abs=1e-4
    )
    table = [line.split("\t") for line in (tmp_path / "r" / "phrases-RNN0.tsv").read_text().split("\n")[1:-1]]
    assert [row[5] for row in table if row[:4] == ["frequent", "the dog sees", "7", "table"]] == [
        "t0",
        "t1",
        "t2",
    ]
    assert "unknown target words\t5" in (tmp_path / "r" / "coverage.tsv").read_text()
    assert (tmp_path / "r" / "scatter-RNN0.png").read_bytes()[:4] == b"\x89PNG"


REFUSALS = {
    "two fields": (b"a ||| b ||| 1\na ||| b\n", "<stdin>:2: 2 fields"),
    "another number of scores": (
        b"a ||| b ||| 1\na ||| c ||| 1 1\n",
        "<stdin>:2: 2 scores, but the lines above have 1",
    ),
    "empty table": (b"", "empty file"),
    "empty line": (b"a ||| b ||| 1\n\n", "<stdin>:2: empty line"),
    "unsorted": (b"b ||| b ||| 1\na ||| b ||| 1\n", "<stdin>:2: not in whole-line LC_ALL=C order"),
    "latin-1": (b"a ||| \xe9 ||| 1\n", "is not UTF-8"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(
    case: str, tiny: Path, tmp_path: Path, command: Command, refused: Callable[..., str]
) -> None:
    table, message = REFUSALS[case]
    done = command(
        "smt-score-table", "-", "-q", "-f", f"translation={tiny / 'run'}", "-o", tmp_path / "o", input=table
    )
    assert message in refused(done)
    assert not list(tmp_path.iterdir())


@pytest.mark.ci
def test_bad_features_are_refused(tiny: Path, command: Command, refused: Callable[..., str]) -> None:
    assert "expected TYPE[:NAME]=PATH" in refused(command("smt-score-table", "-", "-f", "translation"))
    assert "expected one of translation" in refused(command("smt-score-table", "-", "-f", f"nmt={tiny}"))
    assert "split names at '_'" in refused(command("smt-score-table", "-", "-f", f"translation:R_NN={tiny}"))
    assert "the name A is taken" in refused(
        command("smt-score-table", "-", "-f", f"lm:A={tiny}", "-f", f"lm:A={tiny}")
    )
    assert "expected an ARPA or KenLM file" in refused(
        command("smt-score-table", "-", "-q", "-f", f"lm={tiny}")
    )
    assert "not an ARPA or KenLM file" in refused(
        command("smt-score-table", "-", "-q", "-f", f"lm={tiny / 'train.en'}")
    )
    assert "is a translator, expected a language model's run directory" in refused(
        command("smt-score-table", "-", "-q", "-f", f"neural-lm={tiny / 'run'}")
    )
    assert "reads the table twice" in refused(
        command("smt-score-table", "-", "-q", "-f", f"translation={tiny}", "--shard", "1/2")
    )
    assert "1 <= I <= N" in refused(
        command("smt-score-table", "-", "-q", "-f", f"translation={tiny}", "--shard", "3/2")
    )
    assert "no such run directory" in refused(
        command("smt-score-table", "-", "-q", "-f", "translation=nosuch")
    )
    assert "nosuch: cannot read" in refused(
        command("smt-score-table", "nosuch", "-q", "-f", f"translation={tiny / 'run'}")
    )


def test_real_table(tiny: Path, command: Command, nmt_data: Path, tmp_path: Path) -> None:
    """3,000 lines of a real Moses table: every line keeps its bytes but for one more number."""
    lines = gzip.open(nmt_data / "moses-multi30k" / "phrase-table.gz").read(1 << 20).split(b"\n")[:3000]
    done = command(
        "smt-score-table", "-", "-q", "-f", f"translation={tiny / 'run'}", input=b"\n".join(lines) + b"\n"
    )
    out = done.stdout.encode().split(b"\n")
    assert out.pop() == b"" and len(out) == 3000
    for old, new in zip(lines, out, strict=True):
        left, right = old.split(b" ||| "), new.split(b" ||| ")
        assert [*right[:2], right[2].rpartition(b" ")[0], *right[3:]] == left
        assert 0 < float(right[2].split()[-1]) <= 1
