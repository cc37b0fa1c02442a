"""An encoder-decoder inside the search: its values equal those of whole sentences, exact states find what
exhaustive search finds, and the result without pruning equals immediate scoring."""

import logging
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.compute.compiled import HAVE_NUMBA
from nmt.data.corpus import DataConfig
from nmt.errors import ConfigError
from nmt.formats import nbest
from nmt.layers.batch_scores import word_scores
from nmt.models.config import ModelConfig, RNNConfig
from nmt.models.registry import make
from nmt.models.transformer import TransformerConfig
from nmt.runs.checkpoint import SavedRun
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.tokenize import unescape
from nmt.text.vocab import Vocab
from smt_bridge.decoder import compiled_search
from smt_bridge.decoder.arrays import Floats, Int64s, SearchState
from smt_bridge.decoder.compiled_search import candidates
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.model import SearchTask
from smt_bridge.decoder.translation import PhraseTranslation
from tests.conftest import ROOT, Command
from tests.nmt.models.models import with_options
from tests.smt_bridge.decoder.models import (
    UNLIMITED,
    add_feature,
    check_totals,
    check_unpruned,
    decoder,
    sentence,
    values,
    write_model,
)
from tests.smt_bridge.decoder.test_search import exhaustive

pytestmark = pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")

MODELS = ROOT / "tests" / "models"


class Halves:
    """Subwords: q and t' are two units, u is three."""

    kind, raw, suffix = "halves", False, "codes"
    cuts = {"q": ["q@@", "q"], "t'": ["t@@", "'"], "u": ["u@@", "u@@", "u"]}  # noqa: RUF012

    def apply(self, words: list[str]) -> list[str]:
        return [unit for word in words for unit in self.cuts.get(word, [word])]


def saved(
    network: str = "attention", halves: bool = False, seed: int = 1, target: str = "p q s t' u"
) -> SavedRun:
    """A run of random weights over the words of models.py; the words e and r are unknown to it. `network`:
    rnn, attention or transformer."""
    torch.manual_seed(seed)
    source, text = (TextPipeline.of(SideConfig(tokenize=False, normalize=False)) for _ in range(2))
    units = target.split()
    if halves:
        text.subwords = Halves()  # type: ignore[assignment]
        units = text.cut(units)
    words = [Vocab(dict.fromkeys(found, 1), 99) for found in (["a", "b", "c", "d"], units)]
    config: ModelConfig = TransformerConfig(
        embedding=8, feed_forward=12, heads=2, encoder_layers=1, decoder_layers=2
    )
    if network != "transformer":
        more: dict[str, object] = {"encoder": "birnn", "attention": 6} if network == "attention" else {}
        sizes = RNNConfig(embedding=8, hidden=12, maxout=8, init="uniform", init_scale=1.2)
        config = with_options(sizes, more)
    model = make(config, len(words[0]), len(words[1])).eval()
    return SavedRun(Path("run"), model, source, text, words[0], words[1], DataConfig(), 0)


Model = Callable[..., Path]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    """Writes a system with a run in its search."""

    def made(seed: int, run: SavedRun, arguments: str = "", weight: float = 0.7) -> Path:
        monkeypatch.setattr("nmt.runs.checkpoint.load", lambda *given: run)
        folder = write_model(tmp_path / "model", seed, options=2)
        (folder / "run").mkdir(exist_ok=True)
        return add_feature(folder, f"NeuralTranslation name=NMT0 path=run {arguments}", f"NMT0= {weight}")

    return made


def expected(run: SavedRun, line: str, text: list[str]) -> float:
    """log p of a whole target given the source, computed without shared prefixes."""
    source = run.source_words.encode(run.source.cut(line.split()))
    target = run.target_words.encode(run.target.cut(list(map(unescape, text))))
    return math.fsum(word_scores(run.model, [(source, target)])[0])


