"""Converts the constraints of a user, which are text, to constraints of the search, which are in units of a
run's model."""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nmt.config import settings
from nmt.errors import ConfigError, DataError, check_lines
from nmt.io.numbers import counted, shown
from nmt.models.protocols import Source, State, StepModel
from nmt.runs.checkpoint import SavedRun
from nmt.search import FinishedHypothesis
from nmt.search.beam import search
from nmt.search.config import BeamConfig, ConstraintConfig
from nmt.search.constraints import AnyConstraint, ForbiddenPhrases, RequiredPhrases
from nmt.text import glossary, spelling
from nmt.text.vocab import UNK

log = logging.getLogger(__name__)

Phrases = Sequence[str]
UNMET = "no translation contains all required phrases and no forbidden one"


class Unmet(DataError):
    """A constraint cannot be met, and the setting `unmet` is `error`; or a line has too many."""

    def __init__(self, problem: str, remedy: str) -> None:
        """`problem`: which constraint of which line; `remedy`: what the user can do, an imperative."""
        super().__init__(f"{problem}; {remedy}, or set unmet to warn (--unmet warn)")
        self.problem, self.remedy = problem, remedy


@dataclass
class Constraints(ConstraintConfig):
    """Phrases that translations must or must not contain: raw text, or tokenized text for tokenized lines.
    `unmet`: error or warn where the constraints of a line cannot be met.

    >>> import nmt
    >>> run = nmt.Run.load("runs/en-fr")
    >>> constraints = nmt.Constraints(terms={"man": "fille"}, avoid=["garçon"])
    >>> [translation] = run.translate(["A boy does not follow the man."], constraints=constraints)
    >>> "fille" in translation, "garçon" in translation.lower()
    (True, False)"""

    # Source terms with the translations that they must have, or the path of a file of them, tab-separated.
    terms: Mapping[str, str] | str = field(default_factory=dict)
    avoid: Phrases = ()  # phrases that no translation may contain
    required: Sequence[Phrases] = ()  # phrases for each line; a phrase given twice must occur twice
    avoided: Sequence[Phrases] = ()  # phrases that the translation of each line may not contain


@dataclass(frozen=True)
class LineConstraints:
    """Constraints of the search for one line."""

    constraints: tuple[AnyConstraint, ...]
    location: str  # how messages name the line
    strict: bool  # whether it is an error if they cannot be met; otherwise a warning


