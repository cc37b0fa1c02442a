"""Mapped n-gram models: the scores of the ARPA file bit by bit, what was written is what is read, and nothing
damaged passes."""

import os
import random
import shutil
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from nmt.cli import ngram, perplexity, score
from nmt.errors import DataError
from nmt.io import files, manifest, mapped
from nmt.ngram import count_models, trie, trie_build
from nmt.ngram.count_models import NgramModel, NgramOrder
from nmt.ngram.text_scorer import LN10
from nmt.ngram.trie import HashedWords, TrieScorer
from tests.nmt.ngram.test_count_models import TEXT, some_model, write

HOLE = TEXT.replace("ngram 2=3", "ngram 2=2").replace("-0.4\tthe dog\t-0.05\n", "")  # `<s> the dog` stays


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_CACHE", str(tmp_path / "cache"))


def texts_of(text: list[list[str]]) -> list[list[str]]:
    rng = random.Random(3)
    words = ["w1", "w2", "w3", "w17", "new"]
    return [*text[:40], [], ["w1"], ["new"], *([rng.choice(words) for _ in range(9)] for _ in range(40))]


# ---- fields of bits ----------------------------------------------------------------------------------------


def test_packed_numbers_are_a_string_of_bits() -> None:
    """Against a Python integer of all bits, for records within and across words."""
    rng = random.Random(5)
    for sizes in ([1], [3, 0, 13], [14, 8, 1, 8, 19, 18], [31, 62, 17], [64 - 2]):
        width, rows = sum(sizes), 70
        values = [[rng.getrandbits(size) for _ in range(rows)] for size in sizes]
        offsets = [sum(sizes[:number]) for number in range(len(sizes))]
        columns = [
            (np.array(part, np.int64), offset, size)
            for part, offset, size in zip(values, offsets, sizes, strict=True)
        ]
        packed = np.append(trie.pack_numbers(columns, rows, width), np.uint64(0))
        whole = sum(
            value << (row * width + offset)
            for part, offset in zip(values, offsets, strict=True)
            for row, value in enumerate(part)
        )
        assert whole == sum(int(word) << (64 * number) for number, word in enumerate(packed))
        for part, offset, size in columns:
            assert trie.read_numbers(packed, np.arange(rows) * width + offset, size).tolist() == part.tolist()


# ---- scores ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 4])
def test_exact_scores_are_the_same_numbers(order: int) -> None:
    model, text = some_model(order)
    model.levels[0].backoff[3:9] = 0.3  # more than 1, as some tools write
    ours = TrieScorer(trie_build.compile_model(model))
    texts = texts_of(text)
    for whole in (True, False):
        for one, other in zip(model.scores(texts, whole), ours.scores(texts, whole), strict=True):
            assert one.tobytes() == other.tobytes()
    assert ours.scores([texts[0]])[0].tobytes() == model.scores([texts[0]])[0].tobytes()
    assert (ours.order, ours.vocab_size) == (model.order, model.vocab_size)
    assert [ours.knows(word) for word in ("w1", "new", "<unk>")] == [True, False, False]


