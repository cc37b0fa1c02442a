"""Models start from the vectors of a file, read them as they stand there, and keep those that are frozen."""

import logging
from pathlib import Path

import pytest
import torch
from torch import nn

from nmt.data.batches import make_batch
from nmt.errors import DataError
from nmt.formats import word_vectors
from nmt.lm.registry import language_model_class
from nmt.models.protocols import WordTables, WordVectors
from nmt.models.registry import ALIGNED_MODELS, make
from nmt.text.vocab import EOS, SPECIALS, Vocab
from nmt.training import vectors
from nmt.training.config_file import from_mapping
from nmt.training.optimizers import clip, make_optimizer
from nmt.training.run_config import RunConfig

VOCAB = Vocab({"a": 5, "b": 3, "c": 2, "d": 1}, 3)  # d has no id
KINDS: list[dict[str, object]] = [
    {"model": {"type": "rnn", "embedding": 4, "hidden": 5, "maxout": 4}},
    {"model": {"type": "rnn", "embedding": 4, "hidden": 5, "maxout": 4, "tied": "target"}},
    {"model": {"type": "transformer", "embedding": 4, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}},
    {"model": {"type": "joint", "embedding": 4, "layers": [5]}},
    {"lm": {"type": "cslm", "embedding": 4, "layers": [5], "order": 3}},
    {"lm": {"type": "log-bilinear", "embedding": 4, "order": 3}},
    {"lm": {"type": "recurrent", "embedding": 4, "hidden": 4, "tied": True}},
    {"lm": {"type": "transformer", "embedding": 4, "heads": 2, "depth": 1}},
]


def config_of(path: Path, kind: dict[str, object], side: str = "target", freeze: str = "none") -> RunConfig:
    return from_mapping(
        {"run": "r", "data": {f"{side}_vectors": str(path)}, "training": {"freeze_vectors": freeze}, **kind}
    )


def model_of(config: RunConfig) -> nn.Module:
    torch.manual_seed(0)
    found: object
    if config.lm:
        found = language_model_class(config.lm.type).build(config.lm, VOCAB.words)
    else:
        assert config.model is not None
        size = len(VOCAB)
        found = (
            ALIGNED_MODELS[config.model.type](config.model, size, size) if config.aligned
            else make(config.model, size, size)
        )  # fmt: skip
    assert isinstance(found, nn.Module)
    return found


def sides(config: RunConfig) -> dict[str, Vocab]:
    return {"target": VOCAB} if config.lm else {"source": VOCAB, "target": VOCAB}


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("side", ["source", "target"])
def test_a_model_reads_the_words_of_the_file_as_they_stand_there(
    kind: dict[str, object], side: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Specials and words that the file lacks start as without it."""
    if side == "source" and "lm" in kind:
        return
    logging.getLogger("nmt").propagate = True
    caplog.set_level(logging.INFO, "nmt")
    (tmp_path / "v").write_text("5 4\nc 1 2 3 4\n</s> 9 9 9 9\nother 0 0 0 0\na -1 .5 0 2\nd 1 1 1 1\n")
    config = config_of(tmp_path / "v", kind, side)
    plain, model = model_of(config), model_of(config)
    vectors.apply(config, model, sides(config), fresh=True)
    assert isinstance(model, WordTables) and isinstance(plain, WordTables)
    table, before = model.word_table(side), plain.word_table(side)
    ids = torch.tensor([VOCAB.ids["a"], VOCAB.ids["c"]])
    expected = torch.tensor([[-1, 0.5, 0, 2], [1, 2, 3, 4]])
    torch.testing.assert_close(table(ids), expected)
    if isinstance(model, WordVectors):
        torch.testing.assert_close(model.word_vectors(side, ids), expected)
    others = [*range(len(SPECIALS)), VOCAB.ids["b"]]
    assert torch.equal(table.weight[others], before.weight[others])
    assert f"{side} vectors: 2 of 3 words, 63.64% of the running text" in caplog.text  # 7 of 11


@pytest.mark.parametrize("kind", [KINDS[0], KINDS[1], KINDS[2]], ids=str)
@pytest.mark.parametrize("optimizer", ["adadelta", "adam", "sgd"])
def test_frozen_words_stay_and_others_are_learned(
    kind: dict[str, object], optimizer: str, tmp_path: Path
) -> None:
    """Also in a resumed run, whose vectors come with its weights."""
    (tmp_path / "v").write_text("c 1 2 3 4\na -1 .5 0 2\n")
    config = config_of(tmp_path / "v", kind, freeze="target")
    model = model_of(config)
    vectors.apply(config, model, sides(config), fresh=True)
    resumed = model_of(config)
    resumed.load_state_dict(model.state_dict())
    vectors.apply(config, resumed, sides(config), fresh=False)
    rows = [VOCAB.ids["a"], VOCAB.ids["c"]]
    for one in (model, resumed):
        assert isinstance(one, WordTables)
        steps, table = make_optimizer(optimizer, one.parameters(), 0.1, 0.95, 1e-6), one.word_table("target")
        before = table.weight.detach().clone()
        torch.manual_seed(3)  # of dropout
        for _ in range(3):
            steps.zero_grad(set_to_none=True)
            one.loss(make_batch([[3, 4], [5]], [[3, 4, 5], [4]])).backward()  # type: ignore[operator]
            clip(one.parameters(), 1.0)
            steps.step()
        assert torch.equal(table.weight[rows], before[rows])
        assert not torch.equal(table.weight[VOCAB.ids["b"]], before[VOCAB.ids["b"]])
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), resumed.parameters(), strict=True))


def test_the_vectors_of_a_model_are_those_of_another_that_reads_them(tmp_path: Path) -> None:
    kind = KINDS[0]
    config = config_of(tmp_path / "v", kind)
    first = model_of(config)
    assert isinstance(first, WordTables) and isinstance(first, WordVectors)
    ids = torch.tensor(list(VOCAB.ids.values()))
    word_vectors.write(tmp_path / "v", list(VOCAB.ids), first.word_vectors("target", ids).tolist())
    second = model_of(from_mapping({"run": "r", **kind}))
    with torch.no_grad():
        for parameter in second.parameters():
            parameter.zero_()
    vectors.apply(config, second, sides(config), fresh=True)
    assert isinstance(second, WordTables)
    assert torch.equal(second.word_table("target").weight[ids], first.word_table("target").weight[ids])
    assert not second.word_table("target").weight[EOS].any()


def test_a_file_of_other_words_or_sizes_is_refused_before_a_run_is_made(tmp_path: Path) -> None:
    (tmp_path / "v").write_text("x 1 2 3 4\n")
    config = config_of(tmp_path / "v", KINDS[0])
    with pytest.raises(DataError, match=r"v: has none of the 3 words of the target vocabulary"):
        vectors.check(config, sides(config))
    (tmp_path / "v").write_text("a 1 2 3 4\nb 1 2 3\n")
    with pytest.raises(DataError, match=r"v:2: a vector of 3 numbers, expected 4 as model\.embedding says"):
        vectors.check(config, sides(config))
    vectors.check(config_of(tmp_path / "v", {"lm": {"type": "cslm", "embedding": 4}}), {"source": VOCAB})
