"""Scripts and languages of small texts, which nobody has looked at before."""

import pytest

from nmt.text.inspection.language import Guess, LanguageCounts, script_of_line

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
    assert str(guess_of("Xylo brabant quux")) == "Latin script; which language cannot be told"
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
