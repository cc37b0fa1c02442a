"""A text through a small model of variable computation, and through models that have none."""

from pathlib import Path

import pytest

from nmt.analysis.computation_steps import steps
from nmt.errors import ConfigError, DataError
from nmt.runs.checkpoint import SavedLM
from nmt.text.pipeline import TextPipeline
from nmt.text.tokenize import Tokenizer
from nmt.text.vocab import Vocab
from tests.nmt.lm.models import WORDS, config_of, model_of


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
    found = list(steps(saved("vcrnn", carry=carry), ["ab c", "", "ab c"]))
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
        step.equivalent == pytest.approx(2**0.5 * step.dimensions) for step in steps(saved("vcgru"), ["7"])
    )


@pytest.mark.parametrize("kind", ["elman", "cslm"])
def test_other_models_are_refused(kind: str) -> None:
    with pytest.raises(ConfigError, match="computes all of its state"):
        list(steps(saved(kind), ["ab"]))


def test_no_text_is_refused() -> None:
    with pytest.raises(DataError, match="empty text"):
        list(steps(saved("vcrnn"), []))
