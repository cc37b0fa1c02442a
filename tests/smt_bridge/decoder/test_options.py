"""The translation options of a sentence: table rows, unknown words, forced translations, and their scores."""

import math
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from nmt.compute.compiled import HAVE_NUMBA
from nmt.formats import nbest
from smt_bridge.decoder import options
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.options import RowScores
from smt_bridge.decoder.translation import Derivation, PhraseTranslation
from smt_bridge.decoder.xml_input import ForcedTranslation, MarkedLine
from tests.smt_bridge.decoder.models import (
    TARGET,
    UNLIMITED,
    check_totals,
    decoder,
    edit,
    same_lists,
    sentence,
    values,
    weight_line,
    write_model,
)

# ---- test options ------------------------------------------------------------------------------------------


def test_unknown_words(tmp_path: Path) -> None:
    """They are copied, marked, or dropped unless they contain digits; a dropped word has no target word and
    no alignment, and gets the penalty all the same."""
    write_model(tmp_path, 0)
    copied = decoder(tmp_path, distortion_limit=0).translate_line("zz a z7")
    marked = decoder(
        edit(tmp_path, mark_unknown="true", unknown_word_prefix="<<", unknown_word_suffix=">>"),
        distortion_limit=0,
        nbest=1,
    )
    found = marked.translate_line("zz a z7")
    assert [word.strip("<>") for word in found.text] == copied.text
    assert (
        found.text[0] == "<<zz>>"
        and found.text[-1] == "<<z7>>"
        and math.isclose(found.derivations[0].total, copied.derivations[0].total)
    )
    assert "<<zz>>" in marked.entry(0, found, found.derivations[0])
    dropper = decoder(tmp_path, distortion_limit=0, drop_unknown=True, mark_unknown=False, nbest=1)
    dropped = dropper.translate_line("zz a z7")
    assert dropped.text == copied.text[1:]
    entry = nbest.parse(dropper.entry(0, dropped, dropped.derivations[0]), "entry")
    assert entry.rest[0].startswith("0=0 1=0") and entry.rest[1].startswith(
        "1-0"
    )  # as Moses writes a phrase without words
    assert entry.features["WordPenalty0"] == [-len(dropped.text)] and entry.features["PhrasePenalty0"] == [3]
    assert (
        dropper.translate_line("zz zz").text == []
        and dropper.translate_line("zz zz").derivations[0].features[1] == 0
    )  # not even an end of sentence


def test_unknown_word_penalty(tmp_path: Path) -> None:
    """Its weight is part of the total, and tuneable=true prints it."""
    line = "zz a zz b"
    before = decoder(write_model(tmp_path, 1), distortion_limit=0).translate_line(line).derivations[0].total
    edit(tmp_path, ("[weight]\n", "[weight]\nUnknownWordPenalty0= 0.1\n"))
    assert math.isclose(
        decoder(tmp_path, distortion_limit=0).translate_line(line).derivations[0].total,
        before + 180,
        abs_tol=1e-9,
    )
    made = decoder(
        edit(tmp_path, ("UnknownWordPenalty\n", "UnknownWordPenalty tuneable=true\n")), distortion_limit=0
    )
    assert values(made, made.translate_line(line))["UnknownWordPenalty0"] == [-200]
    assert (
        list(made.system.sizes)[-4:]
        == ("UnknownWordPenalty0 WordPenalty0 PhrasePenalty0 TranslationModel0").split()
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_options_one_by_one(seed: int, tmp_path: Path) -> None:
    """The score of each option is the sum of its features without language models; its words and span are
    where the search looks them up."""
    made = decoder(write_model(tmp_path, seed, lms=2))
    weights = made.weights
    line = made.parse_line("a zz b c a e")
    task = made.task(line, made.listing)
    part, arrays = task.sentence, task.options
    unknown = 0
    for option in range(part.size):
        words, extra = part.target(option), part.extra(option)
        score = weights["PhrasePenalty0"][0] - weights["WordPenalty0"][0] * len(words)
        if extra is None:
            score += float(part.table.scores[part.rows[option]] @ np.array(weights["TranslationModel0"]))
        else:
            unknown += 1
            score -= 100
        assert math.isclose(arrays.score[option], score, abs_tol=1e-5)
        place = slice(arrays.start[option], arrays.start[option] + arrays.length[option])
        for lm, ids in zip(made.model.word_lms, arrays.words, strict=True):
            assert ids[place].tolist() == [lm.number(word) for word in words]
        row = int(part.rows[option])
        reordering = part.table.reordering[row] if extra is None else np.zeros(6)
        assert [*arrays.backward[option], *arrays.forward[option]] == (
            reordering * np.array(weights["LexicalReordering0"])
        ).tolist()
        assert (arrays.forward_id[option] >= 0) == (extra is None)
        span = int(part.first[option]) * part.longest + int(part.last[option] - part.first[option])
        assert arrays.first[span] <= option < arrays.first[span] + arrays.number[span]
    assert unknown == 2 and arrays.number.sum() == part.size


def test_gathered_rows_are_those_of_the_spans(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 3), max_phrase_length=2, table_limit=0)
    words = "a b c zz d a".split()
    part = made.options.gather(MarkedLine(words))
    expected = [
        (begin, last, row)
        for begin in range(len(words))
        for last in range(begin, min(len(words), begin + 2))
        for row in made.system.table.find_rows(" ".join(words[begin : last + 1]))
    ]
    found = list(zip(part.first.tolist(), part.last.tolist(), part.rows.tolist(), strict=True))
    assert sorted(triple for triple in found if triple[2] >= 0) == sorted(expected)
    assert [triple[:2] for triple in found if triple[2] < 0] == [(3, 3)]


