"""ARPA files: read = what was written, scores = the rule of the format, what is damaged is told in one
line."""

import gzip
import math
import random
import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import DataError
from nmt.io import files
from nmt.ngram import arpa_columns, compiled_queries, count_models, estimators
from nmt.ngram.arpa_columns import PADDING, PaddedText, WordLookup
from nmt.ngram.count_models import NgramModel
from nmt.ngram.estimators import KneserNeyConfig
from nmt.ngram.text_scorer import LN10

# ---- test arpa ---------------------------------------------------------------------------------------------

TEXT = """\\data\\
ngram 1=5
ngram 2=3
ngram 3=1

\\1-grams:
-1.5\t<unk>
-99\t<s>\t-0.3
-0.9\t</s>
-0.7\tthe\t-0.5
-1.0\tdog\t-0.25

\\2-grams:
-0.2\t<s> the\t-0.1
-0.4\tthe dog\t-0.05
-0.6\tdog </s>

\\3-grams:
-0.125\t<s> the dog

\\end\\
"""


def write(folder: Path, text: str = TEXT) -> Path:
    (folder / "lm").write_text(text, encoding="utf-8")
    return folder / "lm"


def some_model(order: int = 4) -> tuple[NgramModel, list[list[str]]]:
    rng = random.Random(2)
    text = [[f"w{int(rng.paretovariate(0.9))}" for _ in range(rng.randrange(0, 9))] for _ in range(300)]
    return estimators.estimate_kneser_ney(
        text, KneserNeyConfig(order, discount_fallback=(0.5, 1.0, 1.5))
    ), text


def one_by_one(model: NgramModel, words: list[str], whole: bool) -> list[float]:
    """By the rule of the format, with dictionaries: the longest n-gram that is there, and the back-offs of
    longer contexts."""
    known = [
        {
            tuple(model.words[w] for w in gram): (p, b)
            for gram, p, b in zip(model.grams(n).tolist(), level.log10, level.backoff, strict=True)
        }
        for n, level in enumerate(model.levels, 1)
    ]
    grams = {gram: numbers for level in known for gram, numbers in level.items()}
    line = ["<s>", *words, "</s>"] if whole else words
    line = [word if (word,) in grams else "<unk>" for word in line]

    def score(context: tuple[str, ...], word: str) -> float:
        if (*context, word) in grams:
            return float(grams[(*context, word)][0])
        return float(grams.get(context, (0, 0.0))[1]) + score(context[1:], word)

    return [
        LN10 * score(tuple(line[max(0, at - model.order + 1) : at]), line[at])
        for at in range(int(whole), len(line))
    ]


def test_by_hand(tmp_path: Path) -> None:
    """<s> the dog </s>: -0.2, -0.125, then `the dog </s>` is not there: back-off of `the dog` -0.05, dog </s>
    -0.6."""
    model = count_models.read_arpa(write(tmp_path))
    (scores,) = model.scores([["the", "dog"]])
    assert scores.tolist() == pytest.approx([LN10 * -0.2, LN10 * -0.125, LN10 * (-0.05 - 0.6)], abs=1e-12)
    # cat is unknown: after <s> the: -0.1, the: -0.5, then -1.5; </s> after it: no context is there, -0.9
    (scores,) = model.scores([["the", "cat"]])
    assert scores.tolist() == pytest.approx([LN10 * -0.2, LN10 * (-0.1 - 0.5 - 1.5), LN10 * -0.9], abs=1e-12)
    (scores,) = model.scores([["the", "dog"]], whole=False)
    assert scores.tolist() == pytest.approx([LN10 * -0.7, LN10 * -0.4], abs=1e-12)
    assert [part.tolist() for part in model.scores([[], ["the"]], whole=False)] == [
        [],
        pytest.approx([LN10 * -0.7]),
    ]
    assert (
        model.scores([]) == [] and model.knows("dog") and not model.knows("cat") and not model.knows("<unk>")
    )


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("order", [1, 2, 4])
def test_scores_of_many_sentences_are_those_word_by_word(order: int, whole: bool) -> None:
    model, text = some_model(order)
    rng = random.Random(3)
    texts = [
        *text[:40],
        [],
        ["w1"],
        ["new"],
        *([rng.choice(["w1", "w2", "w3", "w17", "new"]) for _ in range(9)] for _ in range(40)),
    ]
    for words, scores in zip(texts, model.scores(texts, whole), strict=True):
        assert scores.tolist() == pytest.approx(one_by_one(model, words, whole), abs=1e-9)


