"""A small English-French grammar that generates a parallel corpus with its word alignment. The same seed
gives the same sentences.

It contains what a dictionary cannot translate: agreement in gender and number, adjectives before or
after the noun, negation and object pronouns around the verb, elision and contraction, idioms of several
words, ambiguous words whose translation depends on the context (bank, light, know, play, run, leave), rare
names, and sentences of 3 to 40 words.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from nmt.sample_corpus.vocabulary import (
    ADJECTIVES,
    GAMES,
    IDIOMS,
    INSTRUMENTS,
    INTRANSITIVE,
    LIGHT,
    LINKS,
    NOUNS,
    OBJECTS,
    ONSETS,
    PLAY,
    PREPOSITIONS,
    PRONOUNS,
    RHYMES,
    THINK,
    TIMES,
    VERBS,
    VOWELS,
)

Tokens = list[tuple[str, int]]  # words and their marks: words with equal marks translate each other


@dataclass
class Pair:
    """A sentence and its translation; words with equal marks translate each other."""

    source: Tokens = field(default_factory=list)
    target: Tokens = field(default_factory=list)


@dataclass
class Noun:
    """A noun phrase in both languages, with the person and number with which its verb agrees."""

    source: Tokens
    target: Tokens
    person: int  # 0 je, 1 il or elle, 2 nous, 3 ils


def starts_with_vowel(word: str) -> bool:
    """Whether a word begins with a vowel or a silent h."""
    return word[0].lower() in VOWELS


class Writer:
    """Generates sentences from a seed. Marks are unique within it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.next = 0
        syllables = (ONSETS, RHYMES, ONSETS, RHYMES)
        names = {"".join(map(self.random.choice, syllables)) for _ in range(600)}
        self.names = [name.capitalize() for name in sorted(names)]
        self.random.shuffle(self.names)

    def new_mark(self) -> int:
        """A mark that no word has yet."""
        self.next += 1
        return self.next

    def chance(self, probability: float) -> bool:
        """Draw True with this probability, else False."""
        return self.random.random() < probability

    def both(self, english: str, french: str) -> tuple[Tokens, Tokens]:
        """An expression of several words with one mark."""
        mark = self.new_mark()
        return [(word, mark) for word in english.split()], [(word, mark) for word in french.split()]

    def name(self) -> Noun:
        """A name; by Zipf's law a few are frequent, most are rare, and some occur once."""
        rank = min(int(self.random.paretovariate(0.7)) - 1, len(self.names) - 1)
        source, target = self.both(self.names[rank], self.names[rank])
        return Noun(source, target, 1)

    def noun(self, kinds: str, depth: int = 0) -> Noun:
        """Draw a noun phrase and its translation: `the small house`, `a bag of the old man`, `Bruna`.
        `kinds`: kinds of nouns, separated by commas, or `any`. With `depth` 1, for a noun inside another
        phrase, it is not a name and has no owner."""
        if depth == 0 and "person" in kinds and self.chance(0.12):
            return self.name()
        if "place" in kinds and self.chance(0.08):
            return self.bank()
        choices = [row for row in NOUNS if kinds == "any" or row[5] in kinds.split(",")]
        english, plural, french, french_plural, gender, kind = self.random.choice(choices)
        many = self.chance(0.3)
        noun_mark = self.new_mark()
        source = [(plural if many else english, noun_mark)]
        target = [(french_plural if many else french, noun_mark)]
        form = 2 * many + (gender == "f")
        if self.chance(0.35):
            mark = self.new_mark()
            if self.chance(0.12):
                source = [("light", mark), *source]
                target = [*target, (LIGHT["surface" if kind == "surface" else "other"][form], mark)]
            else:
                word, *forms, position, liaison = self.random.choice(ADJECTIVES)
                french_form = forms[form]
                source = [(word, mark), *source]
                if position == "before":
                    if not many and gender == "m" and starts_with_vowel(target[0][0]):
                        french_form = liaison
                    target = [(french_form, mark), *target]
                else:
                    target = [*target, (french_form, mark)]
        source, target = self.determine(source, target, many, gender)
        if depth == 0 and self.chance(0.12):
            owner = self.noun("person,place", 1)
            mark = self.new_mark()
            source = [*source, ("of", mark), *owner.source]
            target = [*target, *contract(owner.target, mark)]
        return Noun(source, target, 3 if many else 1)

    def determine(self, source: Tokens, target: Tokens, many: bool, gender: str) -> tuple[Tokens, Tokens]:
        """Put an article, possessive or demonstrative in front of a noun. `many`: whether it is plural;
        `gender`: m or f."""
        mark = self.new_mark()
        first, vowel = source[0][0], starts_with_vowel(target[0][0])
        kind = self.random.choice(["the", "the", "the", "a", "my", "this"])
        if kind == "the":
            french = "les" if many else "l'" if vowel else "le" if gender == "m" else "la"
        elif kind == "a":
            french = "des" if many else "un" if gender == "m" else "une"
            if many:
                kind = "some"
            elif starts_with_vowel(first) and first[0] != "h":
                kind = "an"
        elif kind == "my":
            french = "mes" if many else "mon" if gender == "m" or vowel else "ma"
        else:
            masculine = "cet" if vowel else "ce"
            french = "ces" if many else masculine if gender == "m" else "cette"
            kind = "these" if many else "this"
        return [(kind, mark), *source], [(french, mark), *target]

    def bank(self) -> Noun:
        """The bank of a river, rive in French, or a bank for money, banque."""
        the, bank = self.new_mark(), self.new_mark()
        source, target = [("the", the), ("bank", bank)], [("la", the)]
        if self.chance(0.5):
            of, article, river = self.new_mark(), self.new_mark(), self.new_mark()
            source += [("of", of), ("the", article), ("river", river)]
            target += [("rive", bank), ("du", of), ("fleuve", river)]
        else:
            target += [("banque", bank)]
        return Noun(source, target, 1)

    def subject(self) -> Noun:
        """A pronoun, or a noun phrase of a person or an animal."""
        if self.chance(0.35):
            english, french, person = self.random.choice(PRONOUNS)
            source, target = self.both(english, french)
            return Noun(source, target, person)
        return self.noun(self.random.choice(["person", "person", "person,animal"]))

    def clause(self) -> Pair:
        """A subject with a predicate."""
        subject = self.subject()
        options: list[tuple[float, Callable[[Noun], Pair]]] = [
            (6, self.transitive),
            (2, self.intransitive),
            (1, self.play),
            (1, self.idiom),
        ]
        weights, makers = [weight for weight, _ in options], [maker for _, maker in options]
        return self.random.choices(makers, weights)[0](subject)

    def predicate(
        self, subject: Noun, verb: list[str], object_pronoun: tuple[str, str] | None = None
    ) -> Pair:
        """A subject with its verb in the present or the past, maybe negated. `verb`: its forms, as in VERBS
        without the last column; `object_pronoun`: English and French, in front of the French verb."""
        base, third, past, *french = verb
        forms, participle = french[:4], french[4]
        is_past, negative = self.chance(0.35), self.random.choices(["", "not", "never"], [0.7, 0.22, 0.08])[0]
        verb_mark, not_mark, pronoun_mark = self.new_mark(), self.new_mark(), self.new_mark()
        single = subject.person == 1
        english = past if is_past else third if single else base
        if negative == "not":
            source = [("did" if is_past else "does" if single else "do", not_mark), ("not", not_mark)]
            source += [(word, verb_mark) for word in base.split("-")]
        else:
            source = [("never", not_mark)] if negative else []
            source += [(word, verb_mark) for word in english.split("-")]
        if object_pronoun:
            source.append((object_pronoun[0], pronoun_mark))
        auxiliary = ["ai", "a", "avons", "ont"][subject.person]
        finite = auxiliary if is_past else forms[subject.person]
        core = [(finite, verb_mark)]
        if object_pronoun:
            word = object_pronoun[1]
            core = [
                ("l'" if word in ("le", "la") and starts_with_vowel(finite) else word, pronoun_mark),
                *core,
            ]
        if negative:
            core = [
                ("n'" if starts_with_vowel(core[0][0]) else "ne", not_mark),
                *core,
                ("pas" if negative == "not" else "jamais", not_mark),
            ]
        if is_past:
            core.append((participle, verb_mark))
        target = list(subject.target)
        if target[-1][0] == "je" and starts_with_vowel(core[0][0]):
            target[-1] = ("j'", target[-1][1])
        return Pair([*subject.source, *source], [*target, *core])

    def transitive(self, subject: Noun) -> Pair:
        """A clause of a verb with an object."""
        verb = self.random.choice(VERBS)
        kinds = verb[-1]
        if self.chance(0.15) and "person" in kinds:
            return self.predicate(subject, verb[:-1], self.random.choice(OBJECTS))
        pair = self.predicate(subject, verb[:-1])
        direct_object = self.noun(kinds)
        return Pair(pair.source + direct_object.source, pair.target + direct_object.target)

    def intransitive(self, subject: Noun) -> Pair:
        """A clause of a verb without an object."""
        return self.predicate(subject, self.random.choice(INTRANSITIVE))

    def play(self, subject: Noun) -> Pair:
        """A clause with the verb play, jouer in French: du piano, but aux cartes."""
        pair = self.predicate(subject, PLAY)
        english, french = self.random.choice(INSTRUMENTS + GAMES)
        source, target = self.both(("the " if (english, french) in INSTRUMENTS else "") + english, french)
        return Pair(pair.source + source, pair.target + target)

    def idiom(self, subject: Noun) -> Pair:
        """A clause with an idiom."""
        base, third, past, rest, french, owners, tail = self.random.choice(IDIOMS)
        pair = self.predicate(subject, [base, third, past, *french.split()])
        owner = owners.split()[subject.person] + " " if owners else ""
        source, target = self.both(rest, owner + tail)
        return Pair(pair.source + source, pair.target + target)

    def add_place(self, pair: Pair) -> Pair:
        """Append a prepositional phrase of place, such as `behind the house`, to both sides."""
        english, french = self.random.choice(PREPOSITIONS)
        noun = self.noun("place" if english != "with" else "person,animal", 1)
        source, _ = self.both(english, french)
        mark = source[0][1]
        words = french.split()
        if words[-1] == "de":
            target = [(word, mark) for word in words[:-1]] + contract(noun.target, mark)
        else:
            target = [(word, mark) for word in words] + noun.target
        return Pair(pair.source + source + noun.source, pair.target + target)

    def add_time(self, pair: Pair) -> Pair:
        """Append an adverbial, most of them of time."""
        source, target = self.both(*self.random.choice(TIMES))
        return Pair(pair.source + source, pair.target + target)

    def add_clause(self, pair: Pair) -> Pair:
        """Put a clause such as `he thinks that` in front, or append another clause with a conjunction."""
        if self.chance(0.2):
            front = self.predicate(self.subject(), self.random.choice(THINK))
            that = self.new_mark()
            return Pair(
                [*front.source, ("that", that), *pair.source], front.target + elide("que", pair.target, that)
            )
        clause = self.clause()
        english, french = self.random.choice(LINKS)
        source, target = self.both(english, french)
        mark = target[0][1]
        words = french.split()
        if words[-1] in ("que", "si"):
            link = [(word, mark) for word in words[:-1]] + elide(words[-1], clause.target, mark)
        else:
            link = target + clause.target
        return Pair(pair.source + source + clause.source, pair.target + link)

    def sentence(self, words: int) -> Pair:
        """A sentence of about `words` source words or more, at most 40."""
        while True:
            pair = self.clause()
            while len(pair.source) < words:
                grow = self.random.choices(
                    [self.add_place, self.add_time, self.add_clause], [2, 1, 3 if words > 8 else 1]
                )[0]
                pair = grow(pair)
            if 2 < len(pair.source) < 40 and len(pair.target) < 48:
                mark = self.new_mark()
                return Pair([*pair.source, (".", mark)], [*pair.target, (".", mark)])