class ConstraintMaker:
    """Creates the constraints of lines. ConfigError for a setting out of range, DataError for terms that
    `nmt.text.glossary` refuses, Unmet for a term that cannot be required if `unmet` is `error`."""

    def __init__(
        self, member: SavedRun, constraints: Constraints, rows: Iterable[tuple[str, str, str]] | None = None
    ) -> None:
        """`member`: the model whose units are used. `rows`: (name in messages, term, translation) of each
        term; replaces `constraints.terms`, a dictionary or the path of a file."""
        settings.check(constraints)
        check_lines(constraints.avoid, "phrases")
        self.member, self.constraints = member, constraints
        self.strict = constraints.unmet == "error"
        self.everywhere = self.phrases(constraints.avoid)
        self.avoid = ForbiddenPhrases(self.everywhere, member.target_spelling) if self.everywhere else None
        terms = constraints.terms
        if rows is None:
            if isinstance(terms, str):
                rows = glossary.read_rows(terms)
            else:
                rows = [(f"terms, {shown(term)}", term, target) for term, target in terms.items()]
        self.terms = glossary.from_rows(
            rows,
            lambda term: glossary.tokenizations(term, self.source_words),
            self.units,
        )
        rendered = {term.location: term for term in self.terms.terms.values()}
        self.term_ids = {
            location: self.ids(term.words, term.raw, location) for location, term in rendered.items()
        }

    def for_line(
        self, line: str, location: str, required: Phrases = (), avoided: Phrases = (), most: int | None = None
    ) -> LineConstraints:
        """Make the constraints of a line. `location`: how messages name it; `required`, `avoided`: phrases
        for this line alone; `most`: maximum number of units that may be required. Unmet if more are required.
        For a phrase that cannot be required, Unmet if `unmet` is `error`, otherwise a warning. TypeError for
        a str instead of a list of phrases."""
        check_lines(avoided, "phrases")
        wanted = self.required(required, location)
        words = self.source_words(self.member.source.split_tag(line)[1])
        if wanted and not words:
            problem = f"{location}: the line has no words, so nothing can be required"
            complain(problem, "leave that out", self.strict)
            wanted = []
        matches = self.terms.find(words, glossary.sentence_starts(words))
        wanted += [self.term_ids[match.term.location] for match in matches]
        avoid = self.avoid
        if more := self.phrases(avoided):
            avoid = ForbiddenPhrases([*self.everywhere, *more], self.member.target_spelling)
        wanted = [ids for ids in wanted if ids and not self.is_avoided(ids, avoid, location)]
        size = sum(map(len, wanted))
        if most is not None and size > most:
            raise Unmet(f"{location}: its terms require {size} units, at most {most} can be", "split it")
        constraints: list[AnyConstraint] = [] if avoid is None else [avoid]
        if wanted:
            constraints.append(RequiredPhrases(wanted, self.member.target_spelling.joints))
        return LineConstraints(tuple(constraints), location, self.strict)

    def required(self, phrases: Phrases, location: str) -> list[list[int]]:
        """Ids of the units of each required phrase; blank phrases are skipped. For a phrase that cannot be
        required, Unmet if `unmet` is `error`, otherwise a warning and an empty list."""
        check_lines(phrases, "phrases")
        return [self.ids(self.units(phrase), phrase, location) for phrase in phrases if phrase.strip()]

    @property
    def by_line(self) -> bool:
        """Whether single lines have constraints."""
        return bool(self.constraints.required or self.constraints.avoided)

    def for_lines(self, lines: Sequence[str]) -> list[LineConstraints]:
        """Make the constraints of all lines. ConfigError if there are constraints for another number of
        lines, Unmet as from `for_line`."""
        rows = self.constraints.required, self.constraints.avoided
        for name, lists in zip(("required", "avoided"), rows, strict=True):
            if lists and len(lists) != len(lines):
                phrases = counted(len(lists), "list")
                raise ConfigError(f"{name}: {phrases} of phrases, but {counted(len(lines), 'line')}")
        required, avoided = (lists or [()] * len(lines) for lists in rows)
        return [
            self.for_line(line, f"line {number}", wanted, unwanted)
            for number, (line, wanted, unwanted) in enumerate(zip(lines, required, avoided, strict=True), 1)
        ]

    # ---- text ----------------------------------------------------------------------------------------------

    def source_words(self, text: str) -> list[str]:
        """Split a line into the words in which terms are looked up."""
        source = self.member.source
        words = source.phrase(text)
        return spelling.words(" ".join(words)) if source.raw else words

    def units(self, phrase: str) -> list[str]:
        """Split a target phrase into units, as it would be split inside a translation."""
        target = self.member.target
        return target.cut_phrase(target.phrase(phrase), self.member.target_words.ids)

    def ids(self, units: list[str], phrase: str, location: str) -> list[int]:
        """Ids of the units of a required phrase. If the model lacks a unit, raises Unmet or logs a warning,
        see `complain`, and returns []."""
        ids = self.member.target_words.encode(units)
        if UNK in ids:
            missing = units[ids.index(UNK)]
            part = "" if missing == phrase else f": the model has no unit {shown(missing)}"
            complain(f"{location}: {shown(phrase)} cannot be required{part}", "leave it out", self.strict)
            return []
        return ids

    def is_avoided(self, ids: Sequence[int], avoid: ForbiddenPhrases | None, location: str) -> bool:
        """Whether a required phrase, given as ids, contains one of the forbidden phrases `avoid`. If it does,
        raises Unmet or logs a warning, see `complain`."""
        if avoid is None or not avoid.contains_phrase(ids):
            return False
        units = self.member.target_words.decode(ids)
        phrase = " ".join(self.member.target.join(units))
        problem = f"{location}: {shown(phrase)} is required, but contains a phrase to be avoided"
        complain(problem, "choose one", self.strict)
        return True

    def phrases(self, texts: Phrases) -> list[str]:
        """Phrases to avoid as translations have them: in the given case, and as at a sentence's start."""
        target, raw = self.member.target, self.member.target_spelling.raw
        spellings = dict[str, None]()
        for text in texts:
            for words in (target.phrase(text), target.words(text)):
                spelled = "".join(map(target.spell, target.cut(words)))
                if spelled.strip():
                    spellings[spelling.mark_boundaries(f" {spelled} ", raw)] = None
        return list(spellings)


def complain(problem: str, remedy: str, strict: bool, dropped: str = "this constraint") -> None:
    """Raise Unmet if constraints must be met (`strict`), else warn that the line is translated without
    `dropped`. `problem`, `remedy`: see `Unmet`."""
    if strict:
        raise Unmet(problem, remedy)
    log.warning("%s; the line is translated without %s", problem, dropped)


def search_lines(
    model: StepModel[State],
    readings: Sequence[Source],
    config: BeamConfig,
    prefixes: Sequence[Sequence[int]] | None,
    constraints: Sequence[LineConstraints] | None,
) -> list[list[FinishedHypothesis]]:
    """Search as `nmt.search.beam.search` does, under constraints. `readings`: the source sentences as the
    model reads them; `prefixes`: ids that each translation must begin with. If the constraints of a line
    cannot be met, raises Unmet, or warns and returns the translations of a search without them."""
    if not constraints:
        return search(model, readings, config, prefixes)
    translations = search(model, readings, config, prefixes, [line.constraints for line in constraints])
    unmet = [
        row for row, line in enumerate(constraints) if line.constraints and has_failed(translations[row])
    ]
    for row in unmet:
        line = constraints[row]
        complain(f"{line.location}: {UNMET}", "ask for less", line.strict, dropped="its constraints")
    again = search(
        model,
        [readings[row] for row in unmet],
        config,
        [prefixes[row] for row in unmet] if prefixes else None,
    )
    for row, candidates in zip(unmet, again, strict=True):
        translations[row] = candidates
    return translations


def has_failed(translations: Sequence[FinishedHypothesis]) -> bool:
    """Whether no translation of a line meets its constraints."""
    return translations[0].log_prob == -math.inf