def check_values(made: Decoder, found: PhraseTranslation, run: SavedRun, line: str) -> None:
    """Check that the feature's values equal those of whole sentences, that totals are weights x features, and
    that derivations are sorted by total."""
    check_totals(made, found)
    for place, one in enumerate(found.derivations):
        assert math.isclose(
            values(made, found, place)["NMT0"][0], expected(run, line, one.text), abs_tol=1e-4
        )


@pytest.mark.ci
@pytest.mark.parametrize(
    ("network", "halves"), [("attention", False), ("rnn", True), ("attention", True), ("transformer", True)]
)
@pytest.mark.parametrize("options", ["", "neural-recombine=false", "restricted=true neural-beam=7"])
def test_values_are_those_of_whole_sentences(network: str, halves: bool, options: str, model: Model) -> None:
    run = saved(network, halves)
    made = decoder(model(3, run, options), stack=10, nbest=20)
    for number in range(6):
        line = sentence(number, 1 + number)
        check_values(made, made.translate_line(line), run, line)


@pytest.mark.parametrize("options", ["", "neural-recombine=false"])
def test_the_search_scores_its_best_by_these_values(options: str, model: Model) -> None:
    """The total of the search equals that of its best derivation when scored again."""
    made = decoder(model(4, saved(halves=True), options), stack=10)
    for number in range(8):
        marked = made.parse_line(sentence(number, 5))
        task = made.task(marked, made.listing)
        (path,), (total,) = made.search(task, made.listing)
        (found,) = made.derivations(task, [path], [total])
        assert math.isclose(found.total, total, abs_tol=1e-9)


@pytest.mark.ci
@pytest.mark.parametrize("seed", [1, 3])
def test_exact_states_find_the_best_of_all(seed: int, model: Model) -> None:
    """With unlimited stacks and without recombination of different texts, the list has the hundred best of
    all derivations."""
    folder = model(seed, saved(seed=seed), "neural-recombine=false")
    made = decoder(folder, nbest=100, distortion_limit=1, neural_beam=0, **UNLIMITED)
    line = sentence(seed, 5)
    totals = sorted(exhaustive(made, line).values(), reverse=True)
    found = [derivation.total for derivation in made.translate_line(line).derivations]
    assert len(found) == min(100, len(totals)) and len(set(np.round(totals, 6))) > 10
    np.testing.assert_allclose(found, totals[: len(found)], atol=1e-5)


@pytest.mark.ci
@pytest.mark.parametrize("options", ["", "neural-recombine=false", "restricted=true"])
def test_nothing_pruned_is_immediate(options: str, model: Model) -> None:
    check_unpruned(model(2, saved(halves=True), options), 10)


@pytest.mark.ci
def test_its_beam_is_unlimited_where_it_is_wide(model: Model) -> None:
    """neural-beam= in the feature's line: a narrow beam loses translations, a wide one equals no beam."""
    lines = [sentence(number, 6) for number in range(15)]
    totals = []
    for beam in (2, 20, 100_000, 0):
        made = decoder(
            model(5, saved(), f"neural-beam={beam} neural-recombine=false"), stack=30, neural_beam=0
        )
        totals.append([made.translate_line(line).derivations[0].total for line in lines])
    assert sum(totals[0]) < sum(totals[1]) <= sum(totals[3]) + 1e-6
    assert totals[2] == totals[3]