@pytest.mark.parametrize("kind", ["plain", pytest.param("numba", marks=pytest.mark.ci)])
@pytest.mark.parametrize("order", [1, 2, 4])
def test_compiled_scores_are_the_same_numbers(order: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the third call on, one text or many; by the same code without compilation."""
    model, text = some_model(order)
    model.levels[0].backoff[3:9] = 0.3  # more than 1, as some tools write
    texts = [*text[:40], [], ["new", "w1", "new"], ["w1", "w2", "w1", "w2"]]
    expected = [model.scores(texts, whole) for whole in (True, False)]
    if kind == "numba":
        pytest.importorskip("numba")
    else:
        monkeypatch.setattr(
            compiled_queries, "compiled", lambda: (compiled_queries.insert, compiled_queries.score)
        )
    monkeypatch.setattr(count_models, "COMPILED_FROM", 3)
    with np.errstate(over="ignore"):
        for whole, before in zip((True, False), expected, strict=True):
            after = [model.scores(texts, whole), [model.scores([words], whole)[0] for words in texts]]
            assert model.compiled
            for scores in after:
                assert [part.tobytes() for part in scores] == [part.tobytes() for part in before]


def test_a_compiled_model_may_lack_the_end_of_an_ngram(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after pruning: `<s> the dog` is there, `the dog` is not."""
    text = TEXT.replace("ngram 2=3", "ngram 2=2").replace("-0.4\tthe dog\t-0.05\n", "")
    model = count_models.read_arpa(write(tmp_path, text))
    expected = model.scores([["the", "dog"]])[0]
    assert expected.tolist() == pytest.approx([LN10 * -0.2, LN10 * -0.125, LN10 * -0.6])
    monkeypatch.setattr(
        compiled_queries, "compiled", lambda: (compiled_queries.insert, compiled_queries.score)
    )
    with np.errstate(over="ignore"):
        model.compiled = model.compile()
        assert model.scores([["the", "dog"]])[0].tobytes() == expected.tobytes()


def test_without_numba_and_for_large_models_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    model, text = some_model(2)
    expected = model.scores(text[:1])[0].tolist()
    monkeypatch.setattr(count_models, "COMPILED_FROM", 2)
    with monkeypatch.context() as patch:
        patch.setattr(compiled_queries, "compiled", lambda: None)
        assert model.scores(text[:1])[0].tolist() == expected and not model.compiled
    model.calls = 1
    monkeypatch.setattr(count_models, "COMPILED_NGRAMS", 10)
    assert model.scores(text[:1])[0].tolist() == expected and not model.compiled


def test_read_is_what_was_written(tmp_path: Path) -> None:
    model, _ = some_model()
    for name in ("a", "b.gz"):
        count_models.write_arpa(model, tmp_path / name)
        again = count_models.read_arpa(tmp_path / name)
        assert again.words == model.words
        for level, other in zip(model.levels, again.levels, strict=True):
            assert (level.keys == other.keys).all()
            assert np.allclose(level.log10, other.log10, atol=1e-6) and np.allclose(
                level.backoff, other.backoff, atol=1e-6
            )
    count_models.write_arpa(count_models.read_arpa(tmp_path / "a"), tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == (tmp_path / "a").read_bytes()
    assert gzip.decompress((tmp_path / "b.gz").read_bytes()) == (tmp_path / "a").read_bytes()


def naive_arpa(model: NgramModel) -> str:
    """The file, line by line."""
    lines = ["\\data\\", *(f"ngram {n}={len(level.keys)}" for n, level in enumerate(model.levels, 1))]
    for n, level in enumerate(model.levels, 1):
        lines += ["", f"\\{n}-grams:"]
        for ids, p, backoff in zip(model.grams(n).tolist(), level.log10, level.backoff, strict=True):
            gram = " ".join(model.words[word] for word in ids)
            end = f"\t{backoff:.8g}" if n < model.order else "\t0" if gram.endswith("\r") else ""
            lines.append(f"{p:.8g}\t{gram}{end}")
    return "".join(f"{line}\n" for line in [*lines, "", "\\end\\"])


def test_a_written_file_is_that_of_the_format_line_by_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(count_models, "BLOCK", 100)
    for order in (1, 3):
        model, _ = some_model(order)
        model.words[5:8] = ["été", "x\r", "\u2028"]
        model.levels[0].backoff[3:6] = 0.25, -1e-7, -0.0
        seen: list[int] = []
        count_models.write_arpa(model, tmp_path / "lm", seen.append)
        assert (tmp_path / "lm").read_bytes().decode() == naive_arpa(model)
        assert sum(seen) == sum(len(level.keys) for level in model.levels)


def test_other_orders_of_lines_and_blanks_for_tabs(tmp_path: Path) -> None:
    lines = TEXT.split("\n")
    lines[13:16] = reversed(lines[13:16])
    shuffled = "\n".join(line.replace("\t", " ") for line in lines)
    first = count_models.read_arpa(write(tmp_path)).scores([["the", "dog"]])[0]
    assert (count_models.read_arpa(write(tmp_path, shuffled)).scores([["the", "dog"]])[0] == first).all()


def odd_file(model: NgramModel, seed: int, share: float) -> str:
    """A file of a model, its n-grams in any order. `share` of the lines are odd: without back-off, with
    blanks for tabs, or with numbers in another notation."""
    rng = random.Random(seed)

    def odd(line: str) -> str:
        log10, gram, *backoff = line.split("\t")
        if rng.random() >= share:
            return line
        if backoff and rng.random() < 0.5:
            backoff = []
        if rng.random() < 0.3:
            log10 = rng.choice(
                [f"{float(log10):.17g}", f"{float(log10):e}", f"{float(log10):.3f}", "-.5", "-2."]
            )
        return rng.choice("\t\t\t ").join([log10, gram, *backoff])

    lines = naive_arpa(model).split("\n")
    for start in [row for row, line in enumerate(lines) if line.endswith("-grams:")]:
        end = lines.index("", start)
        section = [odd(line) for line in lines[start + 1 : end]]
        rng.shuffle(section)
        lines[start + 1 : end] = section
    return "\n".join(lines)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.9])
