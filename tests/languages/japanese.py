"""Japanese: no blanks, kana and kanji, particles, the verb at the end, full-width punctuation."""

from tests.languages.meaning import ANIMALS, PEOPLE, Meaning, Phrase

NOUNS = {
    "teacher": "先生", "child": "子ども", "woman": "女の人", "man": "男の人", "doctor": "医者",
    "farmer": "農家の人", "dog": "犬", "cat": "猫", "bird": "鳥", "house": "家", "book": "本",
    "letter": "手紙", "car": "車", "apple tree": "りんごの木", "dictionary": "辞書", "glove": "手袋",
    "window": "窓", "Maria": "マリアさん", "Peter": "ピーターさん", "Anna": "アンナさん",
}  # fmt: skip
ADJECTIVES = {
    "old": "古い", "new": "新しい", "big": "大きい", "small": "小さな", "green": "緑の",
    "beautiful": "美しい",
}  # fmt: skip
PLACES = {
    "garden": "庭", "school": "学校", "forest": "森", "street": "通り", "kitchen": "台所", "hospital": "病院",
}  # fmt: skip
VERBS = {
    "see": "を見", "buy": "を買い", "look for": "を探し", "find": "を見つけ", "love": "を愛し",
    "draw": "を描き", "sleep": "寝", "laugh": "笑い", "work": "働き", "wait": "待ち",
}  # fmt: skip
ENDS = [["ます", "ません"], ["ました", "ませんでした"]]  # present, past; negated
MARKS = {".": "。", "?": "か？", "!": "！"}


def phrase(found: Phrase) -> str:
    many = "たち" if found.plural and found.noun in PEOPLE + ANIMALS else ""
    return ADJECTIVES.get(found.adjective, "") + NOUNS[found.noun] + many


def sentence(found: Meaning) -> str:
    time = ("昨日、" if found.past else "今日、") if found.timed else ""
    place = f"{PLACES[found.place]}で" if found.place else ""
    seen = phrase(found.object) if found.object else ""
    verb = VERBS[found.verb] + ENDS[found.past][found.negative]
    return f"{time}{phrase(found.subject)}は{place}{seen}{verb}{MARKS[found.end]}"
