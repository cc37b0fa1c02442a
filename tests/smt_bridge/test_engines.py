"""Phrase-based models and hybrid systems as engines of nmt-serve."""

import json
import logging
import shutil
import threading
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError
from nmt.formats import nbest
from nmt.io import manifest
from nmt.serve import served
from nmt.serve.config import EngineConfig
from nmt.serve.engine import TranslateOptions
from smt_bridge.decoder import system as systems
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.engines import (
    HybridSystem,
    PhraseBased,
    PhraseEngine,
    describe_features,
    score_descriptions,
)
from smt_bridge.hybrid import decoder
from smt_bridge.moses.reordering import ReorderingType

MODELS = Path(__file__).resolve().parents[1] / "models"
MODEL = MODELS / "phrase-based"
LINE = "the nurses hear her ."
GO = threading.Event()


@pytest.fixture(scope="module")
def engine() -> PhraseEngine:
    return PhraseBased().load(str(MODEL), EngineConfig(workers=3))


@pytest.fixture(scope="module")
def hybrid(hybrid_system: Path) -> PhraseEngine:
    return HybridSystem().load(str(hybrid_system), EngineConfig())


def test_each_kind_knows_its_own(hybrid_system: Path, tmp_path: Path) -> None:
    model, system = PhraseBased(), HybridSystem()
    assert model.reads(str(MODEL)) and model.reads(str(MODEL / "moses.ini"))
    assert system.reads(str(hybrid_system)) and not model.reads(str(hybrid_system))
    assert not model.reads(str(tmp_path)) and not system.reads(str(MODEL))
    assert not model.reads(str(MODELS / "phrase-based.fr"))


def test_they_are_found_by_their_entry_points(hybrid_system: Path) -> None:
    kinds = {path: served.load_engine(str(path), EngineConfig()).info.kind for path in (MODEL, hybrid_system)}
    assert list(kinds.values()) == ["phrase-based", "hybrid"]


def test_a_system_with_a_student_is_two_engines(hybrid_system: Path, system_with_student: Path) -> None:
    alone, both = str(hybrid_system), str(system_with_student)
    assert served.offered_engines([("a", alone)]) == [("a", alone)]
    offered = served.offered_engines([("b", both), ("a", alone)])
    assert offered == [("b", both), ("b.fast", f"{both}/fast"), ("a", alone)]
    assert [served.load_engine(path, EngineConfig()).info.kind for _, path in offered[:2]] == [
        "hybrid",
        "run",
    ]
    with pytest.raises(ConfigError, match=r"b\.fast: two engines have this name"):
        served.offered_engines([("b", both), ("b.fast", alone)])


