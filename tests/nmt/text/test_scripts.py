"""Language codes, lengths of lines, segmenters, and tokenization of scripts without blanks."""

import logging
import sys
import unicodedata
from collections import Counter
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.cli import tokenize
from nmt.errors import ConfigError
from nmt.text import scripts
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.scripts import (
    Guess,
    LanguageCounts,
    character_length,
    is_spaceless,
    line_length,
    script_of_line,
    script_of_text,
)
from nmt.text.tokenize import Tokenizer

# ---- test languages ----------------------------------------------------------------------------------------
# Codes of languages: what is none is refused, what Moses has no rules for is told.


@pytest.mark.parametrize(
    "language", ["zz", "../../etc/passwd", "", "EN", "english", "eng", "x" * 5000, "en\n"]
)
def test_what_is_no_code_is_refused(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="expected an ISO 639 code") as refused:
        scripts.check_language_code(language)
    assert len(str(refused.value)) < 200
    with pytest.raises(ConfigError):
        TextPipeline.of(SideConfig(language))
    assert tokenize.main(["-l", language]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_text_that_is_neither_normalized_nor_tokenized_has_any_language() -> None:
    TextPipeline.of(SideConfig("zz", normalize=False, tokenize=False))


def test_languages_without_rules_of_their_own_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    scripts.warn_without_rules.cache_clear()
    with caplog.at_level(logging.WARNING, "nmt"):
        for language in ("en", "fr", "de", "ja", "ko", "zh", "yue", "cjk"):
            scripts.check_language_code(language)
        assert not caplog.records
        for _ in range(2):
            scripts.check_language_code("hsb")
    assert len(caplog.records) == 1 and "hsb" in caplog.text


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("corpus/train.en", "en"),
        ("train.tok.de.gz", "de"),
        ("news.cs.txt", "cs"),
        ("news.cs.txt.gz", "cs"),
        ("a.en/train.yue", "yue"),
        ("train.hsb", "hsb"),
        *((path, "") for path in ("train", "en", "train.EN", "train.zz", "corpus.en/train", "ptb.train.txt")),
        *((path, "") for path in ("train.en-de", "-", "", "phrase-table.gz", "train.bin", "train.new")),
    ],
)
def test_the_ending_of_a_file_says_its_language(path: str, language: str) -> None:
    assert scripts.language_of_file(path) == language


# ---- test units --------------------------------------------------------------------------------------------
# Lengths of lines in scripts with and without blanks.


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("", 0),
        ("  \t ", 0),
        ("The dog sees a cat .", 6),
        ("Café\xa0crème , s'il vous plaît .", 6),  # NBSP is part of a word
        ("Привет , мир", 3),
        ("나는 개를 본다 .", 4),  # Korean has blanks
        ("犬が猫を見る。", 4),  # seven characters
        ("我喜欢猫", 2),
        ("犬 が 猫 を 見る 。", 6),  # segmented
        ("Windows 10を買う。", 4),  # two words, four characters
        ("ฉันรักแมว", 3),  # nine letters
        ("ＡＢＣ", 2),
        ("\u3000", 1),  # an ideographic blank is no blank
    ],
)
def test_lengths_by_hand(text: str, length: int) -> None:
    assert line_length(text) == length


def test_characters_are_counted_without_blanks() -> None:
    assert character_length(" a bc\td\xa0 ") == 5


def test_languages_and_scripts() -> None:
    assert [is_spaceless(code) for code in ("ja", "zh-TW", "zh_Hans", "th", "ko", "vi", "en")] == [
        True, True, True, True, False, False, False,
    ]  # fmt: skip
    assert (
        script_of_text(Counter("Hello, мир")) == "LATIN" and script_of_text(Counter("мир 12 x")) == "CYRILLIC"
    )
    assert script_of_text(Counter("犬は 猫")) == "CJK" and script_of_text(Counter("1 2 .")) == ""


# ---- test segment ------------------------------------------------------------------------------------------
# Characters and words of scripts without spaces.


@pytest.mark.ci
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
    assert scripts.complete_pieces(["ab", "", "c"], "abc") == ["ab", "c"]
    assert scripts.characters("ខ្មែរ") == ["ខ្មែ", "រ"]
    assert scripts.complete_pieces(["ab"], "abc") == ["a", "b", "c"]
    assert scripts.complete_pieces(["น", "้ำ", "ก"], "น้ำก") == ["น้ำ", "ก"]


