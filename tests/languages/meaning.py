"""What a sentence says, whatever the language: the same seed gives the same sentences.

The module of each language has the words for it and a function `sentence`.
"""

import random
from dataclasses import dataclass, replace

PEOPLE = ["teacher", "child", "woman", "man", "doctor", "farmer"]
ANIMALS = ["dog", "cat", "bird"]
THINGS = ["house", "book", "letter", "car", "apple tree", "dictionary", "glove", "window"]
NAMES = ["Maria", "Peter", "Anna"]
ADJECTIVES = ["old", "new", "big", "small", "green", "beautiful"]
PLACES = ["garden", "school", "forest", "street", "kitchen", "hospital"]
TRANSITIVE = ["see", "buy", "look for", "find", "love", "draw"]
INTRANSITIVE = ["sleep", "laugh", "work", "wait"]


@dataclass(frozen=True)
class Phrase:
    """A noun with its article and adjective, or a name."""

    noun: str
    adjective: str = ""
    definite: bool = True
    plural: bool = False

    @property
    def is_name(self) -> bool:
        return self.noun in NAMES


@dataclass(frozen=True)
class Meaning:
    """Who does what to whom, where and when."""

    subject: Phrase
    verb: str
    object: Phrase | None = None
    place: str = ""
    past: bool = False
    negative: bool = False
    timed: bool = False  # today or yesterday
    end: str = "."  # . ? !


class Writer:
    """Draws meanings from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def phrase(self, nouns: list[str]) -> Phrase:
        return Phrase(
            noun=self.random.choice(nouns),
            adjective=self.random.choice(ADJECTIVES) if self.chance(0.5) else "",
            definite=self.chance(0.7),
            plural=self.chance(0.3),
        )

    def meaning(self) -> Meaning:
        subject = self.phrase(PEOPLE + ANIMALS)
        if self.chance(0.2):
            subject = Phrase(self.random.choice(NAMES))
        drawn = Meaning(
            subject=subject,
            verb=self.random.choice(INTRANSITIVE),
            place=self.random.choice(PLACES) if self.chance(0.4) else "",
            past=self.chance(0.4),
            negative=self.chance(0.2),
            timed=self.chance(0.3),
            end=self.random.choices(".?!", [7, 2, 1])[0],
        )
        if self.chance(0.7):
            seen = self.phrase(ANIMALS + THINGS)
            drawn = replace(drawn, verb=self.random.choice(TRANSITIVE), object=seen)
        return replace(drawn, timed=drawn.timed and drawn.end != "?")


def capital(text: str) -> str:
    """A sentence begins with a capital."""
    return text[:1].upper() + text[1:]
