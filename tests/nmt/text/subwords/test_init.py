"""Files of subwords are known by their content."""

from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.text import subwords
from nmt.text.subwords import Learning, Subwords, TrainingText, bpe
from nmt.text.subwords.sentencepiece import SentencePieceBPE, Unigram
from tests.nmt.text.subwords.test_sentencepiece import text
from tests.spaceless import japanese

# ---- test init ---------------------------------------------------------------------------------------------


def test_a_file_says_what_it_is(tmp_path: Path) -> None:
    lines = [target for _, target in japanese(100)]
    models = [kind.learn(text(lines), Learning(0, 0, True, "nfkc")) for kind in (Unigram, SentencePieceBPE)]
    every: list[Subwords] = [bpe.BPE(["#version: 0.2", "a b"]), *models]
    for made in every:
        made.save(tmp_path / "file")
        found = subwords.load(tmp_path / "file")
        assert type(found) is type(made) and subwords.kind_of_file(tmp_path / "file") == made.kind
        assert found.apply([lines[0]]) == made.apply([lines[0]])


def test_a_model_of_another_type_is_named(tmp_path: Path) -> None:
    """A model that the library made of whole words is none of ours."""
    from sentencepiece import SentencePieceTrainer

    SentencePieceTrainer.train(
        sentence_iterator=iter(["a b", "b c"] * 9), model_prefix=str(tmp_path / "m"), model_type="word",
        vocab_size=9, hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    with pytest.raises(DataError, match=r"m\.model: is a SentencePiece model of word units"):
        subwords.load(tmp_path / "m.model")


def test_a_vocabulary_is_no_file_of_codes(tmp_path: Path) -> None:
    """As `subword-nmt learn-joint-bpe-and-vocab --write-vocabulary` writes it: each line is two symbols."""
    (tmp_path / "vocab").write_text("the 31\ner@@ 12\ncat 12\n")
    with pytest.raises(DataError, match="vocab: is a vocabulary of subword-nmt"):
        subwords.load(tmp_path / "vocab")
    (tmp_path / "codes").write_text("1 2\n3 4\n")
    assert subwords.load(tmp_path / "codes").apply(["12"]) == ["12"]


def test_text_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("\nan empty line, then words\n")
    with pytest.raises(DataError, match="text:1: "):
        subwords.load(tmp_path / "text")


# ---- test protocol -----------------------------------------------------------------------------------------
# What is remembered of a training text.


def test_words_are_counted_or_sentences_kept() -> None:
    words, sentences = TrainingText(False), TrainingText(True)
    for line in (["a", "bb"], ["a"], []):
        words.add(line)
        sentences.add(line)
    assert words.words == {"a": 2, "bb": 1} and sentences.lines == ["a bb", "a", ""]
    assert words.characters() == {"a": 2, "b": 2} and sentences.characters() == {"a": 2, " ": 1, "b": 2}
    assert (words + words).words == {"a": 4, "bb": 2} and (sentences + sentences).lines == 2 * sentences.lines


def test_a_sample_is_uniform_and_always_the_same() -> None:
    samples = []
    for _ in range(2):
        text = TrainingText(True, most=100)
        for number in range(10000):
            text.add([str(number)])
        samples.append(text.lines)
    assert samples[0] == samples[1] and len(set(samples[0])) == 100
    assert 4000 < sum(map(int, samples[0])) / 100 < 6000  # 5000, with a standard deviation of 290
