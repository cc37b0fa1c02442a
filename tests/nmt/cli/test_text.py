"""Commands on text: nmt-clean, nmt-subword, nmt-tokenize, nmt-truecase, nmt-vocab."""

from pathlib import Path

import pytest

from nmt.cli import clean, subword, tokenize, truecase, vocab
from nmt.text.pipeline import SideConfig
from nmt.text.scripts import SEGMENTERS
from nmt.text.vocab import Vocab
from tests.spaceless import japanese

# ---- test clean --------------------------------------------------------------------------------------------
# nmt-clean.


def test_both_sides_stay_parallel_and_every_pair_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s").write_text("a b\n\nc\na b\n" + "d " * 90 + "\n")
    Path("t").write_text("x y\ny\nz\nx y\n" + "v " * 90 + "\n")
    files = ["-s", "s", "-t", "t", "--output-source", "s2", "--output-target", "t2", "--report", "report"]
    assert clean.main([*files, "-q"]) == 0
    assert Path("s2").read_text() == "a b\nc\n" and Path("t2").read_text() == "x y\nz\n"
    rows = dict(line.split("\t") for line in Path("report").read_text().splitlines()[1:])
    assert rows == {"kept": "2", "empty": "1", "short": "0", "long": "1", "ratio": "0", "duplicate": "1"}
    assert clean.main([*files, "-q", "--keep-duplicates", "--max-length", "100"]) == 0
    assert len(Path("s2").read_text().splitlines()) == 4


def test_limits_that_contradict_each_other_are_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    files = ["-s", "s", "-t", "t", "--output-source", "s2", "--output-target", "t2"]
    for name in ("s", "t"):
        Path(name).write_text("a\n")
    assert clean.main([*files, "--min-length", "9", "--max-length", "3"]) == 2
    assert "expected minimum <= maximum, found 9 and 3" in capsys.readouterr().err
    assert not Path("s2").exists()


# ---- test subword ------------------------------------------------------------------------------------------
# nmt-subword.


def test_what_is_learned_is_applied_and_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "low low lower\nnewest newest widest\n"
    Path("text").write_text(text)
    assert subword.main(["learn", "-i", "text", "text", "-o", "codes", "--merges", "3", "-q"]) == 0
    assert subword.main(["apply", "codes", "-i", "text", "-o", "units", "-q"]) == 0
    assert subword.main(["undo", "-i", "units", "-o", "words", "-q"]) == 0
    assert "@@" in Path("units").read_text() and Path("words").read_text() == text


def test_a_text_without_words_has_no_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("\n")
    assert subword.main(["learn", "-i", str(tmp_path / "text"), "-o", str(tmp_path / "codes")]) == 2
    assert "no words, expected tokenized text" in capsys.readouterr().err
    assert not (tmp_path / "codes").exists()


@pytest.mark.parametrize("kind", ["unigram", "sentencepiece-bpe"])
def test_sentencepiece_reads_raw_text(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "".join(f"{source} {target}\n" for source, target in japanese(100)) + "\n"
    Path("text").write_text(text, encoding="utf-8")
    learn = ["learn", "--kind", kind, "-i", "text", "text", "-o", "model", "--pieces", "150", "-q"]
    assert subword.main(learn) == 0
    assert subword.main(["apply", "model", "-i", "text", "-o", "units", "-q"]) == 0
    assert subword.main(["undo", "--kind", kind, "-i", "units", "-o", "words", "-q"]) == 0
    assert "▁" in Path("units").read_text(encoding="utf-8")
    assert Path("words").read_text(encoding="utf-8") == text


def test_a_model_of_too_few_pieces_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("abc def\n" * 9)
    learn = ["learn", "--kind", "unigram", "-i", str(tmp_path / "text"), "-o", str(tmp_path / "model"), "-q"]
    assert subword.main([*learn, "--pieces", "3"]) == 2
    assert "pieces: 3 is too small: the text has 7 frequent characters" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--pieces 500", "--pieces goes with --kind unigram; give that, too, or leave it out"),
        ("--kind unigram --merges 500", "--merges goes with --kind bpe; "),
        ("--kind sentencepiece-bpe --min-frequency 3", "--min-frequency goes with --kind bpe; "),
    ],
)
def test_an_option_of_another_kind_is_refused(
    options: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("abc def\n" * 9)
    learn = ["learn", "-i", str(tmp_path / "text"), "-o", str(tmp_path / "model"), *options.split()]
    assert subword.main(learn) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "model").exists()


