"""Files of word classes, classes of a text's words, and models of classes."""

import random
from collections import Counter
from pathlib import Path

import pytest

from nmt.cli import ngram
from nmt.errors import DataError
from nmt.ngram import count_models, word_classes
from nmt.ngram.counting import Counts, count_lines
from nmt.ngram.word_classes import ClassConfig, class_lines, learn_classes, read_classes, write_classes


def sentences(count: int = 300) -> list[str]:
    """A determiner, a noun, a verb, and sometimes a second verb."""
    rng, kinds = random.Random(1), {"d": 2, "n": 5, "v": 4}
    return [
        " ".join(f"{kind}{rng.randrange(kinds[kind])}" for kind in rng.choice(["dnv", "dnvv"]))
        for _ in range(count)
    ]


def counts(lines: list[str]) -> Counts:
    return count_lines(lines, word_classes.PAIRS)


def test_classes_of_a_text() -> None:
    """Kinds of words are recovered, numbered by frequency, whatever their order in the text."""
    lines = sentences()
    classes = learn_classes(counts(lines), ClassConfig(classes=3))
    assert len(classes) == 11 and set(classes.values()) == {1, 2, 3}
    assert len({(word[0], index) for word, index in classes.items()}) == 3
    frequency = Counter(classes[word] for line in lines for word in line.split())
    assert sorted(frequency, key=lambda index: (-frequency[index], index)) == [1, 2, 3]
    assert learn_classes(counts(lines), ClassConfig(classes=3)) == classes


def test_unknown_words_stay_outside() -> None:
    classes = learn_classes(counts([*sentences(), "<unk> n0 <unk>"]), ClassConfig(classes=4))
    assert "<unk>" not in classes and len(classes) == 11
    with pytest.raises(DataError, match="no words but <unk>"):
        learn_classes(counts(["<unk> <unk>"]), ClassConfig(classes=4))


@pytest.mark.parametrize("classes", [2, 3])
def test_more_classes_than_words(classes: int, caplog: pytest.LogCaptureFixture) -> None:
    """Each word is a class, and a warning says so."""
    learned = learn_classes(counts(["a b b"]), ClassConfig(classes=classes))
    assert learned == {"b": 1, "a": 2}
    assert ("2 words for 3 classes: each word is a class" in caplog.text) == (classes == 3)


def test_written_is_read(tmp_path: Path) -> None:
    classes = {"b": 3, "a": 12, "é\u00a0x": 1, "&apos;": 0}
    write_classes(tmp_path / "c.gz", classes)
    assert read_classes(tmp_path / "c.gz") == classes
    write_classes(tmp_path / "c", classes)
    assert (tmp_path / "c").read_text(encoding="utf-8") == "&apos;\t0\na\t12\nb\t3\né\u00a0x\t1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\t1\nb 2\n", "c:2: expected 'word<TAB>class', the class a whole number, found 'b 2'"),
        ("a\t1\nb\t-2\n", "c:2: expected 'word<TAB>class'"),
        ("0010\tthe\t14\n", "c:1: expected 'word<TAB>class'"),
        ("a b\t1\n", "c:1: expected 'word<TAB>class'"),
        ("a\t1\nb\t2\na\t1\n", "c:3: 'a' has a class above"),
        ("", "c: no words"),
    ],
)
def test_malformed_files(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "c").write_text(text)
    with pytest.raises(DataError) as raised:
        read_classes(tmp_path / "c")
    assert str(raised.value).startswith(f"{tmp_path}/{message}")


def test_commands(tmp_path: Path) -> None:
    """A model of classes is that of the text of classes; words without a class are unknown."""
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in sentences()))
    text, table = str(tmp_path / "text"), str(tmp_path / "classes")
    assert ngram.main(["classes", "-i", text, "--classes", "4", "-o", table, "-q"]) == 0
    assert read_classes(table) == learn_classes(counts(sentences()), ClassConfig(classes=4))
    lines = [*sentences(), "n0 zz v1"]
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in lines))
    mapped = list(class_lines(read_classes(table), lines))
    assert mapped[-1].split()[1] == "<unk>" and len(set(" ".join(mapped).split())) == 5
    (tmp_path / "mapped").write_text("".join(f"{line}\n" for line in mapped))
    options = ["--order", "3", "--discount-fallback", "-q"]
    assert ngram.main(["-i", text, "--word-classes", table, *options, "-o", str(tmp_path / "one")]) == 0
    assert ngram.main(["-i", str(tmp_path / "mapped"), *options, "-o", str(tmp_path / "other")]) == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    assert count_models.read_arpa(tmp_path / "one").order == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--estimator", "lmplz"], "--word-classes: lmplz reads words"),
        (["--workers", "2"], "--word-classes: several workers count words"),
    ],
)
def test_who_cannot_replace_words(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("a b\n")
    given = ["-i", str(tmp_path / "text"), "--word-classes", "c", "-o", str(tmp_path / "lm"), *options]
    assert ngram.main(given) == 2 and message in capsys.readouterr().err
