"""The file of a Markov random field: what is read is what was written, and other files are refused."""

from pathlib import Path

import pytest
import torch

from nmt.errors import CheckpointError
from nmt.papers.mrf import file
from nmt.papers.mrf.config import MRFConfig
from nmt.papers.mrf.model import ChainMRF
from nmt.runs.weights import save_tensors
from nmt.text.vocab import Vocab

VOCAB = Vocab({"b": 3, "a": 3, "rare": 1}, 2)


def test_a_model_is_read_as_it_was_written(tmp_path: Path) -> None:
    model = ChainMRF(MRFConfig(order=3, dimension=2, vocabulary=2), len(VOCAB))
    file.save(tmp_path / "m", model, VOCAB)
    found, vocab = file.load(tmp_path / "m")
    assert vocab.words == VOCAB.words and found.config == model.config
    texts = [[3, 4, 2], []]
    assert (found.score_sentences(texts) == model.score_sentences(texts)).all()


def test_other_files_are_refused(tmp_path: Path) -> None:
    model = ChainMRF(MRFConfig(order=1, dimension=2), len(VOCAB))
    file.save(tmp_path / "m", model, VOCAB)
    content = torch.load(tmp_path / "m", weights_only=True)
    for changed, message in (
        ({"format": "other"}, "is not a Markov random field"),
        ({"settings": {"order": 0}}, "damaged"),
        ({"settings": {"order": 2}}, "damaged"),
        ({"counts": {}}, "damaged"),
    ):
        save_tensors(content | changed, tmp_path / "other")
        with pytest.raises(CheckpointError, match=message):
            file.load(tmp_path / "other")
    (tmp_path / "m").write_bytes((tmp_path / "m").read_bytes()[:-50])
    with pytest.raises(CheckpointError, match="damaged"):
        file.load(tmp_path / "m")
