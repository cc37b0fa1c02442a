"""A child takes what fits from a parent: whole matrices, and the rows of the words both know."""

from pathlib import Path

import pytest
import torch

from nmt.data.corpus import DataConfig
from nmt.errors import ConfigError
from nmt.layers.characters import CharacterWords
from nmt.models.config import RNNConfig
from nmt.models.rnn.translator import Translator
from nmt.runs.checkpoint import SavedRun
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.vocab import Vocab
from nmt.training.transfer import shared_rows, transfer
from tests.nmt.models.options import with_options

WORDS = (Vocab({"a": 3, "b": 2}, 9), Vocab({"x": 3, "y": 2, "z": 1}, 9))
OTHER = (Vocab({"b": 5, "c": 2, "a": 1}, 9), Vocab({"z": 9, "w": 2}, 9))


def make(vocabs: tuple[Vocab, Vocab], seed: int, **options: object) -> Translator:
    torch.manual_seed(seed)
    config = with_options(RNNConfig(embedding=4, hidden=5, maxout=3, bias=True), options)
    model = Translator(config, len(vocabs[0]), len(vocabs[1]), spelling=vocabs[0].words)
    if model.decoder.output.words_bias is not None:
        torch.nn.init.normal_(model.decoder.output.words_bias)
    return model


def saved(model: Translator) -> SavedRun:
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


def parent(**options: object) -> Translator:
    return make(WORDS, 1, **options)


def test_words_of_both_vocabularies_keep_their_vectors() -> None:
    old, child = parent(), make(OTHER, 2)
    before = child.decoder.output.words.detach().clone()
    done = transfer(child, OTHER, saved(old))
    assert (done.source_words, done.target_words, done.left) == (3 + 2, 3 + 1, [])
    for word in ("a", "b"):
        assert torch.equal(
            child.word_vectors("source", torch.tensor([OTHER[0].ids[word]])),
            old.word_vectors("source", torch.tensor([WORDS[0].ids[word]])),
        )
    for name in ("words", "words_bias"):
        ours, theirs = getattr(child.decoder.output, name), getattr(old.decoder.output, name)
        assert torch.equal(ours[OTHER[1].ids["z"]], theirs[WORDS[1].ids["z"]]) and torch.equal(
            ours[:3], theirs[:3]
        )
    assert torch.equal(
        child.decoder.output.words[OTHER[1].ids["w"]], before[OTHER[1].ids["w"]]
    )  # a new word starts afresh
    assert torch.equal(child.decoder.cell.recurrent, old.decoder.cell.recurrent)


def test_what_does_not_fit_is_named_and_nothing_in_common_is_refused() -> None:
    child = make(OTHER, 2, hidden=6)
    done = transfer(child, OTHER, saved(parent()))
    assert (
        "decoder.cell.recurrent" in done.left
        and "encoder.embedding.weight" not in done.left
        and 0 < done.copied < done.total
    )
    with pytest.raises(ConfigError, match="no parameter of parent fits"):
        transfer(
            make(OTHER, 2, embedding=8, hidden=16, maxout=11, bias=False), OTHER, saved(parent(cell="lstm"))
        )


def test_characters_are_matched_by_spelling() -> None:
    old = parent(source_words="characters")
    child = make((Vocab({"cb": 2}, 9), OTHER[1]), 2, source_words="characters")
    transfer(child, (Vocab({"cb": 2}, 9), OTHER[1]), saved(old))
    theirs, ours = old.encoder.embedding, child.encoder.embedding
    assert isinstance(ours, CharacterWords) and isinstance(theirs, CharacterWords)
    assert torch.equal(ours.characters[ours.symbols["b"]], theirs.characters[theirs.symbols["b"]])


def test_shared_rows() -> None:
    a, b = shared_rows(["x", "y", "z"], ["z", "w", "x"])
    assert a.tolist() == [2, 0] and b.tolist() == [0, 2]


def test_rows_of_classes_stay_as_they_were() -> None:
    parent, child = (make(WORDS, seed, output="classes") for seed in (1, 2))
    before = {name: value.clone() for name, value in child.decoder.layer.state_dict().items()}  # type: ignore[attr-defined]
    done = transfer(child, WORDS, saved(parent))
    assert {"decoder.output.layer.rows", "decoder.output.layer.rows_bias"} <= set(done.left)
    after = child.decoder.layer.state_dict()  # type: ignore[attr-defined]
    assert all(torch.equal(value, before[name]) for name, value in after.items())
