"""The survey of a training text and its development set, as commands print it before they work with them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from nmt.text import languages
from nmt.text.inspection import findings
from nmt.text.inspection.findings import Finding
from nmt.text.inspection.pairs import PairReport


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


def sections(
    train: PairReport, dev: PairReport | None, codes: tuple[str, str] | None = None, raw: bool = False
) -> Iterator[SurveySection]:
    """The findings about the texts, in the order to print. `codes`: the languages of both sides, by default
    those that the names of the files end in; `raw`: the reader wants text that is not tokenized yet."""
    for pairs in (train, dev) if dev else (train,):
        for number, side in enumerate(pairs.sides):
            language = codes[number] if codes else languages.of_file(side.path)
            yield SurveySection(findings.title(side), list(findings.of_side(side, language, raw)))
        yield SurveySection(findings.ratio(pairs), list(findings.of_pairs(pairs)))
    if dev:
        yield SurveySection("", list(findings.of_dev(dev, train)))


def mistakes(survey: Iterable[SurveySection]) -> int:
    """The number of findings that have to be mended before any training."""
    return sum(finding.stops for section in survey for finding in section.findings)
