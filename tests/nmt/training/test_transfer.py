"""A child takes what fits from a parent: whole matrices, and the rows of the words both know."""

import logging
from pathlib import Path

import pytest
import torch
from torch import nn

from nmt.data.batches import make_batch
from nmt.data.corpus import DataConfig
from nmt.errors import ConfigError, DataError
from nmt.formats import word_vectors
from nmt.layers.characters import CharacterWords
from nmt.lm import language_model_class
from nmt.models.config import ALIGNED_PAIRS, RNNConfig
from nmt.models.protocols import WordEmbeddings
from nmt.models.registry import ALIGNED_MODELS, make
from nmt.models.rnn import RNNTranslator
from nmt.runs.checkpoint import SavedRun
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.vocab import EOS, SPECIALS, Vocab
from nmt.training import transfer
from nmt.training.config import RunConfig
from nmt.training.config_file import from_mapping
from nmt.training.optimizers import clip, make_optimizer
from nmt.training.transfer import shared_rows, transfer_weights
from tests.nmt.models.models import with_options

WORDS = (Vocab({"a": 3, "b": 2}, 9), Vocab({"x": 3, "y": 2, "z": 1}, 9))
OTHER = (Vocab({"b": 5, "c": 2, "a": 1}, 9), Vocab({"z": 9, "w": 2}, 9))


def make_model(vocabs: tuple[Vocab, Vocab], seed: int, **options: object) -> RNNTranslator:
    torch.manual_seed(seed)
    config = with_options(RNNConfig(embedding=4, hidden=5, maxout=3, bias=True), options)
    model = RNNTranslator(config, len(vocabs[0]), len(vocabs[1]), spelling=vocabs[0].words)
    if model.decoder.output.words_bias is not None:
        torch.nn.init.normal_(model.decoder.output.words_bias)
    return model


def saved(model: RNNTranslator) -> SavedRun:
    text = TextPipeline.of(SideConfig("en"))
    return SavedRun(
        directory=Path("parent"),
        model=model,
        source=text,
        target=text,
        source_words=WORDS[0],
        target_words=WORDS[1],
        data=DataConfig(),
        step=1,
    )


def parent(**options: object) -> RNNTranslator:
    return make_model(WORDS, 1, **options)


def test_words_of_both_vocabularies_keep_their_vectors() -> None:
    old, child = parent(), make_model(OTHER, 2)
    before = child.decoder.output.words.detach().clone()
    done = transfer_weights(child, OTHER, saved(old))
    assert (done.source_words, done.target_words, done.left) == (3 + 2, 3 + 1, [])
    for word in ("a", "b"):
        assert torch.equal(
            child.word_embedding("source")(torch.tensor([OTHER[0].ids[word]])),
            old.word_embedding("source")(torch.tensor([WORDS[0].ids[word]])),
        )
    for name in ("words", "words_bias"):
        ours, theirs = getattr(child.decoder.output, name), getattr(old.decoder.output, name)
        assert torch.equal(ours[OTHER[1].ids["z"]], theirs[WORDS[1].ids["z"]])
        assert torch.equal(ours[:3], theirs[:3])
    new = OTHER[1].ids["w"]
    assert torch.equal(child.decoder.output.words[new], before[new]), "a new word starts afresh"
    assert torch.equal(child.decoder.cell.recurrent, old.decoder.cell.recurrent)


def test_what_does_not_fit_is_named_and_nothing_in_common_is_refused() -> None:
    child = make_model(OTHER, 2, hidden=6)
    done = transfer_weights(child, OTHER, saved(parent()))
    assert "decoder.cell.recurrent" in done.left and "encoder.embedding.weight" not in done.left
    assert 0 < done.copied < done.total
    child = make_model(OTHER, 2, embedding=8, hidden=16, maxout=11, bias=False)
    with pytest.raises(ConfigError, match="no parameter of parent fits"):
        transfer_weights(child, OTHER, saved(parent(cell="lstm")))


