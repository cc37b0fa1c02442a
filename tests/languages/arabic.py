"""Arabic: written from right to left, the article joined to the word, adjectives that agree, the verb first,
punctuation of its own."""

from tests.languages.meaning import PEOPLE, Meaning, Phrase

# gender, singular, plural
NOUNS = {
    "teacher": ("m", "معلم", "معلمون"), "child": ("m", "طفل", "أطفال"), "woman": ("f", "امرأة", "نساء"),
    "man": ("m", "رجل", "رجال"), "doctor": ("f", "طبيبة", "طبيبات"), "farmer": ("m", "فلاح", "فلاحون"),
    "dog": ("m", "كلب", "كلاب"), "cat": ("f", "قطة", "قطط"), "bird": ("m", "طائر", "طيور"),
    "house": ("m", "بيت", "بيوت"), "book": ("m", "كتاب", "كتب"), "letter": ("f", "رسالة", "رسائل"),
    "car": ("f", "سيارة", "سيارات"), "apple tree": ("f", "شجرة تفاح", "أشجار تفاح"),
    "dictionary": ("m", "قاموس", "قواميس"), "glove": ("m", "قفاز", "قفازات"),
    "window": ("f", "نافذة", "نوافذ"),
}  # fmt: skip
# masculine, feminine, plural of men
ADJECTIVES = {
    "old": ("قديم", "قديمة", "قدامى"), "new": ("جديد", "جديدة", "جدد"), "big": ("كبير", "كبيرة", "كبار"),
    "small": ("صغير", "صغيرة", "صغار"), "green": ("أخضر", "خضراء", "خضر"),
    "beautiful": ("جميل", "جميلة", "جميلون"),
}  # fmt: skip
PLACES = {
    "garden": "في الحديقة", "school": "في المدرسة", "forest": "في الغابة", "street": "في الشارع",
    "kitchen": "في المطبخ", "hospital": "في المستشفى",
}  # fmt: skip
# present and past, each masculine and feminine: before its subject a verb is singular
VERBS = {
    "see": ("يرى", "ترى", "رأى", "رأت"), "buy": ("يشتري", "تشتري", "اشترى", "اشترت"),
    "look for": ("يبحث عن", "تبحث عن", "بحث عن", "بحثت عن"), "find": ("يجد", "تجد", "وجد", "وجدت"),
    "love": ("يحب", "تحب", "أحب", "أحبت"), "draw": ("يرسم", "ترسم", "رسم", "رسمت"),
    "sleep": ("ينام", "تنام", "نام", "نامت"), "laugh": ("يضحك", "تضحك", "ضحك", "ضحكت"),
    "work": ("يعمل", "تعمل", "عمل", "عملت"), "wait": ("ينتظر", "تنتظر", "انتظر", "انتظرت"),
}  # fmt: skip
NAMES = {"Maria": ("f", "ماريا"), "Peter": ("m", "بيتر"), "Anna": ("f", "آنا")}
MARKS = {".": ".", "?": "؟", "!": "!"}


def gender_of(found: Phrase) -> str:
    return NAMES[found.noun][0] if found.is_name else NOUNS[found.noun][0]


def phrase(found: Phrase) -> str:
    """Without the endings of cases, as in newspapers."""
    if found.is_name:
        return NAMES[found.noun][1]
    gender, singular, plural = NOUNS[found.noun]
    article = "ال" * found.definite
    noun = plural if found.plural else singular
    first, blank, second = noun.partition(" ")
    words = [f"{first} {article}{second}" if blank else f"{article}{noun}"]  # a construct: the article inside
    if words == ["الامرأة"]:
        words = ["المرأة"]
    if found.adjective:
        men = found.plural and found.noun in PEOPLE and gender == "m"
        form = 2 if men else 1 if found.plural or gender == "f" else 0
        words.append(article + ADJECTIVES[found.adjective][form])
    return " ".join(words)


def sentence(found: Meaning) -> str:
    forms = VERBS[found.verb]
    verb, _, preposition = forms[2 * found.past + (gender_of(found.subject) == "f")].partition(" ")
    words = [verb, phrase(found.subject)]
    if found.negative:
        words.insert(0, "ما" if found.past else "لا")
    if found.end == "?":
        words.insert(0, "هل")
    if preposition:
        words.append(preposition)
    if found.object:
        words.append(phrase(found.object))
    if found.place:
        words.append(PLACES[found.place])
    if found.timed:
        words.insert(0, "أمس،" if found.past else "اليوم،")
    return " ".join(words) + MARKS[found.end]
