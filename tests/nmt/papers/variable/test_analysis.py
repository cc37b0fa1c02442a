"""What a model computes, from steps set by hand."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

from nmt.cli import analyze
from nmt.data.batches import make_batch
from nmt.errors import ConfigError, DataError
from nmt.lm.recurrent import RecurrentLM
from nmt.papers.variable.analysis import ComputationConfig, equivalent, summary, svg, table
from nmt.papers.variable.computation import ComputationStep, computation_steps, layer_computations
from nmt.runs.checkpoint import SavedLM
from nmt.text.pipeline import TextPipeline
from nmt.text.tokenize import Tokenizer
from nmt.text.vocab import EOS, Vocab
from tests.conftest import ROOT
from tests.nmt.lm.models import WORDS, config_of, model_of

# ---- analysis ----------------------------------------------------------------------------------------------


STEPS = [
    ComputationStep(1, 0, "</s>", 1, 0.5, 5, 5.0),
    ComputationStep(1, 1, "<a>", 1, 0.25, 3, 3.0),
    ComputationStep(2, 0, "</s>", 1, 0.75, 8, 8.0),
    ComputationStep(2, 1, "b & c", 1, 1.0, 10, 10.0),
]


def test_summary_and_table() -> None:
    assert equivalent(STEPS) == pytest.approx(((25 + 9 + 64 + 100) / 4) ** 0.5)
    first, most, least = summary(STEPS)
    assert (
        first == "layer 1: mean m 0.625, 6.5 dimensions computed; as many operations as an Elman layer of 7"
    )
    assert most == "highest mean m: b & c 1.00, </s> 0.62, <a> 0.25"
    assert least == "lowest mean m: <a> 0.25, </s> 0.62, b & c 1.00"
    assert list(table(STEPS).lines())[2] == "1\t1\t<a>\t1\t0.2500\t3\t3.0"


def test_the_picture_is_xml_and_says_everything() -> None:
    root = ElementTree.fromstring(svg(STEPS, ComputationConfig()))
    assert [node.text for node in root.iter() if node.tag.endswith("text")] == [
        "</s>",
        "<a>",
        "</s>",
        "b & c",
    ]
    shades = [float(node.get("fill-opacity", 0)) for node in root.iter() if node.tag.endswith("rect")][1:]
    assert [shade / shades[0] for shade in shades] == pytest.approx([1, 0.5, 1.5, 2], abs=0.01)
    curves = [node.get("points", "").split() for node in root.iter() if node.tag.endswith("polyline")]
    heights = [float(point.split(",")[1]) for point in curves[0]]
    assert len(curves) == 2 and heights[1] > heights[0], "more is computed higher up"
    short = ElementTree.fromstring(svg(STEPS, ComputationConfig(shown=1)))
    assert len([node for node in short.iter() if node.tag.endswith("text")]) == 2


def test_long_lines_go_on_below() -> None:
    long = [ComputationStep(1, place, "x", 1, 0.5, 5, 5.0) for place in range(81)]
    root = ElementTree.fromstring(svg(long, ComputationConfig()))
    assert len([node for node in root.iter() if node.tag.endswith("polyline")]) == 2


# ---- action ------------------------------------------------------------------------------------------------
# nmt-analyze computation of what has nothing to show; tests/commands/test_lm.py has a run that has.


LM = ROOT / "tests" / "models" / "lm"


@pytest.mark.ci
def test_what_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("u v w\n")
    for name, cause in (("text", "train with lm.cell vcrnn or vcgru"), ("no-file", "no-file: cannot read")):
        assert analyze.main(["computation", str(LM), str(tmp_path / name), "-q"]) == 2
        assert cause in capfd.readouterr().err


# ---- computation -------------------------------------------------------------------------------------------
# A text through a small model of variable computation, and through models that have none.


def saved(kind: str, carry: bool = False) -> SavedLM:
    """A run that is nowhere."""
    return SavedLM(
        directory=Path("r"),
        model=model_of(kind, carry=carry) if carry else model_of(kind),
        text=TextPipeline(Tokenizer("en", normalize=False, tokenize=False)),
        words=Vocab(dict.fromkeys(WORDS[3:], 1), 99),
        config=config_of("recurrent"),
        step=1,
    )


@pytest.mark.parametrize("carry", [False, True])
def test_each_unit_of_each_layer(carry: bool) -> None:
    """Lines on their own begin alike; running text goes on from the line before."""
    found = list(computation_steps(saved("vcrnn", carry=carry), ["ab c", "", "ab c"]))
    assert [(step.line, step.layer, step.unit) for step in found] == [
        (line, layer, unit)
        for line, units in ((1, ["</s>", "ab", "c"]), (2, ["</s>"]), (3, ["</s>", "ab", "c"]))
        for layer in (1, 2)
        for unit in units
    ]
    first, last = ([step.m for step in found if step.line == line] for line in (1, 3))
    assert (first == last) is not carry
    assert all(0 < step.m < 1 and step.equivalent == step.dimensions <= 6 for step in found)


def test_a_gated_unit_costs_more() -> None:
    assert all(
        step.equivalent == pytest.approx(2**0.5 * step.dimensions)
        for step in computation_steps(saved("vcgru"), ["7"])
    )


@pytest.mark.parametrize("kind", ["elman", "cslm"])
def test_other_models_are_refused(kind: str) -> None:
    with pytest.raises(ConfigError, match="computes all of its state"):
        list(computation_steps(saved(kind), ["ab"]))


def test_no_text_is_refused() -> None:
    with pytest.raises(DataError, match="empty text"):
        list(computation_steps(saved("vcrnn"), []))


def test_what_is_computed_costs_in_training_alone() -> None:
    """The penalty of both layers, once, beside the cost that validation sees; scores do not know it."""
    model = model_of("vcrnn", computation=0.2, computation_penalty=3.0)
    assert isinstance(model, RecurrentLM)
    batch = make_batch([()] * 2, [[3, 4, 5], [6]])
    plain = model.loss(batch).item()
    found, _ = layer_computations(model, torch.tensor([EOS, 3, 4, 5]), None)
    other, _ = layer_computations(model, torch.tensor([EOS, 6]), None)
    away = sum(float((layer.shares - 0.2).abs().sum()) for layer in (*found, *other))
    model.train()
    for _ in range(2):
        assert model.loss(batch).item() == pytest.approx(plain + 3 * away, abs=1e-9)
    model.eval()
    assert model.loss(batch).item() == pytest.approx(plain, abs=1e-9)


def test_what_is_computed_does_not_depend_on_how_text_is_cut() -> None:
    model, text = model_of("vcrnn", carry=True), torch.tensor([EOS, 3, 4, 5, EOS, 6, 7])
    assert isinstance(model, RecurrentLM)
    whole, after = layer_computations(model, text, None)
    first, state = layer_computations(model, text[:3], None)
    second, last = layer_computations(model, text[3:], state)
    assert torch.allclose(last, after) and len(whole) == 2
    for layer, *parts in zip(whole, first, second, strict=True):
        assert torch.allclose(layer.shares, torch.cat([part.shares for part in parts]))
        assert torch.equal(layer.dimensions, torch.cat([part.dimensions for part in parts]))
        assert ((layer.dimensions >= 6 * layer.shares) & (layer.dimensions <= 6)).all()
    model = model_of("lstm")
    assert isinstance(model, RecurrentLM) and layer_computations(model, text, None)[0] == []
