"""Inspection of a training text and its development set: counts for each side and for both sides together,
repeated lines, the findings reported to the user, and the choice of held-out pairs."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.errors import DataError
from nmt.io import files
from nmt.io.manifest import digest64
from nmt.io.numbers import counted
from nmt.text import scripts
from nmt.text.checks import CAPITAL, CHECKS, NOWHERE, Punctuation
from nmt.text.clean import CleanConfig, reason_against
from nmt.text.scripts import (
    IDEOGRAPHS_A_WORD,
    LETTERS_A_WORD,
    WORD,
    Guess,
    LanguageCounts,
    is_spaceless,
    line_length,
    script_name,
    script_of_line,
)

# ---- repeated lines ----------------------------------------------------------------------------------------
# Lines that occur more than once are detected by 64-bit digests, which take 8 bytes per line, and 32 more
# while repeated lines are counted. Two different lines have the same digest in one of 4,000 texts of 100
# million lines.

Digests = NDArray[np.uint64]


@dataclass(frozen=True)
class RepeatedLines:
    """How many lines repeat an earlier line, or occur in another text; and the line numbers (from 1) of the
    first such line and of the line that it repeats."""

    lines: int
    first: tuple[int, int] | None


class LineDigests:
    """64-bit digests of the lines of a text, in order."""

    def __init__(self) -> None:
        self.digests = array("Q")

    def __len__(self) -> int:
        return len(self.digests)

    def add(self, line: str) -> None:
        self.digests.append(int.from_bytes(digest64(line.encode()), "little"))

    def values(self) -> Digests:
        """The digests as an array, (n,): a view, so none can be added while it is in use."""
        return np.frombuffer(self.digests, np.uint64) if self.digests else np.zeros(0, np.uint64)

    def repeated(self) -> RepeatedLines:
        """Count the lines that repeat an earlier line."""
        order = np.argsort(self.values(), kind="stable")
        ordered = self.values()[order]
        again = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
        if not len(again):
            return RepeatedLines(0, None)
        position = again[np.argmin(order[again])]  # the second of its kind: no third one comes before it
        return RepeatedLines(len(again), (int(order[position]) + 1, int(order[position - 1]) + 1))

    def unique(self) -> NDArray[np.bool_]:
        """Whether each line occurs only once: (n,)"""
        values, counts = np.unique(self.values(), return_counts=True)
        result: NDArray[np.bool_] = counts[np.searchsorted(values, self.values())] == 1
        return result

    def shared_with(self, others: "LineDigests") -> RepeatedLines:
        """Count the lines that another text has. `first`: the first one, and its line in the other text."""
        order = np.argsort(others.values(), kind="stable")
        ordered, mine = others.values()[order], self.values()
        positions = np.searchsorted(ordered, mine)
        inside = positions < len(ordered)
        inside[inside] = ordered[positions[inside]] == mine[inside]
        shared = np.flatnonzero(inside)
        first = (int(shared[0]) + 1, int(order[positions[shared[0]]]) + 1) if len(shared) else None
        return RepeatedLines(len(shared), first)


# ---- one side ----------------------------------------------------------------------------------------------

EXAMPLES = 2  # of each kind
SHOWN, BEFORE = 60, 20  # characters of an example; of those, the ones before the position
HALF = 40  # characters of each side of an example of a pair
COUNTED = 200_000  # words are counted in this many lines at the start of a text: about 100 MB at most
BAD, BOM, RETURNS = "encoding", "byte order mark", "carriage returns"  # found in bytes, not in characters


@dataclass
class Lengths:
    """A histogram of line lengths in words; empty lines are not counted."""

    counts: Counter[int] = field(default_factory=Counter)

    def mean(self) -> float:
        return sum(length * count for length, count in self.counts.items()) / max(1, self.counts.total())

    def quantile(self, share: float) -> int:
        """The smallest length such that `share` of the lines are no longer; 0 without lines."""
        left = share * self.counts.total()
        for length in sorted(self.counts):
            left -= self.counts[length]
            if left <= 0:
                return length
        return max(self.counts, default=0)


@dataclass
class SideReport:
    """Counts and examples of problems in one text."""

    path: str
    lines: int = 0
    counts: Counter[str] = field(default_factory=Counter)  # lines by name of a check
    examples: dict[str, list[str]] = field(default_factory=dict)  # file:line: text
    lengths: Lengths = field(default_factory=Lengths)
    scripts: Counter[str] = field(default_factory=Counter)  # lines of each
    languages: LanguageCounts = field(default_factory=LanguageCounts)
    capitals: int = 0  # lines with a capital letter
    punctuation: Punctuation = field(default_factory=Punctuation)
    words: Counter[str] = field(default_factory=Counter)  # of the first lines, lower-cased, only of letters
    digests: LineDigests = field(default_factory=LineDigests)

    def add(self, number: int, line: str) -> None:
        """Count a line and its problems. `number`: of the line, from 1."""
        self.digests.add(line)
        for name, check in CHECKS.items():
            position = check.position(line)
            if position != NOWHERE:
                self.note(name, number, line, position)
        if not line.strip():
            return
        self.lengths.counts[line_length(line)] += 1
        self.languages.add(line)
        script = script_of_line(line)
        self.scripts[script] += 1
        self.keep_example(f"script {script}", number, line, 0)
        self.capitals += bool(CAPITAL.search(line))
        self.punctuation.add(line)
        if number <= COUNTED:
            self.words.update(WORD.findall(line.lower()))

    def note(self, name: str, number: int, line: str, position: int = 0) -> None:
        """Count a problem found in a line, and keep the line as an example."""
        self.counts[name] += 1
        self.keep_example(name, number, line, position)

    def keep_example(self, name: str, number: int, line: str, position: int) -> None:
        """Keep a line as an example, unless there are enough of its kind."""
        examples = self.examples.setdefault(name, [])
        if len(examples) < EXAMPLES:
            examples.append(f"{self.path}:{number}: {excerpt(line, position)}")

    def guess(self) -> Guess:
        return self.languages.guess()

    def has_case(self) -> bool:
        """Whether more than one line in 50 has a capital letter."""
        return 50 * self.capitals > self.lines

    def hapax_share(self) -> float:
        """Share of running words that occur once: an estimate of the share of unknown words in new text."""
        total = self.words.total()
        return sum(1 for count in self.words.values() if count == 1) / max(1, total)


def excerpt(line: str, position: int) -> str:
    """The part of a line around a position, made safe to print on a terminal."""
    start = max(0, position - BEFORE) if position > SHOWN - BEFORE else 0
    part = line[start : start + SHOWN]
    shown = "".join(character if character.isprintable() else ascii(character)[1:-1] for character in part)
    return f"{'...' if start else ''}{shown}{'...' if start + SHOWN < len(line) else ''}"


def inspected_lines(path: str | Path, report: SideReport) -> Iterator[str]:
    """Yield the lines of a file. Lines that are not UTF-8, or have a NUL, are included with `?` for what
    cannot be read; the report counts them, with the message of `nmt.io.files.read_lines` as the example."""
    for number, raw in enumerate(files.read_byte_lines(path), 1):
        report.lines = number
        if number == 1 and raw.startswith(b"\xef\xbb\xbf"):
            report.counts[BOM] += 1
            raw = raw[3:]
        if raw.endswith(b"\r"):
            report.note(RETURNS, number, raw[:-1].decode("utf-8", "replace"))
            raw = raw[:-1]
        try:
            line = files.decode(raw, path, number)
        except DataError as error:
            line = raw.decode("utf-8", "replace").replace("\ufffd", "?").replace("\0", "?")
            report.counts[BAD] += 1
            examples = report.examples.setdefault(BAD, [])
            if len(examples) < EXAMPLES:
                examples.append(str(error))
        yield line


# ---- both sides --------------------------------------------------------------------------------------------
# Both sides of a parallel text, read together: repeated pairs, copies, and what nmt-clean would drop.

SAME = "same"  # source and target are identical


@dataclass
class PairReport:
    """Counts and examples of problems in a parallel text. Memory: 25 bytes a pair, 32 more while repeated
    lines are counted, and at most some 200 MB for words."""

    source: SideReport
    target: SideReport
    reasons: Counter[str] = field(default_factory=Counter)  # pairs that nmt-clean would drop; SAME
    examples: dict[str, list[str]] = field(default_factory=dict)
    digests: LineDigests = field(default_factory=LineDigests)  # of the pairs
    sound: bytearray = field(default_factory=bytearray)  # for each pair: 1 if it has no problem

    @property
    def sides(self) -> tuple[SideReport, SideReport]:
        return self.source, self.target

    @property
    def pairs(self) -> int:
        """Number of line pairs: the length of the shorter side."""
        return min(self.source.lines, self.target.lines)

    @property
    def usable(self) -> int:
        """Pairs without an empty side."""
        return self.pairs - self.reasons["empty"]

    def add(self, number: int, source: str, target: str, config: CleanConfig) -> None:
        """Count a pair and its problems. `number`: of the lines, from 1; `config`: the limits of a pair."""
        self.digests.add(f"{source}\n{target}")
        reason = reason_against(source, target, config)
        if not reason and source == target:
            reason = SAME
        if reason:
            self.note(reason, number, source, target)
        self.sound.append(not reason)

    def note(self, name: str, number: int, source: str, target: str) -> None:
        """Count a problem found in a pair, and keep the pair as an example."""
        self.reasons[name] += 1
        examples = self.examples.setdefault(name, [])
        if len(examples) < EXAMPLES:
            examples.append(f"line {number}: {excerpt(source[:HALF], 0)} | {excerpt(target[:HALF], 0)}")


def inspect_pairs(
    source: str,
    target: str,
    advance: Callable[[int], None] = lambda count: None,
    names: tuple[str, str] | None = None,
) -> PairReport:
    """Read both files once and inspect them. `advance` is called with the number of lines read from each file
    since its last call; `names`: of the files in the report, by default their paths. DataError for a file
    that cannot be read; bad bytes and unequal lengths only go into the report."""
    source_name, target_name = names or (source, target)
    report = PairReport(SideReport(files.name_of(source_name)), SideReport(files.name_of(target_name)))
    config = CleanConfig()
    rows = zip_longest(inspected_lines(source, report.source), inspected_lines(target, report.target))
    for number, (source_line, target_line) in enumerate(rows, 1):
        for side, line in zip(report.sides, (source_line, target_line), strict=True):
            if line is not None:
                side.add(number, line)
        if source_line is not None and target_line is not None:
            report.add(number, source_line, target_line, config)
        advance(1)
    return report


# ---- findings ----------------------------------------------------------------------------------------------
# A summary line for each text, then a finding for each kind of problem: its count, what to do, and examples.

FAULTS = {  # reasons of nmt-clean, and SAME
    "empty": "pairs with an empty side",
    "long": "pairs with a side of more than 80 words",
    "ratio": "pairs with one side more than nine times as long as the other",
    SAME: "pairs with identical sides",
}
NMT_CLEAN = "nmt-clean drops them"
OTHER_SCRIPTS = 3  # at most so many are reported
UNLIKE = 0.2  # any training text has a larger share of the running words of a dev set in its language
ENOUGH_WORDS = 20  # running words of a text from which its language can be judged
A_WORD = {  # what `line_length` counts where words have no blanks between them
    **dict.fromkeys(("ja", "zh"), f"{IDEOGRAPHS_A_WORD} characters"),
    **dict.fromkeys(("bo", "km", "lo", "my", "th"), f"{LETTERS_A_WORD} letters"),
}
CASED = frozenset(("ARMENIAN", "CYRILLIC", "GREEK", "LATIN"))  # scripts that have capitals


@dataclass(frozen=True)
class Finding:
    """A problem or remark to report. `stops`: whether it must be fixed before training."""

    text: str
    examples: list[str] = field(default_factory=list)
    stops: bool = False

    def lines(self) -> Iterator[str]:
        """Lines to print: the text, then indented examples."""
        yield f"  {'ERROR: ' if self.stops else ''}{self.text}"
        yield from (f"      {example}" for example in self.examples)


def finding_text(what: str, count: int, advice: str = "") -> str:
    """Format a finding: `empty lines: 12`, followed by the advice if any."""
    return f"{what}: {count:,}{f'; {advice}' if advice else ''}"


def side_title(side: SideReport) -> str:
    """Format the line that summarizes one text."""
    guess, ending = side.guess(), scripts.language_of_file(side.path)
    if len(guess.languages) > 1 and ending in guess.languages:  # much alike, and the name says which
        guess = replace(guess, languages=(ending,))
    characters = f", {A_WORD[guess.language]} being a word" if guess.language in A_WORD else ""
    shares = {"half": 0.5, "95%": 0.95, "99%": 0.99, "all": 1.0}
    upper = ", ".join(f"{name} up to {side.lengths.quantile(share)}" for name, share in shares.items())
    return (
        f"{side.path}: {counted(side.lines, 'line')}; {guess}; {side.lengths.mean():.1f} words a "
        f"line{characters} ({upper})"
    )


def side_findings(side: SideReport, ending: str, raw: bool = False) -> Iterator[Finding]:
    """Yield the findings about one text. `ending`: the language code in its file name, or empty. `raw`:
    whether the text should be raw, because the caller will tokenize it."""
    if count := side.counts[BAD]:
        yield Finding(finding_text("lines that cannot be read", count), side.examples[BAD], stops=True)
    if side.counts[BOM]:
        yield Finding("a byte order mark at its start, which is ignored")
    if count := side.counts[RETURNS]:
        text = finding_text("lines that end with a carriage return", count, "it is ignored")
        yield Finding(text, side.examples[RETURNS][:1])
    language = side.guess().language
    if ending and language and ending != language:
        yield Finding(
            f"its name says {ending}, but its words look like {language}: are the two sides swapped?"
        )
    for name, check in CHECKS.items():
        if count := side.counts[name]:
            yield Finding(finding_text(check.what, count, check.advice), side.examples[name])
    yield from other_scripts(side)
    if side.punctuation.is_tokenized():
        undo = "; raw text is expected, so undo it first: nmt-tokenize --detokenize" if raw else ""
        yield Finding(f"tokenized already: full stops and commas are words of their own{undo}")
    if side.guess().script in CASED and not side.has_case():
        yield Finding("lower-cased: hardly any line has a capital letter")
    yield from repeat_findings(side.path, side.digests, "lines")


def repeat_findings(path: str, digests: LineDigests, what: str, advice: str = "") -> Iterator[Finding]:
    """Yield a finding for repeated lines or pairs (`what`). `path`: the text that the message names."""
    repeated = digests.repeated()
    if repeated.first:
        later, earlier = repeated.first
        text = finding_text(f"{what} that repeat an earlier one", repeated.lines, advice)
        yield Finding(text, [f"{path}:{later} repeats line {earlier}"])


def other_scripts(side: SideReport) -> Iterator[Finding]:
    """Yield a finding for each script of lines that are not in the script of the text."""
    text_script = side.guess().script
    others = Counter({name: count for name, count in side.scripts.items() if name not in ("", text_script)})
    for script, count in others.most_common(OTHER_SCRIPTS):
        what = f"lines in {script_name(script)} script"
        text = finding_text(what, count, "do they belong to this language?")
        yield Finding(text, side.examples[f"script {script}"])


def pair_findings(report: PairReport) -> Iterator[Finding]:
    """Yield the findings about a parallel text; those that prevent training come first."""
    source, target = report.sides
    if source.lines != target.lines:
        yield Finding(
            f"{source.path} has {counted(source.lines, 'line')}, {target.path} {target.lines:,}: line n of "
            "one has to be the translation of line n of the other; find where they diverge",
            stops=True,
        )
    if not report.usable:
        yield Finding("no pair has words on both sides", stops=True)
    for name, what in FAULTS.items():
        if count := report.reasons[name]:
            percent = 100 * count / report.pairs
            share = f"{percent:.0f}% of the pairs" if percent >= 1 else f"{percent:.2g}% of the pairs"
            advice = share if name == SAME else f"{share}; {NMT_CLEAN}"
            yield Finding(finding_text(what, count, advice), report.examples[name])
    yield from repeat_findings(source.path, report.digests, "pairs", NMT_CLEAN)


def dev_findings(dev: PairReport, train: PairReport) -> Iterator[Finding]:
    """Yield the findings about a development set: pairs and source lines that are also in the training text,
    swapped sides, and sides that do not seem to be in the language of the training text."""
    both = dev.digests.shared_with(train.digests)
    sources = dev.source.digests.shared_with(train.source.digests)
    for shared, what in ((both, "pairs"), (sources, "source lines")):
        if shared.first:
            dev_row, train_row = shared.first
            yield Finding(
                finding_text(
                    f"{what} that are also in the training text",
                    shared.lines,
                    "validation scores will be too good",
                ),
                [f"{dev.source.path}:{dev_row} is {train.source.path}:{train_row}"],
            )
    yield from other_words(dev, train)


def other_words(dev: PairReport, train: PairReport) -> Iterator[Finding]:
    """Yield a finding for each side of a development set whose words hardly occur in that side of the
    training text, or one finding if its sides are swapped."""
    own = list(map(shared_words, dev.sides, train.sides))
    crossed = list(map(shared_words, dev.sides, reversed(train.sides)))
    if max(crossed) > UNLIKE and sum(crossed) > 2 * sum(own):
        yield Finding(
            f"the words of {dev.source.path} are those of {train.target.path}: are the two sides of the "
            "development set swapped?"
        )
        return
    for side, train_text, part in zip(dev.sides, train.sides, own, strict=True):
        enough = side.words.total() >= ENOUGH_WORDS and not is_spaceless(train_text.guess().language)
        if enough and part < UNLIKE:
            yield Finding(
                f"only {100 * part:.0f}% of the words of {side.path} are in {train_text.path}: are they in "
                "the same language?"
            )


def shared_words(side: SideReport, reference: SideReport) -> float:
    """Share of a text's running words that also occur in a reference text."""
    shared = sum(count for word, count in side.words.items() if word in reference.words)
    return shared / max(1, side.words.total())


