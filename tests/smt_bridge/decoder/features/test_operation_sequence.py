"""The operation sequence model in both searches: its columns are those of a naive twin, which writes down the
operations of whole derivations; hypotheses recombine only where all that follows scores the same."""

import random
from pathlib import Path

import numpy as np
import pytest

from nmt.compute.compiled import HAVE_NUMBA
from nmt.errors import ConfigError
from nmt.io import files
from nmt.ngram import count_models, estimators
from nmt.ngram.text_scorer import LN10
from nmt.ngram.word_classes import write_classes
from smt_bridge import compiled_model
from smt_bridge.cli import compile as compile_command
from smt_bridge.cli import tune
from smt_bridge.decoder.cache import Cache
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.features.operation_sequence import OperationSequenceModel
from smt_bridge.decoder.features.protocol import Candidates
from smt_bridge.decoder.system import load
from smt_bridge.decoder.translation import Derivation, PhraseTranslation
from smt_bridge.decoder.xml_input import MarkedLine
from smt_bridge.moses import check
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses.operations import ClassMaps, sequence
from tests.smt_bridge.decoder.models import (
    SOURCE,
    TARGET,
    add_feature,
    check_totals,
    decoder,
    edit,
    same_lists,
    sentence,
    values,
    write_model,
)
from tests.smt_bridge.moses.operation_twin import Story

pytestmark = pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")

LINE = "OpSequenceModel name=OpSequenceModel0 path=osm"
WEIGHTS = "OpSequenceModel0= 0.5 -0.05 -0.2 0.1 0.3"


def links(rng: random.Random, source: int, target: int) -> list[tuple[int, int]]:
    cells = [(a, b) for a in range(source) for b in range(target)]
    return sorted(rng.sample(cells, rng.randint(0, min(len(cells), 4))))


def model(folder: Path, seed: int, line: str = LINE, weights: str = WEIGHTS) -> Path:
    """A random system whose phrase pairs have random links, with a model of random operations."""
    write_model(folder, seed)
    rng, rows = random.Random(seed), []
    for row in (folder / "table").read_text(encoding="utf-8").splitlines():
        source, target, scores, _, *rest = row.split(" ||| ")
        points = links(rng, len(source.split()), len(target.split()))
        rows.append(
            " ||| ".join([source, target, scores, " ".join(f"{a}-{b}" for a, b in points), *rest]) + "\n"
        )
    (folder / "table").write_text("".join(rows), encoding="utf-8")
    texts = []
    for _ in range(150):
        source_words = [rng.choice(SOURCE) for _ in range(rng.randint(1, 5))]
        target_words = [rng.choice(TARGET) for _ in range(rng.randint(1, 5))]
        points = links(rng, len(source_words), len(target_words))
        texts.append(sequence(source_words, target_words, points, {"e"}))
    settings = estimators.KneserNeyConfig(3, discount_fallback=estimators.FALLBACK_DISCOUNTS)
    count_models.write_arpa(estimators.estimate_kneser_ney(texts, settings), folder / "osm")
    return add_feature(folder, line, weights)


def operations_of(translation: PhraseTranslation, derivation: Derivation) -> Story:
    """The operations of a derivation, by the twin."""
    sentence = translation.sentence
    assert sentence
    story = Story(len(sentence.words))
    for option in derivation.options.tolist():
        extra = sentence.extra(option)
        story.add_phrase(
            int(sentence.first[option]), sentence.source(option), sentence.target(option),
            sentence.points(option), extra is not None and extra.unknown,
        )  # fmt: skip
    assert all(story.covered)
    return story


def twin_scores(made: Decoder, story: Story) -> list[float]:
    (feature,) = made.features
    assert isinstance(feature, OperationSequenceModel)
    ids = [feature.lm.number(name) for name in story.names]
    log_prob, _ = feature.lm.walk(feature.lm.start(), ids)
    return [log_prob / LN10, story.width, story.opened, story.open, story.unlinked]


def columns(made: Decoder, derivation: Derivation) -> list[float]:
    at = 0
    for name, size in made.system.sizes.items():
        if name == "OpSequenceModel0":
            return list(derivation.features[at : at + size])
        at += size
    raise AssertionError


