"""nmt-perplexity: how well a language model, neural or count-based, predicts a text."""

import logging
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from nmt.cli import options
from nmt.errors import DataError
from nmt.io import files
from nmt.io.progress import Progress

if TYPE_CHECKING:
    from nmt.runs.language_model import LineScorer, LineScores

log = logging.getLogger(__name__)

READ_AHEAD = 2000  # lines scored together
# The fields that are packed.
COUNTED = ("lines", "characters", "blanks", "words", "unknown", "log_prob", "known_log_prob")


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv)
    from nmt.runs import language_model

    set_up = ""
    if language_model.needs_torch(args.model):
        set_up = options.set_up_torch(args.device, args.threads, args.matmul, args.model)
    model = language_model.line_scorer(
        args.model, args.checkpoint, args.device, args.assume_normalized, args.backoff, args.tokenized
    )
    lines = partial(files.number_of_lines, args.input)
    with options.progress(args, "lines", lines, set_up) as progress:
        totals = score_file(model, args.input, progress)
    if not totals.lines:
        raise DataError(f"{files.name_of(args.input)}: empty file, expected one sentence a line")
    if 0 < totals.words == totals.unknown:
        log.warning(
            "%s knows no word of %s: write the text as the model's training text is; for a model of classes, "
            "as classes",
            model.name,
            files.name_of(args.input),
        )
    rows = [
        (model.name, "model"),
        (files.name_of(args.input), "text"),
        (
            f"{model.vocab_size}" if model.vocab_size > 0 else "?",
            "units in the vocabulary, the end of a sentence among them",
        ),
        *totals.rows(),
    ]
    if args.assume_normalized:
        rows.append(("assumed", "log Z = 0: probabilities do not sum to one"))
    with files.Writing(args.output) as out:
        out.write_lines(f"{value}\t{name}" for value, name in rows)


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-perplexity",
        "Perplexity of a text, with and without unknown words, as a table of values and their names. "
        "Counting unknown words flatters a model of a small vocabulary; compare models of the same one.",
    )
    options.add_language_model(parser)
    options.add_input_output(parser)
    parser.add_argument(
        "--tokenized", action="store_true", help="the text is tokenized like the training text of the run"
    )
    options.add_quiet(parser)
    return parser


@dataclass
class PerplexityTotals:
    """Counts and sums of natural log probabilities over the lines of a text."""

    lines: int = 0
    characters: int = 0  # ends of lines included
    blanks: int = 0  # those of them that are blanks
    words: int = 0  # words, or subword units, without ends of lines
    unknown: int = 0  # those of them that are unknown
    log_prob: float = 0.0  # natural, of all units and ends of lines
    known_log_prob: float = 0.0  # natural, of the units that are not unknown and of ends of lines
    seconds: float = 0.0  # CPU time
    log_z: list[float] = field(default_factory=list)  # |log Z| of distinct contexts, natural

    def add(self, line: str, scored: "LineScores") -> None:
        self.lines, self.characters = self.lines + 1, self.characters + len(line) + 1
        self.blanks += line.count(" ")
        self.words += len(scored.units)
        self.unknown += scored.in_vocabulary.count(False)
        self.log_prob += sum(scored.log_probs)
        scored_words = zip(scored.log_probs, [*scored.in_vocabulary, True], strict=True)
        self.known_log_prob += sum(value for value, is_known in scored_words if is_known)

    def pack(self) -> str:
        """Format the counts and sums as a line for `add_packed`."""
        return " ".join(repr(getattr(self, name)) for name in COUNTED)

    def add_packed(self, line: str) -> None:
        """Add the counts and sums that `pack` formatted."""
        for name, value in zip(COUNTED, line.split(" "), strict=True):
            total = getattr(self, name)
            setattr(self, name, total + type(total)(value))

    @property
    def units(self) -> int:
        """Number of words or subword units, ends of lines included."""
        return self.words + self.lines

    @property
    def perplexity(self) -> float:
        """Perplexity of all units, unknown ones counted as <unk>."""
        return perplexity(self.log_prob, self.units)

    @property
    def known_perplexity(self) -> float:
        """Perplexity of the units that are not unknown."""
        return perplexity(self.known_log_prob, self.units - self.unknown)

    def perplexities(self) -> str:
        """Describe both perplexities for the log."""
        return f"perplexity {self.perplexity:.2f}, without unknown units {self.known_perplexity:.2f}"

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield the (value, name) pairs of the table."""
        units = self.units
        yield f"{self.lines}", "sentences"
        yield f"{self.words}", "words or subword units"
        yield f"{self.unknown}", "of them unknown"
        name = "perplexity per unit, ends of sentences counted, unknown ones as <unk>"  # read by recipes
        yield f"{self.perplexity:.4f}", name
        yield f"{self.known_perplexity:.4f}", "perplexity without unknown units"
        # In text written in characters (`t h e _ c a t`) blanks only separate the characters.
        spelled = self.words == self.characters - self.blanks - self.lines
        characters = self.characters - self.blanks if spelled else self.characters
        bits = -self.log_prob / math.log(2) / characters
        yield f"{bits:.5f}", "bits per character, ends of lines counted"
        yield f"{self.log_prob:.4f}", "log p of the text, natural"
        yield f"{units / max(self.seconds, 1e-9):.0f}", "units per CPU second"
        if self.log_z:
            yield f"{sum(self.log_z) / len(self.log_z):.4f}", "mean |log Z| of distinct contexts"


def score_file(model: "LineScorer", path: str, progress: Progress) -> PerplexityTotals:
    """Score the lines of a file with a model; returns the totals. Advances `progress` by the lines read.
    DataError for a file that is not text, or that the model cannot score."""
    totals, text = PerplexityTotals(), iter(files.read_lines(path))
    while block := list(islice(text, READ_AHEAD)):
        clock = time.process_time()
        scores = model.score(block)
        totals.seconds += time.process_time() - clock
        totals.log_z += model.log_z(block)
        for line, scored in zip(block, scores, strict=True):
            totals.add(line, scored)
        progress.add(len(block))
    return totals


def perplexity(log_prob: float, units: int) -> float:
    """exp(-log_prob / units), natural, at most exp(700), which a float holds; nan without units."""
    return math.exp(min(700.0, -log_prob / units)) if units else math.nan


if __name__ == "__main__":
    sys.exit(main())
