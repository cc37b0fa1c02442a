"""The recurrent model reads text in chunks as it reads it at once."""

import pytest
import torch
from torch import Tensor

from nmt.data.running import ChunkStream, as_corpus, join_sentences
from nmt.errors import ConfigError
from nmt.layers.batch_scores import word_scores
from nmt.layers.cells import NormalizedLSTM
from nmt.lm.recurrent import CharacterConfig, CharacterLM, RecurrentLM
from nmt.text.vocab import EOS, UNK
from nmt.training.validation import running_cost
from tests.nmt.lm.models import TEXTS, WORDS, V, model_of

# ---- test recurrent ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["lstm", "gru", "normalized"])
def test_text_in_chunks_is_the_text_at_once(kind: str) -> None:
    model = model_of(kind, carry=True)
    assert isinstance(model, RecurrentLM)
    text = join_sentences(as_corpus(TEXTS))
    costs = []
    for steps in (1, 5, 100):
        total, carried = 0.0, None
        for chunk in ChunkStream(text, 1, steps).batches(0):
            with torch.no_grad():
                cost, carried = model.cost(chunk, 0.0, carried)
            total += float(cost)
        costs.append(total)
    assert costs[0] == pytest.approx(costs[2], abs=1e-9) and costs[1] == pytest.approx(costs[2], abs=1e-9)
    assert running_cost(model, as_corpus(TEXTS), tracks=1) == pytest.approx(costs[2] / len(text), abs=1e-9)
    joined = [id for text in TEXTS for id in [*text, EOS]][:-1]
    assert costs[2] == pytest.approx(-sum(word_scores(model, [((), joined)])[0]), abs=1e-9), (
        "the state goes on through ends of sentences"
    )


def test_a_normalized_layer_is_what_its_equations_say() -> None:
    torch.manual_seed(3)
    layer = NormalizedLSTM(3, 4).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    x, h, c = torch.randn(2, 3).double(), torch.randn(2, 4).double(), torch.randn(2, 4).double()
    state = layer.step(x, torch.cat([h, c], 1))

    def norm(a: Tensor) -> Tensor:
        return (a - a.mean(1, keepdim=True)) / (a.var(1, unbiased=False, keepdim=True) + 1e-5).sqrt()

    a = (
        norm(x @ layer.inputs.t()) * layer.gain_inputs
        + norm(h @ layer.recurrent.t()) * layer.gain_recurrent
        + layer.bias
    )
    i, f, o, g = a.chunk(4, 1)
    cell = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    assert torch.allclose(state[:, 4:], cell, atol=1e-12)
    assert torch.allclose(
        state[:, :4],
        torch.sigmoid(o) * torch.tanh(norm(cell) * layer.gain_cell + layer.cell_bias),
        atol=1e-12,
    )


# ---- test characters ---------------------------------------------------------------------------------------
# The character-aware model: what it does with words outside its vocabulary, and the sizes of the thesis.


def model() -> CharacterLM:
    found = model_of("characters")
    assert isinstance(found, CharacterLM)
    return found


def test_sizes_of_the_thesis() -> None:
    small = CharacterConfig()
    assert small.inputs == 525 and (small.character, small.hidden, small.depth, small.highway) == (
        15,
        300,
        2,
        1,
    )
    large = CharacterConfig(widths=[1, 2, 3, 4, 5, 6, 7], filters=50, most_filters=200, highway=2)
    assert large.inputs == 1100 and CharacterConfig(embedding=64).inputs == 64


def test_settings_that_make_no_sense() -> None:
    with pytest.raises(ConfigError, match=r"lm\.tied: words have no embedding"):
        CharacterConfig(tied=True, embedding=300).check()
    with pytest.raises(ConfigError, match=r"lm\.widths: expected one width or more"):
        CharacterConfig(widths=[]).check()


def test_unknown_words_are_read_by_their_spelling_and_predicted_as_unk() -> None:
    lm = model()
    words = ["ab", "bab", "c", "bacca", "<unk>"]
    ids = [WORDS.index(word) if word in WORDS else UNK for word in words]
    spelled = lm.spelling_ids(words, ids)
    assert spelled == [3, V, 5, V + 1, UNK]
    [plain], [open_] = lm.score_texts([ids]), lm.score_texts([spelled])
    assert open_[:2] == pytest.approx(plain[:2], abs=1e-12)  # the first unknown word is not yet read
    assert all(abs(one - other) > 1e-6 for one, other in zip(open_[2:], plain[2:], strict=True))
    # A vocabulary that has the words: its model with the same parameters reads the same.
    assert lm.score_sentences([spelled, [3, 4]]).tolist() == pytest.approx(
        [sum(open_), float(lm.score_sentences([[3, 4]])[0])], abs=1e-9
    )
    state, found = lm.start([()]), []
    for word, answer in zip([None, *spelled[:2]], [3, UNK, 5], strict=True):
        with torch.no_grad():
            log_probs, state = lm.step(state, None if word is None else torch.tensor([word]))
        found.append(float(log_probs[0, answer]))
    assert found == pytest.approx(open_[:3], abs=1e-9)


def test_unknown_words_of_running_text() -> None:
    lm = model()
    [chunk] = ChunkStream(
        join_sentences(as_corpus([lm.spelling_ids(["bab", "ab"], [UNK, 3])])), 1, 10
    ).batches(0)
    found, _ = lm.score_running(chunk, None)
    assert found.tolist() == pytest.approx(lm.score_texts([[V, 3]])[0], abs=1e-9)


@torch.no_grad()
def test_vectors_for_analysis() -> None:
    lm = model()
    ids = torch.tensor(lm.spelling_ids(["ab", "bab"], [3, UNK]))
    assert lm.word_embedding("target")(ids).shape == (2, 6)
    lm.embedding.highways = torch.nn.ModuleList()
    lm.embedding.table = None
    assert torch.equal(lm.filter_vectors(ids), lm.word_embedding("target")(ids))


def test_vectors_of_words_have_no_dropout() -> None:
    """The thesis: dropout everywhere but between highway and LSTM."""
    lm = model_of("characters", dropout=0.5).train()
    assert isinstance(lm, CharacterLM)
    ids = torch.arange(V)
    assert torch.equal(lm.inputs(ids), lm.embedding(ids))