def test_a_missing_library_is_one_line_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    scripts.dictionary_words.cache_clear()
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


# ---- test spaceless ----------------------------------------------------------------------------------------
# Text without spaces between words: it is segmented, and comes back.

JAPANESE = "私はSony製のテレビを3.5台買った。「データ」々"
CHINESE = "我们用Python写了3.5个程序,“你好”——……（北京）。"
THAI = "ผมรักประเทศไทย และ Apple 15 เครื่อง ครับ ๑๒ ๆ"
SPACELESS_LINES = [
    ("ja", JAPANESE), ("zh", CHINESE), ("th", THAI), ("my", "မြန်မာ နိုင်ငံ"), ("km", "ភាសាខ្មែរ"),
    ("lo", "ພາສາລາວ"), ("bo", "བོད་སྐད། ཡིན"),
]  # fmt: skip

SEGMENTER_KINDS = [(language, kind) for language in ("ja", "zh", "th") for kind in ("character", "word")]


@cache
def tokenizer(language: str, kind: str) -> Tokenizer:
    if kind == "word":
        pytest.importorskip({"ja": "ipadic", "zh": "rjieba", "th": "pythainlp"}[language])
    return Tokenizer(language, segment=kind)


@pytest.mark.parametrize(("language", "line"), SPACELESS_LINES)
def test_characters_are_words_by_default_and_come_back(language: str, line: str) -> None:
    words = Tokenizer(language).words(line)
    assert Tokenizer(language).text(words) == line
    assert words == Tokenizer(language, segment="character").words(line)
    assert not any(unicodedata.category(word[0]).startswith("M") for word in words), (
        "a mark without its letter"
    )


def test_what_is_written_with_spaces_follows_the_rules_of_moses() -> None:
    words = Tokenizer("ja").words("私は “Tom’s 3.5, A.B.”を")
    assert words == ["私", "は", "“", "Tom", "'s", "3.5", ",", "A.B.", "”", "を"]
    assert Tokenizer("zh").words("用 Python, Java 写") == ["用", "Python", ",", "Java", "写"]
    assert Tokenizer("zh").text(["用", "Tom", "'s", "C"]) == "用Tom's C"
    assert Tokenizer("zh").text(["用", "Python", ",", "Java", "写"]) == "用Python, Java写"
    assert Tokenizer("zh", case="lower").words("Ａ用ABC") == ["ａ", "用", "abc"]


PIECES = {
    "ja": ["私は", "テレビを", "ー", "「", "」。", "々", "ｶﾞ", "が"],  # the last with a combining mark
    "zh": ["我们", "程序", "，", "。", "《", "——", "…", "𠮷", "“", "”", "‘", "（"],
    "th": ["ผมรัก", "ประเทศไทย", "น้ำ", "ๆ", "ฯ"],
}
LATIN = ["Sony", "A", "3.5", "15", "é"]


@pytest.mark.parametrize(("language", "kind"), SEGMENTER_KINDS)
@settings(deadline=None)  # dictionaries are read at the first line
@given(data=st.data())
@pytest.mark.ci
def test_text_of_words_is_the_line(language: str, kind: str, data: st.DataObject) -> None:
    """Blanks beside Chinese and Japanese letters are lost, so there are none; between Latin words they
    stay."""
    pieces = data.draw(st.lists(st.sampled_from([*PIECES[language], *LATIN])))
    line = ""
    for before, piece in zip(["", *pieces], pieces, strict=False):
        latin = before in LATIN and piece in LATIN
        free = language == "th" and before and data.draw(st.booleans())
        line += " " * bool(latin or free) + piece
    words = tokenizer(language, kind).words(line)
    assert tokenizer(language, kind).text(words) == line
    assert not any(set(word) & set(" \t\n") or not word for word in words)
    assert "".join(words).replace("▁", "") == line.replace(" ", "")