def ratio_title(report: PairReport) -> str:
    """Format the line that summarizes a parallel text."""
    words = [side.lengths.mean() * side.lengths.counts.total() for side in report.sides]
    return f"{counted(report.pairs, 'pair')}; {words[1] / max(1, words[0]):.2f} target words per source word"


# ---- survey ------------------------------------------------------------------------------------------------
# All findings, as commands print them before they use the texts.


@dataclass(frozen=True)
class SurveySection:
    """Findings about a text, a pair of texts or all texts, with a title, which may be empty."""

    title: str
    findings: list[Finding] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        if self.title:
            yield self.title
        for finding in self.findings:
            yield from finding.lines()


def survey_sections(
    train: PairReport, dev: PairReport | None, codes: tuple[str, str] | None = None, raw: bool = False
) -> Iterator[SurveySection]:
    """Yield the findings about the texts in the order in which they are printed. `codes`: the languages of
    both sides, by default those in the file names; `raw`: whether the texts should be raw, because the caller
    will tokenize them."""
    for pairs in (train, dev) if dev else (train,):
        for number, side in enumerate(pairs.sides):
            language = codes[number] if codes else scripts.language_of_file(side.path)
            yield SurveySection(side_title(side), list(side_findings(side, language, raw)))
        yield SurveySection(ratio_title(pairs), list(pair_findings(pairs)))
    if dev:
        yield SurveySection("", list(dev_findings(dev, train)))


