"""What an inspection says: one line for each text, one for each kind of thing that was found, with its count,
what to do, and examples."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from nmt.text import scripts
from nmt.text.inspection.checks import CHECKS
from nmt.text.inspection.language import shown
from nmt.text.inspection.texts import BAD, BOM, RETURNS, SAME, Digests64, PairReport, SideReport
from nmt.text.scripts import IDEOGRAPHS_A_WORD, LETTERS_A_WORD, is_spaceless

# ---- findings ----------------------------------------------------------------------------------------------


CLEAN = {  # reasons of nmt-clean, and SAME
    "empty": "pairs with an empty side",
    "long": "pairs with a side of more than 80 words",
    "ratio": "pairs of which one side is more than nine times as long as the other",
    SAME: "pairs whose sides are equal",
}
NMT_CLEAN = "nmt-clean drops them"
OTHER_SCRIPTS = 3  # that are named
UNLIKE = 0.2  # share of running words; any training text has more of a development set in its language
ENOUGH = 20  # running words of a text, to say that they are of another language
A_WORD = {  # what `line_length` counts where words have no blanks between them
    **dict.fromkeys(("ja", "zh"), f"{IDEOGRAPHS_A_WORD} characters"),
    **dict.fromkeys(("bo", "km", "lo", "my", "th"), f"{LETTERS_A_WORD} letters"),
}
CASED = frozenset(("ARMENIAN", "CYRILLIC", "GREEK", "LATIN"))  # scripts that have capitals


@dataclass(frozen=True)
class Finding:
    """Something that was found. `stops`: training cannot begin before it is mended."""

    text: str
    examples: list[str] = field(default_factory=list)
    stops: bool = False

    def lines(self) -> Iterator[str]:
        """Lines to print: the text, then indented examples."""
        yield f"  {'ERROR: ' if self.stops else ''}{self.text}"
        yield from (f"      {example}" for example in self.examples)


def counted(what: str, count: int, advice: str = "") -> str:
    """`empty lines: 12`, and what to do."""
    return f"{what}: {count:,}{f'; {advice}' if advice else ''}"


def side_title(side: SideReport) -> str:
    """The line of a text."""
    guess, ending = side.guess(), scripts.language_of_file(side.path)
    if len(guess.languages) > 1 and ending in guess.languages:  # much alike, and the name says which
        guess = replace(guess, languages=(ending,))
    characters = f", {A_WORD[guess.language]} being a word" if guess.language in A_WORD else ""
    shares = {"half": 0.5, "95%": 0.95, "99%": 0.99, "all": 1.0}
    upper = ", ".join(f"{name} up to {side.lengths.quantile(share)}" for name, share in shares.items())
    return (
        f"{side.path}: {side.lines:,} lines; {guess}; {side.lengths.mean():.1f} words a line{characters} "
        f"({upper})"
    )


def side_findings(side: SideReport, ending: str, raw: bool = False) -> Iterator[Finding]:
    """The findings of a text. `ending`: the language that its name says, or nothing. `raw`: whoever reads it
    tokenizes it."""
    if count := side.counts[BAD]:
        yield Finding(counted("lines that cannot be read", count), side.examples[BAD], stops=True)
    if side.counts[BOM]:
        yield Finding("a byte order mark at its start, which is ignored")
    if count := side.counts[RETURNS]:
        text = counted("lines that end with a carriage return", count, "it is ignored")
        yield Finding(text, side.examples[RETURNS][:1])
    language = side.guess().language
    if ending and language and ending != language:
        yield Finding(f"it should be {ending}, its words look like {language}: are the two sides exchanged?")
    for name, check in CHECKS.items():
        if count := side.counts[name]:
            yield Finding(counted(check.what, count, check.advice), side.examples[name])
    yield from other_scripts(side)
    if side.is_tokenized():
        undo = "; raw text is expected, so undo it first: nmt-tokenize --detokenize" if raw else ""
        yield Finding(f"tokenized already: full stops and commas are words of their own{undo}")
    if side.guess().script in CASED and not side.has_case():
        yield Finding("lower-cased: hardly any line has a capital letter")
    yield from repeat_findings(side.path, side.digests, "lines")


def repeat_findings(path: str, digests: Digests64, what: str, advice: str = "") -> Iterator[Finding]:
    """Lines or pairs that occur more than once."""
    repeated = digests.repeated()
    if repeated.first:
        later, earlier = repeated.first
        text = counted(f"{what} that repeat an earlier one", repeated.lines, advice)
        yield Finding(text, [f"{path}:{later} is line {earlier} again"])


def other_scripts(side: SideReport) -> Iterator[Finding]:
    """Lines of another script than that of the text."""
    own = side.guess().script
    others = Counter({name: count for name, count in side.scripts.items() if name not in ("", own)})
    for script, count in others.most_common(OTHER_SCRIPTS):
        text = counted(f"lines in {shown(script)} script", count, "do they belong to this language?")
        yield Finding(text, side.examples[f"script {script}"])


def pair_findings(report: PairReport) -> Iterator[Finding]:
    """Findings about a parallel text, those that stop a training first."""
    source, target = report.sides
    if source.lines != target.lines:
        yield Finding(
            f"{source.path} has {source.lines:,} lines, {target.path} {target.lines:,}: line n of one has to "
            "be the translation of line n of the other; find where they come apart",
            stops=True,
        )
    if not report.usable:
        yield Finding("no pair has words on both sides", stops=True)
    for name, what in CLEAN.items():
        if count := report.reasons[name]:
            percent = 100 * count / report.pairs
            share = f"{percent:.0f}% of the pairs" if percent >= 1 else f"{percent:.2g}% of the pairs"
            advice = share if name == SAME else f"{share}; {NMT_CLEAN}"
            yield Finding(counted(what, count, advice), report.examples[name])
    yield from repeat_findings(source.path, report.digests, "pairs", NMT_CLEAN)


def dev_findings(dev: PairReport, train: PairReport) -> Iterator[Finding]:
    """Development pairs that are in the training text, too, and sides that are in another language than
    there."""
    both = dev.digests.within(train.digests)
    sources = dev.source.digests.within(train.source.digests)
    for shared, what in ((both, "pairs"), (sources, "source lines")):
        if shared.first:
            here, train_row = shared.first
            yield Finding(
                counted(
                    f"{what} that are in the training text, too",
                    shared.lines,
                    "validations will score better than new text",
                ),
                [f"{dev.source.path}:{here} is {train.source.path}:{train_row}"],
            )

    yield from other_words(dev, train)


def other_words(dev: PairReport, train: PairReport) -> Iterator[Finding]:
    """Sides of a development set whose words are not those of the training text."""
    own = [
        unlike_share(dev_side, train_side)
        for dev_side, train_side in zip(dev.sides, train.sides, strict=True)
    ]
    crossed = [
        unlike_share(dev_side, train_side)
        for dev_side, train_side in zip(dev.sides, reversed(train.sides), strict=True)
    ]
    if max(crossed) > UNLIKE and sum(crossed) > 2 * sum(own):
        yield Finding(
            f"the words of {dev.source.path} are those of {train.target.path}: are the two sides of the "
            "development set exchanged?"
        )
        return
    for side, train_text, part in zip(dev.sides, train.sides, own, strict=True):
        enough = side.words.total() >= ENOUGH and not is_spaceless(train_text.guess().language)
        if enough and part < UNLIKE:
            yield Finding(
                f"only {100 * part:.0f}% of the words of {side.path} are in {train_text.path}: are they in "
                "the same language?"
            )


def unlike_share(side: SideReport, reference: SideReport) -> float:
    """The share of the running words of a text that another one has, too."""
    return sum(count for word, count in side.words.items() if word in reference.words) / max(
        1, side.words.total()
    )


def ratio_title(report: PairReport) -> str:
    """The line of a parallel text."""
    words = [side.lengths.mean() * side.lengths.counts.total() for side in report.sides]
    return f"{report.pairs:,} pairs; {words[1] / max(1, words[0]):.2f} target words a source word"


# ---- survey ------------------------------------------------------------------------------------------------
# The survey of a training text and its development set, as commands print it before they work with them.


@dataclass(frozen=True)
class SurveySection:
    """The findings about a text, a pair of texts, or all texts together, below a title, which may be
    empty."""

    title: str
    findings: list[Finding] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """The section as it is printed."""
        if self.title:
            yield self.title
        for finding in self.findings:
            yield from finding.lines()


def survey_sections(
    train: PairReport, dev: PairReport | None, codes: tuple[str, str] | None = None, raw: bool = False
) -> Iterator[SurveySection]:
    """The findings about the texts, in the order to print. `codes`: the languages of both sides, by default
    those that the names of the files end in; `raw`: the reader wants text that is not tokenized yet."""
    for pairs in (train, dev) if dev else (train,):
        for number, side in enumerate(pairs.sides):
            language = codes[number] if codes else scripts.language_of_file(side.path)
            yield SurveySection(side_title(side), list(side_findings(side, language, raw)))
        yield SurveySection(ratio_title(pairs), list(pair_findings(pairs)))
    if dev:
        yield SurveySection("", list(dev_findings(dev, train)))


def count_mistakes(survey: Iterable[SurveySection]) -> int:
    """The number of findings that have to be mended before any training."""
    return sum(finding.stops for section in survey for finding in section.findings)
