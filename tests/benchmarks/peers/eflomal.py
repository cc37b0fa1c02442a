"""`smt-align --method eflomal` beside the program that it calls, on Multi30k's 29,000 pairs: NMT_DATA=...
python -m tests.benchmarks.peers.eflomal

It needs a C compiler. The links are counted that both have: eflomal draws its own seed, so two runs of the
program are compared as well.
"""

import os
import tempfile
from pathlib import Path

from nmt.formats import pharaoh
from . import compare, environment, ours


def shared_links(folder: Path, one: str, other: str) -> float:
    """The Dice coefficient of the links of two files."""
    sides = [list(pharaoh.read(folder / name)) for name in (one, other)]
    both = sum(len(a & b) for a, b in zip(*sides, strict=True))
    return 2 * both / sum(len(links) for side in sides for links in side)


def main() -> None:
    corpus = Path(os.environ["NMT_DATA"]).absolute() / "moses-multi30k/corpus"
    texts = f"-s {corpus}/train.tok.en -t {corpus}/train.tok.fr"
    programs = environment("eflomal", "eflomal==2.0.0").parent
    os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        variants = {
            f"eflomal-align ({run})": ["eflomal-align", *f"{texts} -f {run} -r {run}.r --overwrite".split()]
            for run in ("first", "second")
        }
        both = "-o both --forward-output ours --reverse-output ours.r"
        variants["smt-align --method eflomal"] = ours(f"smt-align -q --method eflomal {texts} {both}")
        compare("word alignment by eflomal, 29,000 pairs", variants, folder, rounds=1)
        for other in ("second", "ours"):
            print(f"  links in common, of first and {other}: {shared_links(folder, 'first', other):.2%}")


if __name__ == "__main__":
    main()