@pytest.mark.ci
@pytest.mark.parametrize("plain", [False, True])
def test_columns_are_those_of_the_twin(plain: bool, tmp_path: Path) -> None:
    """And totals, which the search adds up phrase by phrase, are weights x columns."""
    weights = "OpSequenceModel0= 0.1 0.2 1 0.5 0.3"  # likes gaps
    config = {"nbest": 40, "stack": 10, "neural_beam": 0, "distortion_limit": 6}
    made = decoder(model(tmp_path, 5, weights=weights), plain, **config)
    names = set[str]()
    for number in range(6):
        line = sentence(number, (1, 4, 7)[number % 3])
        found = made.translate_line(line)
        check_totals(made, found)
        for derivation in found.derivations:
            story = operations_of(found, derivation)
            np.testing.assert_allclose(columns(made, derivation), twin_scores(made, story), atol=1e-9)
            names.update(story.names)
    assert {"_JMP_FWD_", "_JMP_BCK_1", "_JMP_BCK_2", "_CONT_CEPT_", "_TRANS_SLF_"} <= names
    assert any(name.startswith("_INS_") for name in names) and any(name.startswith("_DEL_") for name in names)


@pytest.mark.ci
@pytest.mark.parametrize("seed", [2, 3])
def test_compiled_is_plain(seed: int, tmp_path: Path) -> None:
    folder = model(tmp_path, seed)
    compiled, plain = (decoder(folder, way, stack=6, neural_beam=0, nbest=10) for way in (False, True))
    for number in range(15):
        line = sentence(number, 1 + number % 6)
        same_lists(compiled.translate_line(line), plain.translate_line(line), line)


@pytest.mark.ci
def test_equal_keys_have_equal_futures(tmp_path: Path) -> None:
    """Beginnings of derivations that cover the same words and have the same key score the same whatever
    follows, so that the better one may stand for both."""
    made = decoder(model(tmp_path, 5))
    (feature,) = made.features
    assert isinstance(feature, OperationSequenceModel)
    part = made.options.gather(MarkedLine("a b c d a b".split()))
    scorer, spans = feature.start(part), [*zip(part.first.tolist(), part.last.tolist(), strict=True)]
    rng, groups = random.Random(1), dict[tuple[frozenset[int], int], set[int]]()
    for _ in range(1500):
        covered, state, key = frozenset[int](), 0, 0
        for option in rng.sample(range(part.size), 8):
            words = range(spans[option][0], spans[option][1] + 1)
            if covered.isdisjoint(words) and len(covered) < 4:
                gains = scorer.gains(Candidates(np.array([option]), np.array([state]), False))
                covered, state, key = covered | {*words}, int(gains.states[0]), int(gains.recombined[0])
        groups.setdefault((covered, key), set()).add(state)
    compared = 0
    for (covered, _), states in groups.items():
        free = [at for at, (first, last) in enumerate(spans) if covered.isdisjoint(range(first, last + 1))]
        if len(states) > 1 and free:
            rows = [
                scorer.gains(Candidates(np.array(free), np.full(len(free), state), False)) for state in states
            ]
            for row in rows[1:]:
                np.testing.assert_array_equal(row.values, rows[0].values)
                np.testing.assert_array_equal(row.recombined, rows[0].recombined)
                compared += 1
    assert compared > 20


@pytest.mark.ci
def test_one_score(tmp_path: Path) -> None:
    line = f"{LINE} num-features=1 support-features=no"
    made = decoder(model(tmp_path, 5, line, "OpSequenceModel0= 0.5"), nbest=5)
    found = made.translate_line("a b c")
    check_totals(made, found)
    for derivation in found.derivations:
        story = operations_of(found, derivation)
        assert columns(made, derivation) == pytest.approx(twin_scores(made, story)[:1])


CLASSES = ClassMaps({"a": 1, "b": 1, "c": 2}, {"p": 1, "q": 1, "r": 2, "u": 2})
CLASS_LINE = "OpSequenceModel name=COSM path=cosm num-features=1 support-features=no source-classes=sc"


def class_model(folder: Path, seed: int, line: str = f"{CLASS_LINE} target-classes=tc") -> Path:
    """A system with a model of operations over classes beside that over words."""
    model(folder, seed)
    rng, texts = random.Random(seed), []
    for _ in range(150):
        sides = [[rng.choice(words) for _ in range(rng.randint(1, 5))] for words in (SOURCE, TARGET)]
        points = links(rng, len(sides[0]), len(sides[1]))
        texts.append(sequence(sides[0], sides[1], points, {"e"}, CLASSES))
    settings = estimators.KneserNeyConfig(3, discount_fallback=estimators.FALLBACK_DISCOUNTS)
    count_models.write_arpa(estimators.estimate_kneser_ney(texts, settings), folder / "cosm")
    for name, classes in zip(("sc", "tc"), CLASSES, strict=True):
        write_classes(folder / name, dict(classes))
    return add_feature(folder, line, "COSM= 0.7")


