"""Networks of raw text (SentencePiece) beside the search's tokenized words: the value of a finished
hypothesis is that of smt-rescore, and the score of the detokenized text."""

import random
from collections.abc import Callable, Set
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.compute.compiled import HAVE_NUMBA
from nmt.data.corpus import DataConfig
from nmt.errors import ConfigError
from nmt.models.registry import make
from nmt.models.transformer import TransformerConfig
from nmt.runs.checkpoint import SavedRun
from nmt.runs.torch_run import TorchRun
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.subwords.protocol import LearnSettings, TrainingText
from nmt.text.subwords.sentencepiece import Unigram
from nmt.text.tokenize import Tokenizer, unescape
from nmt.text.vocab import Vocab
from smt_bridge.decoder.features.neural_translation import RawTextScorer, grid
from smt_bridge.decoder.features.protocol import Candidates
from smt_bridge.features.base import WordPairs
from smt_bridge.features.torch_features import RunTranslation
from tests.smt_bridge.decoder import models
from tests.smt_bridge.decoder.models import UNLIMITED, add_feature, check_unpruned, decoder, sentence, values
from tests.smt_bridge.decoder.test_search import exhaustive

pytestmark = pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")

FRENCH = Tokenizer("fr")
TARGET = ["p", "q", ",", "s", "t&apos;", "u"]


def detokenized(words: list[str]) -> str:
    return FRENCH.rules.text(list(map(unescape, words)))


def raw_side(language: str, words: list[str]) -> tuple[TextPipeline, Vocab]:
    """SentencePiece learned from detokenized random text, with pieces such as `▁t'u` that join words."""
    rng, text = random.Random(2), TrainingText(sentences=True)
    for _ in range(300):
        text.add(detokenized([rng.choice(words) for _ in range(rng.randint(2, 9))]).split(" "))
    settings = LearnSettings(merges=0, pieces=24, byte_fallback=False, unicode="nmt_nfkc")
    pieces = Unigram.learn(text, settings)
    config = SideConfig(language=language, normalize=False, tokenize=False, subword="unigram")
    return TextPipeline.with_subwords(config, pieces, True), Vocab(dict.fromkeys(pieces.pieces(), 1), 99)


def raw_run(seed: int = 1, language: str = "fr") -> SavedRun:
    """A Transformer of random weights that reads and writes raw text."""
    torch.manual_seed(seed)
    config = TransformerConfig(embedding=8, feed_forward=12, heads=2, encoder_layers=1, decoder_layers=1)
    source, source_words = raw_side("en", ["a", "b", "c", "d"])
    target, target_words = raw_side(language, TARGET)
    model = make(config, len(source_words), len(target_words)).eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(3 if weights.dim() == 2 else 1)
    return SavedRun(Path("run"), model, source, target, source_words, target_words, DataConfig(), 0)


Model = Callable[..., Path]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    """Writes a system with a run in its search; among its target words are some that join their neighbors."""
    monkeypatch.setattr(models, "TARGET", TARGET)

    def write(seed: int, run: SavedRun, arguments: str = "", weight: float = 0.7) -> Path:
        monkeypatch.setattr("nmt.runs.checkpoint.load", lambda *given: run)
        folder = models.write_model(tmp_path / "model", seed, options=2)
        (folder / "run").mkdir(exist_ok=True)
        return add_feature(folder, f"NeuralTranslation name=NMT0 path=run {arguments}", f"NMT0= {weight}")

    return write


@pytest.mark.parametrize("options", ["", "neural-recombine=false", "neural-beam=7"])
@pytest.mark.ci
def test_values_are_those_of_the_text(options: str, model: Model) -> None:
    """Of nmt-score, which reads the detokenized text, and of smt-rescore, which reads the words."""
    run = raw_run()
    scorer, feature = TorchRun([run]), RunTranslation(run)
    made, joined = decoder(model(3, run, options), stack=10, nbest=10), 0
    for number in range(6):
        line = sentence(number, 1 + number)
        found = made.translate_line(line)
        texts = [one.text for one in found.derivations]
        scores = scorer.score([(line, detokenized(text)) for text in texts])
        pairs = WordPairs([line.split()], texts, [0] * len(texts), whole=True)
        np.testing.assert_allclose(feature.score(pairs), scores, atol=1e-4)
        ours = [values(made, found, place)["NMT0"][0] for place in range(len(texts))]
        np.testing.assert_allclose(ours, scores, atol=1e-4)
        joined += sum(detokenized(text).count(" ") + 1 < len(text) for text in texts)
    assert joined > 10


