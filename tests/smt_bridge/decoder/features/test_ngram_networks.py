"""N-gram networks inside the search: the n-grams of candidates, option by option, are those of whole
derivations, and values equal those of smt-rescore."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from nmt.compute.compiled import HAVE_NUMBA
from nmt.data.affiliation import affiliations
from nmt.errors import CheckpointError, ConfigError
from nmt.formats import nbest
from nmt.lm.cslm import CSLM
from nmt.runs import checkpoint
from nmt.runs.joint import aligned_word_scores, load_aligned
from nmt.text.vocab import BOS, EOS
from smt_bridge.cli import decode, rescore
from smt_bridge.decoder.features import load_joint, load_network, load_translator
from smt_bridge.decoder.features.ngram_networks import SENTENCE_END, WordHistories, word_affiliations
from smt_bridge.decoder.features.protocol import Candidates
from smt_bridge.decoder.xml_input import MarkedLine
from tests.commands.runs import joint_run
from tests.conftest import ROOT, Command
from tests.nmt.lm.models import model_of
from tests.nmt.models.test_registry import Unigram, UnigramConfig
from tests.smt_bridge.decoder.models import (
    UNLIMITED,
    add_feature,
    check_totals,
    check_unpruned,
    decoder,
    sentence,
    train_cslm,
    write_model,
)
from tests.smt_bridge.decoder.test_search import exhaustive

# ---- test init ---------------------------------------------------------------------------------------------
# The networks of runs: their own probabilities; runs that the search cannot use are refused.


def test_n_grams_are_those_of_the_texts(saved_runs: Path) -> None:
    """log p of a text, word by word, with the contexts that its words have in it."""
    run = checkpoint.load_lm(saved_runs / "lm")
    assert isinstance(run.model, CSLM)
    network = load_network("CSLM0", str(saved_runs / "lm"), normalized=False)
    text = [5, 9, 4, 4, 7]
    line = [BOS] * (network.order - 1) + text
    contexts = np.array([line[place : place + network.order - 1] for place in range(len(text))])
    found = network.score(contexts, np.array(text))
    np.testing.assert_allclose(found, run.model.score_texts([text])[0][:-1], atol=1e-5)
    assert network.vocab.words == run.words.words and network.text.cut(["a"]) == run.text.cut(["a"])


@dataclass
class Text:
    """A text pipeline of words."""

    raw = False


@dataclass
class Saved:
    """A run of another kind."""

    model: object
    text: object = Text


def test_what_the_search_cannot_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="nowhere"):
        load_network("CSLM0", str(tmp_path / "nowhere"), normalized=False)
    for kind, message in (
        ("cslm", r"^run: normalized=true, but .* not trained with lm\.normalizer; remove the option$"),
        ("lstm", r"^run: CSLM0 has to be a CSLM; use other language models to rescore"),
    ):
        monkeypatch.setattr("nmt.runs.checkpoint.load_lm", lambda *given, kind=kind: Saved(model_of(kind)))
        with pytest.raises(ConfigError, match=message):
            load_network("CSLM0", "run", normalized=True)


def test_a_translator_reads_words_of_the_table(saved_runs: Path) -> None:
    """Words are unescaped and cut into the run's units like a line of text."""
    run = checkpoint.load(saved_runs / "translator")
    network = load_translator(str(saved_runs / "translator"), restricted=False)
    words = "l' homme n&apos; entend pas la petite fille .".split()
    line = run.for_text(tokenized=True).target_ids(" ".join(words).replace("&apos;", "'"))
    assert network.target(words) == line and len(line) > len(words)
    assert [unit for word in words for unit in network.target([word])] == line
    assert network.source(["the", "man"]) == run.source_words.encode(run.source.cut(["the", "man"]))


def test_translators_that_the_search_cannot_use(monkeypatch: pytest.MonkeyPatch, saved_runs: Path) -> None:
    run = checkpoint.load(saved_runs / "translator")
    run.model = Unigram(UnigramConfig(), 5, 9)  # it can only step
    monkeypatch.setattr("nmt.runs.checkpoint.load", lambda *given: run)
    message = r"^run: restricted=true, but models of this type cannot use a short-list; remove the option$"
    with pytest.raises(ConfigError, match=message):
        load_translator("run", True)