@pytest.mark.ci
@pytest.mark.parametrize("plain", [False, True])
def test_a_model_of_classes(plain: bool, tmp_path: Path) -> None:
    """Its column is log10 p of the twin's operations with classes in their names."""
    made = decoder(class_model(tmp_path, 5), plain, nbest=10, stack=8, neural_beam=0)
    feature = next(feature for feature in made.features if feature.name == "COSM")
    assert isinstance(feature, OperationSequenceModel)
    names = set[str]()
    for number in range(4):
        found = made.translate_line(sentence(number, 1 + number))
        check_totals(made, found)
        assert found.sentence
        for place, derivation in enumerate(found.derivations):
            story = Story(len(found.sentence.words))
            for option in derivation.options.tolist():
                extra = found.sentence.extra(option)
                sides = CLASSES.apply(found.sentence.source(option), found.sentence.target(option))
                unknown = extra is not None and extra.unknown
                first, points = int(found.sentence.first[option]), found.sentence.points(option)
                story.add_phrase(first, *sides, points, unknown)
            log_prob, _ = feature.lm.walk(
                feature.lm.start(), [feature.lm.number(name) for name in story.names]
            )
            assert values(made, found, place)["COSM"] == pytest.approx([log_prob / LN10])
            names |= {*story.names}
    assert "_TRANS_1_TO_1" in names and not any("_TO_a" in name for name in names)


@pytest.mark.ci
def test_classes_of_one_side_are_refused(tmp_path: Path) -> None:
    folder = class_model(tmp_path, 5, CLASS_LINE)
    with pytest.raises(ConfigError, match="give both source-classes= and target-classes="):
        decoder(folder)
    ini = moses_ini.read(str(folder / "moses.ini"))
    assert any("Moses' OpSequenceModel has no classes" in line for line in check.problems(ini, [str(folder)]))


@pytest.mark.ci
def test_compiled_models_and_the_cache(tmp_path: Path) -> None:
    """From the ARPA file, from the cache, and from a folder of smt-compile: the same scores."""
    folder = model(tmp_path / "model", 5)
    assert compile_command.main([str(folder), "-o", str(tmp_path / "mapped")]) == 0
    assert (tmp_path / "mapped" / f"{compiled_model.LM}1").is_dir()
    systems = [load(str(folder), Cache(tmp_path / "cache")) for _ in range(2)]
    systems += [load(str(tmp_path / name), use_cache=False) for name in ("model", "mapped")]
    sources = [source for entry in Cache(tmp_path / "cache").entries() for source in entry.sources()]
    assert str(folder / "osm") not in sources
    lists = []
    for system in systems:
        found = Decoder(system, DecoderConfig(nbest=5)).translate_line("a b c d")
        lists.append([(derivation.text, derivation.features.tolist()) for derivation in found.derivations])
    sources = [source for entry in Cache(tmp_path / "cache").entries() for source in entry.sources()]
    assert str(folder / "osm") in sources and all(each == lists[0] for each in lists)


@pytest.mark.ci
def test_its_weights_are_tuned(tmp_path: Path) -> None:
    """Towards references that another weight prefers."""
    before = decoder(model(tmp_path, 5), stack=5)
    wanted = {**before.system.weights, "OpSequenceModel0": [0.1, 0.0, 0.0, 0.4, -0.6]}
    other = Decoder(before.system, DecoderConfig(stack=5), wanted)
    lines = [sentence(number, 5) for number in range(30)]
    files.write_text(tmp_path / "source", lines)
    files.write_text(tmp_path / "reference", other.translate(lines))
    given = ["-s", str(tmp_path / "source"), "-r", str(tmp_path / "reference"), "--method", "kbmira", "-q"]
    assert tune.main([str(tmp_path), *given, "--stack", "5", "--iterations", "3", "--no-cache"]) == 0
    tuned = moses_ini.read(str(tmp_path / "moses.tuned.ini"))
    weights = tuned.weights["OpSequenceModel0"]
    assert len(weights) == 5 and weights[4] / weights[0] < 0 < before.weights["OpSequenceModel0"][4]
    assert tuned.feature("OpSequenceModel0").scores == 5


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("path=osm", "path=osm num-features=1"), "num-features=1: OpSequenceModel has 5 scores"),
        (("path=osm", "path=osm support-features=no"), "num-features=5: OpSequenceModel has one score"),
        (("path=osm", "path=lm0"), "lm0 has no operation that begins with _TRANS_"),
        (("path=osm", "path=osm input-factor=1"), "input-factor='1': factors are not supported"),
        (("path=osm", "path=osm order=5"), "OpSequenceModel has no argument 'order' here"),
    ],
)
def test_refusals(change: tuple[str, str], problem: str, tmp_path: Path) -> None:
    folder = edit(model(tmp_path, 5), change)
    with pytest.raises(ConfigError) as raised:
        decoder(folder)
    assert str(raised.value).startswith(f"{folder}/moses.ini:") and problem in str(raised.value)
