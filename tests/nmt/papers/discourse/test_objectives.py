"""Paragraphs of a text."""

import numpy as np
import pytest
import torch

from nmt.errors import DataError
from nmt.papers.discourse.objectives import (
    CONJUNCTIONS,
    KINDS,
    OBJECTIVES,
    Conjunction,
    DiscourseBatch,
    DiscourseStream,
    Following,
    Order,
    conjunction,
)
from tests.nmt.papers.discourse.texts import paragraphs_of, planted

# ---- test objective ----------------------------------------------------------------------------------------
# Paragraphs of a text.


A = ["a"]


@pytest.mark.parametrize(
    ("lines", "spans"),
    [
        ([A, A, [], A], [[0, 2], [3, 4]]),
        ([[], A, A, A, [], [], A, []], [[1, 4], [6, 7]]),
        ([[], []], []),
    ],
)
def test_paragraphs_are_what_empty_lines_part(lines: list[list[str]], spans: list[list[int]]) -> None:
    assert paragraphs_of(lines).spans.tolist() == spans


def test_neighbors_are_of_one_paragraph() -> None:
    assert paragraphs_of([A, A, A, [], A, [], A, A]).neighbors().tolist() == [0, 1, 6]


# ---- test order --------------------------------------------------------------------------------------------
# ORDER.


def test_one_half_is_turned_round() -> None:
    text = paragraphs_of([["a"], ["b"], ["c"], [], ["d"]])
    places, rng, found = Order.find(text), np.random.default_rng(0), []
    assert places.tolist() == [[0], [1]]
    for _ in range(400):
        example = Order.example(text, places[1], rng)
        words = [text.words[sentence[0]] for sentence in example.sentences]
        assert words == (["c", "b"] if example.answer else ["b", "c"])
        found.append(example.answer)
    assert 160 < sum(found) < 240


def test_order_scores() -> None:
    """log p of (5.1): σ of the bilinear form for answer 1."""
    objective = Order(3)
    torch.nn.init.normal_(objective.matrix)
    vectors = torch.randn(4, 2, 3)
    form = torch.stack([left @ objective.matrix @ right for left, right in vectors])
    assert torch.allclose(objective(vectors).softmax(1)[:, 1], form.sigmoid(), atol=1e-6)


# ---- test following ----------------------------------------------------------------------------------------
# NEXT.


def test_candidates_are_later_sentences_each_once() -> None:
    lines = [[f"s{place}"] for place in range(9)]
    text = paragraphs_of([["x"]] * 8 + [[]] + lines)
    places, rng, answers, seen = Following.find(text), np.random.default_rng(0), set(), set()
    assert places.tolist() == [[9, 18]], "a paragraph of 8 sentences is too short"
    for _ in range(100):
        example = Following.example(text, places[0], rng)
        words = [text.words[sentence[0]] for sentence in example.sentences]
        assert words[:3] == ["s0", "s1", "s2"] and words[3 + example.answer] == "s3"
        assert len({*words}) == 8
        answers.add(example.answer)
        seen |= {*words}
    assert answers == {0, 1, 2, 3, 4} and len(seen) == 9


def test_following_scores() -> None:
    objective = Following(2)
    torch.nn.init.normal_(objective.matrix)
    vectors = torch.randn(3, 8, 2)
    context = torch.cat([vectors[:, 0], vectors[:, 1], vectors[:, 2]], 1)
    wanted = [(context @ objective.matrix * vectors[:, place]).sum(1) for place in range(3, 8)]
    assert torch.allclose(objective(vectors), torch.stack(wanted, 1), atol=1e-6)


# ---- test conjunction --------------------------------------------------------------------------------------
# CONJ.


TIME, CONTRAST = list(KINDS).index("time"), list(KINDS).index("contrast")