def contract(target: Tokens, mark: int) -> Tokens:
    """Put the preposition de before `target`, contracted or elided where French does so: de + le = du, de +
    les = des, de + des = de or d', de + un = d'un. `mark`: the mark of the preposition; du and des have that
    of the article."""
    first, first_mark = target[0]
    if first in ("le", "les"):
        return [({"le": "du", "les": "des"}[first], first_mark), *target[1:]]
    if first == "des":
        target = target[1:]
    return [("d'" if starts_with_vowel(target[0][0]) else "de", mark), *target]


def elide(word: str, target: Tokens, mark: int) -> Tokens:
    """Put the conjunction `word`, que or si, before `target`, elided where French elides it: que + il =
    qu'il, si + il = s'il (but si elle). `mark`: the mark of the conjunction."""
    first = target[0][0]
    if word == "que" and starts_with_vowel(first):
        return [("qu'", mark), *target]
    if word == "si" and first in ("il", "ils"):
        return [("s'", mark), *target]
    return [(word, mark), *target]


def text(tokens: Tokens) -> str:
    """Join tokens into a sentence: no space before the full stop or after an apostrophe, a capital first."""
    line = " ".join(word for word, _ in tokens).replace("' ", "'").replace(" .", ".")
    return line[0].upper() + line[1:]
