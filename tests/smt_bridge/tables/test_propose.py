"""Which proposals become rows, and what a row says; the network is a stand-in that gives the same list to
every source."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import ConfigError, UserError
from nmt.formats.phrase_table import parse
from nmt.runs.run import BeamTranslation
from nmt.search.config import BeamConfig
from nmt.work.executors import ExecutorConfig, Local
from smt_bridge.config import ProposeConfig
from smt_bridge.features.base import PairFeature, Values, WordPairs
from smt_bridge.tables import propose
from smt_bridge.tables.filter import Occurring
from smt_bridge.tables.propose import (
    KnownPairs,
    NetworkAnswers,
    NetworkRequest,
    Networks,
    ProposedRow,
    Proposer,
    best_links,
    merge_rows,
    read_table,
    table_line,
    thin_sources,
)


def executor(
    answers: Sequence[tuple[str, float]],
    inverse: PairFeature | None = None,
    direct: PairFeature | None = None,
) -> Local[NetworkRequest, NetworkAnswers]:
    """Networks that give the same answers (words, probability), best first, to every line."""

    def search(lines: Sequence[str], config: BeamConfig) -> list[list[BeamTranslation]]:
        translations = [
            BeamTranslation(words.split(), log_prob=math.log(p), score=0.0) for words, p in answers
        ]
        return [translations for _ in lines]

    compute = Networks(search, inverse, beam_size=5, direct=direct).compute
    return Local(compute, lambda: compute, ExecutorConfig())


def proposer(known: KnownPairs, config: ProposeConfig | None = None) -> Proposer:
    return Proposer(
        config=config or ProposeConfig(),
        table=known,
        lexicons=(
            {(b"cat", b"chat"): 0.7, (b"the", b"le"): 0.6, (b"NULL", b"l&apos;"): 0.2},
            {(b"chat", b"cat"): 0.9},
        ),
    )


def test_what_is_proposed() -> None:
    """Not what the table has, nothing twice, even if two sequences of units spell it; escapes as the table
    writes them, Moses' own where it has no such word; at most so many, none too unlikely."""
    known = KnownPairs(targets={b"the cat": {b"le chat"}}, words={"l'": "l&apos;", "|": "&#124;"})
    answers = [("le chat", 0.5), ("l' chat", 0.3), ("l' chat", 0.2), ("un chat", 0.1), ("[ chat", 0.06)]
    answers += [("chat", 0.01)]

    def found(options: int, least: float) -> list[bytes]:
        config = ProposeConfig(options=options, least=least)
        (said,) = executor(answers).map([NetworkRequest([b"the cat"])])
        return [target for _, target, _ in proposer(known, config).new_targets([b"the cat"], said)]

    assert found(options=9, least=0.05) == [b"l&apos; chat", b"un chat", b"&#91; chat"]
    assert found(options=1, least=0.05) == [b"l&apos; chat"]
    assert found(options=9, least=0.2) == [b"l&apos; chat"]
    assert found(options=9, least=0.0)[-1] == b"chat"


def test_who_is_asked_for() -> None:
    """Sources that the table lacks, or has with few options, or saw rarely; of so many words at most."""
    known = KnownPairs(
        targets={b"a": {b"x", b"y", b"z"}, b"b": {b"x"}, b"c": {b"x", b"y", b"z"}},
        counts={b"a": 50, b"b": 50, b"c": 2},
    )
    assert thin_sources(Occurring([b"a b c"]), known, ProposeConfig(thin=1, rare=2, max_length=2)) == [
        b"a b",
        b"b",
        b"b c",
        b"c",
    ]
    assert thin_sources(Occurring([b"a b c"]), known, ProposeConfig(thin=0, rare=0, max_length=1)) == []
    unfit = Occurring([b"d|e [X] || [ ]"])  # no table can hold the first three
    assert thin_sources(unfit, known, ProposeConfig(max_length=2)) == [b"[", b"[ ]", b"]"]


