"""What all SentencePiece models have in common: text comes back, the same text gives the same model."""

from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError
from nmt.text.subwords import Learning, TrainingText
from nmt.text.subwords.pieces import Pieces, default_size, is_model, kind_of_model, undo
from nmt.text.subwords.sentencepiece_bpe import SentencePieceBPE
from nmt.text.subwords.unigram import Unigram
from tests.spaceless import japanese

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
    assert [undo([*model.apply([word])]) for word in words] == [[word] for word in words]
    assert numbers == sorted(numbers) and set(numbers) == {0, 1, 2, 3}
    assert found[0].replace("▁", "") == words[0] and found[3].replace("▁", "") == words[3]
    assert model.word_numbers([]) == [] and model.word_numbers(["▁", "<0x0A>"]) == [0, 0]


def test_bytes_never_end_a_line() -> None:
    assert undo(["▁a", "<0x0A>", "b", "<0x00>", "<0xE7>", "<0x8A>", "<0xAC>", "<0xE7>"]) == [
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
    assert undo(nfkc.apply(["犬ＡＢＣ！"])) == ["犬ABC!"]


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
        assert undo(model.apply(["犬", "b"])) == ["犬", "b"]
    for none in ([], ["", ""]):
        with pytest.raises(DataError, match="no words"):
            kind.learn(text(none), PLAIN)


def test_damaged_models_are_named(model: Pieces) -> None:
    for damaged in (model.model[:200], b"", b"\n\0abc"):
        with pytest.raises(DataError, match=r"m\.spm: .*SentencePiece model"):
            type(model)(damaged, "m.spm")