# ---- test histories ----------------------------------------------------------------------------------------
# The n-grams of candidates, one option after the other, are those of their derivation.


pytestmark = pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.ci
def test_extend_is_of_derivations(order: int, tmp_path: Path) -> None:
    """The word `zz` is dropped: an option without words leaves the history unchanged."""
    part = decoder(write_model(tmp_path, 2), drop_unknown=True).options.gather(
        MarkedLine(["a", "b", "zz", "a", "c"])
    )
    ids = part.text + 5
    rng = np.random.default_rng(1)
    paths = [rng.integers(0, part.size, length).astype(np.int32) for length in (1, 3, 5, 3)]
    assert any(part.length[option] == 0 for option in range(part.size))
    whole = WordHistories(part, ids, order).of_derivations(paths)
    histories = WordHistories(part, ids, order)
    for number, path in enumerate(paths):
        state, rows = 0, []
        for step, option in enumerate(path.tolist()):
            last = step == len(path) - 1
            found, (state,), _ = histories.extend(Candidates(np.array([option]), np.array([state]), last))
            assert (found.owner == 0).all()
            rows += list(
                zip(found.contexts.tolist(), found.words.tolist(), found.position.tolist(), strict=True)
            )
        own = whole.owner == number
        parts = (whole.contexts[own].tolist(), whole.words[own].tolist(), whole.position[own].tolist())
        assert rows == list(zip(*parts, strict=True))
        text = [BOS] * (order - 1) + [int(ids[place]) for _, _, place in rows[:-1]]
        assert [context for context, _, _ in rows] == [text[at : at + order - 1] for at in range(len(rows))]
        assert rows[-1][1:] == (EOS, SENTENCE_END)


def test_keys_are_those_of_the_last_words(tmp_path: Path) -> None:
    part = decoder(write_model(tmp_path, 2)).options.gather(MarkedLine(["a", "b", "a"]))
    histories = WordHistories(part, part.text, 3)
    option = np.arange(part.size)
    found, states, keys = histories.extend(Candidates(option, np.zeros(part.size, np.int64), False))
    last = [tuple(row) for row in histories.rows[states].tolist()]
    assert len(set(last)) == len(set(keys.tolist())) == len(set(zip(last, keys.tolist(), strict=True)))
    assert found.sums(np.ones(len(found.words)), part.size)[:, 0].tolist() == part.length.tolist()


# ---- test cslm ---------------------------------------------------------------------------------------------
# A CSLM inside the search: two stages with nothing pruned = scoring at once; buffers and threads change
# nothing; what cannot be used is refused.


@pytest.fixture(scope="module")
def cslm(tmp_path_factory: pytest.TempPathFactory, command: Command) -> Path:
    return train_cslm(tmp_path_factory.mktemp("cslm"), command)


def model(folder: Path, run: Path, seed: int, normalized: bool = False, weight: float = 0.7) -> Path:
    line = f"CSLM name=CSLM0 factor=0 path={run} normalized={str(normalized).lower()}"
    return add_feature(write_model(folder, seed), line, f"CSLM0= {weight}")


@pytest.mark.ci
@pytest.mark.parametrize(
    ("seed", "buffer", "normalized"), [(0, 8192, False), (1, 1, False), (2, 7, True), (3, 64, True)]
)
def test_nothing_pruned_is_immediate(
    seed: int, buffer: int, normalized: bool, cslm: Path, tmp_path: Path
) -> None:
    check_unpruned(model(tmp_path, cslm, seed, normalized), 12, buffer=buffer)


@pytest.mark.ci
def test_unlimited_stacks_find_the_best_of_all(cslm: Path, tmp_path: Path) -> None:
    """Without limits, no derivation of the list is better than the first, and features x weights are the
    totals."""
    made = decoder(
        model(tmp_path, cslm, 4), stack=0, neural_beam=0, beam_threshold=0.0, table_limit=0, nbest=200
    )
    for number in range(6):
        check_totals(made, made.translate_line(sentence(number, 4)), 1e-5)


