"""Runs as one file: what is read back is the run, the same file each time, and a damaged one is one line."""

import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.cli import export as export_command
from nmt.cli import importing, score, translate
from nmt.errors import DataError
from nmt.runs import checkpoint, directory, safetensors
from nmt.runs.safetensors import KEY

pytest.importorskip("safetensors")

MODELS = Path(__file__).resolve().parents[2] / "models"


def export(run: Path, path: Path, *options: str) -> Path:
    assert export_command.main([str(run), "--format", "safetensors", "-o", str(path), "-q", *options]) == 0
    return path


def header(path: Path) -> dict[str, Any]:
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    content: dict[str, Any] = json.loads(raw[8 : 8 + size])
    return content


def with_header(path: Path, content: object) -> None:
    """Replace the header of a file."""
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    new = json.dumps(content).encode()
    new += b" " * (-len(new) % 8)
    path.write_bytes(struct.pack("<Q", len(new)) + new + raw[8 + size :])


@pytest.mark.parametrize("name", ["translator", "lm"])
def test_what_is_read_back_is_the_run(name: str, tmp_path: Path) -> None:
    """All texts are the same bytes, all tensors the same bits, tied ones included."""
    shared = export(MODELS / name, tmp_path / "a.safetensors", "--license", "CC-BY-4.0")
    run = tmp_path / "run"
    assert importing.main(["safetensors", str(shared), "-o", str(run), "-q"]) == 0
    step = directory.find_step(MODELS / name, "best")
    assert directory.find_step(run, "best") == step
    for text in directory.TEXTS:
        if (MODELS / name / text).exists():
            assert (run / text).read_bytes() == (MODELS / name / text).read_bytes()
    before, after = (
        checkpoint.load_tensors(directory.weights_path(path, step)) for path in (MODELS / name, run)
    )
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
    origin = json.loads((run / "origin.json").read_text("utf-8"))
    assert origin["license"] == "CC-BY-4.0" and origin["kind"] == "safetensors"
    again = export(run, tmp_path / "b.safetensors")  # the license stays with the model
    assert json.loads(header(again)["__metadata__"][KEY])["license"] == "CC-BY-4.0"
    third = export(run, tmp_path / "c.safetensors", "--license", "MIT")
    assert importing.main(["safetensors", str(third), "-o", str(tmp_path / "third"), "-q"]) == 0
    assert json.loads((tmp_path / "third/origin.json").read_text("utf-8")) == origin | {"license": "MIT"}


@pytest.mark.ci
def test_the_run_translates_and_scores_alike(tmp_path: Path) -> None:
    run, source = tmp_path / "run", MODELS / "source.en"
    shared = export(MODELS / "translator", tmp_path / "a.safetensors")
    assert importing.main(["safetensors", str(shared), "-o", str(run), "-q"]) == 0
    for command, options in (
        (translate, ["-i", str(source)]),
        (score, ["-s", str(source), "-t", str(source)]),
    ):
        outputs = []
        for path in (MODELS / "translator", run):
            assert command.main([str(path), *options, "-o", str(tmp_path / "out"), "-q"]) == 0
            outputs.append((tmp_path / "out").read_bytes())
        assert outputs[0] == outputs[1] and outputs[0].count(b"\n") == source.read_bytes().count(b"\n")


def test_one_copy_of_tied_matrices(tmp_path: Path) -> None:
    """A matrix under two names is stored once, and is one again in the new run."""
    run = tmp_path / "run"
    shutil.copytree(MODELS / "translator", run)
    step = directory.find_step(run, "best")
    weights = checkpoint.load_tensors(directory.weights_path(run, step))
    first, shape = next((name, value.shape) for name, value in weights.items() if value.numel() > 50)
    with directory.writing(run) as new:
        checkpoint.save_tensors({**weights, "twin": weights[first]}, directory.weights_path(new, step))
    shared = export(run, tmp_path / "a.safetensors")
    stored, description = header(shared), json.loads(header(shared)["__metadata__"][KEY])
    assert description["tied"] == {"twin": first} and "twin" not in stored
    assert stored[first]["shape"] == list(shape)
    assert importing.main(["safetensors", str(shared), "-o", str(tmp_path / "new"), "-q"]) == 0
    read = checkpoint.load_tensors(directory.weights_path(tmp_path / "new", step))
    assert read["twin"].data_ptr() == read[first].data_ptr() and torch.equal(read[first], weights[first])


