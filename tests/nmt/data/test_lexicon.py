"""Word translation tables of both forms, and the short-list that they make."""

from pathlib import Path

import pytest

from nmt.data.lexicon import Lexicon, shortlist
from nmt.data.vocab import Vocab
from nmt.errors import DataError


def load(folder: Path, *lines: str, most: int = 50) -> Lexicon:
    (folder / "lex").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return Lexicon.load(folder / "lex", most)


def test_the_likeliest_first_and_no_empty_word(tmp_path: Path) -> None:
    """Moses writes the target before the source, a dictionary the source before the target."""
    moses = load(tmp_path, "chien dog 0.5", "chat cat 1", "chienne dog 0.75", "NULL dog 0.9", "le NULL 1")
    assert moses.words == {"dog": ["chienne", "chien"], "cat": ["chat"]}
    assert moses.best("dog") == "chienne" and moses.best("zzz") == "zzz"
    assert load(tmp_path, "dog chienne", "dog chien").words == {"dog": ["chien", "chienne"]}  # ties by name
    assert load(tmp_path, "a x 0.1", "b x 0.3", "c x 0.2", most=2).words == {"x": ["b", "c"]}


@pytest.mark.parametrize("line", ["dog", "a b c d", "a b c", ""])
def test_lines_of_another_form(line: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"lex:2: expected 'target source probability'"):
        load(tmp_path, "a b", line)
    with pytest.raises(DataError, match="no entry"):
        load(tmp_path, "NULL b 1")


def test_a_short_list_holds_translations_frequent_words_and_specials(tmp_path: Path) -> None:
    lexicon = load(tmp_path, "dog chien", "dog rare", "cat chat")
    vocab = Vocab.count([["le"] * 3, ["la"] * 2, ["chien", "chat"]], 9)
    ids = {word: vocab.ids[word] for word in ("le", "la", "chien", "chat")}
    assert shortlist(lexicon, ["dog", "zzz"], vocab, 0) == {0, 1, 2, ids["chien"]}
    assert shortlist(lexicon, ["dog"], vocab, 1) == {0, 1, 2, ids["le"], ids["chien"]}
    assert shortlist(lexicon, [], vocab, 99) == set(range(len(vocab)))