# ---- test tokenize -----------------------------------------------------------------------------------------
# nmt-tokenize.


def filtered(folder: Path, text: str, *options: str) -> str:
    (folder / "in").write_text(text, encoding="utf-8")
    assert (
        tokenize.main(["-i", str(folder / "in"), "-o", str(folder / "out"), "-q", "-l", "en", *options]) == 0
    )
    return (folder / "out").read_text(encoding="utf-8")


def test_escapes_are_written_on_request_and_undone_on_the_way_back(tmp_path: Path) -> None:
    text = "It's [here].\n\n"
    assert filtered(tmp_path, text) == "It 's [ here ] .\n\n"
    escaped = filtered(tmp_path, text, "--escape")
    assert escaped == "It &apos;s &#91; here &#93; .\n\n"
    assert filtered(tmp_path, escaped, "--escape", "--detokenize") == text
    assert filtered(tmp_path, text, "--lower").startswith("it ")


def test_protected_text_is_kept(tmp_path: Path) -> None:
    text, words = (
        "See <b>it</b> at http://x.org/a_b, 10:30.\n",
        "See <b> it </b> at http://x.org/a_b , 10:30 .\n",
    )
    assert filtered(tmp_path, text, "--protect") == words
    assert filtered(tmp_path, words, "--protect", "--detokenize") == text


@pytest.mark.ci
def test_any_number_of_workers_gives_the_same_bytes(tmp_path: Path) -> None:
    text = "".join(f"It's number {number}, isn't it?\n" * (number % 3 > 0) or "\n" for number in range(1500))
    for way in ((), ("--detokenize", "--escape")):
        assert filtered(tmp_path, text, *way) == filtered(tmp_path, text, *way, "--workers", "2")
    with pytest.raises(SystemExit):
        filtered(tmp_path, text, "--workers", "0")


def test_a_language_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert tokenize.main(["-i", "nosuch", "-l", "english"]) == 2
    assert "--language: 'english' is unknown" in capsys.readouterr().err


def test_the_language_is_that_of_the_ending_or_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """German text was tokenized by English rules without a word."""
    for name in ("news.fr.gz", "news.fr", "news"):
        (tmp_path / name).write_text("Qu'il vienne.\n", encoding="utf-8")
    expected = {"news.fr.gz": "Qu' il vienne .\n", "news.fr": "Qu' il vienne .\n"}
    for name, words in expected.items():
        out = str(tmp_path / "out")
        assert tokenize.main(["-i", str(tmp_path / name), "-o", out]) == 0
        assert (tmp_path / "out").read_text(encoding="utf-8") == words
        assert capsys.readouterr().err == "nmt-tokenize: language: fr\n"
    assert tokenize.main(["-i", str(tmp_path / "news.fr"), "-o", str(tmp_path / "out"), "-l", "en"]) == 0
    assert (tmp_path / "out").read_text(encoding="utf-8") == "Qu 'il vienne .\n"
    for given in (str(tmp_path / "news"), "-"):
        assert tokenize.main(["-i", given]) == 2
        message = capsys.readouterr().err
        assert "--language: missing" in message and message.count("\n") == 1