@pytest.mark.parametrize(
    ("word", "dropped", "expected"),
    [("zz", False, ["zz"]), ("zz", True, []), ("z7", True, ["z7"]), ("*EPS*", False, []), ("", True, [])],
)
def test_an_unknown_word(word: str, dropped: bool, expected: list[str], tmp_path: Path) -> None:
    extra = decoder(write_model(tmp_path, 1), drop_unknown=dropped).options.unknown_word(word)
    assert extra.words == expected and extra.points == [(0, 0)] * len(expected) and extra.unknown


# ---- test row scores ---------------------------------------------------------------------------------------
# What weights make of a table's rows: sums over features, and the rows that a limit keeps.


def node_rows(made: Decoder) -> list[int]:
    """The rows of `a b`, in their order."""
    return [int(row) for row in made.options.gather(MarkedLine(["a", "b"])).rows]


def test_table_limits(tmp_path: Path) -> None:
    """table-limit= in the line of the table, and [max-trans-opt-per-coverage], keep the same best rows."""
    write_model(tmp_path, 4, options=9, longest=1)
    limited = [node_rows(decoder(tmp_path, table_limit=2))]
    edit(tmp_path, ("path=table", "path=table table-limit=2"))
    limited.append(node_rows(decoder(tmp_path)))
    edit(tmp_path, (" table-limit=2", ""), max_trans_opt_per_coverage="2")
    limited.append(node_rows(decoder(tmp_path, table_limit=0)))
    assert len(limited[0]) == 4 and limited[0] == limited[1] == limited[2]


def scored(folder: Path, **config: object) -> tuple[Decoder, RowScores]:
    made = decoder(folder, **config)
    return made, made.options.rows


@pytest.mark.parametrize("lms", [1, 2])
def test_rows_one_by_one(lms: int, tmp_path: Path) -> None:
    """The score of a row is features x weights, the estimate adds language models without context, and no
    context exceeds the bound."""
    write_model(tmp_path, 2, lms=lms)
    line = weight_line(tmp_path, f"LM{lms - 1}")
    edit(tmp_path, (f"path=lm{lms - 1}", f"path=lm{lms - 1} oov-feature=1"), (line, f"{line} -0.4"))
    made, rows = scored(tmp_path)
    weights, table = made.weights, made.system.table
    values = rows.values(np.arange(table.rows))
    for row in range(table.rows):
        words = table.text(row)
        score = float(table.scores[row] @ np.array(weights["TranslationModel0"]))
        score += weights["PhrasePenalty0"][0] - weights["WordPenalty0"][0] * len(words)
        unknown = sum(not made.model.word_lms[-1].knows(word) for word in words)
        assert math.isclose(values.score[row], score - 0.4 * unknown, abs_tol=1e-5)
        alone = most = 0.0
        for lm, weight in zip(made.model.word_lms, made.model.lm_weights, strict=True):
            ids = [lm.number(word) for word in words]
            alone += weight * lm.phrase(ids)
            most += weight * lm.walk(lm.start(), ids)[0]
        assert math.isclose(values.estimate[row] - values.score[row], alone, abs_tol=1e-9)
        assert max(alone, most) <= values.bound[row] + 1e-9


