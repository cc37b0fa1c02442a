"""Characters and words of scripts without spaces."""

import sys

import pytest

from nmt.errors import ConfigError
from nmt.text import segment
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.tokenize import Tokenizer


def test_words_of_dictionaries() -> None:
    expected = {
        "ja": ("ipadic", "東京でテレビを買いました。", "東京 で テレビ を 買い まし た 。"),
        "zh": ("rjieba", "我们在野生动物园玩。", "我们 在 野生 动物园 玩 。"),
        "th": ("pythainlp", "ผมรักประเทศไทย มาก", "ผม รัก ประเทศ ไทย ▁ มาก"),
    }
    for language, (library, line, words) in expected.items():
        pytest.importorskip(library)
        assert " ".join(Tokenizer(language, segment="word").words(line)) == words


def test_whatever_a_library_returns_nothing_is_lost() -> None:
    assert segment.whole(["ab", "", "c"], "abc") == ["ab", "c"]
    assert segment.characters("ខ្មែរ") == ["ខ្មែ", "រ"]
    assert segment.whole(["ab"], "abc") == ["a", "b", "c"]
    assert segment.whole(["น", "้ำ", "ก"], "น้ำก") == ["น้ำ", "ก"]


def test_a_missing_library_is_one_line_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    segment.words.cache_clear()
    for language, module in (("ja", "MeCab"), ("zh", "rjieba"), ("th", "pythainlp.tokenize")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ConfigError, match=rf"^segment: word .*pip install 'nmt-smt\[{language}\]'"):
            TextPipeline.of(SideConfig(language, segment="word"))
    with pytest.raises(ConfigError, match="there is for ja, th, zh, not for km"):
        Tokenizer("km", segment="word")
    with pytest.raises(ConfigError, match="set tokenize: true"):
        Tokenizer("ja", tokenize=False, segment="character")
    with pytest.raises(ConfigError, match="'words' is unknown, expected one of auto, none, character, word"):
        Tokenizer("ja", segment="words")
    assert Tokenizer("ja", tokenize=False).words("私 は") == ["私", "は"]
