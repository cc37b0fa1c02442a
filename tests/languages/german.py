"""German: three genders, cases in articles and adjectives, compounds, umlauts, capital nouns, the verb in the
second place."""

from tests.languages.meaning import Meaning, Phrase, capital

# gender, singular, plural
NOUNS = {
    "teacher": ("m", "Lehrer", "Lehrer"), "child": ("n", "Kind", "Kinder"), "woman": ("f", "Frau", "Frauen"),
    "man": ("m", "Mann", "Männer"), "doctor": ("f", "Ärztin", "Ärztinnen"),
    "farmer": ("f", "Bäuerin", "Bäuerinnen"), "dog": ("m", "Hund", "Hunde"), "cat": ("f", "Katze", "Katzen"),
    "bird": ("m", "Vogel", "Vögel"), "house": ("n", "Haus", "Häuser"), "book": ("n", "Buch", "Bücher"),
    "letter": ("m", "Brief", "Briefe"), "car": ("n", "Auto", "Autos"),
    "apple tree": ("m", "Apfelbaum", "Apfelbäume"), "dictionary": ("n", "Wörterbuch", "Wörterbücher"),
    "glove": ("m", "Handschuh", "Handschuhe"), "window": ("n", "Fenster", "Fenster"),
}  # fmt: skip
ADJECTIVES = {
    "old": "alt", "new": "neu", "big": "groß", "small": "klein", "green": "grün", "beautiful": "schön",
}  # fmt: skip
PLACES = {
    "garden": "im Garten", "school": "in der Schule", "forest": "im Wald", "street": "auf der Straße",
    "kitchen": "in der Küche", "hospital": "im Krankenhaus",
}  # fmt: skip
# present and past, each singular and plural
VERBS = {
    "see": ("sieht", "sehen", "sah", "sahen"), "buy": ("kauft", "kaufen", "kaufte", "kauften"),
    "look for": ("sucht", "suchen", "suchte", "suchten"), "find": ("findet", "finden", "fand", "fanden"),
    "love": ("liebt", "lieben", "liebte", "liebten"),
    "draw": ("zeichnet", "zeichnen", "zeichnete", "zeichneten"),
    "sleep": ("schläft", "schlafen", "schlief", "schliefen"),
    "laugh": ("lacht", "lachen", "lachte", "lachten"),
    "work": ("arbeitet", "arbeiten", "arbeitete", "arbeiteten"),
    "wait": ("wartet", "warten", "wartete", "warteten"),
}  # fmt: skip
# nominative, accusative; p: plural
DEFINITE = {"m": ("der", "den"), "f": ("die", "die"), "n": ("das", "das"), "p": ("die", "die")}
INDEFINITE = {"m": ("ein", "einen"), "f": ("eine", "eine"), "n": ("ein", "ein"), "p": ("", "")}
AFTER_DEFINITE = {"m": ("e", "en"), "f": ("e", "e"), "n": ("e", "e"), "p": ("en", "en")}
AFTER_INDEFINITE = {"m": ("er", "en"), "f": ("e", "e"), "n": ("es", "es"), "p": ("e", "e")}


def phrase(found: Phrase, case: int) -> str:
    """`case`: 0 nominative, 1 accusative"""
    if found.is_name:
        return found.noun
    gender, singular, plural = NOUNS[found.noun]
    gender = "p" if found.plural else gender
    article = (DEFINITE if found.definite else INDEFINITE)[gender][case]
    words = [article] if article else []
    if found.adjective:
        ending = (AFTER_DEFINITE if found.definite else AFTER_INDEFINITE)[gender][case]
        words.append(ADJECTIVES[found.adjective] + ending)
    return " ".join([*words, plural if found.plural else singular])


def sentence(found: Meaning) -> str:
    verb = VERBS[found.verb][2 * found.past + found.subject.plural]
    subject = phrase(found.subject, 0)
    words = [subject, verb]
    if found.timed:
        words = ["gestern" if found.past else "heute", verb, subject]
    elif found.end == "?":
        words = [verb, subject]
    if found.object:
        words.append(phrase(found.object, 1))
    if found.negative:
        words.append("nicht")
    if found.place:
        words.append(PLACES[found.place])
    return capital(" ".join(words)) + found.end