@pytest.mark.parametrize("limit", [0, 1, 2, 100])
def test_the_best_rows_of_each_source(limit: int, tmp_path: Path) -> None:
    made, rows = scored(write_model(tmp_path, 4, options=9, longest=1), table_limit=limit)
    table = made.system.table
    estimates = rows.values(np.arange(table.rows)).estimate
    nodes = [node for node in range(len(table.source_word)) if len(table.node_rows(node))]
    for _ in range(2):  # computed, then remembered
        best = rows.best_rows([nodes[0]]) | rows.best_rows(nodes)
        assert sorted(best) == nodes
        for node in nodes:
            whole = sorted(table.node_rows(node), key=lambda row: -estimates[row])
            assert best[node].tolist() == whole[: limit or None]


def test_remembered_rows_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_model(tmp_path, 4, longest=1)
    expected = scored(folder)[1].best_rows([1, 2, 3])
    monkeypatch.setattr(options, "REMEMBERED", 0)
    _, rows = scored(folder)
    for node in (1, 2, 3, 1):
        assert (rows.best_rows([node])[node] == expected[node]).all() and len(rows.best) == 1


def test_a_row_does_not_depend_on_others(tmp_path: Path) -> None:
    """Scores are equal to the last bit, whichever rows a sentence scores together."""
    made, rows = scored(write_model(tmp_path, 5, lms=2))
    together = rows.values(np.arange(made.system.table.rows))
    for row in range(made.system.table.rows):
        for mine, all_values in zip(rows.values(np.array([row])), together, strict=True):
            assert mine[0] == all_values[row]


def test_forward_ids(tmp_path: Path) -> None:
    """Options have equal ids for equal forward scores, and -1 without reordering scores."""
    folder = write_model(tmp_path, 3)
    rng = random.Random(4)
    lines = (folder / "reordering").read_text(encoding="utf-8").split("\n")[1:-1]
    few = [
        " ||| ".join([*line.split(" ||| ")[:2], " ".join(rng.choice(["0.2", "0.5"]) for _ in range(6))])
        for line in lines
    ]
    (folder / "reordering").write_text("".join(line + "\n" for line in few), encoding="utf-8")
    made, rows = scored(folder)
    every = np.arange(made.system.table.rows)
    ids = rows.forward_ids(every, every != 7)
    forward = made.system.table.log_reordering(every)[:, 3:]
    missing = np.isnan(forward).any(1)
    assert missing.sum() == 1 and (ids[missing] == -1).all() and ids[7] == -1
    for row in every[~missing & (every != 7)]:
        assert ((ids == ids[row]) == ((forward == forward[row]).all(1) & (every != 7))).all()


# ---- test forced -------------------------------------------------------------------------------------------
# Marked input in the search: forced translations compete or decide, walls and zones hold, one search is the
# other; real Moses line by line.


Command = Callable[..., subprocess.CompletedProcess[str]]


def marked(seed: int, words: int) -> str:
    """A random line with some forced translations, zones and walls."""
    rng = random.Random(seed)
    line = sentence(seed, words).split(" ")
    for _ in range(rng.randint(1, 2)):
        begin = rng.randrange(words)
        last = rng.randint(begin, min(words - 1, begin + 3))
        texts = "||".join(
            " ".join(rng.choice([*TARGET, "new"]) for _ in range(rng.randint(0, 2)))
            for _ in range(rng.randint(1, 2))
        )
        kind = rng.choice(
            [f'x translation="{texts or "p"}"', f'x translation="{texts or "q"}"', "zone", "wall"]
        )
        line.append(f'<{kind} span="{begin}-{last}"/>')
    return " ".join(line)


