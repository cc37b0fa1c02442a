"""CTranslate2 models of other toolkits as runs: the translations and scores of CTranslate2 called directly,
and the greedy translations of the library that made the model."""

import json
import math
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import pytest

from nmt.errors import ConfigError, DataError, UserError
from nmt.formats.ctranslate2 import read_vocabularies
from nmt.io import manifest
from nmt.runs.run import Run, TranslationRequest
from nmt.search.config import BeamConfig, SamplingConfig
from tests.nmt.training.marian_folders import TAGS, sentences

pytest.importorskip("ctranslate2")

import ctranslate2

from nmt.runs.ctranslate2_import import ImportSettings, import_model
from nmt.runs.exported import ExportedRun
from nmt.serve.engine import TranslatedLine, TranslateOptions
from nmt.serve.exported import ExportedEngine
from tests.nmt.runs import foreign_models  # needs ctranslate2
from tests.nmt.runs.foreign_models import ForeignModel

pytestmark = [pytest.mark.ci, pytest.mark.filterwarnings("ignore")]
ROOT = Path(__file__).resolve().parents[3]
LONGEST = 20


@dataclass
class Case:
    """An imported model, beside what it was made of."""

    run: ExportedRun
    folder: Path
    translator: ctranslate2.Translator
    before: Sequence[str]  # tokens around a source, and before a target
    after: Sequence[str]
    start: Sequence[str]
    made: ForeignModel | None

    def source(self, line: str) -> list[str]:
        """The tokens of a source line, as CTranslate2 is given them."""
        return [*self.before, *self.run.read(line), *self.after]

    def target(self, line: str) -> list[str]:
        member = self.run.members[0]
        return [*self.start, *member.target_words.decode(member.target_ids(line))]

    @property
    def unwritten(self) -> list[str]:
        return self.run.members[0].settings.frame.unwritten


def imported(
    folder: Path,
    output: Path,
    settings: ImportSettings,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
    start: Sequence[str] = (),
    made: ForeignModel | None = None,
) -> Case:
    import_model(folder, output, settings)
    run = ExportedRun.of(output)
    return Case(run, folder, ctranslate2.Translator(str(folder)), before, after, start, made)


FAMILIES = ("marian", "marian-languages", "m2m-100", "nllb", "opennmt")