@pytest.mark.ci  # compiled by numba
@pytest.mark.parametrize("text", [TEXT, HOLE, ""])
def test_compiled_scores_are_the_same_numbers(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the second call on; also where the end of an n-gram was pruned."""
    pytest.importorskip("numba")
    model, texts = some_model(4)
    if text:
        model, texts = (
            count_models.read_arpa(write(tmp_path, text)),
            [["the", "dog"], ["dog", "the", "dog"], []],
        )
    monkeypatch.setattr(trie, "COMPILED_SCORE_FROM", 2)
    ours = TrieScorer(trie_build.compile_model(model))
    for whole in (True, False):
        for words in texts_of(texts):
            assert ours.scores([words], whole)[0].tobytes() == model.scores([words], whole)[0].tobytes()
    assert ours.compiled


def test_quantized_scores_are_those_of_the_rounded_model() -> None:
    """Each value of two words and more replaced by the nearest of its book."""
    model = trie_build.by_hash(some_model(4)[0])
    texts = texts_of(some_model(4)[1])
    scores = TrieScorer(trie_build.compile_model(model, 3)).scores(texts)
    levels = [model.levels[0]]
    for level in model.levels[1:]:
        books = [trie_build.make_book(values, 3) for values in (level.log10, level.backoff)]
        assert all(len(book) <= 8 for book, _ in books)
        log10, backoff = (book[codes] for book, codes in books)
        levels.append(NgramOrder(level.keys, log10, backoff if len(levels) < 3 else level.backoff))
    for one, other in zip(NgramModel(model.words, levels).scores(texts), scores, strict=True):
        assert one.tobytes() == other.tobytes()


def test_a_book_of_one_value() -> None:
    """One bit, and all values stand for p = 0: half of the entries are exact, the others have no value."""
    book, codes = trie_build.make_book(np.array([-99.0, -98.0, -97.0]), 1)
    assert len(book) == 1 and codes.tolist() == [0, 0, 0]


@pytest.mark.ci
def test_books() -> None:
    """Few values stay as they are; of many, 0 and p = 0 do, and each of the others gets the nearest entry.
    More bits, less error."""
    rng = np.random.default_rng(1)
    few = rng.choice([-1.5, -0.25, 0.0], 100)
    book, codes = trie_build.make_book(few, 2)
    assert (book[codes] == few).all() and len(book) == 3
    values = np.concatenate([rng.normal(-2, 1, 5000).clip(-9, -1e-9), np.zeros(50), np.full(5, -99.0)])
    errors = []
    for bits in (2, 4, 8, 0):
        book, codes = trie_build.make_book(values, bits)
        assert not bits or len(book) <= 1 << bits
        rounded = book[codes]
        assert (rounded[5000:] == values[5000:]).all()
        nearest = np.abs(values[:, None] - book).min(1)
        assert (np.abs(values - rounded) == nearest).all()
        errors.append(float(((values - rounded) ** 2).mean()))
    assert errors[0] > errors[1] > errors[2] > errors[3] == 0


def test_infinity_is_quantized_to_itself() -> None:
    """p = 0 stays exact, also where an ARPA file writes it as -inf."""
    values = np.array([-np.inf, -1.0, -2.0, -3.0, -4.0, -5.5, -6.0])
    book, codes = trie_build.make_book(values, 2)
    assert len(book) == 4 and book[codes[0]] == -np.inf and np.isfinite(book[codes[1:]]).all()


def test_zero_is_the_last_exact_value_to_go() -> None:
    """Half of the entries are for 0 and the values that stand for p = 0; if these are too many, those next to
    0 stay exact."""
    outside, usual = np.linspace(-99, -60, 20), np.linspace(-5, -1, 50)
    book, codes = trie_build.make_book(np.concatenate([outside, usual, np.zeros(3)]), 3)
    assert len(book) <= 8 and (book[codes[-3:]] == 0).all()
    assert [value in book for value in outside] == [False] * 17 + [True] * 3


def test_upper_bounds(tmp_path: Path) -> None:
    """No n-gram of a word has more; with a back-off above 1 there is no bound but 0."""
    model = trie_build.by_hash(some_model(3)[0])
    most = trie_build.compile_model(model).most
    for n, level in enumerate(model.levels, 1):
        assert (level.log10 * LN10 <= most[model.grams(n)[:, -1]]).all()
    model.levels[0].backoff[5] = 0.1
    assert not trie_build.compile_model(model).most.any()


# ---- words -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("same", [False, True])
def test_words_are_looked_up_by_hash(same: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if all have the same one."""
    if same:
        monkeypatch.setattr(trie, "digest64", lambda text: b"01234567")
    model = some_model(2)[0]
    pool: HashedWords = trie_build.compile_model(model).pool
    words = pool.words()
    assert sorted(words) == sorted(model.words) and pool.is_sound()
    assert [pool.find(word) for word in words] == list(range(len(words)))
    assert pool.find("w") == pool.find("") == -1


# ---- folders -----------------------------------------------------------------------------------------------


def compiled(folder: Path, *more: str) -> Path:
    count_models.write_arpa(some_model(3)[0], folder / "lm")
    arguments = ["compile", str(folder / "lm"), "-o", str(folder / "trie"), "-q", *more]
    assert ngram.main(arguments) == 0
    return folder / "trie"


def test_a_folder_is_what_was_compiled(tmp_path: Path) -> None:
    folder = compiled(tmp_path)
    expected = trie_build.compile_model(count_models.read_arpa(tmp_path / "lm"))
    model = trie.load_trie(folder)
    assert model[:3] == expected[:3]
    for name, array in expected._asdict().items():
        assert np.array_equal(array, getattr(model, name))
    assert np.array_equal(model.most, expected.most) and not model.records.flags.writeable
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    mapped.write_record(folder, expected, [str(tmp_path / "lm")])
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_memory_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is read and compiled in blocks, in files beside the output."""
    folder = compiled(tmp_path)
    expected = {path.name: path.read_bytes() for path in folder.glob("*.npy")}
    shutil.rmtree(folder)
    allocated = Mock(side_effect=os.truncate)
    monkeypatch.setattr(mapped, "allocate", allocated)
    monkeypatch.setattr(mapped, "ROWS", 9)
    monkeypatch.setattr(files, "BUFFER", 100)
    compiled(tmp_path, "--memory", "1e-9")
    assert {path.name: path.read_bytes() for path in folder.glob("*.npy")} == expected
    assert allocated.call_count > 20
    assert {path.name for path in tmp_path.iterdir()} - {"cache"} == {"lm", "trie"}


@pytest.mark.parametrize("more", [[], ["--quantize", "4"], ["--estimator", "katz"]], ids=str)
def test_a_folder_from_text_is_that_of_the_arpa_file(more: list[str], tmp_path: Path) -> None:
    """Array by array the same bytes."""
    text = tmp_path / "text"
    text.write_text("".join(f"{' '.join(words)}\n" for words in some_model(3)[1]))
    quantize = more if "--quantize" in more else []
    given = ["-i", str(text), "--order", "3", "--discount-fallback", "-q"]
    estimator = [] if quantize else more
    assert ngram.main([*given, *more, "--compile", "-o", str(tmp_path / "direct")]) == 0
    assert ngram.main([*given, *estimator, "-o", str(tmp_path / "lm")]) == 0
    assert ngram.main(["compile", str(tmp_path / "lm"), *quantize, "-q", "-o", str(tmp_path / "trie")]) == 0
    names = {path.name for path in (tmp_path / "trie").glob("*.npy")}
    assert names == {path.name for path in (tmp_path / "direct").glob("*.npy")}
    for name in names:
        assert (tmp_path / "direct" / name).read_bytes() == (tmp_path / "trie" / name).read_bytes(), name


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        (["--compile"], "--compile writes a folder; name it"),
        (["--quantize", "8", "-o", "lm"], "--quantize: only for --compile"),
        (["--compile", "--estimator", "lmplz", "-o", "lm"], "--compile: lmplz writes an ARPA file"),
    ],
)
def test_options_of_compilation_that_are_refused(
    more: list[str],
    cause: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("a\n")
    assert ngram.main(["-i", "text", "-q", *more]) == 2
    assert cause in capsys.readouterr().err
    assert not (tmp_path / "lm").exists()


def test_a_text_without_words_leaves_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("\n")
    given = ["-i", str(tmp_path / "text"), "-q", "--compile", "-o", str(tmp_path / "lm")]
    assert ngram.main(given) == 2
    assert "no words to estimate" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == ["text"]


def test_commands_read_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, text = compiled(tmp_path), tmp_path / "text"
    text.write_text("w1 w2 new\n\nw3 w1\n")
    for command, more in ((score, ["--word-scores"]), (perplexity, ["--tokenized"])):
        printed = []
        for model in (tmp_path / "lm", folder):
            assert command.main([str(model), "--input", str(text), *more]) == 0
            lines = capsys.readouterr().out.split("\n")
            printed.append([line for line in lines if not line.endswith(("model", "CPU second"))])
        assert printed[0] == printed[1] and len(printed[0]) > 3


@pytest.mark.parametrize("name", [*trie.TrieModel._fields[3:], "contents", "manifest"])
@pytest.mark.parametrize("kind", ["flip", "cut", "gone"])
def test_damage_is_one_line(kind: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, text = compiled(tmp_path), tmp_path / "text"
    text.write_text("w1 w2\n")
    path = folder / (f"{name}.json" if name in ("contents", "manifest") else f"{name}.npy")
    whole = path.read_bytes()
    middle = len(whole) // 2
    if kind == "gone":
        path.unlink()
    else:
        path.write_bytes(
            whole[:middle] + (bytes([whole[middle] ^ 4]) + whole[middle + 1 :] if kind == "flip" else b"")
        )
    assert score.main([str(folder), "--input", str(text)]) == 2
    message = capsys.readouterr().err.strip()
    assert message.count("\n") == 0 and str(folder) in message


def test_a_verified_folder_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it changes, or is to be verified."""
    folder = compiled(tmp_path)

    def refuse(*given: object) -> None:
        raise DataError("read")

    monkeypatch.setattr(manifest, "verify", refuse)
    trie.load_trie(folder)
    assert ngram.main(["verify", str(folder)]) == 2
    (folder / "records.npy").touch()
    with pytest.raises(DataError, match="read"):
        trie.load_trie(folder)


@pytest.mark.parametrize("compiled_from", [0, 1 << 60])
@pytest.mark.parametrize("name", [trie.WORD, trie.LOG_PROB, trie.BACKOFF, trie.LINK, trie.CHILDREN])
def test_no_index_leaves_a_model(name: int, compiled_from: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the checksum is right: the field of one record has the first value that is too large.
    NumPy notices it, and the compiled code that checks large models."""
    monkeypatch.setattr(trie, "COMPILED_CHECK_FROM", compiled_from)
    model = trie_build.compile_model(some_model(3)[0])
    n, layout = 1, model.layout.copy()
    limit = {
        trie.WORD: len(model.hashes),
        trie.LOG_PROB: len(model.books) - int(layout[n, trie.LOG_PROB_BOOK]),
        trie.BACKOFF: len(model.books) - int(layout[n, trie.BACKOFF_BOOK]),
        trie.LINK: int(layout[n, trie.FIRST]),
        trie.CHILDREN: int(layout[2, trie.COUNT]) + 1,
    }[name]
    size, records = int(layout[n, name + trie.SIZE]), model.records.copy()
    layout[n, name + trie.SIZE] = max(size, limit.bit_length())
    first = int(layout[n, trie.BASE] + 5 * layout[n, trie.WIDTH] + layout[n, name])
    for bit in range(limit.bit_length()):
        word, mask = (first + bit) >> 6, np.uint64(1 << ((first + bit) & 63))
        records[word] = records[word] | mask if limit >> bit & 1 else records[word] & ~mask
    broken = model._replace(records=records, layout=layout)
    assert int(broken.trie.field(n, name, np.array([5]))[0]) == limit
    assert model.is_sound() and not broken.is_sound()


@pytest.mark.parametrize("compiled_from", [0, 1 << 60])
def test_children_are_in_order(compiled_from: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The children of a record do not end before they begin."""
    monkeypatch.setattr(trie, "COMPILED_CHECK_FROM", compiled_from)
    model = trie_build.compile_model(some_model(3)[0])
    row, records = model.layout[1], model.records.copy()
    ends = model.trie.field(1, trie.CHILDREN)
    last = int(np.flatnonzero(ends > 0)[0])  # 0 where the record before has more is too low
    for record in range(last + 1, len(ends)):
        if ends[record]:
            at = int(row[trie.BASE] + record * row[trie.WIDTH] + row[trie.CHILDREN])
            for bit in range(at, at + int(row[trie.CHILDREN + trie.SIZE])):
                records[bit >> 6] &= ~np.uint64(1 << (bit & 63))
            break
    broken = model._replace(records=records)
    assert model.is_sound() and not broken.is_sound()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (trie.COUNT, 1 << 62),
        (trie.BASE, (1 << 63) - 1),
        (trie.WORD, (1 << 63) - 1),
        (trie.CHILDREN + trie.SIZE, (1 << 63) - 1),
    ],
)
def test_huge_numbers_of_a_layout(column: int, value: int) -> None:
    """Sums beyond 64 bits are computed, too."""
    model = trie_build.compile_model(some_model(3)[0])
    layout = model.layout.copy()
    layout[2, column] = value
    assert not model._replace(layout=layout).is_sound()


def test_another_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = compiled(tmp_path)
    contents = (folder / "contents.json").read_text()
    (folder / "contents.json").write_text(contents.replace("TrieModel", "PhraseTable"))
    manifest.write(
        folder, [path.name for path in folder.iterdir() if path.name[0] not in ".m" or "most" in path.name]
    )
    with pytest.raises(DataError, match="holds 'PhraseTable'"):
        trie.load_trie(folder)
    assert ngram.main(["verify", str(tmp_path)]) == 2
    assert ngram.main(["compile", str(tmp_path / "lm"), "-o", str(folder)]) == 2  # exists
    assert ngram.main(["compile", str(tmp_path / "nothing"), "-o", str(tmp_path / "new")]) == 2
    assert not (tmp_path / "new").exists()
    capsys.readouterr()


def test_a_model_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As on a full disk, after some of the files."""
    compiled(tmp_path)
    monkeypatch.setattr(manifest, "write", lambda *given: (_ for _ in ()).throw(DataError("full")))
    assert ngram.main(["compile", str(tmp_path / "lm"), "-o", str(tmp_path / "new")]) == 2
    assert "full" in capsys.readouterr().err and not (tmp_path / "new").exists()
