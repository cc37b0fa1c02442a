"""What all SentencePiece models have in common: text comes back, the same text gives the same model."""

import itertools
import math
import random
from collections import Counter
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError
from nmt.text.subwords import Learning, TrainingText
from nmt.text.subwords.sentencepiece import (
    Pieces,
    Resegmented,
    SentencePieceBPE,
    Unigram,
    default_size,
    is_model,
    join_pieces,
    kind_of_model,
)
from nmt.text.vocab import UNK, Vocab
from tests.spaceless import japanese

# ---- test pieces -------------------------------------------------------------------------------------------
# What all SentencePiece models have in common: text comes back, the same text gives the same model.


KINDS = [Unigram, SentencePieceBPE]
PLAIN = Learning(merges=0, pieces=0, byte_fallback=True, unicode="identity")


def text(lines: list[str]) -> TrainingText:
    found = TrainingText(sentences=True)
    for line in lines:
        found.add(line.split(" "))
    return found


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return [target for _, target in japanese(400)]


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.kind)
def model(request: pytest.FixtureRequest, lines: list[str]) -> Pieces:
    kind: type[Pieces] = request.param
    return kind.learn(text(lines), PLAIN)


def test_text_comes_back(model: Pieces, lines: list[str]) -> None:
    """Characters that the model never saw are bytes; full-width letters stay full-width; all units have an
    id."""
    inventory = set(model.inventory((), sampled=False))
    odd = ["Ａ ABC é 𠮷 \u3000", "a\rb \x85 \u2028c \xa0 <s> <unk>", "", "犬  は\t猫"]
    for line in [*lines, *odd]:
        words = line.replace("\t", " ").split(" ")
        units = model.apply([word for word in words if word])
        assert model.undo(units) == [word for word in words if word] and set(units) <= inventory
    assert max(len(model.apply([line])) for line in lines) < 20
    assert not model.processor.encode("") and model.apply([]) == []


def test_the_same_text_gives_the_same_model(model: Pieces, lines: list[str], tmp_path: Path) -> None:
    again = type(model).learn(text(lines), PLAIN)
    assert again.model == model.model
    model.save(tmp_path / "m.spm")
    assert (tmp_path / "m.spm").read_bytes() == model.model and is_model(model.model)
    assert kind_of_model(model.model) == model.kind


