"""The character-aware model: what it does with words outside its vocabulary, and the sizes of the thesis."""

import pytest
import torch

from nmt.data.running import ChunkStream, as_corpus, join_sentences
from nmt.errors import ConfigError
from nmt.lm.characters import CharacterConfig, CharacterLM
from nmt.text.vocab import UNK
from tests.nmt.lm.models import WORDS, V, model_of


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
    spelled = lm.spelled(words, ids)
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
    [chunk] = ChunkStream(join_sentences(as_corpus([lm.spelled(["bab", "ab"], [UNK, 3])])), 1, 10).batches(0)
    found, _ = lm.score_running(chunk, None)
    assert found.tolist() == pytest.approx(lm.score_texts([[V, 3]])[0], abs=1e-9)


@torch.no_grad()
def test_vectors_for_analysis() -> None:
    lm = model()
    ids = torch.tensor(lm.spelled(["ab", "bab"], [3, UNK]))
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
