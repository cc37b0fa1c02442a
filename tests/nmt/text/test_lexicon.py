"""Word translation tables, and the short-lists made from them."""

from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.text.lexicon import Lexicon, shortlist
from nmt.text.vocab import Vocab


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table as Moses writes it."""
    text = "un a 0.5\nune a 0.25\nune one 1\nNULL a 0.9\nchien dog 0.75\n"
    (tmp_path / "lex.f2e").write_text(text, encoding="utf-8")
    return tmp_path / "lex.f2e"


def test_the_likeliest_translations_come_first(table: Path) -> None:
    lexicon = Lexicon.load(table)
    assert lexicon.translations == {"a": ["un", "une"], "one": ["une"], "dog": ["chien"]}
    assert lexicon.best("a") == "un" and lexicon.best("cat") == "cat"
    assert lexicon.candidates(["a", "dog", "cat"]) == {"un", "une", "chien"}
    assert Lexicon.load(table, most=1).translations["a"] == ["un"]


def test_a_dictionary_has_two_words_a_line(tmp_path: Path) -> None:
    (tmp_path / "dictionary").write_text("a un\na une\n", encoding="utf-8")
    assert Lexicon.load(tmp_path / "dictionary").translations == {"a": ["un", "une"]}


def test_a_short_list_has_the_specials_frequent_words_and_translations(table: Path) -> None:
    vocab = Vocab({"de": 9, "la": 8, "un": 3, "chien": 2, "chat": 1}, 10)
    found = shortlist(Lexicon.load(table), ["a", "dog"], vocab, frequent=1)
    assert found == {0, 1, 2, vocab.ids["de"], vocab.ids["un"], vocab.ids["chien"]}
    tagged = vocab.with_tags(["<bt>", "<mt>"])
    short = shortlist(Lexicon.load(table), ["a", "dog"], tagged, frequent=1)
    assert tagged.decode(sorted(short))[5:] == vocab.decode(sorted(found))[3:], "tags are no frequent words"


@pytest.mark.parametrize(
    ("text", "message"),
    [("a b c d\n", "bad:1"), ("un a 0.5\nun a x\n", "bad:2"), ("un a nan\n", "bad:1"), ("", "no entry")],
)
def test_other_files_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "bad").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        Lexicon.load(tmp_path / "bad")