def test_learning_is_quiet(lines: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    Unigram.learn(text(lines), PLAIN)
    assert capfd.readouterr() == ("", "")


def test_units_belong_to_words(model: Pieces) -> None:
    words = ["犬は", "q\x85", "猫", "大きい犬は小さな猫を見る。"]
    units = model.apply(words)
    numbers = model.word_numbers(units)
    found = ["".join(unit for unit, at in zip(units, numbers, strict=True) if at == n) for n in range(4)]
    assert [join_pieces([*model.apply([word])]) for word in words] == [[word] for word in words]
    assert numbers == sorted(numbers) and set(numbers) == {0, 1, 2, 3}
    assert found[0].replace("▁", "") == words[0] and found[3].replace("▁", "") == words[3]
    assert model.word_numbers([]) == [] and model.word_numbers(["▁", "<0x0A>"]) == [0, 0]


def test_bytes_never_end_a_line() -> None:
    assert join_pieces(["▁a", "<0x0A>", "b", "<0x00>", "<0xE7>", "<0x8A>", "<0xAC>", "<0xE7>"]) == [
        "a",
        "b",
        "犬\ufffd",
    ]


def test_without_byte_fallback_a_rare_character_is_no_unit(lines: list[str]) -> None:
    model = Unigram.learn(text(lines), Learning(0, 0, byte_fallback=False, unicode="identity"))
    assert "é" in model.apply(["犬é"]) and "é" not in model.inventory((), sampled=False)


def test_normalization_is_a_choice(lines: list[str]) -> None:
    """Full-width letters are lost with all but the default."""
    nfkc = Unigram.learn(text(lines), Learning(0, 0, byte_fallback=True, unicode="nfkc"))
    assert join_pieces(nfkc.apply(["犬ＡＢＣ！"])) == ["犬ABC!"]


def test_the_number_of_pieces() -> None:
    """As many as asked for, with all bytes; by default few for little text; fewer than characters is told."""
    lines = [target for _, target in japanese(400)]
    size = len(Unigram.learn(text(lines), Learning(0, 120, True, "identity")).pieces())
    assert size == 120 and default_size(text(lines)) < 300
    assert default_size(text(lines * 300)) > 2000
    with pytest.raises(ConfigError, match=r"^pieces: 5 is too small: the text has \d+ frequent characters"):
        Unigram.learn(text(lines), Learning(0, 5, True, "identity"))


@pytest.mark.parametrize("kind", KINDS)
def test_little_text(kind: type[Pieces]) -> None:
    for few in (["a"], ["a b"], ["犬"] * 5):
        model = kind.learn(text(few), PLAIN)
        assert join_pieces(model.apply(["犬", "b"])) == ["犬", "b"]
    for none in ([], ["", ""]):
        with pytest.raises(DataError, match="no words"):
            kind.learn(text(none), PLAIN)


def test_damaged_models_are_named(model: Pieces) -> None:
    for damaged in (model.model[:200], b"", b"\n\0abc"):
        with pytest.raises(DataError, match=r"m\.spm: .*SentencePiece model"):
            type(model)(damaged, "m.spm")


# ---- test unigram ------------------------------------------------------------------------------------------
# Cuts are drawn from p(cut) ** alpha.


def cuts(word: str) -> list[list[str]]:
    """Every way to cut a word."""
    found = []
    for ends in itertools.product([False, True], repeat=len(word) - 1):
        places = [0, *(at for at, end in enumerate(ends, 1) if end), len(word)]
        found.append([word[a:b] for a, b in itertools.pairwise(places)])
    return found


def test_cuts_have_their_probability() -> None:
    """20,000 draws against the sum over all cuts, by hand."""
    scores = {"a": -2.0, "b": -2.5, "ab": -3.0, "ba": -3.5, "aba": -5.0}
    vocab = Vocab(dict.fromkeys(scores, 1), 9)
    for alpha in (0.0, 0.5, 1.0):
        weights = {
            tuple(cut): math.exp(alpha * sum(scores[piece] for piece in cut))
            for cut in cuts("abab")
            if all(piece in scores for piece in cut)
        }
        total, draw = sum(weights.values()), random.Random(1)
        resegment = Resegmented(scores, alpha, vocab)
        found = Counter(tuple(resegment.cut("abab", draw)) for _ in range(20000))
        assert set(found) == set(weights)
        for cut, weight in weights.items():  # 5 standard deviations are 0.018 at most
            assert abs(found[cut] / 20000 - weight / total) < 0.018


def test_draws_keep_the_text_and_follow_their_key() -> None:
    """The same key cuts alike, whatever was cut before; others differ; a high alpha is the best cut; unknown
    units and bytes stay."""
    lines = [target for _, target in japanese(400)]
    model = Unigram.learn(text(lines), Learning(0, 250, True, "identity"))
    vocab = Vocab(dict.fromkeys(model.inventory((), True), 1), 9999)
    sample = model.sampler(0.05, vocab)
    ids = vocab.encode(model.apply([lines[0] + "é", lines[1]]))
    drawn = [sample(ids, f"1 2 {row}") for row in range(30)]
    assert all(model.undo(vocab.decode(one)) == [lines[0] + "é", lines[1]] for one in drawn)
    assert len({tuple(one) for one in drawn}) > 20
    assert model.sampler(0.05, vocab)(ids, "1 2 7") == drawn[7] == sample(ids, "1 2 7")
    assert model.sampler(50.0, vocab)(ids, "x") == ids
    assert sample([UNK, UNK], "x") == [UNK, UNK] and sample([], "x") == []


# ---- test sentencepiece bpe --------------------------------------------------------------------------------
# BPE dropout on SentencePiece's merges.


def test_dropped_merges_keep_the_text_and_follow_their_key() -> None:
    """Rate 0 is the library's own cut, of blank-separated text too; a rate near 1 leaves characters."""
    lines = [line for pair in japanese(400) for line in pair]
    model = SentencePieceBPE.learn(text(lines), Learning(0, 200, True, "identity"))
    vocab = Vocab(dict.fromkeys(model.inventory((), True), 1), 9999)
    whole, none = model.sampler(0.0, vocab), model.sampler(1.0, vocab)
    for line in lines:
        ids = vocab.encode(model.apply(line.split(" ")))
        assert whole(ids, line) == ids
        assert vocab.decode(none(ids, line)) == list("".join(vocab.decode(ids)))
    sample = model.sampler(0.3, vocab)
    ids = vocab.encode(model.apply(["犬é" + lines[1], *lines[0].split(" ")]))
    drawn = [sample(ids, f"1 {row}") for row in range(30)]
    assert all(model.undo(vocab.decode(one)) == model.undo(vocab.decode(ids)) for one in drawn)
    assert len({tuple(one) for one in drawn}) > 20 and sample(ids, "1 7") == drawn[7]
    assert sample([UNK], "x") == [UNK]


def test_without_dropout_the_cut_is_the_library_s() -> None:
    """Of random letters, where it matters which of several pairs is merged first."""
    draw = random.Random(5)
    lines = ["".join(draw.choices("aab ", k=draw.randint(1, 60))).strip() or "a" for _ in range(400)]
    model = SentencePieceBPE.learn(text(lines), Learning(0, 60, True, "identity"))
    vocab = Vocab(dict.fromkeys(model.inventory((), True), 1), 9999)
    whole = model.sampler(0.0, vocab)
    for line in lines:
        ids = vocab.encode(model.apply(line.split()))
        assert whole(ids, line) == ids