def test_lines_read_together_are_those_read_one_by_one(
    share: float, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In blocks of some lines, of which none, some or all have an odd one."""
    model, _ = some_model()
    odd_words = ["été", "é" * 9, "x" * 64, "x" * 65, "y" * 200, "\u2028", "a\u3000b"]
    model.words[4 : 4 + len(odd_words)] = odd_words
    content = odd_file(model, 1, share).encode()
    (tmp_path / "lm").write_bytes(gzip.compress(content) if packed else content)
    monkeypatch.setattr(files, "BUFFER", 600)
    parse = arpa_columns.parse_rows
    parsed: list[bool] = []

    def counted(lines: bytes, n: int, words: arpa_columns.WordLookup) -> arpa_columns.NgramRows | None:
        rows = parse(lines, n, words)
        parsed.append(rows is not None)
        return rows

    monkeypatch.setattr(count_models, "parse_rows", counted)
    fast = count_models.read_arpa(tmp_path / "lm")
    assert len(parsed) > 20 and (any(parsed) or share == 0.9) and all(parsed) == (not share)
    monkeypatch.setattr(count_models, "parse_rows", lambda *args: None)
    careful = count_models.read_arpa(tmp_path / "lm")
    assert fast.words == careful.words and fast.order == careful.order == 4
    for one, other in zip(fast.levels, careful.levels, strict=True):
        for name in ("keys", "log10", "backoff"):
            here, there = getattr(one, name), getattr(other, name)
            assert here.dtype == there.dtype and here.tobytes() == there.tobytes(), name


def test_the_line_of_an_error_far_into_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks before it were parsed together; the lines of its own block are counted one by one."""
    monkeypatch.setattr(files, "BUFFER", 600)
    model, _ = some_model()
    lines = naive_arpa(model).split("\n")
    number = lines.index("\\3-grams:") + 150
    for line, message in (
        ("-1\ta b", "expected log10 p, 3 words"),
        ("-1\tw1 w1 nowhere", "'nowhere' is not"),
    ):
        write(tmp_path, "\n".join([*lines[:number], line, *lines[number + 1 :]]))
        with pytest.raises(DataError, match=f"lm:{number + 1}: {message}"):
            count_models.read_arpa(tmp_path / "lm")
    write(tmp_path, "\n".join([*lines[:number], "-1\t</s> w1 w1", *lines[number + 1 :]]))
    with pytest.raises(DataError, match=r"lm: 3-gram 150 \('</s> w1 w1'\): its first 2 words are not a"):
        count_models.read_arpa(tmp_path / "lm")


def test_a_closed_vocabulary_gives_unknown_words_nothing(tmp_path: Path) -> None:
    text = TEXT.replace("ngram 1=5", "ngram 1=4").replace("-1.5\t<unk>\n", "")
    (scores,) = count_models.read_arpa(write(tmp_path, text)).scores([["cat"]], whole=False)
    assert scores.tolist() == pytest.approx([-100 * LN10])


@pytest.mark.parametrize("gram", ["dog", "the dog"])
@pytest.mark.parametrize("end", ["", "\r"])  # lines with a carriage return are parsed one by one
def test_no_probability_is_that_of_srilm(gram: str, end: str, tmp_path: Path) -> None:
    """A search cannot tell apart paths of -inf, and would subtract it from itself."""
    models = []
    for log10 in ("-inf", "-99"):
        text = re.sub(rf"\S+(?=\t{gram}\t)", log10, TEXT).replace("\n", f"{end}\n")
        models.append(count_models.read_arpa(write(tmp_path, text)))
    values, expected = ([level.log10.tolist() for level in model.levels] for model in models)
    assert (
        values
        == expected
        != [level.log10.tolist() for level in count_models.read_arpa(write(tmp_path)).levels]
    )


@pytest.mark.parametrize(
    "change, message",
    [
        (("\\data\\", "data"), "lm:1: not an ARPA file: expected \\data\\, found 'data'"),
        (("ngram 2=3", "ngram 3=3"), "lm:3: expected 'ngram 2=COUNT', found 'ngram 3=3'"),
        (("ngram 2=3", "ngram 2=x"), "lm:3: expected 'ngram 2=COUNT'"),
        (("ngram 2=3", "ngram 2=2"), "lm:16: expected \\3-grams:, found '-0.6\\tdog </s>'"),
        (
            ("ngram 2=3", "ngram 2=4"),
            "lm:17: expected log10 p, 2 words and a back-off weight, a tab between them, found ''",
        ),
        (("-0.4\tthe dog", "0.4\tthe dog"), "lm:15: expected log10 p, 2 words"),
        (("-0.4\tthe dog", "nan\tthe dog"), "lm:15: expected log10 p, 2 words"),
        (("-0.4\tthe dog", "-0.4\tthe"), "lm:15: expected log10 p, 2 words"),
        (("-1.0\tdog", "-1.0\t"), "lm:11: expected log10 p, 1 words"),
        (("-0.4\tthe dog\t-0.05", "-0.4\tthe dog\tnan"), "lm:15: expected log10 p, 2 words"),
        (("-0.4\tthe dog", "-0.4\tthe cat"), "lm:15: 'cat' is not a unigram of this file"),
        (
            ("-0.2\t<s> the\t-0.1", "-0.2\tdog the\t-0.1"),
            "3-gram 1 ('<s> the dog'): its first 2 words are not a 2-gram of this file; KenLM",
        ),
        (("-0.6\tdog </s>", "-0.4\tthe dog\t-0.05"), "the 2-gram 'the dog' is repeated"),
        (("-1.0\tdog", "-1.0\tthe"), "lm:11: the unigram 'the' is repeated"),
        (("</s>\n", "</S>\n"), "no unigram </s>"),
        (
            ("\\end\\\n", ""),
            "lm:21: the file ends here, expected more n-grams or \\end\\; was it copied whole?",
        ),
        (("\\end\\", "-1\tx"), "lm:21: expected \\end\\, found '-1\\tx'"),
    ],
)
def test_damaged_files(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    path = write(
        tmp_path, TEXT.replace(*change, 1) if change[0] != "</s>\n" else TEXT.replace("</s>", "</S>")
    )
    with pytest.raises(DataError) as error:
        count_models.read_arpa(path)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("promise", ["999999999999", "9" * 5000, "²", "1_0", "-1", "٣"])
def test_a_header_may_promise_anything(tmp_path: Path, promise: str) -> None:
    with pytest.raises(DataError, match=r"lm:[0-9]+: expected"):
        count_models.read_arpa(write(tmp_path, TEXT.replace("ngram 2=3", f"ngram 2={promise}")))
    with pytest.raises(DataError, match=r"lm:[0-9]+: expected"):
        count_models.read_arpa(write(tmp_path, TEXT.replace("ngram 1=5", f"ngram 1={promise}")))


@pytest.mark.parametrize("number", ["-1_0", "-٣", "²", "nan", "-1e", "x" * 10**5])
def test_what_is_no_number_is_named(tmp_path: Path, number: str) -> None:
    with pytest.raises(DataError, match=r"lm:[0-9]+: expected log10 p") as error:
        count_models.read_arpa(write(tmp_path, TEXT.replace("-0.6\tdog", f"{number}\tdog")))
    assert len(str(error.value)) < 300 + len(str(tmp_path))


@pytest.mark.parametrize("odd", ["\r", "\x0c", "\x85", "\xa0", "\u2028"], ids=ascii)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_odd_white_space_is_part_of_a_word(odd: str, order: int, tmp_path: Path) -> None:
    text = [[f"a{odd}", f"{odd}b", odd, "c"], ["c", f"a{odd}"], [f"a{odd}b"]] * 2
    model = estimators.estimate_kneser_ney(text, KneserNeyConfig(order, discount_fallback=(0.5, 1.0, 1.5)))
    count_models.write_arpa(model, tmp_path / "lm")
    again = count_models.read_arpa(tmp_path / "lm")
    assert again.words == model.words
    for ours, theirs in zip(model.scores(text), again.scores(text), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


# ---- test count model --------------------------------------------------------------------------------------
# Count models from files of any format, and files that are none.


def test_an_arpa_file_may_be_compressed(tmp_path: Path) -> None:
    (tmp_path / "lm").write_text(TEXT)
    (tmp_path / "lm.gz").write_bytes(gzip.compress(TEXT.encode()))
    plain, packed = (count_models.load_count_model(tmp_path / name) for name in ("lm", "lm.gz"))
    texts = [["the", "dog"], ["unheard-of"], []]
    assert [s.tolist() for s in plain.scores(texts)] == [s.tolist() for s in packed.scores(texts)]
    assert plain.knows("dog") and not plain.knows("unheard-of") and not plain.knows("<unk>")
    assert plain.vocab_size == 3, "the, dog and </s>"


def test_other_files_are_no_models(tmp_path: Path) -> None:
    (tmp_path / "lm").write_bytes(b"hello")
    with pytest.raises(DataError, match=r"neither with .data. nor with .mmap lm."):
        count_models.load_count_model(tmp_path / "lm")
    (tmp_path / "lm").write_bytes(gzip.compress(TEXT.encode())[:-40])
    with pytest.raises(DataError, match="lm: "):
        count_models.load_count_model(tmp_path / "lm")
    with pytest.raises(DataError, match="no such file"):
        count_models.load_count_model(tmp_path / "nothing")


def test_a_damaged_binary_file(tmp_path: Path) -> None:
    pytest.importorskip("kenlm")
    (tmp_path / "lm").write_bytes(b"mmap lm http://kheafield.com/code format version 4\n\0" + bytes(400))
    with pytest.raises(DataError, match="not a KenLM file, or of another version"):
        count_models.load_count_model(tmp_path / "lm")


@pytest.mark.ci
def test_equal_to_kenlm(nmt_data: Path) -> None:
    """Every word of the test set by KenLM itself, which computes in float32."""
    kenlm = pytest.importorskip("kenlm")
    path = nmt_data / "moses-multi30k" / "lm.fr.arpa.gz"
    theirs, ours = count_models.KenLM(str(path)), count_models.read_arpa(path)
    assert kenlm and theirs.order == ours.order == 5
    texts = [
        files.split_words(line)
        for line in files.read_lines(nmt_data / "moses-multi30k" / "corpus" / "test_2016_flickr.tok.fr")
    ]
    for whole in (True, False):
        for one, other in zip(ours.scores(texts, whole), theirs.scores(texts, whole), strict=True):
            assert np.allclose(one, other, atol=1e-5)
    assert math.isclose(ours.scores([["<unk>"]])[0][0], theirs.scores([["nirgendwo"]])[0][0], abs_tol=1e-5)


def test_a_broken_gzip_file_is_one_error_wherever_it_breaks(tmp_path: Path) -> None:
    """Cut, and with a byte changed, at every place of the compressed data."""
    path, whole = tmp_path / "lm.gz", gzip.compress(TEXT.encode() * 3)
    for place in range(2, len(whole) - 1):
        for data in (whole[:place], whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :]):
            path.write_bytes(data)
            with suppress(
                DataError
            ):  # all else is an error of the test; a changed date in the header of the file is none
                count_models.load_count_model(path)


# ---- test arpa columns -------------------------------------------------------------------------------------


def test_numbers_are_formatted_and_rounded_as_by_printf() -> None:
    rng = np.random.default_rng(1)
    digits = np.round(-10 * rng.random(2000), 8)
    values = np.concatenate(
        [
            -120 * rng.random(2000), -(10.0 ** rng.uniform(-9, 3, 2000)), rng.normal(size=500),
            digits, digits - 5e-9, np.round(digits, 3), -np.arange(120.0), 10.0 ** np.arange(-9, 9),
            [0.0, -0.0, np.inf, -np.inf, np.nan, -99.9, -9.99999999, -1e-300, -1.2345678e-100, -1e300],
        ]
    )  # fmt: skip
    texts, starts, lengths = arpa_columns.format_numbers(values, "\t")
    for value, row, start, length in zip(values, texts, starts, lengths, strict=True):
        assert row[start : start + length].tobytes().decode() == f"{value:.8g}\t"
    rounded = np.array([float(f"{value:.8g}") for value in values])
    assert arpa_columns.round_numbers(values).tobytes() == rounded.tobytes()


def positions(pieces: list[bytes]) -> tuple[PaddedText, arpa_columns.Ints, arpa_columns.Ints]:
    """A text of pieces with blanks between them, and where each piece begins and how long it is."""
    lengths = np.array(list(map(len, pieces)))
    starts = len(PADDING) + np.cumsum(lengths + 1) - lengths - 1
    return PaddedText.of(b" ".join(pieces)), starts, lengths


def test_numbers_are_parsed_as_by_float() -> None:
    rng = random.Random(2)
    values = [-(10.0 ** rng.uniform(-6, 2)) for _ in range(500)]
    texts = [f"{value:.{rng.randrange(1, 18)}{kind}}" for value in values for kind in "fge"]
    texts += ["0", "-0", "-0.0", "5.", ".5", "-.5", "+1", "1" * 15, "9" * 16, "9" * 17, "0.1", "-99", "1e3"]
    texts += ["-inf", "123456789012345.", "1.23456789012345", "12345678.9012345", "0000000000000001"]
    text, starts, lengths = positions([number.encode() for number in texts])
    parsed = arpa_columns.parse_numbers(text, starts, starts + lengths)
    assert parsed is not None
    assert parsed.tobytes() == np.array([float(number) for number in texts]).tobytes()


@pytest.mark.parametrize(
    "wrong", ["", "-", ".", "-.", "1.2.3", "1.23456789.1", "1_0", "1/2", "1:2", "--1", "x", "٣", "1e", "\x00"]
)
def test_what_is_no_number(wrong: str) -> None:
    text, starts, lengths = positions([b"-1.5", wrong.encode(), b"2"])
    assert arpa_columns.parse_numbers(text, starts, starts + lengths) is None
    with pytest.raises(ValueError):
        arpa_columns.parse_logarithm(wrong)


def test_words_are_found_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)
    words = ["", *{"é" * rng.randrange(1, 60) + str(rng.randrange(99)) for _ in range(900)}]
    words += ["x" * size for size in (7, 8, 9, 15, 16, 17, 63, 64, 65, 66)]
    table = WordLookup(words)
    numbers = [rng.randrange(len(words)) for _ in range(3000)]
    found = table.find(*positions([words[number].encode() for number in numbers]))
    assert found is not None and found.tolist() == numbers
    for new in ("x", "x" * 10, "x" * 67, "\0", "é" * 4 + "e"):
        assert table.find(*positions([b"xxxxxxx", new.encode()])) is None
    # words with the same hash are told apart by their bytes
    monkeypatch.setattr(arpa_columns, "hash_words", lambda columns, count: np.zeros(count, np.uint64))
    table = WordLookup(["a", "b"])
    assert table.find(*positions([b"c"])) is None and table.find(*positions([b"a", b"b"])) is None
