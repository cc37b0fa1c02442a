"""Compare systems by BLEU, the mean of three seeds.

summary.py best ROWS DEV ROW ...: print the name of the best system on dev.
summary.py show ROWS DEV TEST ROW ...: print BLEU of all systems on dev and test, which is the best on dev,
and the paired bootstrap of searching with the attention model against rescoring with it.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from nmt.analysis.statistics import paired_bootstrap
from nmt.cli import options
from nmt.io import files
from nmt.metrics import corpus_bleu

SEEDS = (1, 2, 3)
PAIRS = (
    ("baseline:rescored", "attention"),
    ("rnn:rescored", "attention"),
    ("cslm+nnjm:rescored", "cslm+nnjm+attention"),
)


def outputs(rows: Path, name: str, part: str) -> list[list[str]]:
    """The translations of each seed by the system `name`. `rows`: folder of the outputs; `part`: dev or test.
    DataError if one cannot be read."""
    return [list(files.read_lines(rows / f"{name}.seed-{seed}.{part}")) for seed in SEEDS]


def mean_bleu(rows: Path, name: str, part: str, references: list[list[str]]) -> float:
    """Mean BLEU of the seeds, on the tokens as they are."""
    return fmean(corpus_bleu(lines, references, "none").score for lines in outputs(rows, name, part))


def best(rows: Path, dev: str, names: Sequence[str]) -> str:
    """The system with the highest BLEU on dev; the first of `names` on ties. `dev`: the reference."""
    references = [list(files.read_lines(dev))]
    return max(names, key=lambda name: mean_bleu(rows, name, "dev", references))


def show(rows: Path, dev: str, test: str, names: Sequence[str]) -> None:
    """Print BLEU of each system on dev and test, and p of the differences between those in PAIRS. `rows`:
    folder of the outputs; `dev`, `test`: references; `names`: of the systems."""
    dev_lines, test_lines = [list(files.read_lines(dev))], [list(files.read_lines(test))]
    chosen = best(rows, dev, names)
    print("row\tdev\ttest\tchosen")
    for name in names:
        scores = mean_bleu(rows, name, "dev", dev_lines), mean_bleu(rows, name, "test", test_lines)
        print(f"{name}\t{scores[0]:.2f}\t{scores[1]:.2f}\t{'by dev' if name == chosen else ''}")
    for listed, searched in PAIRS:
        if {listed, searched} <= set(names):
            values = p_values(rows, listed, searched, test_lines)
            print(f"# {searched} against {listed} on test, p of each seed: {' '.join(values)}")


def p_values(rows: Path, first: str, second: str, references: list[list[str]]) -> list[str]:
    """p of the paired bootstrap on test of the systems `first` and `second` for each seed, as text; - if both
    translations are identical."""
    values = []
    for base, ours in zip(outputs(rows, first, "test"), outputs(rows, second, "test"), strict=True):
        if base == ours:
            values.append("-")
        else:
            scores, _ = paired_bootstrap([first, second], [base, ours], references, "none")
            values.append(f"{scores[1].p:.3f}")
    return values


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser("summary.py", "Compare systems by BLEU, the mean of three seeds.")
    actions = parser.add_subparsers(dest="action", required=True, parser_class=options.ActionParser)
    for action, names in (("best", ("rows", "dev")), ("show", ("rows", "dev", "test"))):
        parser_of_action = actions.add_parser(action)
        for name in names:
            parser_of_action.add_argument(name)
        parser_of_action.add_argument("names", nargs="+", metavar="ROW")
    args = parser.parse_args(argv)
    if args.action == "best":
        print(best(Path(args.rows), args.dev, args.names))
    else:
        show(Path(args.rows), args.dev, args.test, args.names)


if __name__ == "__main__":
    sys.exit(options.run(command, None))
