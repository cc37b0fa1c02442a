"""Print table 4.1 of van Merriënboer 2018: for each row the BLEU of three seeds, their mean, and p of the
paired bootstrap against the baseline, which is the first row, with the same seed.

    python recipes/phrase_scores/table.py FOLDER REFERENCE ROW ...
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


def main(folder: Path, reference: str, names: list[str]) -> None:
    """Print the table. `folder`: of the translations NAME.seed-N.test; `names`: of the rows."""
    references = [list(files.read_lines(reference))]
    outputs = {
        (name, seed): list(files.read_lines(folder / f"{name}.seed-{seed}.test"))
        for name in names
        for seed in SEEDS
    }
    seeds = [f"seed {seed}" for seed in SEEDS]
    print("\t".join(["row", *seeds, "mean", "gain", *(f"p of {seed}" for seed in seeds)]))
    baseline = 0.0
    notes: list[str] = []
    for name in names:
        scores, p_values = [], []
        for seed in SEEDS:
            ours, base = outputs[name, seed], outputs[names[0], seed]
            if ours == base:
                scores.append(corpus_bleu(ours, references, "none").score)
                p_values.append("")
                continue
            rows, notes = paired_bootstrap(["baseline", "row"], [base, ours], references, "none")
            scores.append(rows[1].bleu)
            p_values.append(f"{rows[1].p:.3f}")
        mean = fmean(scores)
        baseline = baseline or mean
        columns = [*(f"{score:.2f}" for score in scores), f"{mean:.2f}", f"{mean - baseline:+.2f}"]
        print("\t".join([name, *columns, *p_values]))
    print(f"# BLEU on {reference}; p against {names[0]} with the same seed; {notes[0] if notes else ''}")


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser("table.py", "Print table 4.1 of van Merriënboer 2018.")
    parser.add_argument("folder")
    parser.add_argument("reference")
    parser.add_argument("rows", nargs="+", metavar="ROW")
    args = parser.parse_args(argv)
    main(Path(args.folder), args.reference, args.rows)


if __name__ == "__main__":
    sys.exit(options.run(command, None))