@pytest.mark.ci
def test_the_same_run_gives_the_same_file(tmp_path: Path) -> None:
    """Also in another process, where hashes of strings differ."""
    path = export(MODELS / "translator", tmp_path / "a")
    command = [sys.executable, "-m", "nmt.cli.export", "--format", "safetensors", "-q"]
    subprocess.run([*command, MODELS / "translator", "-o", tmp_path / "b"], check=True)
    assert path.read_bytes() == (tmp_path / "b").read_bytes()


def test_provenance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    shutil.copytree(MODELS / "translator", run)
    stamp = {"size": 3, "mtime_ns": 5, "sha256": "ab"}
    with directory.writing(run) as new:
        (new / "inputs.json").write_text(json.dumps({"train_source": stamp}), encoding="utf-8")
    description = json.loads(header(export(run, tmp_path / "a"))["__metadata__"][KEY])
    assert description["trained_on"] == {"train_source": {"size": 3, "sha256": "ab"}}
    assert tuple(description["languages"]) == checkpoint.load(run).languages
    assert description["type"] == "rnn" and description["name"].startswith("run@")
    (run / "inputs.json").write_text("{}", encoding="utf-8")
    options = ["--format", "safetensors", "-o", str(tmp_path / "b")]
    assert export_command.main([str(run), *options]) == 2
    assert "inputs.json: " in capsys.readouterr().err and not (tmp_path / "b").exists()


def refused(path: Path, output: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert importing.main(["safetensors", str(path), "-o", str(output)]) == 2
    assert not output.exists()
    [line] = capsys.readouterr().err.strip().split("\n")
    program, _, message = line.partition(": ")
    assert program and message.startswith(f"{path}: ")
    return message


def test_damaged_and_hostile_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, output = tmp_path / "a.safetensors", tmp_path / "new"
    export(MODELS / "translator", path)
    good, content = path.read_bytes(), header(path)
    capsys.readouterr()

    def changed(**keys: object) -> None:
        path.write_bytes(good)
        description = json.loads(content["__metadata__"][KEY]) | keys
        with_header(path, content | {"__metadata__": {KEY: json.dumps(description)}})

    for length in (0, 7, 100, len(good) // 2, len(good) - 1):
        path.write_bytes(good[:length])
        assert "damaged" in refused(path, output, capsys)
    path.write_bytes(good)
    with_header(path, {key: value for key, value in content.items() if key != "__metadata__"})
    assert "not a run of this toolkit" in refused(path, output, capsys)
    texts = json.loads(content["__metadata__"][KEY])["files"]
    for keys, message in (
        ({"files": texts | {"../evil": "x"}}, "a file that no run has, '../evil'"),
        ({"files": texts | {"source.spm": "base64:%"}}, "source.spm: damaged"),
        ({"files": texts | {"config.yaml": "["}}, "damaged configuration"),
        ({"files": {key: text for key, text in texts.items() if key != "config.yaml"}}, "damaged config"),
        ({"files": texts | {"config.yaml": texts["config.yaml"].replace("rnn", "x")}}, "'x' is unknown"),
        ({"files": texts | {"origin.json": "["}}, "origin.json: damaged"),
        ({"files": texts | {"origin.json": "[" * 9999}}, "origin.json: damaged"),
        ({"files": texts | {"source.vocab": "\ud800"}}, "source.vocab: damaged"),
        ({"version": "nmt-run 9"}, "use the version that wrote it"),
        ({"step": -1}, "step: expected 0 or more"),
        ({"step": "1"}, "step: expected a whole number"),
        ({"tied": {"a": "b"}}, "tied: 'a' is no name"),
        ({"format": "other"}, "format: expected 'nmt-safetensors 1'"),
    ):
        changed(**keys)
        assert message in refused(path, output, capsys)
        with pytest.raises(DataError):  # Python programs find nothing either
            safetensors.import_file(path, output)
        assert not [name for name in output.rglob("*") if name.is_file()]
        shutil.rmtree(output, ignore_errors=True)
    assert "No such file" in refused(tmp_path / "missing", output, capsys)


def test_what_export_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = str(tmp_path / "out")
    for options, message in (
        (["--format", "safetensors", "--quantization", "int8"], "--quantization: belongs to"),
        (["--license", "MIT"], "--license: belongs to --format safetensors"),
    ):
        assert export_command.main([str(MODELS / "translator"), "-o", output, *options]) == 2
        assert message in capsys.readouterr().err
    assert export_command.main([str(tmp_path / "x"), "--format", "safetensors", "-o", output]) == 2
    assert not Path(output).exists()
    assert export_command.main([str(MODELS / "lm"), "--format", "safetensors", "-o", output]) == 0
    assert "no license is stated" in capsys.readouterr().err
