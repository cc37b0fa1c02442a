"""Text with planted discourse: sentences say their place, and what conjunction they follow."""

import math
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.data.batches import pack_source
from nmt.data.running import as_corpus
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.papers.discourse import (
    CONJUNCTIONS,
    KINDS,
    OBJECTIVES,
    Conjunction,
    Discourse,
    DiscourseBatch,
    DiscourseConfig,
    DiscourseStream,
    Following,
    Order,
    Paragraphs,
    conjunction,
)
from nmt.runs import checkpoint
from nmt.text.vocab import Vocab
from nmt.training import build, config_file
from nmt.training.optimizers import make_optimizer
from nmt.training.train import run_training, train
from tests.nmt.gradients import check_gradients

# ---- texts -------------------------------------------------------------------------------------------------
# Text with planted discourse: sentences say their place, and what conjunction they follow.


FIRST = {kind: phrases.split(", ")[0].capitalize() for kind, phrases in KINDS.items()}


def planted(paragraphs: int, seed: int = 0, length: int = 10) -> list[list[str]]:
    """Lines of `length` sentences a paragraph: some words at random, one that counts from 0. From the second
    on, a third begins with a conjunction, whose kind is a word of the sentence, too."""
    rng, lines = random.Random(seed), []
    for _ in range(paragraphs):
        for place in range(length):
            words = [f"w{rng.randint(0, 5)}", f"n{place}", f"w{rng.randint(0, 5)}"]
            if place and not rng.randint(0, 2):
                kind = rng.choice(list(KINDS))
                words = [*FIRST[kind].split(), ",", *words, f"k{kind}"]
            lines.append(words)
        lines.append([])
    return lines


def paragraphs_of(lines: list[list[str]], vocab: Vocab | None = None) -> Paragraphs:
    """A text by its paragraphs."""
    vocab = vocab or Vocab.count(lines, 999)
    return Paragraphs.of(as_corpus([vocab.encode(line) for line in lines]), vocab.words)


# ---- objective ---------------------------------------------------------------------------------------------
# Paragraphs of a text.


A = ["a"]


@pytest.mark.parametrize(
    ("lines", "spans"),
    [([A, A, [], A], [[0, 2], [3, 4]]), ([[], A, A, A, [], [], A, []], [[1, 4], [6, 7]]), ([[], []], [])],
)
def test_paragraphs_are_what_empty_lines_part(lines: list[list[str]], spans: list[list[int]]) -> None:
    assert paragraphs_of(lines).spans.tolist() == spans


def test_neighbors_are_of_one_paragraph() -> None:
    assert paragraphs_of([A, A, A, [], A, [], A, A]).neighbors().tolist() == [0, 1, 6]


# ---- order -------------------------------------------------------------------------------------------------
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


# ---- following ---------------------------------------------------------------------------------------------
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


# ---- conjunction -------------------------------------------------------------------------------------------
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


# ---- registry ----------------------------------------------------------------------------------------------
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


# ---- batches -----------------------------------------------------------------------------------------------
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


# ---- model -------------------------------------------------------------------------------------------------
# Encoders under discourse objectives: chance at first, planted cues learned, the vectors of sentences.


LINES = planted(40)
VOCAB = Vocab.count(LINES, 999)
CHANCE = {"order": 2, "next": 5, "conj": 9}


def make(**options: object) -> Discourse:
    torch.manual_seed(0)
    config = DiscourseConfig(**{"embedding": 8, "hidden": 8, **options})  # type: ignore[arg-type]
    return Discourse(config, VOCAB.words)


@pytest.mark.parametrize("encoder", ["rnn", "birnn", "grconv"])
@pytest.mark.parametrize("vector", ["maximum", "last"])
def test_chance_at_first(encoder: str, vector: str) -> None:
    """-log p of an answer is that of guessing, and about as many are right."""
    model = make(encoder=encoder, vector=vector)
    stream = DiscourseStream(paragraphs_of(LINES, VOCAB), list(CHANCE), 64, 1)
    found = model.accuracies(stream.batches(0))
    assert found.keys() == CHANCE.keys()
    for name, (cost, right) in found.items():
        assert cost == pytest.approx(math.log(CHANCE[name]), abs=0.02)
        assert abs(right - 1 / CHANCE[name]) < (0.35 if name == "next" else 0.15)


def test_vectors_are_of_each_sentence_alone() -> None:
    """The maximum over its own annotations, whatever stands beside it."""
    model = make(encoder="birnn").double()
    sentences = [[3, 4, 5, 6], [7], [], [4, 3]]
    with torch.no_grad():
        together = model.vectors(pack_source(sentences))
        for sentence, vector in zip(sentences, together, strict=True):
            source = pack_source([sentence])
            assert torch.allclose(model.vectors(source)[0], vector, atol=1e-12)
            assert torch.allclose(model.encoder(source).states.amax(0), vector, atol=1e-12)


@pytest.mark.ci
def test_gradients() -> None:
    sizes = {"embedding": 2, "hidden": 2, "encoder": "birnn"}
    model = make(init="uniform", init_scale=0.5, objectives="order conj", **sizes).double()
    stream = DiscourseStream(paragraphs_of(LINES[:33], VOCAB), ["order", "conj"], 3, 1)
    batches = {batch.objective: batch for batch in stream.batches(0)}
    check_gradients(
        model, lambda: sum((model.cost(batch, 0.0, None)[0] for batch in batches.values()), torch.zeros(()))
    )


