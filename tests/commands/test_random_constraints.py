"""Constraints of the command line, drawn at random: what is demanded is in the output, what is avoided is
not. A run with subwords and truecased words, raw text in and out, and tokenized text."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.cli import translate
from nmt.runs import checkpoint
from nmt.text.vocab import Vocab
from tests.conftest import ROOT

RUN = ROOT / "tests" / "golden" / "0.5.0" / "translator"
TEXT = (ROOT / "tests" / "golden" / "source.en").read_text(encoding="utf-8")
LINES = 40


def drawn_words(draw: random.Random, vocab: Vocab, count: int) -> list[str]:
    """Whole words of the run that are letters, in lower case."""
    words = [word for word in vocab.words[3:] if re.fullmatch("[a-zà-ÿ]{2,}", word)]
    return draw.sample(words, count)


class Case:
    """Files of one draw, and what is checked of each line of the output."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.draw, self.folder = random.Random(seed), folder
        self.run = checkpoint.load(RUN)
        sources = [line for line in TEXT.splitlines() if line]
        self.lines = [self.draw.choice(sources) for _ in range(LINES)]
        self.options: list[str] = []
        self.tests: list[Callable[[int, str], object]] = []

    def write(self, option: str, rows: list[str]) -> None:
        path = self.folder / option.strip("-")
        path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        self.options += [option, str(path)]

    def targets(self, count: int) -> list[str]:
        return drawn_words(self.draw, self.run.target_words, count)

    def constraints(self) -> None:
        """Up to two phrases of up to two words for some lines."""
        words = self.targets(12)
        rows = [
            [
                " ".join(self.draw.sample(words, self.draw.randint(1, 2)))
                for _ in range(self.draw.choice([0, 0, 1, 2]))
            ]
            for _ in self.lines
        ]
        self.write("--constraints", ["\t".join(row) for row in rows])
        self.tests.append(lambda number, text: all(has(text, phrase) for phrase in rows[number]))

    def terms(self) -> None:
        """Translations of words that the text has."""
        sources = sorted({word for line in self.lines for word in re.findall(r"\b[a-z]{3,}\b", line)})
        rows = dict(zip(self.draw.sample(sources, 4), self.targets(4), strict=True))
        self.write("--terms", [f"{term}\t{translation}" for term, translation in rows.items()])
        self.tests.append(
            lambda number, text: all(
                has(text, translation) for term, translation in rows.items() if has(self.lines[number], term)
            )
        )

    def avoid(self, option: str) -> None:
        """Words that translations have without it."""
        words = self.draw.sample(["le", "la", "les", "un", "une", "et", "est", "de"], 3)
        if option == "--avoid":
            self.write(option, words)
            self.tests.append(lambda number, text: not any(has(text, word) for word in words))
            return
        rows = [self.draw.choice(words) if self.draw.random() < 0.5 else "" for _ in self.lines]
        self.write(option, rows)
        self.tests.append(lambda number, text: not rows[number] or not has(text, rows[number]))


def has(text: str, phrase: str) -> bool:
    """Do the words stand in a text, in whatever case?"""
    return bool(re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text, re.IGNORECASE))


@pytest.mark.ci
@pytest.mark.parametrize("tokenized", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_what_is_demanded_is_in_the_output(
    seed: int, tokenized: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case(seed, tmp_path)
    case.write(
        "--input", [" ".join(case.run.source.words(line)) for line in case.lines] if tokenized else case.lines
    )
    if tokenized:
        case.lines = (tmp_path / "input").read_text(encoding="utf-8").splitlines()
    kinds: list[Callable[[], None]] = [
        case.constraints,
        case.terms,
        lambda: case.avoid("--avoid"),
        lambda: case.avoid("--avoid-lines"),
    ]
    for kind in case.draw.sample(kinds, case.draw.randint(1, 3)):
        kind()
    more = ["--tokenized"] if tokenized else []
    beam = ["--beam-size", str(case.draw.choice([1, 4, 8])), "--max-length-factor", "4"]
    assert translate.main([str(RUN), *case.options, *more, *beam, "--unmet", "warn", "--threads", "1"]) == 0
    done = capsys.readouterr()
    output = done.out.splitlines()
    assert len(output) == LINES
    given_up = {int(number) for number in re.findall(r":(\d+): .* translated without", done.err)}
    for number, text in enumerate(output):
        if number + 1 not in given_up:
            assert all(test(number, text) for test in case.tests), (case.options, case.lines[number], text)
    assert len(given_up) < LINES / 4
