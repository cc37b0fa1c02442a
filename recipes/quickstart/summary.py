"""Print the results of the quickstart: sample translations, scored phrases, commands to try next, and a
summary."""

import argparse
import gzip
from pathlib import Path

from nmt.io import files
from nmt.metrics import corpus_bleu

SAMPLES = (4, 9, 15, 25)  # words: one sentence of about each of these lengths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    out = parser.parse_args().directory
    corpus = out / "corpus"
    paths = corpus / "test.en", corpus / "test.fr", out / "test.fr", corpus / "test.word-for-word.fr"
    rows = list(files.parallel(*paths))
    references = [[row[1] for row in rows]]

    print("\n== sample translations")
    for words in SAMPLES:
        source, reference, ours, baseline = min(rows, key=lambda row: abs(len(row[0].split()) - words))
        print(
            f"source         {source}\nreference      {reference}\nencoder-decoder {ours}\nword for word  "
            f"{baseline}\n"
        )
    print("== phrases with their new score, the last number of the third field")
    with gzip.open(out / "phrase-table.scored.gz", "rt", encoding="utf-8") as table:
        lines = [line for line in table if line.startswith(("bank ", "the bank of "))][:4]
    print("".join(lines))

    print(
        f"""== what to try next
  echo "The old man does not see the bank of the river." | nmt-translate {out}/model --quiet
  nmt-translate {out}/model --input {corpus}/test.en --n-best 5 | head
  nmt-score {out}/model --source {corpus}/dev.en --target {corpus}/dev.fr --word-scores | head
  nmt-train recipes/quickstart/train.yaml run=runs/lstm model.cell=lstm
(the commands are in .venv/bin; for your own corpus, copy recipes/quickstart/train.yaml and change the paths)

== summary"""
    )
    print(corpus_bleu([row[2] for row in rows], references))
    print(f"word for word: {corpus_bleu([row[3] for row in rows], references)}")
    print(f"run directory: {out / 'model'}")
    print(
        "files written:",
        out / "test.fr",
        *sorted((out / "analysis").iterdir()),
        out / "phrase-table.scored.gz",
    )


if __name__ == "__main__":
    main()
