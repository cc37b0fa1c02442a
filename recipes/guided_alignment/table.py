"""Print alignment error rate and BLEU of each run, from the files that run.sh wrote.

python recipes/guided_alignment/table.py runs/guided runs/guided/corpus/test.fr
"""

import sys
from pathlib import Path

from sacrebleu import corpus_bleu


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def main() -> None:
    out, references = Path(sys.argv[1]), lines(Path(sys.argv[2]))
    print("alignment\tprecision\trecall\taer\tbleu")
    for row in lines(out / "aer.tsv")[1:]:
        name, _, _, precision, recall, aer = row.split("\t")
        translations = out / f"{name}.fr"
        bleu = corpus_bleu(lines(translations), [references]).score if translations.exists() else None
        print(name, precision, recall, aer, "" if bleu is None else f"{bleu:.2f}", sep="\t")


if __name__ == "__main__":
    main()