def spans(made: PhraseTranslation, derivation: Derivation) -> Iterator[tuple[int, int, list[str]]]:
    """First and last source word and target words of each phrase, in target order."""
    part, at = made.sentence, 0
    assert part
    for option in derivation.options:
        length = int(part.length[option])
        yield int(part.first[option]), int(part.last[option]), derivation.text[at : at + length]
        at += length


@pytest.mark.parametrize("policy", ["exclusive", "inclusive", "constraint", "ignore"])
@pytest.mark.ci
def test_compiled_is_plain(policy: str, tmp_path: Path) -> None:
    if not HAVE_NUMBA:
        pytest.skip("needs numba: pip install 'nmt-smt[smt]'")
    folder = write_model(tmp_path, 3)
    settings: dict[str, object] = {"stack": 6, "nbest": 5, "xml_input": policy}
    one, other = decoder(folder, **settings), decoder(folder, True, **settings)
    for number in range(40):
        line = marked(number, 3 + number % 6)
        same_lists(one.translate_line(line), other.translate_line(line), line)


@pytest.mark.ci
def test_forced_translations(tmp_path: Path) -> None:
    """Exclusive: every derivation has the translation, at the cost of its probability. Inclusive: there are
    more derivations. Constraint: between the two."""
    folder = write_model(tmp_path, 1)
    found = {}
    for policy in ("exclusive", "inclusive", "constraint", "ignore"):
        made = decoder(folder, nbest=100_000, distortion_limit=2, xml_input=policy, **UNLIMITED)
        translation = made.translate_line('a b <np translation="new||p" prob="0.5||0.125">c</np> d')
        found[policy] = {
            tuple((begin, last, tuple(words)) for begin, last, words in spans(translation, each))
            for each in translation.derivations
        }
        check_totals(made, translation)
    assert all(
        any(phrase in ((2, 2, ("new",)), (2, 2, ("p",))) for phrase in path) for path in found["exclusive"]
    )
    assert all(
        any(begin <= 2 <= last and ("new" in words or "p" in words) for begin, last, words in path)
        for path in found["constraint"]
    )
    assert found["exclusive"] <= found["inclusive"] and found["ignore"] < found["inclusive"]
    assert not any("new" in words for path in found["ignore"] for _, _, words in path)


def test_price_of_a_forced_translation(tmp_path: Path) -> None:
    """The log probability is split among the table's scores; there is no unknown word penalty and no
    alignment; reordering scores are those of the same pair."""
    made = decoder(write_model(tmp_path, 1, reordering=False), nbest=1, xml_input="exclusive")
    dear, cheap = (
        made.translate_line(f'<x translation="new" prob="{prob}">zz</x>').derivations[0]
        for prob in ("0.25", "1")
    )
    weights = made.weights["TranslationModel0"]
    assert (
        dear.text == ["new"]
        and np.isclose(dear.total - cheap.total, np.log(0.25) / 4 * sum(weights))
        and cheap.total > -50
    )
    translation = made.translate_line('<x translation="new thing">zz</x>')
    assert made.entry(0, translation, translation.derivations[0]).endswith(" ||| 0=0-1 ||| ")


def test_reordering_of_a_forced_pair(tmp_path: Path) -> None:
    """A forced translation that is also in the table has the reordering scores of its row."""
    folder = write_model(tmp_path, 2)
    made = decoder(folder, nbest=1, xml_input="inclusive", **UNLIMITED)
    table = made.system.table
    row = table.find_rows("a")[0]
    task = made.task(made.parse_line(f'<x translation="{" ".join(table.text(row))}">a</x> b'), made.listing)
    part = task.sentence
    known = next(option for option in range(len(part.rows)) if part.rows[option] == row)
    new = next(
        option for option in range(len(part.rows)) if part.rows[option] < 0 and part.first[option] == 0
    )
    assert (task.options.backward[known] == task.options.backward[new]).all() and task.options.backward[
        known
    ].any()
    assert task.options.forward_id[known] == task.options.forward_id[new] >= 0


