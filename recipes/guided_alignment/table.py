"""Print alignment error rate and BLEU of each run, from the files that run.sh wrote.

python recipes/guided_alignment/table.py runs/guided runs/guided/corpus/test.fr
"""

import sys
from pathlib import Path

from nmt.io import files
from nmt.metrics import corpus_bleu


def main() -> None:
    out, references = Path(sys.argv[1]), [list(files.read_lines(sys.argv[2]))]
    print("alignment\tprecision\trecall\taer\tbleu")
    _, *rows = files.read_lines(out / "aer.tsv")
    for row in rows:
        name, _, _, precision, recall, aer = row.split("\t")
        translations, bleu = out / f"{name}.fr", ""
        if translations.exists():
            bleu = f"{corpus_bleu(list(files.read_lines(translations)), references).score:.2f}"
        print(name, precision, recall, aer, bleu, sep="\t")


if __name__ == "__main__":
    main()
