"""Write a generated parallel corpus of any size as the archives that WMT offers for download.

    python recipes/wmt14/generate.py DIR --pairs 2000000 [--mono 1000000] [--seed 1]

DIR/corpora.tsv lists the archives in the form of recipes/wmt14/corpora.tsv; unpack.py reads them. --mono is
the number of lines of monolingual text. The first N pairs of a larger corpus are the corpus of N pairs, and
the same seed gives the same bytes.

Clauses follow a grammar: noun phrases with articles, adjectives and modifiers, verbs with tense, negation,
adverbs and particles, prepositional phrases. The second language differs as French does: adjectives and
modifiers stand behind their noun, adverbs behind their verb, pronouns as objects in front of it, phrases from
the beginning of a clause at its end; words agree in gender and number; the sense of an ambiguous word depends
on its neighbor, and a particle changes the meaning of its verb. Words of a class follow Zipf's law, with a
steeper tail, and prefer certain neighbors. At 2 million pairs each side has over 200,000 different words.
"""

import argparse
import gzip
import html
import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.cli.arguments import integer
from nmt.errors import UserError
from nmt.io import files
from nmt.io.progress import Progress

Ids = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Hashes = NDArray[np.uint64]

CHUNK = 5000  # sentences that are generated at a time, with a seed of their own
HELD_OUT = 1000  # lines of each dev file and of the test file, at most a tenth of the pairs
NONE = -1  # the number that stands for no word

# ---- words -------------------------------------------------------------------------------------------------
# A word has a number on each side: those of the closed classes first, then each form of each open word.


class OpenClass(NamedTuple):
    """A class of many words, such as nouns, in one language."""

    first: int  # number of its first form
    endings: tuple[str, ...]  # of the forms of a word
    rhymes: list[str]  # ends of its syllables; empty for the class of numerals
    sums: Floats  # cumulative shares of the words, most frequent first

    def draw(self, share: Floats) -> Ids:
        """The ranks of the words at cumulative shares between 0 and 1: (n,) -> (n,)"""
        return np.searchsorted(self.sums[:-1], share, side="right")

    def number(self, word: Ids, form: Ids | Bools | int = 0) -> Ids:
        """The numbers of words, given by their ranks, in the form of index `form`: (n,) -> (n,)"""
        return self.first + word * len(self.endings) + form


class SideWords:
    """The words of a side as text. In `text`, 2 n is the index of word n in a line, 2 n + 1 that of the same
    word with a capital, at the start of a line; None: not spelled yet."""

    def __init__(self, closed: list[str], endings: Sequence[tuple[str, ...]], rhymes: list[str]) -> None:
        """`closed`: words of the closed classes; `endings`: of the forms of NOUN, ADJECTIVE, VERB and ADVERB;
        `rhymes`: of their syllables."""
        self.closed = closed
        self.classes: list[OpenClass] = []
        first = len(closed)
        rows = [*((forms, rhymes) for forms in endings), (("",), NAME_RHYMES), (("",), [])]
        for (forms, syllables), size in zip(rows, SIZES, strict=True):
            self.classes.append(OpenClass(first, forms, syllables, shares(size)))
            first += len(forms) * size
        self.text = np.empty(2 * first, object)

    def lines(self, numbers: Ids) -> str:
        """The text of words, (n,), numbered as in `text`; line ends are words, too."""
        new = np.unique(numbers[self.text[numbers] == None])  # noqa: E711  (an array of objects)
        for number in new.tolist():
            self.text[number] = self.spell(*divmod(number, 2))
        return "".join(self.text[numbers].tolist())

    def spell(self, number: int, capital: int) -> str:
        """The text of word `number`, with the blank in front of it unless `capital` is 1."""
        word = self.closed[number] if number < len(self.closed) else self.spell_open(number)
        if capital:
            return word[0].upper() + word[1:]
        return word if word in ATTACHED else f" {word}"

    def spell_open(self, number: int) -> str:
        """Spell a word of an open class: a numeral, or syllables, more for rarer words, and an ending."""
        kind = next(kind for kind in reversed(self.classes) if kind.first <= number)
        rank, form = divmod(number - kind.first, len(kind.endings))
        if not kind.rhymes:
            return str(rank + 1)
        stem, rest, size = "", rank + 1, len(ONSETS) * len(kind.rhymes)
        while rest:
            rest, syllable = divmod(rest - 1, size)
            onset, rhyme = divmod(syllable * SCRAMBLE % size, len(kind.rhymes))
            stem = ONSETS[onset] + kind.rhymes[rhyme] + stem
        return (stem.capitalize() if kind.rhymes == NAME_RHYMES else stem) + kind.endings[form]


