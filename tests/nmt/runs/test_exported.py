"""Runs exported to CTranslate2: the same translations and scores as torch, without torch."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmt.config.settings import changed
from nmt.data.corpus import DataConfig
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.models.transformer import Transformer, TransformerConfig
from nmt.runs import directory as run_directory
from nmt.runs.checkpoint import SavedRun
from nmt.runs.constraints import Constraints
from nmt.runs.run import Run, TranslationRequest
from nmt.runs.torch_run import TorchRun, align
from nmt.search.config import BeamConfig, SamplingConfig
from nmt.text.lexicon import Lexicon
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.vocab import Vocab

pytest.importorskip("ctranslate2")

from nmt.runs import ctranslate2_export  # needs ctranslate2
from nmt.runs.exported import ExportedRun

WORDS = [f"w{number}" for number in range(36)]
LINES = ["w1 w2 w3", "", "w4 w5 w6 w7 unknown", "w8", "w9 w10 w11 w12 w13 w14 w15"]
ROOT = Path(__file__).resolve().parents[3]
MODELS = ROOT / "tests" / "models"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
TEXT = SideConfig(tokenize=False, normalize=False)


def model_config(**settings: object) -> TransformerConfig:
    config = TransformerConfig(embedding=16, feed_forward=32, heads=4, encoder_layers=2, decoder_layers=2)
    return changed(config, settings)


def make_run(words: Sequence[str] = WORDS, /, **settings: object) -> TorchRun:
    """A Transformer with random weights that differ enough for clear translations."""
    torch.manual_seed(1)
    config = model_config(**settings)
    vocab = Vocab(dict.fromkeys(words, 1), len(words))
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
        ctranslate2_export.write(member, ctranslate2_export.exportable_model(member), quantization, new)
    return ExportedRun.of(folder)


SHAPES: list[dict[str, object]] = [
    {"norm": "pre", "tied": "all"},
    {"norm": "post", "tied": "none", "positions": "learned", "longest": 5},
    {"positions": "sinusoidal-split", "activation": "swish"},
    {"activation": "gelu"},
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


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[TorchRun, ExportedRun]:
    run = make_run(**SHAPES[0])
    return run, exported(run, tmp_path_factory.mktemp("exported") / "out")


def test_hypotheses_of_a_beam_have_their_own_log_p(pair: tuple[TorchRun, ExportedRun]) -> None:
    """Whatever is forbidden: UNK, an early end, another beginning, units twice; and however it ends."""
    run, other = pair
    choices: list[dict[str, object]] = [
        {"max_length": 9},
        {"min_length": 4, "max_length": 7, "normalize": "none"},
        {"max_length_factor": 1.0, "normalize": "gnmt"},
        {"no_repeat_ngram": 1, "max_length": 6},
    ]
    for settings in choices:
        lists = other.n_best(LINES, changed(BeamConfig(beam_size=4), settings))
        for line, hypotheses in zip(LINES, lists, strict=True):
            assert hypotheses == sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)
            assert 1 <= len(hypotheses) <= 4
            for hypothesis in hypotheses if line else ():
                assert not {"<s>", "</s>", "<unk>"} & set(hypothesis.words)
                assert len(hypothesis.words) >= settings.get("min_length", 0)  # type: ignore[operator]
                assert len(hypothesis.words) <= settings.get("max_length", 99)  # type: ignore[operator]
                scores = run.score([(line, " ".join(hypothesis.words))])
                assert scores == pytest.approx([hypothesis.log_prob], abs=1e-4)


@pytest.mark.parametrize("beam", [8, 16])
def test_a_beam_wider_than_the_vocabulary(beam: int, tmp_path: Path) -> None:
    """It lists each translation once, and none with a symbol."""
    run = make_run(["w1"])
    lists = exported(run, tmp_path / "out").n_best(["w1 w1"], BeamConfig(beam_size=beam, max_length=2))
    assert sorted(hypothesis.words for hypothesis in lists[0]) == [[], ["w1"], ["w1", "w1"]]


def test_prefixes(pair: tuple[TorchRun, ExportedRun]) -> None:
    run, other = pair
    request = TranslationRequest(LINES, prefixes=["w3 w4", "", "w5", "", "w9"])
    config = BeamConfig(beam_size=1, max_length=9)
    for mine, theirs in zip(run.search(request, config), other.search(request, config), strict=True):
        assert [h.words for h in mine] == [h.words for h in theirs]
        assert [h.log_prob for h in mine] == pytest.approx([h.log_prob for h in theirs], abs=1e-4)


@pytest.mark.ci
@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (4, 0.8)])
def test_samples_are_those_of_torch(pair: tuple[TorchRun, ExportedRun], top_k: int, top_p: float) -> None:
    """Also of a line alone, and when rows are few; from all words and from the likeliest."""
    run, other = pair
    request = TranslationRequest(LINES)
    config = SamplingConfig(samples=5, seed=3, temperature=0.8, top_k=top_k, top_p=top_p)
    expected = run.sample(request, config)
    for found in (other.sample(request, config), other.sample(request, replace(config, rows=2))):
        for mine, theirs in zip(expected, found, strict=True):
            assert [(h.words, h.complete) for h in mine] == [(h.words, h.complete) for h in theirs]
            assert [h.log_prob for h in mine] == pytest.approx([h.log_prob for h in theirs], abs=1e-4)


def test_long_lines_are_translated_in_parts(pair: tuple[TorchRun, ExportedRun]) -> None:
    run, other = pair
    line = " ".join(WORDS[:20])
    config = BeamConfig(beam_size=1, max_length=8)
    assert other.translate([line], config, max_line_words=6) == run.translate(
        [line], config, max_line_words=6
    )
    with pytest.raises(DataError, match="line 1: 2,160 words"):
        other.score([(" ".join(WORDS * 60), "w1")])


def test_what_the_engine_cannot_do_is_refused(pair: tuple[TorchRun, ExportedRun], tmp_path: Path) -> None:
    _, other = pair
    folder = other.members[0].directory
    for call in (
        lambda: other.translate(LINES, constraints=Constraints(avoid=["w1"])),
        lambda: other.shortlisted(Lexicon({})),
        lambda: Run.load(folder, folder),
        lambda: Run.load(folder, which="last"),
        lambda: Run.load(folder, device="nonsense"),
        lambda: align(other, [("w1", "w2")]),
    ):
        with pytest.raises(ConfigError, match=re.escape(str(folder)) + "|device"):
            call()
    with pytest.raises(CheckpointError, match="exported to CTranslate2"):
        TorchRun.of(folder)


@pytest.mark.parametrize("name", ["model.bin", "export.json", "source.vocab", "version", "config.json"])
def test_damaged_folders_are_refused(pair: tuple[TorchRun, ExportedRun], name: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(pair[1].members[0].directory, copy)
    content = (copy / name).read_bytes()
    (copy / name).write_bytes(content[:-2] + b"x" + content[-1:])
    with pytest.raises(CheckpointError, match=re.escape(str(copy))):
        Run.load(copy)
    (copy / name).unlink()
    with pytest.raises(CheckpointError, match=re.escape(str(copy))):
        Run.load(copy)


def test_torch_is_not_loaded(pair: tuple[TorchRun, ExportedRun], tmp_path: Path) -> None:
    """Nor Numba or NumPy, by the commands and from Python; and both commands write what Python says."""
    folder = pair[1].members[0].directory
    (tmp_path / "in").write_text("w1 w2 w3\n\nw8\n", encoding="utf-8")
    code = f"""
