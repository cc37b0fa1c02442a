"""Runs exported to CTranslate2: the same translations and scores as torch, without torch."""

from pathlib import Path

import pytest
import torch

from nmt.config.settings import changed
from nmt.data.corpus import DataConfig
from nmt.models.transformer import Transformer, TransformerConfig
from nmt.runs import directory as run_directory
from nmt.runs.checkpoint import SavedRun
from nmt.runs.torch_run import TorchRun
from nmt.search.config import BeamConfig
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.vocab import Vocab

pytest.importorskip("ctranslate2")

from nmt.runs import export  # needs ctranslate2
from nmt.runs.exported import ExportedRun

WORDS = [f"w{number}" for number in range(36)]
LINES = ["w1 w2 w3", "", "w4 w5 w6 w7 unknown", "w8", "w9 w10 w11 w12 w13 w14 w15"]
TEXT = SideConfig(tokenize=False, normalize=False)


def make_run(**settings: object) -> TorchRun:
    """A Transformer with random weights that differ enough for clear translations."""
    torch.manual_seed(1)
    config = TransformerConfig(embedding=16, feed_forward=32, heads=4, encoder_layers=2, decoder_layers=2)
    config = changed(config, settings)
    vocab = Vocab(dict.fromkeys(WORDS, 1), len(WORDS))
    model = Transformer(config, len(vocab), len(vocab)).eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(3 if weights.dim() == 2 else 1)
    text = TextPipeline.of(TEXT)
    data = DataConfig(source=TEXT, target=TEXT)
    return TorchRun([SavedRun(Path("run"), model, text, text, vocab, vocab, data, 7)])


def exported(run: TorchRun, folder: Path, quantization: str = "float32") -> ExportedRun:
    [member] = run.members
    with run_directory.writing(folder) as new:
        export.write(member, export.expressible(member), quantization, new)
    return ExportedRun.of(folder)


SHAPES = [
    {"norm": "pre", "tied": "all"},
    {"norm": "post", "tied": "none", "positions": "learned", "longest": 5},
    {"positions": "none", "decoder_layers": 3, "attention_layer": 1, "attention_heads": 2},
]


@pytest.mark.parametrize("shape", SHAPES)
def test_greedy_search_and_scores_are_those_of_torch(shape: dict[str, object], tmp_path: Path) -> None:
    """Norms, positions, tied matrices: each is read as torch reads it. Empty lines and the order stay."""
    run = make_run(**shape)
    other = exported(run, tmp_path / "out")
    config = BeamConfig(beam_size=1, max_length=12)
    lists, others = run.n_best(LINES, config), other.n_best(LINES, config)
    for mine, theirs in zip(lists, others, strict=True):
        assert [(h.words, h.alignment) for h in mine] == [(h.words, h.alignment) for h in theirs]
        assert [h.log_prob for h in mine] == pytest.approx([h.log_prob for h in theirs], abs=1e-4)
        assert [h.score for h in mine] == pytest.approx([h.score for h in theirs], abs=1e-4)
    pairs = [(line, text) for line, text in zip(LINES, reversed(LINES), strict=True)]
    for mine_row, theirs_row in zip(run.word_scores(pairs), other.word_scores(pairs), strict=True):
        assert mine_row == pytest.approx(theirs_row, abs=1e-4)