def test_characters_are_matched_by_spelling() -> None:
    old = parent(source_words="characters")
    child = make_model((Vocab({"cb": 2}, 9), OTHER[1]), 2, source_words="characters")
    transfer_weights(child, (Vocab({"cb": 2}, 9), OTHER[1]), saved(old))
    theirs, ours = old.encoder.embedding, child.encoder.embedding
    assert isinstance(ours, CharacterWords) and isinstance(theirs, CharacterWords)
    assert torch.equal(ours.characters[ours.symbols["b"]], theirs.characters[theirs.symbols["b"]])


def test_shared_rows() -> None:
    a, b = shared_rows(["x", "y", "z"], ["z", "w", "x"])
    assert a.tolist() == [2, 0] and b.tolist() == [0, 2]


def test_rows_of_classes_stay_as_they_were() -> None:
    parent, child = (make_model(WORDS, seed, output="classes") for seed in (1, 2))
    before = {name: value.clone() for name, value in child.decoder.layer.state_dict().items()}
    done = transfer_weights(child, WORDS, saved(parent))
    assert {"decoder.output.layer.rows", "decoder.output.layer.rows_bias"} <= set(done.left)
    after = child.decoder.layer.state_dict()
    assert all(torch.equal(value, before[name]) for name, value in after.items())


# ---- word vectors ------------------------------------------------------------------------------------------
# Models start from the vectors of a file, read them as they stand there, and keep those that are frozen.


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
    if config.lm:
        language_model = language_model_class(config.lm.type).build(config.lm, VOCAB.words)
        assert isinstance(language_model, nn.Module)
        return language_model
    assert config.model is not None
    kind = ALIGNED_MODELS[config.model.type] if config.settings.reads == ALIGNED_PAIRS else make
    return kind(config.model, len(VOCAB), len(VOCAB))


def table_of(model: nn.Module, side: str) -> nn.Embedding:
    assert isinstance(model, WordEmbeddings)
    table = model.word_embedding(side)
    assert isinstance(table, nn.Embedding)
    return table


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
    transfer.apply_vectors(config, model, sides(config), fresh=True)
    table, before = table_of(model, side), table_of(plain, side)
    ids = torch.tensor([VOCAB.ids["a"], VOCAB.ids["c"]])
    expected = torch.tensor([[-1, 0.5, 0, 2], [1, 2, 3, 4]])
    torch.testing.assert_close(table(ids), expected)
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
    transfer.apply_vectors(config, model, sides(config), fresh=True)
    resumed = model_of(config)
    resumed.load_state_dict(model.state_dict())
    transfer.apply_vectors(config, resumed, sides(config), fresh=False)
    rows = [VOCAB.ids["a"], VOCAB.ids["c"]]
    for one in (model, resumed):
        steps, table = make_optimizer(optimizer, one.parameters(), 0.1, 0.95, 1e-6), table_of(one, "target")
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
    ids = torch.tensor(list(VOCAB.ids.values()))
    word_vectors.write(tmp_path / "v", list(VOCAB.ids), table_of(first, "target")(ids).tolist())
    second = model_of(from_mapping({"run": "r", **kind}))
    with torch.no_grad():
        for parameter in second.parameters():
            parameter.zero_()
    transfer.apply_vectors(config, second, sides(config), fresh=True)
    ours, theirs = table_of(second, "target").weight, table_of(first, "target").weight
    assert torch.equal(ours[ids], theirs[ids]) and not ours[EOS].any()


def test_a_file_of_other_words_or_sizes_is_refused_before_a_run_is_made(tmp_path: Path) -> None:
    (tmp_path / "v").write_text("x 1 2 3 4\n")
    config = config_of(tmp_path / "v", KINDS[0])
    with pytest.raises(DataError, match=r"v: has none of the 3 words of the target vocabulary"):
        transfer.check_vectors(config, sides(config))
    (tmp_path / "v").write_text("a 1 2 3 4\nb 1 2 3\n")
    with pytest.raises(DataError, match=r"v:2: a vector of 3 numbers, expected 4 as model\.embedding says"):
        transfer.check_vectors(config, sides(config))
    transfer.check_vectors(
        config_of(tmp_path / "v", {"lm": {"type": "cslm", "embedding": 4}}), {"source": VOCAB}
    )
