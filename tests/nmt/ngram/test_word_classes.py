"""Files of word classes, classes of a text's words, models of classes, and the exchange algorithm."""

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from nmt.cli import ngram
from nmt.compute.compiled import HAVE_NUMBA
from nmt.errors import DataError
from nmt.lazy import LazyPart
from nmt.ngram import count_models, word_classes
from nmt.ngram.counting import Counts, count_lines
from nmt.ngram.text_scorer import Ints
from nmt.ngram.word_classes import (
    Bigrams,
    ClassConfig,
    Exchange,
    class_lines,
    cluster,
    learn_classes,
    read_classes,
    write_classes,
)


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


# ---- exchange algorithm ------------------------------------------------------------------------------------
# Gains are differences of the objective, which never falls; planted classes are recovered; compiled moves
# are the plain ones.


def text_of_classes(seed: int = 0, size: int = 6000) -> Ints:
    """Words 0-4, 5-9, 10-14: a word of one class is followed by one of the next."""
    rng = np.random.default_rng(seed)
    return (np.arange(size) % 3) * 5 + rng.integers(0, 5, size)


def random_text(seed: int, words: int, size: int) -> Ints:
    """With a word that often follows itself."""
    text = np.minimum(np.random.default_rng(seed).geometric(0.1, size), words) - 1
    text[::7] = text[1::7] = 3
    return text


def naive_objective(text: Ints, classes: Ints) -> float:
    """Σ log p(class | class before) p(word | class) by relative frequencies, except for what does not depend
    on the classes."""
    first, second = classes[text[:-1]].tolist(), classes[text[1:]].tolist()
    pairs = list(zip(first, second, strict=True))
    return float(sum(np.log(pairs.count(p) / first.count(p[0]) / second.count(p[1])) for p in pairs))


@pytest.mark.parametrize("closed", [0, 2])
def test_gains_are_differences_of_the_objective(closed: int) -> None:
    """By its definition; also for a word that follows itself."""
    text = random_text(1, 12, 300)
    classes = np.append(np.random.default_rng(1).permutation(np.arange(10) % 3), [3, 4])
    bigrams = Bigrams.of(text, 12)
    work = Exchange(bigrams, classes, 5, closed)
    assert work.objective() == pytest.approx(naive_objective(text, classes))
    for word in (0, 3, 5):
        work = Exchange(bigrams, classes, 5, closed)
        beside = work.beside(word)
        work.put(word, int(classes[word]), *beside, -1)
        values = []
        for index in range(5 - closed):
            changed = classes.copy()
            changed[word] = index
            values.append(naive_objective(text, changed))
        gains = work.gains(word, *beside)
        assert len(gains) == 5 - closed
        assert gains - gains[0] == pytest.approx(np.array(values) - values[0])


def test_the_objective_never_falls() -> None:
    bigrams = Bigrams.of(text_of_classes(), 15)
    work = Exchange(bigrams, np.arange(15) % 3, 3)
    values = [work.objective()]
    for word in range(15):
        work.move(word)
        values.append(work.objective())
        assert Exchange(bigrams, work.classes, 3).objective() == pytest.approx(values[-1])  # counts kept up
    assert (np.diff(values) >= -1e-6).all() and values[-1] > values[0]


@pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")
@pytest.mark.parametrize("closed", [0, 2])
def test_compiled_moves_are_the_plain_ones(closed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Round by round, for words that come in several blocks; words of closed classes stay in them."""
    monkeypatch.setattr(word_classes, "BLOCK", 17)
    bigrams = Bigrams.of(random_text(2, 60, 3000), 60)
    start = np.arange(60) % 6
    plain, compiled = (Exchange(bigrams, start, 6, closed) for _ in range(2))
    order = np.flatnonzero(start < 6 - closed)
    for _ in range(3):
        moved = sum(plain.move(word) for word in order.tolist())
        assert compiled.move_all(order) == moved
        np.testing.assert_array_equal(compiled.classes, plain.classes)
        for ours, theirs in zip(compiled.totals, plain.totals, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert compiled.objective() > Exchange(bigrams, start, 6).objective()
    assert (compiled.classes[start >= 6 - closed] == start[start >= 6 - closed]).all()


@pytest.mark.parametrize("compiled", [False, True])
def test_planted_classes_are_recovered(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        monkeypatch.setattr(word_classes, "COMPILED_MOVES", LazyPart("nmt.ngram.text_scorer:UNK"))
    classes = cluster(Bigrams.of(text_of_classes(), 15), np.arange(15) % 3, 3)
    assert all(len(set(classes[start : start + 5])) == 1 for start in (0, 5, 10))
    assert len(set(classes[[0, 5, 10]])) == 3


def test_no_class_loses_its_last_word_and_unseen_words_stay() -> None:
    rng = np.random.default_rng(0)
    text, start = rng.integers(0, 10, 500), np.arange(20) % 7
    classes = cluster(Bigrams.of(text, 20), start, 7)
    assert (np.bincount(classes, minlength=7) > 0).all()
    assert np.array_equal(classes[10:], start[10:])


def test_a_text_of_one_word() -> None:
    assert cluster(Bigrams.of(np.array([3]), 5), np.arange(5) % 2, 2).tolist() == [0, 1, 0, 1, 0]
