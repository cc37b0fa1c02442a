"""Print alignment error rate and BLEU of each run, from the files that run.sh wrote.

python recipes/guided_alignment/table.py runs/guided runs/guided/corpus/test.fr
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.cli import options
from nmt.errors import DataError
from nmt.io import files
from nmt.metrics import corpus_bleu

COLUMNS = 6  # of aer.tsv


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser("table.py", "Print alignment error rate and BLEU of each run.")
    parser.add_argument("out")
    parser.add_argument("reference")
    args = parser.parse_args(argv)
    out, references = Path(args.out), [list(files.read_lines(args.reference))]
    rows = [row.split("\t") for row in files.read_lines(out / "aer.tsv")]
    for number, row in enumerate(rows, 1):
        if len(row) != COLUMNS:
            raise DataError(f"{out}/aer.tsv:{number}: {len(row)} columns, expected {COLUMNS}, as from run.sh")
    print("alignment\tprecision\trecall\taer\tbleu")
    for name, _, _, precision, recall, aer in rows[1:]:
        translations, bleu = out / f"{name}.fr", ""
        if translations.exists():
            bleu = f"{corpus_bleu(list(files.read_lines(translations)), references).score:.2f}"
        print(name, precision, recall, aer, bleu, sep="\t")


if __name__ == "__main__":
    sys.exit(options.run(command, None))
