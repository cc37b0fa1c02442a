"""nmt-export, and the options that its folders refuse."""

import builtins
import json
import re
import sys
from pathlib import Path

import pytest

from nmt.cli import export as export_command
from nmt.cli import score, translate
from nmt.errors import ConfigError
from nmt.runs.framed import Frame, load_cublas, load_translator
from tests.conftest import Command

pytest.importorskip("ctranslate2")
pytestmark = pytest.mark.ci

MODELS = Path(__file__).resolve().parents[2] / "models"


@pytest.fixture(scope="module")
def transformer(tiny: Path, tmp_path_factory: pytest.TempPathFactory, command: Command) -> Path:
    """A Transformer of the tiny corpus, after some updates."""
    run = tmp_path_factory.mktemp("transformer") / "run"
    config = (tiny / "train.yaml").read_text("utf-8")
    config = re.sub(
        "model: .*", "model: {type: transformer, embedding: 16, feed_forward: 24, heads: 2}", config
    )
    (run.parent / "train.yaml").write_text(config, encoding="utf-8")
    layers = ("model.encoder_layers=1", "model.decoder_layers=1")
    done = command("nmt-train", run.parent / "train.yaml", f"run={run}", *layers, "training.max_steps=20")
    assert done.returncode == 0, done.stderr
    return run


def test_an_export_translates_and_scores_like_its_run(
    transformer: Path, tiny: Path, tmp_path: Path, command: Command
) -> None:
    """Whole commands: greedy translations are the same bytes, scores the same numbers; int8 is smaller."""
    folders = {name: tmp_path / name for name in ("float32", "int8")}
    for name, folder in folders.items():
        export_command.command([str(transformer), "--quantization", name, "-o", str(folder), "-q"])
    sizes = [(folder / "model.bin").stat().st_size for folder in folders.values()]
    assert sizes[1] < sizes[0]
    source = tiny / "dev.en"
    outputs = [
        command("nmt-translate", path, "-q", "--beam-size", 1, "--max-length", 9, "-i", source).stdout
        for path in (transformer, folders["float32"])
    ]
    assert outputs[0] == outputs[1] and outputs[0].count("\n") == source.read_text("utf-8").count("\n")
    scores = [
        command("nmt-score", path, "-q", "-s", source, "-t", tiny / "dev.fr").stdout.split()
        for path in (transformer, folders["float32"])
    ]
    assert [float(value) for value in scores[0]] == pytest.approx(
        [float(value) for value in scores[1]], abs=1e-4
    )
    options = ["--alignments", tmp_path / "links", "--beam-size", 1, "--max-length", 9, "-i", source, "-q"]
    links = []
    for path in (transformer, folders["float32"]):
        command("nmt-translate", path, *options, "-o", tmp_path / "out")
        links.append((tmp_path / "links").read_text("utf-8"))
    assert links[0] == links[1]
    rows = command("nmt-translate", folders["float32"], "--json", *options[2:]).stdout.split("\n")[:-1]
    points = [" ".join(f"{i}-{j}" for i, j in json.loads(row)["alignment"]) for row in rows]
    assert points == links[0].split("\n")[:-1] and any(points)


def test_what_is_refused(transformer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "out"
    export_command.command([str(transformer), "-o", str(folder), "-q"])
    with pytest.raises(ConfigError, match="exists already"):
        export_command.command([str(transformer), "-o", str(folder), "-q"])
    with pytest.raises(ConfigError, match=r"model\.type: rnn: CTranslate2 has no such model"):
        export_command.command([str(MODELS / "translator"), "-o", str(tmp_path / "rnn"), "-q"])
    assert not (tmp_path / "rnn").exists()
    lines = tmp_path / "in"
    lines.write_text("a\n", encoding="utf-8")
    for options in (
        ["--precision", "int8"],
        ["--matmul", "mkl"],
        ["--terms", str(lines)],
        ["--avoid", str(lines)],
    ):
        with pytest.raises(
            ConfigError, match=f"{options[0]} cannot be combined with a run exported to CTranslate2"
        ):
            translate.command([str(folder), "-i", str(lines), *options])
    with pytest.raises(ConfigError, match="--alignments cannot be combined with a run exported"):
        score.command(
            [str(folder), "-s", str(lines), "-t", str(lines), "--alignments", str(tmp_path / "links")]
        )
    with pytest.raises(ConfigError, match="has no ensembles"):
        translate.command([str(folder), str(transformer), "-i", str(lines), "-o", str(tmp_path / "fr")])
    import_module = builtins.__import__

    def without_engine(name: str, *rest: object) -> object:
        if name == "ctranslate2":
            raise ModuleNotFoundError(name=name)
        return import_module(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without_engine)
    with pytest.raises(ConfigError, match=r"pip install 'nmt-smt\[ctranslate2\]'"):
        load_translator(folder, Frame(), "cpu", 1)


def test_a_gpu_without_cublas(transformer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CTranslate2 first misses a library of CUDA when it translates; that is said at once, in one line."""
    folder = tmp_path / "exported"
    export_command.command([str(transformer), "-o", str(folder)])
    missing = "Library libcublas.so.12 is not found or cannot be loaded"
    said: list[str] = []

    class OnGpu:
        device = "cuda"

        def __init__(self, *_: object, **settings: object) -> None:
            assert (settings["device"], settings["device_index"]) == ("cuda", 1)

        def translate_batch(self, *_: object, **__: object) -> None:
            raise RuntimeError(said[-1])

    monkeypatch.setattr("ctranslate2.Translator", OnGpu)
    said.append(missing)
    with pytest.raises(
        ConfigError, match=rf"^device: 'cuda:1': .*{missing}; pip install nvidia-cublas-cu12 or"
    ):
        load_translator(folder, Frame(), "cuda:1", 1)
    said.append("CUDA failed with error out of memory")
    with pytest.raises(RuntimeError, match="out of memory"):  # what the advice would not help
        load_translator(folder, Frame(), "cuda:1", 1)


def test_cublas_of_the_package_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lies in nvidia/cublas/lib, in any folder of Python's path that has a folder nvidia; a library that
    cannot be loaded is left to CTranslate2's own message."""
    loaded: list[str] = []

    def load(path: str) -> None:
        loaded.append(path)
        raise OSError(path)

    (tmp_path / "nvidia").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    monkeypatch.setattr("ctypes.CDLL", load)
    load_cublas()
    assert str(tmp_path / "nvidia" / "cublas" / "lib" / "libcublas.so.12") in loaded
