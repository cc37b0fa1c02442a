"""Long commands that faults are tried on. A new one is a class with the methods of ScoreTable, and
one line in WORKS."""

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

from nmt.io.files import write_text
from nmt.sample_corpus import grammar
from smt_bridge.tables.score import CHUNK
from tests.conftest import BIN, tiny_config, write_corpus

CHUNKS = 40  # of a fifth of a second each
UNITS = 128  # of the model


class ScoreTable:
    """smt-score-table with a tiny model and a generated table: its output can be told by its bytes, and it
    continues after it was ended."""

    chunks = CHUNKS
    resume: Sequence[str] = ("--resume",)  # options that continue

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.table, self.run, self.expected = folder / "table", folder / "run", folder / "expected"
        train(folder, UNITS)
        write_table(self.table, folder, CHUNKS)
        subprocess.run(self.words(self.expected), check=True, capture_output=True)

    def words(self, output: Path) -> list[str]:
        feature = f"translation={self.run}"
        return [
            str(BIN / "smt-score-table"), str(self.table), "--feature", feature, "--threads", "1",
            "--output", str(output), "--quiet",
        ]  # fmt: skip

    def command(self, cluster: str, output: Path) -> list[str]:
        return [*self.words(output), "--cluster", cluster]

    def scores(self, output: Path) -> Path:
        return Path(f"{output}.job") / "scores"

    def finished(self, output: Path) -> int:
        """Counted by size; chunks have a little more than CHUNK rows."""
        scores = self.scores(output)
        return scores.stat().st_size // (8 * CHUNK) if scores.exists() else 0

    def damage(self, output: Path, place: float) -> bool:
        """Change a byte of what is kept, `place` of the way into it; False where nothing is kept."""
        scores = self.scores(output)
        if not self.finished(output):
            return False
        with scores.open("r+b") as stream:
            stream.seek(int(place * scores.stat().st_size))
            (byte,) = stream.read(1)
            stream.seek(-1, 1)
            stream.write(bytes([byte ^ 255]))
        return True


def train(folder: Path, units: int) -> None:
    """A model of so many units, in `folder`/run, which has seen a few sentences."""
    write_corpus(folder, grammar, 200, seed=3)
    write_text(folder / "train.yaml", tiny_config(folder).split("\n"))
    sizes = [f"model.hidden={units}", "training.max_steps=20"]
    subprocess.run([BIN / "nmt-train", folder / "train.yaml", *sizes], check=True, capture_output=True)


def write_table(path: Path, folder: Path, chunks: int) -> None:
    """A sorted table of phrases of random words of the corpus in a folder."""
    rng = random.Random(1)
    words = [sorted(set((folder / f"train.{side}").read_bytes().split())) for side in ("en", "fr")]
    lines: set[bytes] = set()
    while len(lines) < chunks * CHUNK:
        phrases = (b" ".join(rng.choices(side, k=rng.randint(1, 5))) for side in words)
        lines.add(b"%s ||| %s ||| 0.5 0.25 1 0.125 ||| ||| 2 3 1 ||| |||\n" % tuple(phrases))
    path.write_bytes(b"".join(sorted(lines)))


# Each is made in a folder of its own, where it prepares its input and computes what is expected.
WORKS = {"smt-score-table": ScoreTable}
