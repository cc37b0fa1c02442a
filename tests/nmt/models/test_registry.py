"""The smallest translation model, without any capability: what the toolkit still does with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nmt.data.batches import Batch, Ids
from nmt.data.corpus import DataConfig
from nmt.errors import ConfigError
from nmt.layers.output import Softmax
from nmt.models import registry
from nmt.models.config import ModelConfig, RNNConfig
from nmt.models.protocols import Layered, PrefixTrees, TranslationModel, WordEmbeddings, WordParameters
from nmt.models.rnn import RNNTranslator
from nmt.runs.checkpoint import SavedRun
from nmt.runs.torch_run import TorchRun
from nmt.scoring import pair_scores, word_scores
from nmt.search.beam import search
from nmt.search.config import BeamConfig
from nmt.text.lexicon import Lexicon
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.vocab import Vocab
from nmt.training.transfer import transfer_weights

CAPABILITIES = [PrefixTrees, Layered, WordEmbeddings, WordParameters]


@dataclass
class UnigramConfig(ModelConfig):
    type: str = "unigram"


class Unigram(TranslationModel[Tensor]):
    """p(word) alone. A state is a row of nothing for each hypothesis."""

    Config = UnigramConfig

    def __init__(
        self,
        config: UnigramConfig,
        source_vocab_size: int,
        target_vocab_size: int,
        fill: bool = True,
        spelling: Sequence[str] | None = None,
    ) -> None:
        super().__init__(config, source_vocab_size, target_vocab_size)
        self.output = Softmax(1, target_vocab_size)
        nn.init.normal_(self.output.words)

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        return self.output.cross_entropy(torch.ones(len(batch.target.ids), 1), batch.target.ids, smoothing)

    def token_log_probs(self, batch: Batch) -> Tensor:
        return self.output.target_log_probs(torch.ones(len(batch.target.ids), 1), batch.target.ids)

    def start(self, sources: Sequence[Ids]) -> Tensor:
        return torch.ones(len(sources), 1)

    def step(self, state: Tensor, token_ids: Tensor | None) -> tuple[Tensor, Tensor]:
        return self.output.log_probs(state), state

    def reorder(self, state: Tensor, rows: Tensor) -> Tensor:
        return state[rows]

    def join(self, states: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(states))


@pytest.fixture
def unigram(monkeypatch: pytest.MonkeyPatch) -> registry.AnyModel:
    monkeypatch.setitem(registry.MODELS, "unigram", Unigram)
    torch.manual_seed(0)
    return registry.make(UnigramConfig(), 5, 9).eval()


def test_the_registry_is_read_when_it_is_asked(unigram: registry.AnyModel) -> None:
    assert isinstance(unigram, Unigram)
    with pytest.raises(ConfigError, match=r"model\.type: 'trasnformer' is unknown, .*'rnn', .*'unigram'"):
        registry.make(ModelConfig(type="trasnformer"), 5, 9)


def test_the_rnn_has_every_capability_and_the_smallest_model_none(unigram: registry.AnyModel) -> None:
    rnn = registry.make(RNNConfig(embedding=4, hidden=5, maxout=3), 5, 9)
    assert isinstance(rnn, RNNTranslator)
    assert all(isinstance(rnn, capability) for capability in CAPABILITIES)
    assert not any(isinstance(unigram, capability) for capability in CAPABILITIES)


def test_what_every_model_inherits(unigram: registry.AnyModel) -> None:
    assert unigram.device.type == "cpu" and not unigram.attends
    assert unigram.attention(unigram.start([[3]])) is None
    assert unigram.source_vectors([[3]]) is None and unigram.merge_gates([[3, 4]]) is None


def test_search_and_scores_agree(unigram: registry.AnyModel) -> None:
    """Also pairs, without tries: the targets of a source one by one."""
    best = search(unigram, [[3, 4], [3]], BeamConfig(beam_size=3))
    for candidates in best:
        assert candidates[0].log_prob == pytest.approx(
            sum(word_scores(unigram, [((), candidates[0].words)])[0]), abs=1e-5
        )
    targets, sources = [[3, 4], [], [5, 5, 6], [7]], [[3], [4, 4]]
    expected = [sum(scores) for scores in word_scores(unigram, [((), target) for target in targets])]
    assert np.allclose(pair_scores(unigram, sources, targets, [0, 0, 1, 1]), expected)


def saved(model: registry.AnyModel) -> SavedRun:
    text, vocab = TextPipeline.of(SideConfig("en")), Vocab({"a": 3, "b": 2}, 9)
    return SavedRun(
        directory=Path("small"),
        model=model,
        source=text,
        target=text,
        source_words=vocab,
        target_words=vocab,
        data=DataConfig(),
        step=1,
    )


def test_short_lists_are_refused_in_a_line(unigram: registry.AnyModel) -> None:
    with pytest.raises(ConfigError, match="small: models of this type cannot use a short-list"):
        TorchRun([saved(unigram)]).shortlisted(Lexicon({}))


def test_transfer_without_rows_of_words_copies_what_has_the_same_shape(unigram: registry.AnyModel) -> None:
    child = registry.make(UnigramConfig(), 5, 9)
    vocab = Vocab({"a": 3, "b": 2}, 9)
    done = transfer_weights(child, (vocab, vocab), saved(unigram))
    assert done.left == [] and done.copied == done.total == 18
    assert torch.equal(child.state_dict()["output.words"], unigram.state_dict()["output.words"])