@pytest.mark.ci
def test_a_wider_beam_is_no_worse_in_the_end(cslm: Path, tmp_path: Path) -> None:
    folder = model(tmp_path, cslm, 5)
    lines = [sentence(number, 6) for number in range(15)]
    totals = []
    for beam in (3, 30, 0):
        made = decoder(folder, stack=30, neural_beam=beam)
        totals.append(sum(made.translate_line(line).derivations[0].total for line in lines))
    assert totals[0] < totals[2] and totals[1] <= totals[2] + 1e-6


def test_threads_change_nothing(cslm: Path, tmp_path: Path) -> None:
    made = decoder(model(tmp_path, cslm, 6), stack=10, neural_beam=20)
    lines = [sentence(number, 1 + number % 7) for number in range(30)]
    alone = [(t.text, t.derivations[0].total) for t in made.translate_all(iter(lines))]
    assert alone == [(t.text, t.derivations[0].total) for t in made.translate_all(iter(lines), 3)]


@pytest.mark.ci
def test_refused(
    cslm: Path, tiny: Path, tmp_path: Path, command: Command, refused: Callable[..., str]
) -> None:
    folder = model(tmp_path, tiny / "run", 0)
    assert "language model" in refused(command("smt-decode", folder, "--quiet", input="a\n"))
    ini = (folder / "moses.ini").read_text()
    (folder / "moses.ini").write_text(ini.replace(str(tiny / "run"), "nowhere"))
    assert "nowhere found neither beside the ini nor in the current folder" in refused(
        command("smt-decode", folder, input="a\n")
    )


# ---- test nnjm ---------------------------------------------------------------------------------------------
# A joint model inside the search: affiliations by hand; nothing pruned = scoring at once = all derivations;
# the values are those of smt-rescore; what cannot be used is refused.