ATTACHED = (".", "?", ",", "'s", "\n")  # without a blank in front
ONSETS = "b br c ch cl d dr f fl g gr h l m n p pl pr r s sp st t tr v".split()
NAME_RHYMES = "a el en er ia in o on or us".split()
NOUN, ADJECTIVE, VERB, ADVERB, NAME, NUMERAL = range(6)
SIZES = 140_000, 60_000, 50_000, 15_000, 60_000, 3000  # words of each class
# so that words of neighboring ranks begin differently; coprime to the number of syllables
SCRAMBLE = 37
KNEE = 2000  # rank from which on the shares of words fall more steeply

SOURCE_ENDINGS = [("d", "ds"), ("ic",), ("n", "ns", "ned"), ("ly",)]
TARGET_ENDINGS = [("t", "ts"), ("al", "ale", "aux", "ales"), ("e", "ent", "ait", "aient", "é"), ("ment",)]
SOURCE_RHYMES = "a ai all an ar e ea en er i in ing o oa ol on oo or ou u un ur".split()
TARGET_RHYMES = "a an ar au e é el en er eu i in o oi on or ou u un ur è ir".split()

# English singular and plural, French masculine, feminine and plural.
ARTICLES = [
    "the the le la les", "a some un une des", "this these ce cette ces", "my my mon ma mes",
    "his his son sa ses", "our our notre notre nos",
    "each all chaque chaque tous", "no no aucun aucune aucuns",
]  # fmt: skip
PRONOUNS = ["he il", "she elle", "it il", "it elle", "we nous", "they ils", "they elles"]
PLURAL_PRONOUN = 4  # index of the first plural one; all later ones are plural too
OBJECTS = ["him le", "her la", "it le", "it la", "us nous", "them les"]
PREPOSITIONS = [
    "of de", "in dans", "in en", "to à", "for pour", "on sur", "with avec", "by par", "from de", "at à",
    "under sous", "after après", "before avant", "against contre", "between entre", "without sans",
    "about sur", "near vers",
]  # fmt: skip
CONJUNCTIONS = ["and et", "but mais", "that que", "because car", "when quand", "if si", "or ou", "which qui"]
PARTICLES = ["up", "out", "off", "down", "over"]
OTHER_SOURCE = [*ATTACHED, "does", "do", "did", "not", "has", "have"]
OTHER_TARGET = [*ATTACHED, "ne", "pas", "a", "ont", "de"]


def column(rows: list[str], index: int) -> list[str]:
    """The word of index `index` in each row."""
    return [row.split()[index] for row in rows]


SOURCE_CLOSED = sorted(
    {*OTHER_SOURCE, *PARTICLES, *column(ARTICLES, 0), *column(ARTICLES, 1)}
    | {word for rows in (PRONOUNS, OBJECTS, PREPOSITIONS, CONJUNCTIONS) for word in column(rows, 0)}
)
TARGET_CLOSED = sorted(
    {*OTHER_TARGET, *column(ARTICLES, 2), *column(ARTICLES, 3), *column(ARTICLES, 4)}
    | {word for rows in (PRONOUNS, OBJECTS, PREPOSITIONS, CONJUNCTIONS) for word in column(rows, 1)}
)


def numbers(words: Sequence[str], closed: list[str]) -> list[int]:
    """The numbers of words of the closed classes of a side."""
    return [closed.index(word) for word in words]