@pytest.mark.parametrize(
    ("units", "found"),
    [
        ("However , it rains", (CONTRAST, 2)),
        ("in contrast , it rains", (CONTRAST, 3)),
        ("HOW@@ ever , it", (CONTRAST, 3)),
        ("\u2581How ever , \u2581it", (CONTRAST, 3)),
        ("\u2581In \u2581contra st, \u2581it", (CONTRAST, 3)),
        ("However it rains ,", (-1, 0)),
        ("then", (-1, 0)),
        ("", (-1, 0)),
        (", then", (-1, 0)),
    ],
)
def test_what_a_sentence_begins_with(units: str, found: tuple[int, int]) -> None:
    assert conjunction(units.split()) == found


def test_the_list_of_the_thesis() -> None:
    assert len(KINDS) == 9 and len(CONJUNCTIONS) == 40
    assert all(conjunction([*phrase.split(), ","])[0] == kind for phrase, kind in CONJUNCTIONS.items())


def test_conjunctions_are_taken_off_both() -> None:
    lines = ["Also , a b", "Then , c", "d", "However , e", "", "Now , f", "Then ,"]
    text = paragraphs_of([line.split() for line in lines])
    places = Conjunction.find(text)
    assert places.tolist() == [[0, TIME, 2, 2], [2, CONTRAST, 0, 2]]
    example = Conjunction.example(text, places[0], np.random.default_rng(0))
    said = [" ".join(text.words[word] for word in sentence) for sentence in example.sentences]
    assert said == ["a b", "c"] and example.answer == TIME


def test_conjunction_scores() -> None:
    objective = Conjunction(2)
    torch.nn.init.normal_(objective.matrices)
    vectors = torch.randn(3, 2, 2)
    wanted = [(vectors[:, 0] @ matrix * vectors[:, 1]).sum(1) for matrix in objective.matrices]
    assert torch.allclose(objective(vectors), torch.stack(wanted, 1), atol=1e-6)


# ---- test registry -----------------------------------------------------------------------------------------
# Objectives of any name.


@pytest.mark.parametrize("name", list(OBJECTIVES))
def test_there_are_as_many_scores_as_answers(name: str) -> None:
    kind, text = OBJECTIVES[name], paragraphs_of(planted(3))
    places, rng = kind.find(text), np.random.default_rng(1)
    examples = [kind.example(text, place, rng) for place in places]
    assert all(0 <= example.answer < kind.answers for example in examples)
    (sentences,) = {len(example.sentences) for example in examples}
    objective = kind(4)
    for parameter in objective.parameters():
        torch.nn.init.zeros_(parameter)
    assert objective(torch.randn(2, sentences, 4)).shape == (2, kind.answers)


# ---- test batches ------------------------------------------------------------------------------------------
# Batches of examples.


def equal(a: DiscourseBatch, b: DiscourseBatch) -> bool:
    same = torch.equal(a.source.ids, b.source.ids) and torch.equal(a.answers, b.answers)
    return a.objective == b.objective and same


def test_an_epoch_goes_on_anywhere() -> None:
    """Each example once but of NEXT, which has a share; the batches from any number on are those of all."""
    stream = DiscourseStream(paragraphs_of(planted(12)), ["order", "next", "conj"], 8, 3)
    whole = list(stream.batches(1))
    assert len(whole) == stream.count(1)
    found = {name: sum(b.sentences for b in whole if b.objective == name) for name in stream.positions}
    assert found["order"] == 12 * 9 and found["next"] == 3 and found["conj"] == len(stream.positions["conj"])
    for start in (0, 5, len(whole)):
        rest = list(stream.batches(1, start))
        assert len(rest) == len(whole) - start and all(map(equal, rest, whole[start:]))
    assert not all(map(equal, whole, stream.batches(2))), "epochs differ"
    assert whole[0].tokens == len(whole[0].source.ids) and whole[0].longest >= 3


def test_alone_an_objective_has_all_its_examples() -> None:
    stream = DiscourseStream(paragraphs_of(planted(12)), ["next"], 8, 3)
    assert sum(batch.sentences for batch in stream.batches(0)) == 12


def test_a_text_without_examples_is_refused() -> None:
    with pytest.raises(DataError, match="objective next: the text has no example, in 1 paragraphs"):
        DiscourseStream(paragraphs_of([["a"], ["b"]]), ["order", "next"], 8, 3)