@pytest.fixture(scope="module")
def joint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over the words of models.py, without their escapes; the rarest word of each side is unknown."""
    folder = tmp_path_factory.mktemp("joint")
    return joint_run(folder, "data.source.vocabulary=4", "data.target.vocabulary=5", "training.max_steps=40")


def joint_model(
    folder: Path, run: Path, seed: int, normalized: bool = False, options: int = 3, longest: int = 3
) -> Path:
    """A system whose options have random alignment points, or none."""
    write_model(folder, seed, options, longest)
    rng, lines = random.Random(seed), []
    for line in (folder / "table").read_text(encoding="utf-8").split("\n")[:-1]:
        source, target, scores, _, *rest = line.split(" ||| ")
        sizes = len(source.split()), len(target.split())
        points = {(rng.randrange(sizes[0]), rng.randrange(sizes[1])) for _ in range(rng.randint(0, 4))}
        field = " ".join(f"{a}-{b}" for a, b in points)
        lines.append(" ||| ".join([source, target, scores, field, *rest]))
    (folder / "table").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    line = f"NNJM name=NNJM0 factor=0 path={run} normalized={str(normalized).lower()}"
    return add_feature(folder, line, "NNJM0= 0.7")


def test_affiliations_of_options(joint: Path, tmp_path: Path) -> None:
    """Affiliations are computed within the phrase and shifted by its position; unknown words are affiliated
    with themselves."""
    made = decoder(joint_model(tmp_path, joint, 1))
    part = made.options.gather(MarkedLine(["a", "b", "zz", "a", "c"]))
    found = word_affiliations(part)
    for option, place in enumerate(part.slices(range(part.size))):
        own = affiliations(part.points(option), len(part.source(option)), len(part.target(option)))
        assert (found[place] - part.first[option]).tolist() == own
    assert sum(part.extra(option) is not None for option in range(part.size)) == 1
    assert len({tuple(part.points(option)) for option in range(part.size)}) > 5


@pytest.mark.parametrize(
    ("seed", "buffer", "normalized"),
    [
        (0, 8192, False),
        pytest.param(1, 1, False, marks=pytest.mark.ci),
        pytest.param(2, 7, True, marks=pytest.mark.ci),
    ],
)
@pytest.mark.ci
def test_joint_nothing_pruned_is_immediate(
    seed: int, buffer: int, normalized: bool, joint: Path, tmp_path: Path
) -> None:
    check_unpruned(joint_model(tmp_path, joint, seed, normalized), 5, buffer=buffer)


@pytest.mark.ci
def test_unlimited_stacks_are_exhaustive(joint: Path, tmp_path: Path) -> None:
    """On five words: the hundred best of all derivations, in order."""
    folder = joint_model(tmp_path, joint, 4, options=1, longest=2)
    made = decoder(folder, nbest=100, neural_beam=0, distortion_limit=2, **UNLIMITED)
    line = sentence(4, 5)
    totals = sorted(exhaustive(made, line).values(), reverse=True)
    found = made.translate_line(line).derivations
    assert len(totals) > 100
    np.testing.assert_allclose([one.total for one in found], totals[:100], atol=1e-4)


def test_values_are_those_of_the_derivation(joint: Path, tmp_path: Path) -> None:
    """log p of the target, word by word, given the affiliations of its phrases."""
    made = decoder(joint_model(tmp_path, joint, 3), stack=20, nbest=20)
    run = load_aligned(joint).for_text(tokenized=True)
    place = list(made.system.sizes).index("NNJM0")
    for number in range(4):
        line = sentence(number, 4)
        found = made.translate_line(line)
        assert found.sentence
        for derivation in found.derivations:
            at, points = 0, []
            for option in derivation.options.tolist():
                length, begin = int(found.sentence.length[option]), int(found.sentence.first[option])
                size = int(found.sentence.last[option]) - begin + 1
                own = affiliations(found.sentence.points(option), size, length)
                points += [f"{begin + source}-{at + k}" for k, source in enumerate(own)]
                at += length
            text = " ".join(derivation.text).replace("&apos;", "'")
            (scores,) = aligned_word_scores(run, [(line, text, " ".join(points))], "list")
            assert derivation.features[place] == pytest.approx(sum(scores), abs=1e-4)


@pytest.mark.parametrize("normalized", [False, True])
def test_the_same_by_smt_rescore(normalized: bool, joint: Path, tmp_path: Path) -> None:
    """The value of each derivation of a list, including dropped and unknown words, is what smt-rescore
    computes for its line."""
    folder, lines = joint_model(tmp_path / "joint_model", joint, 5, normalized), tmp_path / "lines"
    lines.write_text(
        "".join(f"{sentence(number, 1 + number % 5)} {'zz ' * (number % 3)}\n" for number in range(9))
    )
    wish = ["--n-best-list", str(tmp_path / "n"), "--n-best", "30", "--drop-unknown", "-q"]
    assert decode.main([str(folder), "-i", str(lines), "-o", str(tmp_path / "o"), *wish]) == 0
    given = ["-s", str(lines), "-o", str(tmp_path / "r"), *["--assume-normalized"] * normalized, "-q"]
    assert rescore.main([str(tmp_path / "n"), "-f", f"joint:Joint0={joint}", *given]) == 0
    rows = [hypothesis.features for hypothesis in nbest.read(tmp_path / "r")]
    assert len(rows) > 100 and len({row["NNJM0"][0] for row in rows}) > 50
    assert [row["Joint0"] for row in rows] == [
        pytest.approx(row["NNJM0"], rel=2e-5, abs=1e-5) for row in rows
    ]


def test_features_make_up_the_total_and_threads_change_nothing(joint: Path, tmp_path: Path) -> None:
    made = decoder(joint_model(tmp_path, joint, 6), stack=10, neural_beam=20, nbest=3)
    lines = [sentence(number, 1 + number % 6) for number in range(12)]
    alone = list(made.translate_all(iter(lines)))
    for found in alone:
        check_totals(made, found, 1e-4)
    together = made.translate_all(iter(lines), 3)
    totals = [[[one.total for one in found.derivations] for found in every] for every in (alone, together)]
    assert totals[0] == totals[1]


def test_runs_that_the_search_cannot_use(joint: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"is a model of type rnn, expected a run of model\.type joint"):
        load_joint(str(ROOT / "tests" / "models" / "translator"), False)
    plain = joint_run(tmp_path, "model.normalizer=0", "training.max_steps=1")
    with pytest.raises(ConfigError, match=r"was not trained with model\.normalizer"):
        load_joint(str(plain), True)
    backward = joint_run(tmp_path / "other", "model.direction=right-to-left", "training.max_steps=1")
    with pytest.raises(ConfigError, match=r"reads from right to left, .*smt-rescore --feature joint"):
        load_joint(str(backward), False)
