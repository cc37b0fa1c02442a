"""Translation models as features: a run, and the same run exported to CTranslate2."""

import gzip
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from nmt.errors import ConfigError
from smt_bridge.features.base import WordPairs
from smt_bridge.features.registry import FEATURES, FeatureSettings, FeatureSpec
from smt_bridge.features.torch_features import RunTranslation
from tests.nmt.runs.test_exported import exported, make_run

pytest.importorskip("ctranslate2")

from nmt.runs.ctranslate2_import import ImportSettings, import_model  # needs ctranslate2
from nmt.runs.exported import ExportedRun
from tests.nmt.runs import foreign_models

PAIRS = WordPairs(
    sources=[["w1", "w2", "w3"], ["w4"], ["w5", "unknown"]],
    targets=[["w2", "w3"], ["w7"], ["w1", "w2", "other"], []],
    source_of=[0, 1, 2, 0],
    whole=True,
)
PROGRAM = (
    "import sys\nfrom smt_bridge.cli.{name} import main\nassert main(sys.argv[1:]) == 0\n"
    "sys.exit('torch' in sys.modules)"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    exported(make_run(), path := tmp_path_factory.mktemp("runs") / "exported")
    return path


@pytest.mark.parametrize("kind", ["translation", "inverse"])
def test_an_exported_run_scores_as_the_run(folder: Path, kind: str) -> None:
    [member] = make_run().members
    run = RunTranslation(member, kind == "inverse")
    other = FEATURES[kind].load(FeatureSpec(kind, "T", str(folder)), FeatureSettings())
    assert other.score(PAIRS).tolist() == pytest.approx(run.score(PAIRS).tolist(), abs=1e-4)
    assert other.exact() is None and other.readers().keys() == run.readers().keys()


@pytest.mark.parametrize("kind", ["translation", "inverse"])
def test_a_model_of_another_toolkit_reads_detokenized_text(
    kind: str, grammar: ModuleType, tmp_path: Path
) -> None:
    """With SentencePiece and without torch: its score is that of nmt-score for the raw text."""
    model = foreign_models.opennmt(tmp_path / "model", grammar)
    spm = (str(tmp_path / "source.model"), str(tmp_path / "target.model"))
    import_model(model, tmp_path / "run", ImportSettings(*spm, languages=("en", "fr")))
    words = {
        "translation": (["the", "dog", "&apos;s", "cat", "."], ["l&apos;", "homme", ",", "le", "chat", "."]),
        "inverse": (["l&apos;", "homme", "."], ["the", "man", "."]),
    }[kind]
    raw = {"translation": ("the dog's cat.", "l'homme, le chat."), "inverse": ("the man.", "l'homme.")}[kind]
    feature = FEATURES[kind].load(FeatureSpec(kind, "T", str(tmp_path / "run")), FeatureSettings())
    pairs = WordPairs([words[0]], [words[1]], [0], whole=True)
    expected = ExportedRun.of(tmp_path / "run").score([raw])
    assert feature.score(pairs).tolist() == pytest.approx(expected, abs=1e-5)
    import_model(model, tmp_path / "unnamed", ImportSettings(*spm))
    with pytest.raises(ConfigError, match=r"unnamed: reads raw text .* source\.language: '' is unknown"):
        FEATURES[kind].load(FeatureSpec(kind, "T", str(tmp_path / "unnamed")), FeatureSettings())


def test_what_an_exported_run_cannot_do_is_refused(folder: Path) -> None:
    spec = FeatureSpec("translation", "T", str(folder))
    with pytest.raises(ConfigError, match="--precision int8"):
        FEATURES[spec.kind].load(spec, FeatureSettings(precision="int8"))
    with pytest.raises(ConfigError, match="weights"):
        FEATURES[spec.kind].load(spec, FeatureSettings(checkpoint="last"))


@pytest.mark.ci
def test_tables_and_lists_are_scored_without_torch(folder: Path, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "table.gz", "wt", encoding="utf-8") as table:
        table.write("w1 ||| w2 w3 ||| 0.5 ||| 0-0 ||| 1 1 1\nw4 ||| w7 ||| 0.5 ||| 0-0 ||| 1 1 1\n")
    nbest = "0 ||| w2 w3 ||| LM0= -1 ||| -1\n0 ||| w7 ||| LM0= -2 ||| -2\n"
    (tmp_path / "list").write_text(nbest, encoding="utf-8")
    (tmp_path / "source").write_text("w1 w2\n", encoding="utf-8")
    for name, inputs, output in (
        ("score_table", [tmp_path / "table.gz"], tmp_path / "new.gz"),
        ("rescore", [tmp_path / "list", "-s", tmp_path / "source"], tmp_path / "new"),
    ):
        command = [sys.executable, "-c", PROGRAM.format(name=name), *inputs, "-o", output, "-q"]
        subprocess.run([*command, "--feature", f"translation={folder}"], check=True)
    assert gzip.open(tmp_path / "new.gz", "rt", encoding="utf-8").read().count("0.5 ") == 2
    assert "RNN0= -" in (tmp_path / "new").read_text(encoding="utf-8")
