"""English: auxiliaries in questions and negations."""

from tests.languages.meaning import Meaning, Phrase, capital

PLURALS = {"child": "children", "woman": "women", "man": "men", "dictionary": "dictionaries"}
# third person, past
VERBS = {
    "see": ("sees", "saw"), "buy": ("buys", "bought"), "look for": ("looks for", "looked for"),
    "find": ("finds", "found"), "love": ("loves", "loved"), "draw": ("draws", "drew"),
    "sleep": ("sleeps", "slept"), "laugh": ("laughs", "laughed"), "work": ("works", "worked"),
    "wait": ("waits", "waited"),
}  # fmt: skip
ON = {"street": "on"}


def phrase(found: Phrase) -> str:
    if found.is_name:
        return found.noun
    noun = PLURALS.get(found.noun, f"{found.noun}s") if found.plural else found.noun
    words = f"{found.adjective} {noun}".strip()
    if found.definite:
        return f"the {words}"
    article = "an" if words[0] in "aeiou" else "a"
    return words if found.plural else f"{article} {words}"


def sentence(found: Meaning) -> str:
    third, past = VERBS[found.verb]
    auxiliary = "did" if found.past else "do" if found.subject.plural else "does"
    finite = past if found.past else found.verb if found.subject.plural else third
    subject = phrase(found.subject)
    if found.end == "?":
        core = [auxiliary, subject, *(["not"] if found.negative else []), found.verb]
    elif found.negative:
        core = [subject, auxiliary, "not", found.verb]
    else:
        core = [subject, finite]
    if found.object:
        core.append(phrase(found.object))
    if found.place:
        core.append(f"{ON.get(found.place, 'in')} the {found.place}")
    if found.timed:
        core.insert(0, "yesterday," if found.past else "today,")
    return capital(" ".join(core)) + found.end