def test_text_without_spaces_is_segmented_and_comes_back(tmp_path: Path) -> None:
    """`nmt-tokenize -l ja` left a line as one word."""
    line = "私はSonyのテレビ、3.5台を買った。\n\n"
    for name, kind, words in (
        ("out.ja", "auto", "私 は Sony の テ レ ビ 、 3.5 台 を 買 っ た 。"),
        ("out.ja", "word", "私 は Sony の テレビ 、 3.5 台 を 買っ た 。"),
    ):
        if kind == "word":
            pytest.importorskip("ipadic")
        (tmp_path / "in.ja").write_text(line, encoding="utf-8")
        given, out, back = (str(tmp_path / name) for name in ("in.ja", name, "back.ja"))
        assert tokenize.main(["-i", given, "-o", out, "--segment", kind, "-q"]) == 0
        assert (tmp_path / name).read_text(encoding="utf-8") == f"{words}\n\n"
        assert tokenize.main(["-i", out, "-o", back, "-d", "--segment", kind, "-q"]) == 0
        assert (tmp_path / "back.ja").read_text(encoding="utf-8") == line


def test_detokenization_needs_no_dictionary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SEGMENTERS, "word", lambda language: pytest.fail("loads a dictionary"))
    (tmp_path / "in.ja").write_text("テレビ を 買っ た 。\n", encoding="utf-8")
    words = ["-i", f"{tmp_path}/in.ja", "-o", f"{tmp_path}/out", "-d", "--segment", "word", "-q"]
    assert tokenize.main(words) == 0
    assert (tmp_path / "out").read_text(encoding="utf-8") == "テレビを買った。\n"


def test_a_segmentation_that_cannot_be_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert tokenize.main(["-l", "en", "--segment", "word"]) == 2
    message = capsys.readouterr().err
    assert "there is for ja, th, zh, not for en" in message and message.count("\n") == 1


# ---- test truecase -----------------------------------------------------------------------------------------
# nmt-truecase.


def test_there_and_back(tmp_path: Path) -> None:
    """Learned from two texts, applied, undone: line for line what it was."""
    lines = ["The man sees the dog .", "", "Anna sees the man . The man sleeps ."]
    for name in ("text", "more"):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    text, model, cased, back = (str(tmp_path / name) for name in ("text", "model", "cased", "back"))
    assert truecase.main(["train", "-i", text, str(tmp_path / "more"), "-o", model, "-q"]) == 0
    assert "the (4/4)" in Path(model).read_text().split("\n")
    assert truecase.main(["apply", model, "-i", text, "-o", cased, "-q"]) == 0
    assert Path(cased).read_text() == "the man sees the dog .\n\nAnna sees the man . the man sleeps .\n"
    assert truecase.main(["undo", "-i", cased, "-o", back, "-q"]) == 0
    assert Path(back).read_text() == Path(text).read_text()


def test_mistakes_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("Word\n")
    text = str(tmp_path / "text")
    assert truecase.main(["train", "-i", text, "-o", str(tmp_path / "model")]) == 2
    assert "no word occurs inside a sentence" in capsys.readouterr().err
    assert truecase.main(["apply", text, "-i", text]) == 2
    assert "text:1: expected forms of a word" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


# ---- test vocab --------------------------------------------------------------------------------------------
# nmt-vocab.


def test_words_are_counted_and_escapes_undone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, out = tmp_path / "text", tmp_path / "vocab"
    text.write_text("&apos;s b b\nc &apos;s 's\n")
    assert vocab.main(["-i", str(text), "-o", str(out), "--size", "1", "--unescape"]) == 0
    found = Vocab.load(out)
    assert found.counts == {"'s": 3, "b": 2, "c": 1} and found.word_count == 1
    assert "1 of 3 words kept; they cover 50.00% of 6 running words" in capsys.readouterr().err


def test_the_default_size_is_that_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        vocab.main(["--help"])
    assert f"(default: {SideConfig().vocabulary})" in " ".join(capsys.readouterr().out.split())