@pytest.mark.parametrize("options", ["", "neural-recombine=false"])
def test_the_search_ends_with_these_values(options: str, model: Model) -> None:
    """What candidates gained on the way adds up to the value of the whole text, where units of a word change
    when the next word comes, and where it needs units that no phrase has by itself."""
    made, grown = decoder(model(4, raw_run(), options), stack=10), list[int]()
    use_units = RawTextScorer.use_units

    def counted(scorer: RawTextScorer, token_ids: Set[int]) -> None:
        grown.append(len(token_ids))
        use_units(scorer, token_ids)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RawTextScorer, "use_units", counted)
        for number in range(4):
            marked = made.parse_line(sentence(number, 5))
            task = made.task(marked, made.listing)
            (path,), (total,) = made.search(task, made.listing)
            made.model.stateful[0].feature.lossy = True  # so that the total is computed again
            (found,) = made.derivations(task, [path], [total])
            assert found.total == pytest.approx(total, abs=1e-5)
    assert len(grown) > 4


def test_the_preview_is_that_of_the_first_unit(model: Model) -> None:
    """After nothing, and after a phrase: log p of the first unit of what follows, which shares the rest with
    the other units and the end of the sentence."""
    run = raw_run()
    made = decoder(model(4, run))
    task = made.task(made.parse_line(sentence(1, 5)), made.listing)
    (scorer,) = task.scorers
    assert isinstance(scorer, RawTextScorer)
    options = np.arange(len(scorer.phrases))
    start = np.full(len(options), scorer.start_state)
    after = scorer.gains(Candidates(options, start, False)).states[[0]].repeat(len(options))
    units = [scorer.feature.network.target(list(map(task.sentence.word, text))) for text in scorer.phrases]
    for parent, before in ((start, []), (after, units[0])):
        values, rest = scorer.preview(Candidates(options, parent, False))
        grown = [before + first[:1] for first in units]
        columns = grid([[scorer.columns[unit] for unit in row] for row in [before, *grown]])
        roots = np.full(len(grown) + 1, scorer.prefixes.root)
        totals, _ = scorer.prefixes.follow(roots, columns, False)
        np.testing.assert_allclose(values[:, 0], totals[1:] - totals[0], atol=1e-5)
        np.testing.assert_allclose(rest, [1 - 1 / max(1, len(row)) for row in units])
        assert np.ptp(values) > 0.1


@pytest.mark.ci
@pytest.mark.parametrize("seed", [1, 3])
def test_exact_states_find_the_best_of_all(seed: int, model: Model) -> None:
    folder = model(seed, raw_run(seed), "neural-recombine=false")
    made = decoder(folder, nbest=100, distortion_limit=1, neural_beam=0, **UNLIMITED)
    line = sentence(seed, 4)
    totals = sorted(exhaustive(made, line).values(), reverse=True)
    found = [derivation.total for derivation in made.translate_line(line).derivations]
    assert len(found) == min(100, len(totals)) > 10
    np.testing.assert_allclose(found, totals[: len(found)], atol=1e-5)


@pytest.mark.ci
@pytest.mark.parametrize("options", ["", "neural-recombine=false"])
def test_nothing_pruned_is_immediate(options: str, model: Model) -> None:
    check_unpruned(model(2, raw_run(), options), 6)


def test_what_is_refused(model: Model) -> None:
    with pytest.raises(ConfigError, match="restricted=true, but this run writes raw text"):
        decoder(model(1, raw_run(), "restricted=true"))
    with pytest.raises(ConfigError, match=r"run: reads raw text .*target\.language: 'xx' is unknown"):
        decoder(model(1, raw_run(language="xx")))
    with pytest.raises(ConfigError, match=r"run: reads raw text .*target\.language: '' is unknown"):
        RunTranslation(raw_run(language=""))
