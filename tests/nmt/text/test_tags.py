"""Tags: whole in every pipeline, known to vocabularies, refused where a run does not know them."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError
from nmt.runs.run import LineLengths
from nmt.text import tags
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.subwords import Learning, TrainingText, bpe
from nmt.text.subwords.unigram import Unigram
from nmt.text.vocab import UNK, Vocab

TAGS = ("<bt>", "<2fr>")


def pipelines() -> dict[str, TextPipeline]:
    """Whole words, BPE and SentencePiece."""
    learned = TrainingText(sentences=True)
    for _ in range(50):
        learned.add(["the cats see", "a dog"])
    pieces = Unigram.learn(learned, Learning(0, 30, True, "identity"))
    codes = bpe.BPE(["#version: 0.2", "t h", "< b"])
    found = {
        "words": TextPipeline.with_subwords(SideConfig("en", case="lower"), None, False),
        "bpe": TextPipeline.with_subwords(SideConfig("en"), codes, False),
        "unigram": TextPipeline.with_subwords(SideConfig("en"), pieces, True),
    }
    for one in found.values():
        one.tags = TAGS
    return found


@pytest.mark.parametrize("kind", ["words", "bpe", "unigram"])
def test_a_tag_is_a_unit_of_its_own_in_front_of_the_same_line(kind: str) -> None:
    one = pipelines()[kind]
    for line in ("the cats see", "the dog, <i>and</i> a cat", "x <bt> y"):
        for tokenized in (False, True):
            plain = one.units(line, tokenized)
            for given in (f"<2fr> {line}", f" <2fr>\t{line}", f"<2fr>{line}"):
                assert one.units(given, tokenized) == ["<2fr>", *plain]
            numbers = one.word_numbers(["<2fr>", *plain])
            assert numbers[0] == 0 and numbers[1:] == [number + 1 for number in one.word_numbers(plain)]
            assert one.join(["<2fr>", *plain]) == ["<2fr>", *one.join(plain)]
    assert one.units("<de> a")[0] != "<de>"


@pytest.mark.parametrize("kind", ["words", "bpe", "unigram"])
def test_a_tag_alone_is_an_empty_line(kind: str) -> None:
    for line in ("", "<bt>", " <bt> ", "\t"):
        assert pipelines()[kind].units(line) == []


def test_without_tags_nothing_changes() -> None:
    one = pipelines()["words"]
    one.tags = ()
    assert one.tagged("<bt> a") == ("", "<bt> a") and one.units("<bt> a") == ["<", "bt", ">", "a"]


def test_vocabularies_never_drop_them(tmp_path: Path) -> None:
    plain = Vocab(Counter(a=5, b=4, c=3), 2)
    vocab = plain.with_tags(TAGS)
    assert vocab.words == ["<s>", "</s>", "<unk>", "<bt>", "<2fr>", "a", "b"] and vocab.known == 2
    assert vocab.encode(["<2fr>", "a", "c"]) == [4, 5, UNK] and vocab.decode([4, 5]) == ["<2fr>", "a"]
    assert vocab.coverage() == plain.coverage() and plain.with_tags(()) is plain
    assert Vocab({"<bt>": 9, "a": 1}, 2).with_tags(TAGS).words[3:] == ["<bt>", "<2fr>", "a"]  # from a file
    vocab.save(tmp_path / "tagged")
    plain.save(tmp_path / "plain")
    assert (tmp_path / "tagged").read_text() == (tmp_path / "plain").read_text()
    assert Vocab.load(tmp_path / "tagged").with_tags(TAGS) == vocab


def test_the_parts_of_a_long_line_have_its_tag() -> None:
    one = TextPipeline.of(SideConfig(tokenize=False, normalize=False))
    one.tags = TAGS
    lengths = LineLengths([one], 5)
    assert lengths.parts("<bt> a b . c d", True, lengths.limit(3)) == ["<bt> a b .", "<bt> c d"]
    assert lengths.parts("<bt> a", True, lengths.limit(3)) == ["<bt> a"]


@dataclass
class Known:
    """What is asked of a run."""

    source: TextPipeline
    name: str = "run@5"


def test_a_tag_that_the_run_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("a\n<bt> b\n")
    run = Known(pipelines()["words"])
    with pytest.raises(
        ConfigError, match=r"^--tag <x>: run@5 was not trained with it; its tags: <bt>, <2fr>$"
    ):
        tags.check("<x>", [run], str(path))
    with pytest.raises(DataError, match=r"text:2: begins with <bt>"):
        tags.check("<2fr>", [run], str(path))
    run.source.tags = ()
    with pytest.raises(ConfigError, match="its tags: none"):
        tags.check("<bt>", [run], str(path))


def test_alignments_count_the_words_of_the_line() -> None:
    assert list(tags.of_line([(0, 0), (1, 0), (3, 2)])) == [(0, 0), (2, 2)]
