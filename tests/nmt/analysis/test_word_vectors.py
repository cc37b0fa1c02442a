"""nmt-analyze neighbors and vectors."""

import shutil
from pathlib import Path

import pytest
import torch

from nmt.cli import analyze
from nmt.formats import word_vectors
from nmt.models.protocols import WordTables
from nmt.runs import checkpoint
from nmt.text.vocab import SPECIALS
from tests.nmt.analysis.conftest import Analyze, Refuses

# ---- test neighbors ----------------------------------------------------------------------------------------
# nmt-analyze neighbors of a run with a table of word vectors; tests/commands/test_characters.py has the
# other kind.


MODELS = Path(__file__).resolve().parents[2] / "models"
LM = str(MODELS / "lm")


def test_neighbors(rows: Analyze) -> None:
    found = rows("neighbors", LM, "--words", "chat", "le", "--count", 2, "-q")
    assert [(row["word"], row["known"], row["rank"]) for row in found] == [
        ("chat", "1", "1"), ("chat", "1", "2"), ("le", "1", "1"), ("le", "1", "2")
    ]  # fmt: skip
    assert 1 >= float(found[0]["cosine"]) >= float(found[1]["cosine"])
    assert "chat" not in [row["neighbor"] for row in found[:2]]


def test_what_is_refused(refuses: Refuses) -> None:
    assert "zzz: not in the vocabulary of" in refuses("neighbors", LM, "--words", "le", "zzz", "-q")
    message = refuses("neighbors", LM, "--words", "le", "--before-highway", "-q")
    assert "is not of lm.type characters" in message


# ---- test vectors ------------------------------------------------------------------------------------------
# nmt-analyze vectors.


@pytest.mark.parametrize(("run", "side"), [("lm", "target"), ("translator", "source")])
def test_the_file_has_the_vectors_of_all_words(run: str, side: str, tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    copy = shutil.copytree(MODELS / run, tmp_path / "run")  # it takes a file
    assert analyze.main(["vectors", str(copy), "--side", side, "-o", str(path), "-q"]) == 0
    load = checkpoint.load_lm if run == "lm" else checkpoint.load
    saved = load(MODELS / run)
    words = saved.words if isinstance(saved, checkpoint.SavedLM) else saved.source_words
    model: object = saved.model
    assert isinstance(model, WordTables)
    table = model.word_table(side).weight
    found = dict(word_vectors.read(path, words.ids, table.shape[1], ""))
    assert list(found) == words.words[len(SPECIALS) :]
    for word, vector in found.items():
        assert torch.equal(torch.from_numpy(vector), table[words.ids[word]])