def test_blanks_that_say_nothing_and_zero_width_spaces_are_dropped() -> None:
    assert Tokenizer("ja").words(" 私\u3000は Sony\u200b製 ") == ["私", "は", "Sony", "製"]
    assert Tokenizer("th").words("\u3000ไ  ท\u200bย\xa0A ") == ["ไ", "▁", "ท", "ย", "▁", "A"]
    for language in ("ja", "th"):
        for line in ("", "   ", "\u2028", "\u3000", "\u200b", "a\u2028私\x85"):
            words = Tokenizer(language).words(line)
            assert not any(not word or set(word) & set(" \t\n") for word in words)
            assert "\n" not in Tokenizer(language).text(words)


@pytest.mark.ci
def test_other_languages_are_as_they_were() -> None:
    for language in ("en", "ko", "de"):
        line = "私は Sony, 한국어."
        assert Tokenizer(language).words(line) == Tokenizer(language, segment="none").words(line)
    assert Tokenizer("ja", segment="none").words("私は Sony製") == ["私は", "Sony製"]


# ---- test language -----------------------------------------------------------------------------------------
# Scripts and languages of small texts, which nobody has looked at before.

TEXTS = {
    "en": "The children went to the house of their uncle, but he was not at home and it was raining.",
    "fr": "Les enfants sont allés à la maison de leur oncle, mais il n'était pas là et la pluie tombait.",
    "de": "Die Kinder gingen zu dem Haus ihres Onkels, aber er war nicht da und es regnete auf das Dach.",
    "es": "Los niños fueron a la casa de su tío, pero no estaba en ella y la lluvia que caía era fría.",
    "it": "I bambini andarono a casa dello zio, ma non era in casa e la pioggia che cadeva era fredda.",
    "nl": "De kinderen gingen naar het huis van hun oom, maar hij was er niet en het regende op het dak.",
    "pl": "Dzieci poszły do domu wuja, ale nie było go w domu i padał deszcz, a to się nie podoba.",
    "tr": "Çocuklar amcalarının evine gitti ama o evde yoktu ve bir kedi için çok yağmur vardı.",
    "fi": "Lapset menivät setänsä taloon, mutta hän ei ollut siellä ja se oli niin, että kissa on ulkona.",
    "ru": "Дети пошли к дому дяди, но его не было дома, и на крыше сидел кот, который боялся дождя с ветром.",
    "uk": "Діти пішли до хати дядька, але його не було вдома, і на даху сидів кіт, що боявся дощу з вітром.",
    "ar": "ذهب الأطفال إلى بيت عمهم في القرية ولكن لم يكن هناك من أحد على الباب",
    "hi": "बच्चे अपने चाचा के घर गए लेकिन वह घर में नहीं थे और बारिश हो रही थी",
    "el": "Τα παιδιά πήγαν στο σπίτι.",
    "ko": "아이들은 삼촌 집에 갔다.",
    "ja": "子供たちは叔父の家に行った。",
    "zh": "孩子们去了叔叔家，但是他不在。",
    "th": "เด็กๆ ไปบ้านลุง",
    "he": "הילדים הלכו לבית של דודם",
}


def guess_of(*lines: str) -> Guess:
    counts = LanguageCounts()
    for line in lines:
        counts.add(line)
    return counts.guess()


@pytest.mark.parametrize("language", TEXTS)
def test_languages(language: str) -> None:
    assert guess_of(TEXTS[language]).language == language


def test_what_cannot_be_told_is_not_guessed() -> None:
    assert guess_of("Xylo brabant quux", "Zorp mug").languages == ()
    assert str(guess_of("Xylo brabant quux")) == "Latin script; the language cannot be determined"
    assert str(guess_of("12 34", "...")) == "no letters" == str(guess_of())
    assert str(Guess("LATIN", ("da", "nb"))) == "Latin script, probably da or nb"
    assert Guess("LATIN", ("da", "nb")).language == ""
    assert str(guess_of(TEXTS["ja"])) == "Chinese or Japanese script, probably ja"


def test_a_large_text_is_not_read_whole() -> None:
    counts = LanguageCounts()
    for _ in range(4000):
        counts.add("the house")
    assert counts.words == 2 * (2000 + 2000 // 20)


def test_the_script_of_a_line() -> None:
    assert [script_of_line(line) for line in ("abc", "12", "où", "Это xyz так", "猫がいる", "")] == [
        "LATIN", "", "LATIN", "CYRILLIC", "CJK", "",
    ]  # fmt: skip