@pytest.fixture(scope="module", params=FAMILIES)
def case(
    request: pytest.FixtureRequest, grammar: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> Case:
    folder, family = tmp_path_factory.mktemp(request.param), request.param
    if family == "marian":
        made = foreign_models.marian(folder, grammar)
        return imported(made.folder, folder / "run", ImportSettings(), [], ["</s>"], [], made)
    if family == "marian-languages":
        made = foreign_models.marian(folder, grammar, TAGS)
        settings = ImportSettings(target_token=TAGS[1])
        return imported(made.folder, folder / "run", settings, [TAGS[1]], ["</s>"], [], made)
    if family == "opennmt":
        model = foreign_models.opennmt(folder / "model", grammar)
        settings = ImportSettings(str(folder / "source.model"), str(folder / "target.model"))
        return imported(model, folder / "run", settings, [], [], [], None)
    tokens = ("__en__", "__fr__") if family == "m2m-100" else ("eng_Latn", "fra_Latn")
    made = foreign_models.many_languages(folder, grammar, tokens)
    settings = ImportSettings(source_token=tokens[0], target_token=tokens[1])
    return imported(made.folder, folder / "run", settings, [tokens[0]], ["</s>"], [tokens[1]], made)


@pytest.fixture(scope="module")
def lines(grammar: ModuleType) -> tuple[list[str], list[str]]:
    return sentences(grammar, 30, seed=9)


def test_scores_are_those_of_score_batch(case: Case, lines: tuple[list[str], list[str]]) -> None:
    """Without the probability of the tokens that the target must begin with; unknown characters included."""
    pairs = [*zip(*lines, strict=True), ("the  cat ∑", "là ∑"), ("The dog.", "")]
    results = case.translator.score_batch(
        [case.source(source) for source, _ in pairs], [case.target(target) for _, target in pairs]
    )
    for mine, theirs in zip(case.run.word_scores(pairs), results, strict=True):
        assert mine == pytest.approx(theirs.log_probs[len(case.start) :], abs=1e-4)
    assert any("<unk>" in case.target(target) for _, target in pairs)


@pytest.mark.parametrize("beam", [1, 4])
def test_translations_are_those_of_translate_batch(
    case: Case, lines: tuple[list[str], list[str]], beam: int
) -> None:
    """A greedy one, and the best of the beam that goes on as docs/other-models.md says: the same units."""
    patience = 1.6 if beam > 1 else 1.0
    results = case.translator.translate_batch(
        [case.source(line) for line in lines[0]],
        [case.start] * len(lines[0]) if case.start else None,
        beam_size=beam, patience=patience, num_hypotheses=round(beam * patience), length_penalty=0,
        max_decoding_length=LONGEST + 1 + len(case.start), min_decoding_length=0, return_scores=True,
        return_end_token=True,
    )  # fmt: skip
    config = BeamConfig(beam_size=beam, max_length=LONGEST, max_length_factor=100, normalize="none")
    lists = case.run.n_best(lines[0], config)
    same = compared = 0
    for candidates, result in zip(lists, results, strict=True):
        hypotheses = [
            (score, units[len(case.start) : -1])
            for units, score in zip(result.hypotheses, result.scores, strict=True)
            if units[-1] == "</s>"
        ]
        written = {unit for units in result.hypotheses for unit in units[len(case.start) :]}
        if hypotheses and not written & {*case.unwritten, "<unk>"}:  # else another search follows
            best = max(hypotheses)
            compared += 1
            same += candidates[0].words == case.run.target.join(best[1])
            same -= abs(candidates[0].log_prob - best[0]) > 1e-4
    assert same == compared > 5


def test_greedy_translations_are_those_of_the_library(case: Case, lines: tuple[list[str], list[str]]) -> None:
    if case.made is None:
        pytest.skip("no library beside CTranslate2")
    config = BeamConfig(beam_size=1, max_length=LONGEST, max_length_factor=100)
    translations = case.run.n_best(lines[0], config)
    lengths = set()
    for line, [best] in zip(lines[0], translations, strict=True):
        forced = case.start[0] if case.start else ""
        units = case.made.generate(case.source(line), forced, [*case.unwritten, "<unk>", "<pad>"], LONGEST)
        assert best.words == case.run.target.join(units)
        lengths.add(len(units))
    assert len(lengths) > 1, lengths


def test_log_p_of_hypotheses_and_their_alignment(case: Case, lines: tuple[list[str], list[str]]) -> None:
    """Log p of a hypothesis is its score; alignments name words of the source; no translation has a token of
    a language, whatever the search forbids."""
    for settings in ({"min_length": 4}, {"no_repeat_ngram": 1}, {}):
        config = replace(BeamConfig(beam_size=3, max_length=9), **settings)  # type: ignore[arg-type]
        for line, candidates in zip(lines[0], case.run.n_best(lines[0], config), strict=True):
            member = case.run.members[0]
            count = len(member.source.join(member.source.units(line)))
            for candidate in candidates:
                assert not {*case.unwritten, "<unk>"} & {*candidate.words}
                assert len(candidate.words) <= 9
                assert all(0 <= i < count and j < len(candidate.words) for i, j in candidate.alignment)
    request = case.run.search_readings(
        [case.run.read(line) for line in lines[0]],
        BeamConfig(beam_size=3, max_length=9, min_length=4),
        prefixes=None,
        constraints=None,
        attention=True,
    )
    words = case.run.members[0].target_words
    for line, row in zip(lines[0], request, strict=True):
        for found in row:
            units = words.decode(found.words)
            [values] = case.run.translator.score([(case.run.read(line), units)])
            assert math.fsum(values) == pytest.approx(found.log_prob, abs=1e-4) and len(units) >= 4


def test_samples_follow_the_model(case: Case) -> None:
    """Their log p is that of their score; the numbers of CTranslate2's tokens are not our ids."""
    [samples] = case.run.sample(TranslationRequest(["The dog sees."]), SamplingConfig(samples=6, seed=2))
    words, special = (
        case.run.members[0].target_words,
        {"<s>", "<blank>", "<pad>", "__en__", "fra_Latn", TAGS[0]},
    )
    assert special & {*read_vocabularies(case.folder)[1]} <= {*case.unwritten}
    for found in samples:
        units = words.decode(found.words)
        assert not {*case.unwritten, "<unk>"} & {*units}
        [values] = case.run.translator.score([(case.run.read("The dog sees."), units)])
        total = math.fsum(values if found.complete else values[:-1])
        assert found.log_prob == pytest.approx(total, abs=1e-4) or not found.complete
    assert len({tuple(found.words) for found in samples}) > 1


def test_the_server_translates_with_it(case: Case, lines: tuple[list[str], list[str]]) -> None:
    engine = ExportedEngine(case.run, BeamConfig(beam_size=2))
    session = engine.session()
    for number, line in enumerate(lines[0][:5]):
        session.add(number, line, TranslateOptions())
    answers: dict[Hashable, object] = {}
    while session.busy:
        answers |= dict(session.step())
    for number, [best, *_] in enumerate(case.run.n_best(lines[0][:5], BeamConfig(beam_size=2))):
        answer = answers[number]
        assert isinstance(answer, TranslatedLine) and answer.hypotheses[0].text == case.run.text(best)
    languages = {"__en__": ("en", "fr"), "eng_Latn": ("eng", "fra"), TAGS[1]: ("", "deu")}
    first = case.before[0] if case.before else ""
    assert (engine.info.source, engine.info.target) == languages.get(first, ("", ""))


# ---- what is refused ---------------------------------------------------------------------------------------


def test_tags_of_a_marian_model(grammar: ModuleType, tmp_path: Path) -> None:
    """Without a token of the target language, each line names its own."""
    made = foreign_models.marian(tmp_path, grammar, TAGS)
    case = imported(
        made.folder, tmp_path / "run", ImportSettings(languages=("en", "fr")), [], ["</s>"], [], made
    )
    fixed = imported(
        made.folder, tmp_path / "fixed", ImportSettings(target_token=TAGS[0]), [TAGS[0]], ["</s>"], [], made
    )
    assert case.run.members[0].source.tags == TAGS and fixed.run.members[0].languages == ("", "fra")
    config = BeamConfig(beam_size=1, max_length=9)
    line = "The dog sees the cat."
    assert case.run.translate([f"{TAGS[0]} {line}"], config) == fixed.run.translate([line], config)


def test_the_origin_has_the_checksum_of_every_file(grammar: ModuleType, tmp_path: Path) -> None:
    """Also of two SentencePiece models of one name, in different folders."""
    folder = foreign_models.opennmt(tmp_path / "model", grammar)
    pieces: list[Path] = []
    for side in ("source", "target"):
        (tmp_path / side).mkdir()
        pieces.append(shutil.copyfile(tmp_path / f"{side}.model", tmp_path / side / "pieces.model"))
    import_model(folder, tmp_path / "run", ImportSettings(str(pieces[0]), str(pieces[1])))
    sums = json.loads((tmp_path / "run" / "origin.json").read_text("utf-8"))["sha256"]
    assert sums["model.bin"] == manifest.digest(folder / "model.bin")
    assert [sums.get(str(path)) for path in pieces] == [manifest.digest(path) for path in pieces]


def test_what_is_refused(grammar: ModuleType, tmp_path: Path) -> None:
    made = foreign_models.many_languages(tmp_path, grammar, ("eng_Latn", "fra_Latn"))
    folder, full = made.folder, ImportSettings(source_token="eng_Latn", target_token="fra_Latn")

    def refused(settings: ImportSettings, kind: type[UserError]) -> str:
        with pytest.raises(kind) as error:
            import_model(folder, tmp_path / "run", settings)
        assert not [*(tmp_path / "run").glob("*")]
        return str(error.value)

    assert "--target-token TOKEN, such as eng_Latn" in refused(ImportSettings(), ConfigError)
    assert "--source-token" in refused(replace(full, source_token=""), ConfigError)
    assert "target vocabulary has no token 'fra'" in refused(replace(full, target_token="fra"), ConfigError)
    assert "not a SentencePiece" in refused(replace(full, source_spm=str(folder / "config.json")), DataError)
    weights = (folder / "model.bin").read_bytes()
    changed = {
        "cut": weights[: len(weights) // 2],
        "text": b"not a model at all, but long enough to have numbers",
        "spec": weights.replace(b"TransformerSpec\0", b"TransformerMoon\0", 1),
        "format": struct.pack("<I", 3) + weights[4:],
    }
    expected = {"cut": "damaged", "text": "format", "spec": "TransformerMoon", "format": "format 3"}
    for name, content in changed.items():
        (folder / "model.bin").write_bytes(content)
        assert expected[name] in refused(full, DataError)
    (folder / "model.bin").write_bytes(weights)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "eos_token": "<end>"}))
    assert "eos_token: '<end>', expected </s>" in refused(full, DataError)
    (folder / "config.json").write_text(json.dumps({**config, "add_source_eos": 1}))
    assert "add_source_eos: '1', expected true or false" in refused(full, DataError)
    (folder / "config.json").write_text(json.dumps(config))
    tokens = json.loads((folder / "shared_vocabulary.json").read_text("utf-8"))
    (folder / "shared_vocabulary.json").write_text(json.dumps(tokens[:-1]))
    assert "158 tokens, but model.bin has vectors of 159" in refused(full, DataError)
    (folder / "shared_vocabulary.json").unlink()
    assert "shared_vocabulary.json: missing" in refused(full, DataError)
    (folder / "shared_vocabulary.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    assert "eng_Latn ... </s>, writes after fra_Latn" in import_model(folder, tmp_path / "run", full)
    run = ExportedRun.of(tmp_path / "run")
    with pytest.raises(DataError, match="the model has 128 positions"):
        run.score([("the dog " * 60, "le chien")])
    shutil.rmtree(folder)  # the run is a copy
    assert run.translate(["The dog."], BeamConfig(beam_size=1, max_length=5))


def test_commands_load_no_torch(grammar: ModuleType, tmp_path: Path) -> None:
    """nmt-import, nmt-translate and nmt-score, with tokens after the source as in older NLLB models."""
    foreign_models.many_languages(tmp_path, grammar, ("eng_Latn", "fra_Latn"))
    (tmp_path / "in").write_text("The dog sees the cat.\n\n", encoding="utf-8")
    code = """
import sys
from nmt.cli import importing, score, translate
options = ["--source-prefix", "--source-suffix", "</s>", "eng_Latn", "--target-prefix", "fra_Latn"]
importing.command(["ctranslate2", "model", "-o", "run", "-q", *options, "--languages", "en", "fr"])
translate.command(["run", "-i", "in", "-o", "out", "-q", "--max-length", "9", "--threads", "1"])
score.command(["run", "-s", "in", "-t", "out", "-o", "scores", "-q"])
print({"torch", "numba", "numpy", "transformers"} & {*sys.modules})
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout == "set()\n", done.stderr
    frame = Run.load(tmp_path / "run").members[0].settings.frame  # type: ignore[attr-defined]
    assert (frame.source_prefix, frame.source_suffix) == ([], ["</s>", "eng_Latn"])
    assert len((tmp_path / "scores").read_text("utf-8").split()) == 2
