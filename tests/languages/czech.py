"""Czech: no articles, cases and genders in endings, negation in front of the verb, many diacritics."""

from tests.languages.meaning import Meaning, Phrase, capital

# gender (a: masculine animate, i: inanimate, f, n), nominative and accusative, each singular and plural
NOUNS = {
    "teacher": ("a", "učitel", "učitelé", "učitele", "učitele"),
    "child": ("n", "dítě", "děti", "dítě", "děti"),
    "woman": ("f", "žena", "ženy", "ženu", "ženy"), "man": ("a", "muž", "muži", "muže", "muže"),
    "doctor": ("f", "lékařka", "lékařky", "lékařku", "lékařky"),
    "farmer": ("a", "sedlák", "sedláci", "sedláka", "sedláky"), "dog": ("a", "pes", "psi", "psa", "psy"),
    "cat": ("f", "kočka", "kočky", "kočku", "kočky"), "bird": ("a", "pták", "ptáci", "ptáka", "ptáky"),
    "house": ("i", "dům", "domy", "dům", "domy"), "book": ("f", "kniha", "knihy", "knihu", "knihy"),
    "letter": ("i", "dopis", "dopisy", "dopis", "dopisy"), "car": ("n", "auto", "auta", "auto", "auta"),
    "apple tree": ("f", "jabloň", "jabloně", "jabloň", "jabloně"),
    "dictionary": ("i", "slovník", "slovníky", "slovník", "slovníky"),
    "glove": ("f", "rukavice", "rukavice", "rukavici", "rukavice"),
    "window": ("n", "okno", "okna", "okno", "okna"),
}  # fmt: skip
# stem, and nominative plural of the masculine animate
ADJECTIVES = {
    "old": ("star", "staří"), "new": ("nov", "noví"), "big": ("velk", "velcí"), "small": ("mal", "malí"),
    "green": ("zelen", "zelení"), "beautiful": ("krásn", "krásní"),
}  # fmt: skip
ENDINGS = {
    "a": ("ý", "", "ého", "é"), "i": ("ý", "é", "ý", "é"), "f": ("á", "é", "ou", "é"),
    "n": ("é", "á", "é", "á"),
}  # fmt: skip
PLACES = {
    "garden": "na zahradě", "school": "ve škole", "forest": "v lese", "street": "na ulici",
    "kitchen": "v kuchyni", "hospital": "v nemocnici",
}  # fmt: skip
# present singular and plural, past
VERBS = {
    "see": ("vidí", "vidí", "viděl"), "buy": ("kupuje", "kupují", "kupoval"),
    "look for": ("hledá", "hledají", "hledal"), "find": ("nachází", "nacházejí", "nacházel"),
    "love": ("miluje", "milují", "miloval"), "draw": ("kreslí", "kreslí", "kreslil"),
    "sleep": ("spí", "spí", "spal"), "laugh": ("směje se", "smějí se", "smál se"),
    "work": ("pracuje", "pracují", "pracoval"), "wait": ("čeká", "čekají", "čekal"),
}  # fmt: skip
PAST = {"a": ("", "i"), "i": ("", "y"), "f": ("a", "y"), "n": ("o", "a")}
NAMES = {"Maria": ("f", "Marie"), "Peter": ("a", "Petr"), "Anna": ("f", "Anna")}


def gender_of(found: Phrase) -> str:
    if found.is_name:
        return NAMES[found.noun][0]
    return "f" if found.noun == "child" and found.plural else NOUNS[found.noun][0]  # ty děti


def phrase(found: Phrase, case: int) -> str:
    """`case`: 0 nominative, 1 accusative"""
    if found.is_name:
        return NAMES[found.noun][1]
    gender, form = gender_of(found), 2 * case + found.plural
    noun = NOUNS[found.noun][1 + form]
    if not found.adjective:
        return noun
    stem, lively = ADJECTIVES[found.adjective]
    return f"{lively if gender == 'a' and form == 1 else stem + ENDINGS[gender][form]} {noun}"


def sentence(found: Meaning) -> str:
    *present, past = VERBS[found.verb]
    verb, reflexive, _ = (present[found.subject.plural] if not found.past else past).partition(" se")
    if found.past:
        verb += PAST[gender_of(found.subject)][found.subject.plural]
    verb = f"{'ne' * found.negative}{verb}{reflexive}"
    subject = phrase(found.subject, 0)
    words = [verb, subject] if found.end == "?" else [subject, verb]
    if found.timed:
        words.insert(0, "včera" if found.past else "dnes")
    if found.object:
        words.append(phrase(found.object, 1))
    if found.place:
        words.append(PLACES[found.place])
    return capital(" ".join(words)) + found.end