def test_an_exported_student_needs_its_engine(
    system_with_student: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Without it the system alone is served, and the log says so."""
    system = shutil.copytree(system_with_student, tmp_path / "system")
    (system / "fast" / "version").write_text("nmt-ctranslate2 1\n")
    entry = json.loads((system / "system.json").read_text())
    entry["files"]["fast/version"] = vars(manifest.entry(system / "fast" / "version"))
    (system / "system.json").write_text(json.dumps(entry))
    monkeypatch.setattr("smt_bridge.engines.find_spec", lambda name: None)
    monkeypatch.setattr(logging.getLogger("smt_bridge"), "propagate", True)
    assert served.offered_engines([("b", str(system))]) == [("b", str(system))]
    assert "fast: is not served: ctranslate2 is not installed" in caplog.text


def test_a_line_is_translated_as_the_decoder_does(engine: PhraseEngine) -> None:
    found = engine.translate(LINE, TranslateOptions(n_best=5), GO)
    expected = Decoder.load(str(MODEL)).nbest([LINE], 5)[0]
    assert [one.words for one in found.hypotheses] == [one.text for one in expected]
    assert [one.score for one in found.hypotheses] == pytest.approx([one.total for one in expected])
    assert found.words == LINE.split() and found.parts == 1
    assert engine.translate(LINE, TranslateOptions(), GO).hypotheses[0].text == found.hypotheses[0].text
    assert len(engine.translate(LINE, TranslateOptions(), GO).hypotheses) == 1


def test_the_parts_of_a_hypothesis_are_those_of_an_n_best_list(engine: PhraseEngine) -> None:
    marked = engine.decoder.parse_line(LINE)
    listed = engine.decoder.translate_part(marked, listing=engine.decoder.make_listing(3, True))
    found = engine.translate(LINE, TranslateOptions(n_best=3, distinct=True), GO).hypotheses
    for one, derivation in zip(found, listed.derivations, strict=True):
        entry = nbest.parse(engine.decoder.entry(0, listed, derivation), "entry")
        assert one.features == {
            name: pytest.approx(values, abs=1e-3) for name, values in entry.features.items()
        }
        points = sorted(tuple(map(int, point.split("-"))) for point in entry.rest[1].split())
        assert one.alignment == points
        spans = [f"{span(*segment.source)}={span(*segment.target)}" for segment in one.segments]
        assert " ".join(spans) == entry.rest[0]


def span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def test_features_times_weights_are_the_score(engine: PhraseEngine) -> None:
    (one,) = engine.translate(LINE, TranslateOptions(), GO).hypotheses
    weights = engine.decoder.weights
    total = sum(
        value * weight
        for name, values in one.features.items()
        for value, weight in zip(values, weights[name], strict=True)
    )
    assert one.score == pytest.approx(total, abs=1e-4)


def test_unknown_words_and_empty_lines(engine: PhraseEngine) -> None:
    found = engine.translate("the xyzzy hear zyx .", TranslateOptions(), GO)
    assert found.unknown == [1, 3]
    assert engine.translate("  ", TranslateOptions(), GO).hypotheses[0].text == ""


def test_a_long_line_has_one_hypothesis_in_parts(engine: PhraseEngine) -> None:
    line = " ".join([LINE] * 60)
    found = engine.translate(line, TranslateOptions(n_best=5), GO)
    assert found.parts == 6 and len(found.hypotheses) == 1 and found.words == line.split()
    assert found.hypotheses[0].segments[-1].source[1] == len(found.words) - 1
    assert found.hypotheses[0].text == engine.decoder.translate([line])[0]


def test_a_mistake_in_the_markup(engine: PhraseEngine) -> None:
    exclusive = Decoder(engine.decoder.system, DecoderConfig(xml_input="exclusive"))
    with pytest.raises(DataError, match="markup: "):
        PhraseEngine(exclusive, engine.info, 1).translate(
            'the <n translation="x">man', TranslateOptions(), GO
        )


def test_a_long_line_with_a_wall_is_refused_as_by_the_decoder(engine: PhraseEngine) -> None:
    decoder = Decoder(engine.decoder.system, DecoderConfig(xml_input="exclusive", max_line_words=3))
    line = "the man <wall/> and the man"
    for refuse in (
        lambda: decoder.translate([line]),
        lambda: PhraseEngine(decoder, engine.info, 1).translate(line, TranslateOptions(), GO),
    ):
        with pytest.raises(DataError, match=r"5 words, more than --max-line-words 3: too long for tags"):
            refuse()


def test_known_words_fit(engine: PhraseEngine) -> None:
    assert engine.fit(LINE) > engine.fit("the xyzzy") > engine.fit("xyzzy") == engine.fit("") == 0


def test_a_hybrid_system_reads_raw_text(hybrid: PhraseEngine, hybrid_system: Path) -> None:
    line = "The house isn't small."
    found = hybrid.translate(line, TranslateOptions(n_best=2), GO)
    assert found.hypotheses[0].text == decoder.load(str(hybrid_system)).translate([line])[0]
    assert found.words[0] == "the" and hybrid.info.source == "en" and not hybrid.info.tokenized_only


def test_a_hybrid_system_takes_terms(hybrid: PhraseEngine) -> None:
    """Translations are written as in the request; other lines of the engine stay as before."""
    asked = TranslateOptions(n_best=3, terms=(("house", "CHÂTEAU n° 1"), ("Paris", "Lutèce")))
    (first, *_) = found = hybrid.translate("I see the house in Paris!", asked, GO).hypotheses
    assert all("CHÂTEAU n° 1" in one.text and "Lutèce" in one.text for one in found)
    assert first.text.startswith("Je vois") and first.alignment
    plain = hybrid.translate("I see the house.", TranslateOptions(), GO).hypotheses[0].text
    assert plain == "Je vois la maison."


def test_a_hybrid_system_avoids_phrases(hybrid: PhraseEngine) -> None:
    line = "The house is big."
    assert hybrid.translate(line, TranslateOptions(), GO).hypotheses[0].text == "La maison est grande."
    for phrase in ("maison", "est grande", "La maison"):  # the last is "la maison" to the system
        found = hybrid.translate(line, TranslateOptions(n_best=3, avoid=(phrase,)), GO).hypotheses
        assert found and all(phrase not in one.text for one in found), phrase
    other = hybrid.translate(
        line, TranslateOptions(avoid=("mai", "masion")), GO
    ).hypotheses  # whole words only
    assert other[0].text == "La maison est grande."


@pytest.mark.parametrize(
    ("problem", "asked"),
    [
        ("these phrases", TranslateOptions(terms=(("house", "château"),), avoid=("château",))),
        ("one side has no words", TranslateOptions(terms=(("house", " "),))),
        ("40 words", TranslateOptions(terms=(("a " * 40, "b"),))),
        ("leave out tokenized", TranslateOptions(terms=(("house", "b"),), tokenized=True)),
    ],
)
def test_what_a_hybrid_system_cannot_do_is_said(
    problem: str, asked: TranslateOptions, hybrid: PhraseEngine
) -> None:
    with pytest.raises(DataError, match=problem):
        hybrid.translate("The house is big.", asked, GO)


def test_features_have_names_and_weights(engine: PhraseEngine, hybrid: PhraseEngine) -> None:
    for one, line in ((engine, LINE), (hybrid, "I see the house.")):
        about = {feature.name: feature for feature in one.info.features}
        (best,) = one.translate(line, TranslateOptions(), GO).hypotheses
        assert list(about) == list(best.features)
        total = sum(
            value * weight
            for name, values in best.features.items()
            for value, weight in zip(values, about[name].weights, strict=True)
        )
        assert total == pytest.approx(best.score, abs=1e-4)
        assert about["LM0"].what == "count language model"
        assert len(about["TranslationModel0"].scores) == len(about["TranslationModel0"].weights) == 4


def test_and_the_words_of_its_model(hybrid: PhraseEngine) -> None:
    (one,) = hybrid.translate("the house is &quot; small .", TranslateOptions(tokenized=True), GO).hypotheses
    assert one.text == " ".join(one.words) and "&quot;" in one.words


# ---- test descriptions of features -------------------------------------------------------------------------


def test_each_printed_score_has_its_weight() -> None:
    system = systems.load(str(MODEL), False)
    rows = describe_features(system)
    assert {one.name: len(one.weights) for one in rows} == system.sizes
    assert all(one.what for one in rows)
    assert all(len(one.scores) in (0, len(one.weights)) for one in rows)


def test_columns_beyond_those_of_moses_are_numbered() -> None:
    kind = ReorderingType()
    assert score_descriptions("PhraseDictionaryMemory", 6, kind)[4:] == ["column 5", "column 6"]
    assert (
        score_descriptions("PhraseDictionaryMemory", 2, kind) == []
        and len(score_descriptions("LexicalReordering", 6, kind)) == 6
    )
    assert score_descriptions("Mine", 2, kind) == []
    collapsed = ReorderingType.parse("hier-mslr-bidirectional-fe-collapseff")
    assert len(score_descriptions("LexicalReordering", 2, collapsed)) == 2