def shares(size: int) -> Floats:
    """Cumulative shares of `size` words by Zipf's law, 1 / r, with r^-1.75 in the tail: (size,). Uses only
    operations that IEEE 754 rounds exactly, so that the text is the same on all machines."""
    rank = np.arange(1.0, size + 1)
    tail = np.sqrt(1 + rank / KNEE)
    sums = np.cumsum(1 / ((rank + 1) * tail * np.sqrt(tail)))
    return np.asarray(sums / sums[-1])


class Lexicon(NamedTuple):
    """The words of both languages."""

    source: SideWords
    target: SideWords


LEXICON = Lexicon(
    SideWords(SOURCE_CLOSED, SOURCE_ENDINGS, SOURCE_RHYMES),
    SideWords(TARGET_CLOSED, TARGET_ENDINGS, TARGET_RHYMES),
)

# ---- chance ------------------------------------------------------------------------------------------------
# The first number that is hashed distinguishes the uses of `mix` and `fixed`; its value has no meaning. The
# same holds for what is added to a word or an index to make it a context, as in `verb + 100`.


def mix(*columns: Ids | int) -> Hashes:
    """Hash rows of numbers, by the finalizer of splitmix64 for each column: (n,) ... -> (n,)"""
    value = np.zeros(1, np.uint64)
    for part in columns:
        value = (value ^ np.asarray(part).astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        value = (value ^ value >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ value >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        value = value ^ value >> np.uint64(31)
    return value


def fixed(*columns: Ids | int) -> Floats:
    """Numbers of 0 or more and below 1 that depend only on rows of numbers, not on the seed: (n,) ... ->
    (n,)"""
    return (mix(*columns) >> np.uint64(11)).astype(np.float64) / (1 << 53)


FAVORITES, FAVORED = 30, 0.8  # favorite neighbors of a word, and how often it has one of them
AMBIGUOUS, BY_CONTEXT = 0.6, 0.9  # share of words with several senses; how often the neighbor decides


class Chance:
    """Draws words and properties for `size` clauses."""

    def __init__(self, rng: np.random.Generator, size: int) -> None:
        self.rng, self.size = rng, size

    def happens(self, probability: float) -> Bools:
        """Whether an event of this probability happens in each clause: (size,)"""
        return np.asarray(self.rng.random(self.size) < probability)

    def choice(self, count: int) -> Ids:
        """An index below `count` for each clause, low ones more often: (size,)"""
        share = self.rng.random(self.size)
        return (share * share * count).astype(np.int64)

    def neighbor(self, kind: int, context: Ids) -> Ids:
        """The rank of a word of class `kind` for each clause, often one that its neighbor `context` prefers:
        (size,)"""
        favorite = fixed(kind + 10, context, self.choice(FAVORITES))
        return LEXICON.source.classes[kind].draw(
            np.where(self.happens(FAVORED), favorite, self.rng.random(self.size))
        )

    def translation(self, kind: int, word: Ids, context: Ids) -> Ids:
        """The rank of the translation of each word of class `kind`: mostly the rank of the word itself,
        otherwise one of a similar frequency, which depends on the neighbor `context` if the word is
        ambiguous: (size,)"""
        chosen = np.where(self.happens(BY_CONTEXT), fixed(20, word, context % 4), self.rng.random(self.size))
        limit = np.where(fixed(21, word) < AMBIGUOUS, 0.5 + 0.5 * fixed(22, word), 1.0)
        sense = (chosen > limit).astype(np.int64) + (chosen > (1 + limit) / 2)
        other = word // 2 + (mix(23 + kind, word, sense) % (word + 9).astype(np.uint64)).astype(np.int64)
        return np.minimum(np.where(sense > 0, other, word), SIZES[kind] - 1)


# ---- phrases -----------------------------------------------------------------------------------------------
# A phrase is two arrays of word numbers, (clauses, columns), with NONE where a clause has no such word.


class Phrase(NamedTuple):
    """A phrase of each clause in both languages: (clauses, columns) each."""

    source: Ids
    target: Ids


def source_column(rows: list[str], index: int) -> Ids:
    """The numbers of the source words of index `index` in each row."""
    return np.array(numbers(column(rows, index), SOURCE_CLOSED))


def target_column(rows: list[str], index: int) -> Ids:
    """The numbers of the target words of index `index` in each row."""
    return np.array(numbers(column(rows, index), TARGET_CLOSED))


SOURCE_SINGULAR, SOURCE_PLURAL = source_column(ARTICLES, 0), source_column(ARTICLES, 1)
MASCULINE, FEMININE, PLURAL = (target_column(ARTICLES, index) for index in (2, 3, 4))
PRONOUN, PRONOUN_TARGET = source_column(PRONOUNS, 0), target_column(PRONOUNS, 1)
OBJECT, OBJECT_TARGET = source_column(OBJECTS, 0), target_column(OBJECTS, 1)
PREPOSITION, PREPOSITION_TARGET = source_column(PREPOSITIONS, 0), target_column(PREPOSITIONS, 1)
CONJUNCTION, CONJUNCTION_TARGET = source_column(CONJUNCTIONS, 0), target_column(CONJUNCTIONS, 1)
PARTICLE = source_column(PARTICLES, 0)
STOP, QUESTION, COMMA, OWNER, LINE_END = numbers(ATTACHED, SOURCE_CLOSED)
STOP_TARGET, QUESTION_TARGET, COMMA_TARGET, _, LINE_END_TARGET = numbers(ATTACHED, TARGET_CLOSED)
DOES, DO, DID, NOT, HAS, HAVE = numbers(OTHER_SOURCE[len(ATTACHED) :], SOURCE_CLOSED)
NE, PAS, A, ONT, DE = numbers(OTHER_TARGET[len(ATTACHED) :], TARGET_CLOSED)


def stack(*columns: Ids) -> Ids:
    """Columns of words side by side: (clauses,) ... -> (clauses, columns)"""
    return np.stack(columns, 1)


def where(condition: Bools, word: Ids | int) -> Ids:
    """The word of each clause if the condition holds, else NONE: (clauses,)"""
    return np.where(condition, word, NONE)


def noun_phrase(chance: Chance, context: Ids, names: float) -> tuple[Phrase, Ids, Bools]:
    """A noun phrase for each clause, the rank of its head noun, and whether it is plural. `context`: the word
    that determines which nouns are preferred; `names`: share of names."""
    of_source, of_target = LEXICON.source.classes, LEXICON.target.classes
    noun = chance.neighbor(NOUN, context)
    many, name = chance.happens(0.3), chance.happens(names)
    article = np.minimum(chance.choice(len(ARTICLES)), (fixed(30, noun) * 2 * len(ARTICLES)).astype(np.int64))
    adjective, has_adjective = chance.neighbor(ADJECTIVE, noun), chance.happens(0.4) & ~name
    modifier, kind = chance.neighbor(NOUN, noun), chance.rng.random(chance.size)
    compound, owner = (kind < 0.1) & ~name, (kind > 0.95) & ~name
    numeral, counted = chance.choice(SIZES[NUMERAL]), chance.happens(0.05) & ~name & ~owner
    many |= counted
    proper = of_source[NAME].draw(chance.rng.random(chance.size))
    source = stack(
        where(~name & ~counted, np.where(many, SOURCE_PLURAL[article], SOURCE_SINGULAR[article])),
        where(counted, of_source[NUMERAL].number(numeral)),
        where(owner, of_source[NOUN].number(modifier)),
        where(owner, OWNER),
        where(has_adjective, of_source[ADJECTIVE].number(adjective)),
        where(compound, of_source[NOUN].number(modifier)),
        np.where(name, of_source[NAME].number(proper), of_source[NOUN].number(noun, many)),
    )
    translated = chance.translation(NOUN, noun, adjective)
    feminine = fixed(31, translated) < 0.5
    quality = chance.translation(ADJECTIVE, adjective, noun)
    before = has_adjective & (fixed(32, quality) < 0.25)
    form = of_target[ADJECTIVE].number(quality, 2 * many.astype(np.int64) + feminine)
    target = stack(
        where(
            ~name & ~counted,
            np.where(many, PLURAL[article], np.where(feminine, FEMININE[article], MASCULINE[article])),
        ),
        where(counted, of_target[NUMERAL].number(numeral)),
        where(before, form),
        np.where(name, of_target[NAME].number(proper), of_target[NOUN].number(translated, many)),
        where(has_adjective & ~before, form),
        where(compound | owner, DE),
        where(compound | owner, of_target[NOUN].number(chance.translation(NOUN, modifier, noun))),
    )
    return Phrase(source, target), noun, many & ~name


def keep(phrase: Phrase, condition: Bools) -> Phrase:
    """The phrase without its words in clauses for which the condition does not hold."""
    return Phrase(*(np.where(condition[:, None], side, NONE) for side in phrase))


def prepositional_phrase(chance: Chance, context: Ids) -> Phrase:
    """A preposition and a noun phrase for each clause. `context`: the word that prefers prepositions."""
    preposition = np.minimum(
        chance.choice(len(PREPOSITION)), (fixed(40, context) * 2 * len(PREPOSITION)).astype(np.int64)
    )
    noun, _, _ = noun_phrase(chance, preposition + 40, 0.12)
    return Phrase(
        np.hstack([PREPOSITION[preposition][:, None], noun.source]),
        np.hstack([PREPOSITION_TARGET[preposition][:, None], noun.target]),
    )


def subject_phrase(chance: Chance) -> tuple[Phrase, Ids, Bools]:
    """A pronoun or a noun phrase for each clause, the context that determines which verbs are preferred after
    it, and whether it is plural."""
    phrase, noun, many = noun_phrase(chance, np.zeros(chance.size, np.int64), 0.15)
    pronoun, index = chance.happens(0.3), chance.choice(len(PRONOUN))
    for side, words in zip(phrase, (PRONOUN, PRONOUN_TARGET), strict=True):
        side[pronoun] = NONE
        side[:, 0] = np.where(pronoun, words[index], side[:, 0])
    many = np.where(pronoun, index >= PLURAL_PRONOUN, many)
    return phrase, np.where(pronoun, 7 + index, noun), many


def verb_phrase(chance: Chance, subject: Ids, many: Bools, pronoun: Bools) -> tuple[Phrase, Ids]:
    """A verb for each clause, with tense, negation, adverb and particle; also returns the rank of the verb.
    `subject`: the context of `subject_phrase`; `many`: whether the subject is plural; `pronoun`: whether the
    object is a pronoun, which is then part of the phrase."""
    of_source, of_target = LEXICON.source.classes, LEXICON.target.classes
    verb = chance.neighbor(VERB, subject)
    chance.choice(SIZES[ADVERB])  # not used: without this draw each seed would give another text than before
    adverb = chance.neighbor(ADVERB, verb)
    has_adverb, particle = chance.happens(0.15), chance.choice(len(PARTICLE))
    has_particle = fixed(50, verb, particle) < 0.3
    kind = chance.rng.random(chance.size)
    negative, perfect = kind < 0.1, kind > 0.85
    past = chance.happens(0.4)
    index = chance.choice(len(OBJECT))
    form = np.where(perfect, 2, np.where(negative, 0, np.where(past, 2, np.where(many, 0, 1))))
    helper = np.where(past, DID, np.where(many, DO, DOES))
    source = stack(
        where(negative | perfect, np.where(perfect, np.where(many, HAVE, HAS), helper)),
        where(negative, NOT),
        where(has_adverb, of_source[ADVERB].number(adverb)),
        of_source[VERB].number(verb, form),
        where(has_particle, PARTICLE[particle]),
        where(pronoun, OBJECT[index]),
    )
    translated = chance.translation(VERB, verb, subject)
    other = (fixed(51, verb, particle) * (translated + 20)).astype(np.int64)  # a verb of a similar frequency
    translated = np.where(has_particle, np.minimum(translated // 2 + other, SIZES[VERB] - 1), translated)
    form = np.where(perfect, 4, 2 * past.astype(np.int64) + many)
    target = stack(
        where(negative, NE),
        where(pronoun, OBJECT_TARGET[index]),
        where(perfect, np.where(many, ONT, A)),
        of_target[VERB].number(translated, form),
        where(negative, PAS),
        where(has_adverb, of_target[ADVERB].number(chance.translation(ADVERB, adverb, verb))),
    )
    return Phrase(source, target), verb


# ---- clauses and sentences ---------------------------------------------------------------------------------


def clauses(rng: np.random.Generator, first: Bools, last: Bools) -> tuple[Ids, Ids]:
    """Draw clauses at random: their words on both sides, with NONE in columns that a clause does not use,
    (clauses, columns) each. `first`, `last` (clauses,): whether a clause is the first or the last of its
    sentence."""
    chance = Chance(rng, len(first))
    front = keep(prepositional_phrase(chance, np.full(chance.size, 3)), has_front := chance.happens(0.2))
    subject, noun, many = subject_phrase(chance)
    pronoun = chance.happens(0.08)
    verb_words, verb = verb_phrase(chance, noun, many, pronoun)
    direct, head, _ = noun_phrase(chance, verb + 100, 0.08)
    direct = keep(direct, ~pronoun & (fixed(60, verb) < 0.8))
    behind = [
        keep(prepositional_phrase(chance, context), chance.happens(share))
        for context, share in ((head, 0.35), (verb, 0.2))
    ]
    conjunction = chance.choice(len(CONJUNCTION))
    question, comma = chance.happens(0.03), chance.happens(0.4)
    moved = has_front & chance.happens(0.5)

    def side(index: int, words: Ids, comma_word: int, stops: tuple[int, int], line_end: int) -> Ids:
        fronted = front[index]
        moves = moved if index else np.zeros(chance.size, bool)
        ahead = np.where(moves[:, None], NONE, fronted)
        columns = [
            where(~first & comma, comma_word)[:, None],
            where(~first, words[conjunction])[:, None],
            ahead,
            where(has_front & ~moves, comma_word)[:, None],
            subject[index],
            verb_words[index],
            direct[index],
            *(phrase[index] for phrase in behind),
            np.where(moves[:, None], fronted, NONE),
            where(last, np.where(question, stops[1], stops[0]))[:, None],
            where(last, line_end)[:, None],
        ]
        return np.hstack(columns)

    return (
        side(0, CONJUNCTION, COMMA, (STOP, QUESTION), LINE_END),
        side(1, CONJUNCTION_TARGET, COMMA_TARGET, (STOP_TARGET, QUESTION_TARGET), LINE_END_TARGET),
    )


CLAUSES = 0.22, 0.40, 0.24, 0.10, 0.04  # shares of sentences of 1 to 5 clauses


def chunk(seed: int, part: int, number: int) -> tuple[str, str]:
    """The text of CHUNK sentences on both sides, one a line. `part`: number of the part of the corpus;
    `number`: number of the chunk in it."""
    rng = np.random.default_rng([seed, part, number])
    counts = 1 + np.searchsorted(np.cumsum(CLAUSES)[:-1], rng.random(CHUNK), side="right")
    ends = np.cumsum(counts)
    first, last = np.zeros(ends[-1], bool), np.zeros(ends[-1], bool)
    first[ends - counts], last[ends - 1] = True, True
    texts = []
    for rows, side in zip(clauses(rng, first, last), LEXICON, strict=True):
        present = rows >= 0
        words = 2 * rows[present]
        lengths = np.add.reduceat(present.sum(1), ends - counts)
        words[np.cumsum(lengths) - lengths] += 1
        texts.append(side.lines(words))
    return texts[0], texts[1]


def texts(seed: int, part: int, lines: int, advance: Callable[[int], None]) -> Iterator[tuple[str, str]]:
    """Yield a part of the corpus on both sides, by chunks. `advance` gets the number of lines of each."""
    for number in range(-(-lines // CHUNK)):
        sides = chunk(seed, part, number)
        rest = min(CHUNK, lines - number * CHUNK)
        advance(rest)
        if rest < CHUNK:
            sides = tuple("".join(side.splitlines(keepends=True)[:rest]) for side in sides)  # type: ignore[assignment]
        yield sides


# ---- archives ----------------------------------------------------------------------------------------------

PARALLEL, MONO, DEV, TEST = 0, 1, (2, 3), 4  # parts of the corpus, which have seeds of their own
LISTING = [
    "parallel\tgenerated\tparallel.tgz\tgenerated.fr-en.en generated.fr-en.fr",
    "mono\tnews-2013\tnews.2013.fr.shuffled.gz\tnews.2013.fr.shuffled.gz",
    "dev\tdev\tdev.tgz\tnewstest2012.en newstest2012.fr newstest2013.en newstest2013.fr",
    "test\ttest\ttest-full.tgz\tnewstest2014-fren-src.en.sgm newstest2014-fren-ref.fr.sgm",
]
SGML = (
    '<{0} setid="newstest2014" srclang="any">\n<doc docid="generated" genre="news" origlang="en">\n',
    "</doc>\n</{0}>\n",
)


class Corpus(NamedTuple):
    """A generated corpus; its archives are written into a folder."""

    folder: Path
    seed: int
    progress: Progress

    def write_parallel(self, archive: str, members: list[str], parts: Sequence[int], lines: int) -> None:
        """Write an archive of texts unless it exists: `lines` lines of both sides of each part, as the files
        `members`, source and target of each part in turn. Those named .sgm are SGML. UserError if that
        fails."""
        if (self.folder / archive).exists():
            return
        paths = [self.folder / f"{member}.part" for member in members]
        for number, part in enumerate(parts):
            with ExitStack() as stack:
                pair = paths[2 * number : 2 * number + 2]
                outs = [stack.enter_context(files.Writing(path)) for path in pair]
                wrap = members[0].endswith(".sgm")
                first = 1
                for out, kind in zip(outs, ("srcset", "refset"), strict=True):
                    out.write(SGML[0].format(kind) if wrap else "")
                for sides in texts(self.seed, part, lines, self.progress.add):
                    for out, text in zip(outs, sides, strict=True):
                        out.write(segments(text, first) if wrap else text)
                    first += CHUNK
                for out, kind in zip(outs, ("srcset", "refset"), strict=True):
                    out.write(SGML[1].format(kind) if wrap else "")
        write_archive(self.folder / archive, paths, members)
        for path in paths:
            path.unlink()

    def write_mono(self, name: str, lines: int) -> None:
        """Write `lines` lines of the target side as gzip, unless that exists. UserError if that fails."""
        if not (self.folder / name).exists():
            with files.Writing(self.folder / name) as out:
                for _, text in texts(self.seed, MONO, lines, self.progress.add):
                    out.write(text)


def segments(text: str, first: int) -> str:
    """Lines as segments of SGML. `first`: number of the first line."""
    lines = enumerate(text.splitlines(), first)
    return "".join(f'<seg id="{number}">{html.escape(line, False)}</seg>\n' for number, line in lines)


def write_archive(archive: Path, paths: list[Path], members: list[str]) -> None:
    """Compress files into a tar archive without times and users, so that its bytes depend on the files alone.
    `members`: their names in it."""
    with (
        files.Writing(archive) as out,
        gzip.GzipFile("", "wb", 1, out.stream, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as box,
    ):
        for path, member in zip(paths, members, strict=True):
            entry = tarfile.TarInfo(member)
            entry.size = path.stat().st_size
            with open(path, "rb") as stream:
                box.addfile(entry, stream)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pairs", type=integer(1), required=True)
    parser.add_argument(
        "--mono", type=integer(0), help="lines of monolingual text; default: half of the pairs"
    )
    parser.add_argument("--seed", type=integer(0), default=1)
    args = parser.parse_args()
    mono = args.pairs // 2 if args.mono is None else args.mono
    held_out = min(HELD_OUT, max(1, args.pairs // 10))
    names = [line.split("\t")[2:] for line in LISTING]
    visible = sys.stderr.isatty()
    with Progress(args.pairs + mono + 3 * held_out, "pairs", visible, title="generating") as progress:
        corpus = Corpus(args.folder, args.seed, progress)
        corpus.write_mono(names[MONO][0], mono)
        for row, parts, lines in ((0, (PARALLEL,), args.pairs), (2, DEV, held_out), (3, (TEST,), held_out)):
            corpus.write_parallel(names[row][0], names[row][1].split(" "), parts, lines)
    files.write_text(args.folder / "corpora.tsv", LISTING)


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        print(f"generate.py: {error}", file=sys.stderr)
        sys.exit(2)