def test_what_the_beam_knows_of_a_candidate(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """The preview is the probability of the first unit. That is the exact score of a phrase of one unit
    before the end; for longer phrases the language model stands in for the other units."""
    made = decoder(model(3, saved(halves=True), "neural-beam=4"), stack=20)
    previewed_totals, shares = compiled_search.previewed_totals, set[float]()

    def checked(
        state: SearchState, task: SearchTask, stack: int, number: int, chosen: Int64s, missing: float
    ) -> Floats:
        found = previewed_totals(state, task, stack, number, chosen, missing)
        scorer = task.scorers[number]
        asked = candidates(state, task, stack, number, chosen)
        preview = scorer.preview(asked)
        assert preview is not None
        values, rest = preview
        gains = scorer.gains(asked).values
        whole = rest == 0
        assert (values[~whole] > gains[~whole]).all()
        np.testing.assert_allclose(values[whole], gains[whole], atol=1e-6)
        known = state.candidates.score[chosen] + state.coverages.future[state.candidates.coverage[chosen]]
        alone = state.candidates.total[chosen] - known
        np.testing.assert_allclose(found, known + 0.7 * values[:, 0] + rest * alone, atol=1e-9)
        shares.update(np.round(rest, 3).tolist())
        return found

    monkeypatch.setattr("smt_bridge.decoder.compiled_search.previewed_totals", checked)
    made.translate([sentence(number, 5) for number in range(3)])
    assert {0.0, 0.5, 0.667} <= shares


@pytest.mark.ci
def test_threads_change_nothing(model: Model) -> None:
    made = decoder(model(6, saved(halves=True)), stack=10, nbest=3)
    lines = [sentence(number, 1 + number % 7) for number in range(20)]

    def entries(workers: int) -> list[str]:
        return [
            made.entry(number, found, one)
            for number, found in enumerate(made.translate_all(iter(lines), workers))
            for one in found.derivations
        ]

    assert entries(1) == entries(2)


def test_unknown_vocabulary_is_reported(model: Model, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        decoder(model(1, saved(target="p q r s t' u"))).translate(["a", "b"])
        before = [record for record in caplog.records if "NMT0" in record.message]
        decoder(model(1, saved(target="P Q S T' U"))).translate(["a", "b"])
    (record,) = [record for record in caplog.records if "NMT0" in record.message]
    assert not before
    assert "NMT0: " in record.message and "knows 0% of the target words" in record.message


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ("neural-beam=-1", r"moses\.ini:\d+: neural-beam='-1' is not a count, expected 0 or more"),
        ("neural-recombine=maybe", r"moses\.ini:\d+: neural-recombine='maybe' "),
        ("recombine=false", "NeuralTranslation has no argument 'recombine' here"),
    ],
)
def test_refused_options(options: str, wrong: str, model: Model) -> None:
    with pytest.raises(ConfigError, match=wrong):
        decoder(model(1, saved(), options))


@pytest.mark.ci
def test_smt_rescore_computes_the_same(tmp_path: Path, command: Command) -> None:
    """A real run with BPE in a real system: each value of the n-best list equals that of smt-rescore, and the
    list is sorted by total."""
    folder = tmp_path / "model"
    shutil.copytree(MODELS / "phrase-based", folder)
    run = Path(shutil.copytree(MODELS / "translator", tmp_path / "translator"))  # it gets a matmul.tsv
    add_feature(folder, f"NeuralTranslation name=NMT0 path={run} neural-beam=50", "NMT0= 0.4")
    source = tmp_path / "text.en"
    lines = [line for line in (MODELS / "tokenized.en").read_text().splitlines(True) if line.strip()]
    source.write_text("".join(lines))
    found, again = tmp_path / "list", tmp_path / "again"
    done = command("smt-decode", folder, "-i", source, "-o", tmp_path / "out", "--n-best-list", found, "-q")
    assert done.returncode == 0, done.stderr
    feature = f"translation={run}"
    done = command("smt-rescore", found, "--source", source, "--feature", feature, "-o", again, "-q")
    assert done.returncode == 0, done.stderr
    first, _ = found.read_text(encoding="utf-8").split("\n", 1)
    totals: dict[int, list[float]] = {}
    for text in again.read_text(encoding="utf-8").splitlines():
        entry = nbest.parse(text, "again")
        (name,) = {"NMT0", *entry.features} - {"NMT0", *nbest.parse(first, "list").features}
        assert math.isclose(entry.features["NMT0"][0], entry.features[name][0], abs_tol=2e-4)
        totals.setdefault(entry.sentence, []).append(entry.total)
    assert len(totals) == len(lines) and all(one == sorted(one, reverse=True) for one in totals.values())