import sys, nmt
from nmt.cli import score, translate
translate.command([{str(folder)!r}, "-i", "in", "-o", "out", "-q", "--threads", "1"])
translate.command([{str(folder)!r}, "-i", "in", "-o", "list", "-q", "--n-best", "2", "--threads", "1"])
score.command([{str(folder)!r}, "-s", "in", "-t", "out", "-o", "scores", "-q"])
run = nmt.Run.load({str(folder)!r})
assert run.translate(["w1 w2 w3"]) == [open("out").readline().rstrip("\\n")]
print({{"torch", "numba", "numpy", "omegaconf"}} & {{*sys.modules}})
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT,
    )
    assert done.stdout == "set()\n"
    lines = (tmp_path / "out").read_text(encoding="utf-8").split("\n")
    assert len(lines) == 4 and lines[1] == ""
    rows = [row.split(" ||| ") for row in (tmp_path / "list").read_text(encoding="utf-8").split("\n")[:-1]]
    assert [row[0] for row in rows] == ["0", "0", "1", "2", "2"] and rows[0][1] == lines[0]
    scores = (tmp_path / "scores").read_text(encoding="utf-8").split("\n")
    assert float(scores[0]) == pytest.approx(float(rows[0][2].removeprefix("NMT0= ")), abs=1e-4)


def test_other_models_are_refused_by_name() -> None:
    rnn = TorchRun.of(MODELS / "translator").members[0]
    with pytest.raises(ConfigError, match=r"translator: model\.type: rnn: CTranslate2 has no such model"):
        ctranslate2_export.exportable_model(rnn)
    classes = make_run(output="classes", tied="none").members[0]
    with pytest.raises(ConfigError, match=r"model\.output: CTranslate2 has no such output layer"):
        ctranslate2_export.exportable_model(classes)