def count_mistakes(survey: Iterable[SurveySection]) -> int:
    """Number of findings that must be fixed before training."""
    return sum(finding.stops for section in survey for finding in section.findings)


# ---- held out ----------------------------------------------------------------------------------------------
# A development set for a text without one: pairs taken out of the training text, the same ones each time.

MOST_HELD_OUT, HELD_OUT_SHARE = 1000, 20  # pairs; at most one in this many


def choose_held_out(report: PairReport) -> NDArray[np.int64]:
    """Choose pairs to hold out: a fixed pseudo-random sample of the pairs without problems, neither side of
    which occurs again. Returns their indices, increasing: (n,). DataError if there are too few."""
    digests = (report.digests, report.source.digests, report.target.digests)
    free = np.frombuffer(report.sound, np.bool_).copy()
    for digest in digests:
        free &= digest.unique()[: len(free)]
    candidates = np.flatnonzero(free)
    count = min(MOST_HELD_OUT, len(candidates) // HELD_OUT_SHARE)
    if not count:
        raise DataError(
            f"{report.source.path}: {counted(len(candidates), 'pair')} without faults and "
            "repetitions, too few to hold out a development set; give one with --dev-source and --dev-target"
        )
    order = np.argsort(report.digests.values()[candidates], kind="stable")
    return np.sort(candidates[order[:count]])


def split_held_out(
    texts: Sequence[str], train: Sequence[Path], dev: Sequence[Path], rows: NDArray[np.int64]
) -> None:
    """Write the pairs at the indices `rows`, which must increase, to the development files `dev`, and all
    others to the training files `train`, in the order of the text. `texts`, `train`, `dev`: source and
    target. DataError as from `nmt.io.files.parallel`, UserError if a file cannot be written."""
    dev_rows = iter([*rows.tolist(), -1])
    due = next(dev_rows)
    with ExitStack() as stack:
        train_files, dev_files = (
            [stack.enter_context(files.Writing(path)) for path in paths] for paths in (train, dev)
        )
        for row, pair in enumerate(files.parallel(*texts)):
            for out, line in zip(dev_files if row == due else train_files, pair, strict=True):
                out.write(line + "\n")
            if row == due:
                due = next(dev_rows)