@pytest.mark.ci
def test_walls_and_zones(tmp_path: Path) -> None:
    """With unlimited stacks, the derivations are those of the line without tags that respect the wall or the
    zone."""
    made = decoder(
        write_model(tmp_path, 4, options=1),
        nbest=100_000,
        xml_input="ignore",
        distortion_limit=-1,
        **UNLIMITED,
    )

    def orders(line: str) -> set[tuple[tuple[int, int], ...]]:
        translation = made.translate_line(line)
        return {
            tuple((begin, last) for begin, last, _ in spans(translation, each))
            for each in translation.derivations
        }

    every = orders("a b c d")
    walled, zoned = orders("a b <wall/> c d"), orders("<zone> a b </zone> c d")
    assert walled < every and zoned < every
    for path in every - walled:  # begins a phrase behind the wall while a word in front of it is left
        assert any(
            last > 1 and sum(end - begin + 1 for begin, end in path[:place] if end <= 1) < 2 and begin > 0
            for place, (begin, last) in enumerate(path)
        )
    for path in zoned:
        inside = [place for place, (begin, _) in enumerate(path) if begin <= 1]
        assert inside == list(range(inside[0], inside[-1] + 1))


@pytest.mark.parametrize("policy", ["pass-through", "inclusive", "exclusive", "constraint", "ignore"])
def test_an_exclusive_translation_decides_under_every_policy(policy: str, tmp_path: Path) -> None:
    """No other option covers its words, not even that of an unknown word."""
    folder = edit(write_model(tmp_path, 1), ("[weight]\n", "[weight]\nUnknownWordPenalty0= -1\n"))
    made = decoder(folder, nbest=50, xml_input=policy, distortion_limit=-1)  # that would be the best
    for number in range(8):
        words = ["zz", *sentence(number, 6).split(" "), "yy"]
        for begin, last in ((0, 1), (3, 5), (7, 7)):
            term = ForcedTranslation(begin, last, ["new", "term"], 0.0, True, ((0, 1),), "raw")
            found = made.translate_part(MarkedLine(words, [term]))
            assert found.sentence
            for derivation in found.derivations:
                touching = [one for one in spans(found, derivation) if one[0] <= last and begin <= one[1]]
                assert touching == [(begin, last, ["new", "term"])]
            option = next(one for one in derivation.options if found.sentence.first[one] == begin)
            extra = found.sentence.extra(option)
            assert extra and extra.raw == "raw" and extra.points == [(0, 1)]


def test_no_way_to_the_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """If crossing zones stop every hypothesis that survived, the line is translated monotonically, with a
    warning."""
    folder = write_model(tmp_path, 1)
    made = decoder(folder, stack=1, xml_input="ignore", distortion_limit=-1)
    told = 0
    for number in range(200):
        line = sentence(number, 7) + ' <zone span="0-3"/> <zone span="2-5"/>'
        caplog.clear()
        with caplog.at_level("WARNING", logger="smt_bridge"):
            translation = made.translate_line(line)
        told += "translated monotonically" in caplog.text
        assert sorted(
            word
            for begin, last, _ in spans(translation, translation.derivations[0])
            for word in range(begin, last + 1)
        ) == list(range(7))
    assert told


@pytest.mark.ci
def test_command(tmp_path: Path, command: Command, refused: Callable[..., str]) -> None:
    """Options override the ini; for a mistake one line names file and line, and no output is written."""
    folder = write_model(tmp_path / "model", 1)
    (tmp_path / "in").write_text('a b\n{{x translation="new"}} c {{/x}}\n')
    streams = ("-i", tmp_path / "in", "-o", tmp_path / "out")
    asked = (folder, *streams, "--xml-brackets", "{{ }}", "--no-cache", "-q")
    done = command("smt-decode", *asked, "--xml-input", "exclusive")
    assert done.returncode == 0 and (tmp_path / "out").read_text().split("\n")[1] == "new", done.stderr
    (tmp_path / "out").unlink()
    (folder / "moses.ini").write_text("[xml-input]\ninclusive\n" + (folder / "moses.ini").read_text())
    (tmp_path / "in").write_text('a b\n{{x translation="new"}} c\n')
    assert (
        f"{tmp_path}/in:2: tag 'x' is never closed" in refused(command("smt-decode", *asked))
        and not (tmp_path / "out").exists()
    )
