"""`smt-align` beside fast_align, on Multi30k's 29,000 pairs: NMT_DATA=... python -m
tests.benchmarks.peers.fast_align

fast_align (github.com/clab/fast_align, commit cab1e9a) and its atools are taken from PATH and skipped where
there are none. systran-align, on PyPI, is the same model as a library: it trains both directions, and links
the words of each pair without atools' heuristics.
"""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from nmt.formats import pharaoh
from nmt.io import files
from . import compare, environment, ours, program

SYSTRAN = """
import systran_align
options = dict(favor_diagonal=True, optimize_tension=True, variational_bayes=True)
systran_align.generate_alignment_probabilities("joint", "forward", "reverse", **options)
aligner = systran_align.Aligner("forward", "reverse")
with open("joint") as lines, open("systran", "w") as out:
    for line in lines:
        links = aligner.align(*(side.split() for side in line.split(" ||| ")))["alignments"]
        print(*(f"{source}-{target}" for source, target in links), file=out)
"""
FAST_ALIGN = """set -e
fast_align -d -o -v -i joint > theirs.forward
fast_align -d -o -v -r -i joint > theirs.reverse
atools -c grow-diag-final-and -i theirs.forward -j theirs.reverse > theirs
"""


def main() -> None:
    corpus = Path(os.environ["NMT_DATA"]).absolute() / "moses-multi30k/corpus"
    texts = corpus / "train.tok.en", corpus / "train.tok.fr"
    command = ours(f"smt-align -q -s {texts[0]} -t {texts[1]} -o ours --method fast_align")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files.write_text(folder / "joint", map(" ||| ".join, files.parallel(*texts)))
        systran = environment("systran-align", "systran-align==3.5.0", "setuptools")
        variants: dict[str, Sequence[str | Path]] = {
            "systran-align": [systran, "-c", SYSTRAN],
            "smt-align": command,
        }
        compare("word alignment, 29,000 pairs", variants, folder, rounds=3)
        if program("fast_align", "github.com/clab/fast_align") and program("atools", "the same"):
            variants = {"fast_align twice, atools": ["sh", "-c", FAST_ALIGN], "smt-align": command}
            compare("word alignment, 29,000 pairs", variants, folder, rounds=3)
            links = (pharaoh.read(folder / file) for file in ("ours", "theirs"))
            print(f"  {sum(a == b for a, b in zip(*links, strict=True)):,} lines have the same links")


if __name__ == "__main__":
    main()