def test_a_row_by_hand() -> None:
    """phi of the network both ways, lexical weights of the best links (le: 0.6, chat: 0.7; cat: 0.9, the: the
    floor), mean reordering of the source."""
    known = KnownPairs(
        counts={b"the cat": 7},
        target_counts={b"le chat": 3},
        mean=np.full(6, 0.5),
        reordering={b"the cat": [np.full(6, 0.2), np.full(6, 0.4)]},
    )
    network = executor([("le chat", 0.25)])
    (row,) = proposer(known).rows([b"the cat"], network)
    assert row.line == b"the cat ||| le chat ||| 0.25 9e-08 0.25 0.42 2.718282 ||| 0-0 1-1 ||| 3 7 0 ||| |||"
    assert row.reordering == b"the cat ||| le chat ||| 0.3 0.3 0.3 0.3 0.3 0.3"
    (other,) = proposer(KnownPairs(mean=np.full(6, 0.5))).rows([b"a cat"], network)
    assert other.reordering.endswith(b"||| 0.5 0.5 0.5 0.5 0.5 0.5")


class Eighth(PairFeature):
    """The probability of every pair is 0.125."""

    def score(self, pairs: WordPairs) -> Values:
        return np.full(len(pairs), math.log(0.125))

    def identity(self) -> str:
        return "eighth"


def test_a_network_of_the_other_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    """In batches: each pair gets its own probability."""
    monkeypatch.setattr(propose, "BATCH", 2)
    network = executor([("le chat", 0.25)], Eighth())
    counted: list[int] = []
    rows = proposer(KnownPairs()).rows([b"a", b"b", b"c"], network, counted.append)
    assert [row.line.split(b" ||| ")[2].split()[:3:2] for row in rows] == [[b"0.125", b"0.25"]] * 3
    assert counted == [2, 1]


def test_pairs_are_scored_anew_where_the_search_spells_them_in_other_units() -> None:
    network = executor([("le chat", 0.25)], direct=Eighth())
    (row,) = proposer(KnownPairs()).rows([b"a"], network)
    assert row.line.split(b" ||| ")[2].split()[:3:2] == [b"0.125", b"0.125"]


def test_links_prefer_what_is_likelier() -> None:
    lexicon = {
        (b"a", b"x"): 0.5,
        (b"b", b"x"): 0.4,
        (b"NULL", b"x"): 0.1,
        (b"NULL", b"y"): 0.3,
        (b"a", b"y"): 0.2,
    }
    points, weight = best_links([b"b", b"a"], [b"x", b"y"], lexicon)
    assert points == [(1, 0)] and math.isclose(weight, 0.5 * 0.3)


def test_merged_in_order() -> None:
    pairs = [parse(line, "table:1") for line in (b"a ||| x ||| 0.5 ||| 0-0", b"c ||| x ||| 0.5")]
    rows = [ProposedRow(line=b"b ||| x ||| 1", reordering=b"b row", source=b"b")]
    assert list(merge_rows(pairs, rows, [b"a row", b"c row"])) == [
        (b"a ||| x ||| 0.5 1 ||| 0-0", b"a row"), (b"b ||| x ||| 1", b"b row"),
        (b"c ||| x ||| 0.5 1", b"c row"),
    ]  # fmt: skip


def test_a_table_that_was_scored_before_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"a ||| x ||| 1 1 1 1 1\n")
    advice = "propose first, then score further columns; instead of --count-feature low, train with bins"
    with pytest.raises(ConfigError, match=f"t:1: 5 scores, .* {advice}"):
        read_table(str(tmp_path / "t"), None)


def test_proposals_are_in_no_count_bin(tmp_path: Path) -> None:
    """Of a table by smt-train --count-feature bins; other columns, or rows without bins, are refused."""
    rows = [b"a ||| x ||| 1 1 1 1 2.718 1 1 1 1 1\n", b"b ||| y ||| 1 1 1 1 1 1 1 2.718 1 1\n"]
    (tmp_path / "t").write_bytes(b"".join(rows))
    known = read_table(str(tmp_path / "t"), None)
    assert known.bins == 6
    line = table_line(b"a", b"y", (0.5, 0.25), ({}, {}), (1, 1), known.bins)
    scores = parse(line, "t").scores.split()
    assert scores[4:] == [b"1"] * 6 + [b"2.718282"] and scores[0] == b"0.5"
    (tmp_path / "t").write_bytes(rows[0].replace(b"2.718 1", b"0.5 0.5"))
    with pytest.raises(ConfigError, match=r"t:1: 10 scores"):
        read_table(str(tmp_path / "t"), None)
    (tmp_path / "t").write_bytes(rows[0] + b"b ||| y ||| 1 1 1 1\n")
    with pytest.raises(UserError, match=r"t:2: "):
        read_table(str(tmp_path / "t"), None)