@pytest.mark.ci
def test_planted_cues_are_learned() -> None:
    """Sentences that count, and words that say the kind of conjunction: on other text of the same kind."""
    model = make(init="glorot", encoder="birnn")
    stream = DiscourseStream(paragraphs_of(planted(300), VOCAB), list(CHANCE), 32, 1)
    optimizer = make_optimizer("adam", model.parameters(), 0.01, 0, 0)
    for epoch in range(6):
        for batch in stream.batches(epoch):
            optimizer.zero_grad()
            torch.autograd.backward(model.cost(batch, 0.0, None)[0] / batch.sentences)
            optimizer.step()
    held_out = DiscourseStream(paragraphs_of(planted(60, seed=9), VOCAB), list(CHANCE), 64, 1)
    found = {name: right for name, (_, right) in model.eval().accuracies(held_out.batches(0)).items()}
    assert all(right > 0.9 for right in found.values()), found


@pytest.mark.parametrize("objectives", ["", "order nex"])
def test_unknown_objectives_are_refused(objectives: str) -> None:
    with pytest.raises(ConfigError, match="expected one or more of 'order', 'next', 'conj'"):
        make(objectives=objectives)


# ---- training ----------------------------------------------------------------------------------------------
# Encoders trained on plain text, resumed, and translators that start from them.


MODEL = {"embedding": 6, "hidden": 8, "maxout": 6, "encoder": "birnn", "attention": 5}


def write(path: Path, lines: list[list[str]]) -> str:
    path.write_text("".join(" ".join(words) + "\n" for words in lines), encoding="utf-8")
    return str(path)


def settings(folder: Path, run: str, steps: int, **more: object) -> dict[str, object]:
    text = {"tokenize": False, "normalize": False}
    return {
        "run": str(folder / run),
        "threads": 1,
        "matmul": "mkl",
        "data": {
            "train_text": write(folder / "train.txt", planted(12)),
            "dev_text": write(folder / "dev.txt", planted(12, seed=5)),
            "target": text,
        },
        "model": {"type": "discourse", **MODEL, **more},
        "training": {"max_steps": steps, "batch_size": 8, "validate_every": 3, "log_every": 3},
    }


def learn(folder: Path, run: str, steps: int, **more: object) -> Path:
    run_training(config_file.from_mapping(settings(folder, run, steps, **more)))
    return folder / run


@pytest.mark.ci
def test_resumed_is_as_never_stopped(tmp_path: Path) -> None:
    """The same weights; dev.tsv has the accuracies."""
    whole = learn(tmp_path, "whole", 9, dropout=0.1)
    learn(tmp_path, "cut", 4, dropout=0.1)
    cut = learn(tmp_path, "cut", 9, dropout=0.1)
    first, second = (checkpoint.load_tensors(run / "step-9.pt") for run in (whole, cut))
    assert first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)
    header, *rows = (whole / "dev.tsv").read_text(encoding="utf-8").splitlines()
    signature = rows[-1].split("\t")[header.split("\t").index("signature")]
    assert signature.startswith("accuracy order 0.") and " next 0." in signature and " conj 0." in signature


@pytest.mark.ci
def test_a_translator_starts_from_it(tmp_path: Path) -> None:
    """The encoder's weights, word vectors by word; the decoder starts afresh."""
    parent = build.load_parent(learn(tmp_path, "parent", 3))
    pairs = [["w1", "n2", "new"], ["n0", "w3", "w1"]] * 4
    child = train({
        "run": str(tmp_path / "child"),
        "init_from": str(tmp_path / "parent"),
        "data": {
            "train_source": write(tmp_path / "a.en", pairs), "train_target": write(tmp_path / "b.fr", pairs),
            "source": {"tokenize": False}, "target": {"tokenize": False},
        },
        "model": {"type": "rnn", **MODEL},
        "training": {"max_steps": 1, "learning_rate": 0.0, "optimizer": "adam"},
    }).members[0]  # fmt: skip
    theirs, ours = parent.model.state_dict(), child.model.state_dict()
    same = [name for name in ours if name.startswith("encoder.") and "embedding" not in name]
    assert len(same) == 6 and all(torch.equal(ours[name], theirs[name]) for name in same)
    vectors = "encoder.embedding.weight"
    for word in ("w1", "w3", "n0", "n2"):
        row, other = child.source_words.ids[word], parent.source_words.ids[word]
        assert torch.equal(ours[vectors][row], theirs[vectors][other])


def test_what_it_is_not(tmp_path: Path) -> None:
    """It starts from nothing itself, and the Python interface of translators refuses it."""
    config = settings(tmp_path, "run", 1)
    with pytest.raises(ConfigError, match="an encoder alone, which does not translate"):
        train(config)
    (tmp_path / "parent").mkdir()
    (tmp_path / "parent" / "version").write_text("nmt-run 2\n")
    with pytest.raises(ConfigError, match="init_from: for translators only"):
        run_training(config_file.from_mapping({**config, "init_from": str(tmp_path / "parent")}))


@pytest.mark.ci
def test_it_does_not_translate(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="start a translator from it by init_from"):
        checkpoint.load(learn(tmp_path, "run", 1))
