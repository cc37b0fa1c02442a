"""Tables and a language model for smt-score-table, and the command itself in small chunks."""

import random
import subprocess
import sys
from pathlib import Path

# A bigram model; numbers are log10.
ARPA = """\\data\\
ngram 1=5
ngram 2=1

\\1-grams:
-1.0\t<unk>
-99\t<s>\t-0.3
-0.9\t</s>
-0.5\tthe\t-0.25
-0.75\tdog

\\2-grams:
-0.125\tthe dog

\\end\\
"""


def arpa_score(words: list[str]) -> float:
    """By hand, from the numbers above: no sentence ends."""
    total, before = 0.0, ""
    for word in words:
        if before == "the" and word == "dog":
            total -= 0.125
        else:
            total += {"the": -0.5, "dog": -0.75}.get(word, -1.0) - (0.25 if before == "the" else 0.0)
        before = word
    return total


def write_table(path: Path, pairs: int = 60) -> bytes:
    """A sorted table over words that the tiny run knows, and one that it does not."""
    rng = random.Random(4)
    words = [b"the", b"dog", b"sees", b"a", b"cat", b"zzz"]
    phrases = [b" ".join(rng.choices(words, k=rng.randint(1, 4))) for _ in range(2 * pairs)]
    lines = {
        b"%s ||| %s ||| 0.5 0.25 1 0.125 ||| ||| 2 3 1 ||| |||" % (phrases[n // 3], phrases[-n])
        for n in range(pairs)
    }
    text = b"".join(line + b"\n" for line in sorted(lines))
    path.write_bytes(text)
    return text


def columns_of(text: bytes, first: int = 4) -> list[list[float]]:
    return [
        [float(value) for value in line.split(b" ||| ")[2].split()[first:]] for line in text.split(b"\n")[:-1]
    ]


def in_small_chunks(*arguments: object, slow: float = 0.0) -> subprocess.Popen[bytes]:
    """The command with chunks of 8 pairs, each of which takes `slow` seconds more."""
    code = (
        "import sys, time; import smt_bridge.tables.score as chunks\n"
        "from smt_bridge.features.feature_set import FeatureSet\n"
        "chunks.CHUNK = 8; whole = FeatureSet.compute\n"
        f"FeatureSet.compute = lambda features, task: (time.sleep({slow}), whole(features, task))[1]\n"
        "from smt_bridge.cli.score_table import main; sys.exit(main())"
    )
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)])
