"""Runs made of Marian models: they compute and search like the library `transformers`, are trained further,
and damaged weights are refused."""

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor

import nmt
from nmt.cli import export, train
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.layers.transformer import split_sinusoids
from nmt.runs import directory as run_directory
from nmt.runs.torch_run import TorchRun
from nmt.training.marian import import_model
from tests.nmt.training.marian_folders import (
    TAGS,
    Shape,
    fill,
    sentences,
    settings,
    write_folder,
    write_texts,
)

SHAPES = {
    "shared": Shape(seed=2, tags=TAGS),
    "two-vocabularies": Shape(
        width=32, heads=4, layers=(3, 1), feed_forward=48, activation="relu", shared=False, vocabularies=2,
        seed=3,
    ),
    "untied": Shape(activation="gelu", tied=False, shared=False, layers=(1, 2), seed=4),
}  # fmt: skip
WITHOUT = "needs transformers and safetensors: pip install 'nmt-smt[marian,dev]'"
LIMIT = 30  # units of a translation


# ---- beside the library ------------------------------------------------------------------------------------


class Library:
    """The model and the tokenizer of a folder in the library; without the network."""

    def __init__(self, folder: Path) -> None:
        os.environ["HF_HUB_OFFLINE"] = "1"
        transformers = pytest.importorskip("transformers", reason=WITHOUT)
        pytest.importorskip("safetensors", reason=WITHOUT)
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        self.model = transformers.MarianMTModel.from_pretrained(folder).eval()
        self.tokenizer = transformers.MarianTokenizer.from_pretrained(folder)


def saved_by_library(folder: Path, grammar: ModuleType, shape: Shape) -> Path:
    """A model with random weights that the library itself makes and saves, as model.safetensors."""
    transformers = pytest.importorskip("transformers", reason=WITHOUT)
    pytest.importorskip("safetensors", reason=WITHOUT)
    transformers.utils.logging.disable_progress_bar()
    sizes = write_texts(folder, grammar, shape)
    model = transformers.MarianMTModel(transformers.MarianConfig(**settings(shape, sizes)))
    fill(dict(model.state_dict()), shape)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module", params=SHAPES)
def imported(
    request: pytest.FixtureRequest, grammar: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, TorchRun]:
    """A folder that the library has written, and the run made of it."""
    folder = tmp_path_factory.mktemp(request.param)
    saved_by_library(folder / "model", grammar, SHAPES[request.param])
    import_model(folder / "model", folder / "run")
    return folder / "model", TorchRun.of(folder / "run")


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore")
def test_log_p_and_ids_are_those_of_transformers(
    imported: tuple[Path, TorchRun], grammar: ModuleType
) -> None:
    """Ids of both sides, tags and unknown pieces included, and log p of each unit and of the end symbol."""
    folder, run = imported
    [member] = run.members
    source, target = read_numbers(folder, member.source.tags)
    tag = f"{member.source.tags[1]} " if member.source.tags else ""
    pairs = [(f"{tag}{a}", b) for a, b in zip(*sentences(grammar, 40, seed=9), strict=True)]
    pairs += [("", "là"), ("the  cat\u00a0sees ∑", "ça — là ∑")]
    beside = Library(folder)
    model, tokenizer = beside.model, beside.tokenizer
    with torch.no_grad():
        for pair in pairs:
            theirs = tokenizer(pair[0], return_tensors="pt")
            labels = tokenizer(text_target=pair[1], return_tensors="pt").input_ids
            assert theirs.input_ids[0].tolist() == [source[i] for i in [*member.source_ids(pair[0]), 1]]
            assert labels[0].tolist() == [target[i] for i in [*member.target_ids(pair[1]), 1]]
            log_probs = model(**theirs, labels=labels).logits.log_softmax(2)[0]
            expected = log_probs.gather(1, labels[0][:, None])[:, 0]
            assert torch.allclose(torch.tensor(run.word_scores([pair])[0]), expected, rtol=0, atol=1e-5)


def read_numbers(folder: Path, tags: tuple[str, ...]) -> tuple[list[int], list[int]]:
    """The numbers of the source and target pieces in the order of our ids, by the rule of files.md."""
    paths = [folder / "vocab.json", folder / "target_vocab.json"]
    lists = []
    for path in paths if paths[1].exists() else [paths[0], paths[0]]:
        numbers: dict[str, int] = json.loads(path.read_text(encoding="utf-8"))
        others = sorted(numbers[piece] for piece in numbers.keys() - {"<pad>", "</s>", "<unk>", *tags})
        first = [numbers[tag] for tag in tags if path.name == "vocab.json"]
        lists.append([numbers["<pad>"], numbers["</s>"], numbers["<unk>"], *first, *others])
    return lists[0], lists[1]


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore")
def test_searches_are_those_of_transformers(imported: tuple[Path, TorchRun], grammar: ModuleType) -> None:
    """Greedy search: every line. A beam of 5 with `ended: refill` and normalize: length is num_beams=5,
    length_penalty=1, early_stopping=False: every one of at least 200 lines whose translation ends before the
    limit, where the two differ. UNK is allowed, as there."""
    folder, run = imported
    lines = sentences(grammar, 300, seed=9)[0]
    for beam, refill in ((1, "shrink"), (5, "refill")):
        ours = run.translate(
            lines, beam_size=beam, ended=refill, allow_unknown=True, min_length=4, max_length=LIMIT,
            max_length_factor=1000,
        )  # fmt: skip
        theirs, ended = generate(folder, lines, num_beams=beam, max_new_tokens=LIMIT + (beam > 1))
        compared = [index for index in range(len(lines)) if beam == 1 or ended[index]]
        assert [ours[index] for index in compared] == [theirs[index] for index in compared]
        assert len(compared) >= 200 and len(set(ours)) > 10


def generate(folder: Path, lines: list[str], **options: object) -> tuple[list[str], list[bool]]:
    """The library's translations, and whether each ends before the limit."""
    texts, ended = list[str](), list[bool]()
    beside = Library(folder)
    model, tokenizer = beside.model, beside.tokenizer
    with torch.no_grad():
        bad = [[model.config.pad_token_id]]
        for start in range(0, len(lines), 100):
            batch = tokenizer(lines[start : start + 100], return_tensors="pt", padding=True)
            ids = model.generate(
                **batch, **options, bad_words_ids=bad, min_new_tokens=4,
                forced_eos_token_id=None, do_sample=False, early_stopping=False, length_penalty=1.0,
            )  # fmt: skip
            texts += tokenizer.batch_decode(ids, skip_special_tokens=True)
            ended += [0 in row[1:LIMIT].tolist() for row in ids]
    return texts, ended


# ---- runs --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(grammar: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model without the library."""
    return write_folder(tmp_path_factory.mktemp("marian") / "model", grammar, Shape(layers=(1, 1), tags=TAGS))


@pytest.mark.ci
def test_the_run_knows_whose_model_it_has(folder: Path, tmp_path: Path) -> None:
    summary = import_model(folder, tmp_path / "run")
    assert summary.startswith("model, license cc-by-4.0, ") and "2 tags such as >>fra<<" in summary
    origin = json.loads((tmp_path / "run" / "origin.json").read_text(encoding="utf-8"))
    assert (origin["name"], origin["license"], origin["search"]) == ("model", "cc-by-4.0", {"num_beams": 4})
    assert {"vocab.json", "source.spm", "pytorch_model.bin"} <= set(origin["sha256"])
    run = nmt.Run.load(tmp_path / "run")
    assert run.name == "run@0" and run.members[0].languages == ("en", "fr")
    texts = run.translate([">>deu<< The dog sees the cat.", ""], min_length=3, max_length=9)
    german, french = run.score([(f"{tag} The dog.", "Le chien.") for tag in (">>deu<<", ">>fra<<")])
    assert texts[0] and german != french
    assert texts[1] == "" and not run.members[0].source.split_tag("The dog")[0]
    both = nmt.Run.load(tmp_path / "run", tmp_path / "run")
    pairs = [("The dog.", "Le chien.")]
    assert both.score(pairs) == pytest.approx(run.score(pairs), abs=1e-5)
    (tmp_path / "run" / "origin.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"origin\.json: damaged"):
        nmt.Run.load(tmp_path / "run")


@pytest.mark.ci
def test_it_is_trained_further(folder: Path, tmp_path: Path, grammar: ModuleType) -> None:
    """By its own configuration and init_from: all weights are taken over, and the cost of the development
    text falls. The tags stay tags."""
    import_model(folder, tmp_path / "run")
    texts = sentences(grammar, 60, seed=7)
    for side, lines in zip(("en", "fr"), texts, strict=True):
        lines = [f">>fra<< {line}" for line in lines] if side == "en" else lines
        (tmp_path / f"train.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (tmp_path / f"dev.{side}").write_text("\n".join(lines[:20]) + "\n", encoding="utf-8")
    data = [
        f"data.{part}_{name}={tmp_path / part}.{side}"
        for part in ("train", "dev")
        for name, side in (("source", "en"), ("target", "fr"))
    ]
    train.command(
        [
            str(tmp_path / "run" / "config.yaml"), f"run={tmp_path / 'child'}",
            "--init-from", str(tmp_path / "run"),
            *data, "training.learning_rate=0.01", "training.max_steps=20", "training.validate_every=10",
            "training.dev_beam=0", "training.metric=cost", "-q",
        ]
    )  # fmt: skip
    rows = [
        line.split("\t") for line in (tmp_path / "child" / "dev.tsv").read_text("utf-8").split("\n")[1:-1]
    ]
    pairs = [(source, target) for source, target in zip(*(
        (tmp_path / f"dev.{side}").read_text("utf-8").split("\n")[:-1] for side in ("en", "fr")
    ), strict=True)]  # fmt: skip
    parent, child = (nmt.Run.load(tmp_path / name) for name in ("run", "child"))
    before = -sum(parent.score(pairs)) / sum(map(len, parent.word_scores(pairs)))
    assert float(rows[-1][2]) < float(rows[0][2]) < before
    assert child.members[0].source.tags == TAGS
    assert child.members[0].source_words.words == parent.members[0].source_words.words


@pytest.mark.ci
def test_it_is_exported_to_ctranslate2(folder: Path, tmp_path: Path, grammar: ModuleType) -> None:
    pytest.importorskip("ctranslate2")
    import_model(folder, tmp_path / "run")
    export.command([str(tmp_path / "run"), "-o", str(tmp_path / "fast"), "-q"])
    run, fast = nmt.Run.load(tmp_path / "run"), nmt.Run.load(tmp_path / "fast")
    pairs = list(zip(*sentences(grammar, 20, seed=9), strict=True))
    pairs[0] = (f">>deu<< {pairs[0][0]}", pairs[0][1])
    assert fast.score(pairs) == pytest.approx(run.score(pairs), abs=1e-4)
    lines = [source for source, _ in pairs]
    assert fast.translate(lines, beam_size=1, max_length=9) == run.translate(lines, beam_size=1, max_length=9)
    assert (tmp_path / "fast" / "origin.json").read_bytes() == (tmp_path / "run" / "origin.json").read_bytes()
    with pytest.raises(ConfigError, match="which has no --ended refill"):
        fast.translate(lines, ended="refill")


# ---- files that are refused --------------------------------------------------------------------------------


def edit(change: Callable[[dict[str, Tensor]], object]) -> Callable[[Path], None]:
    """The function that changes the tensors in a file."""

    def rewrite(path: Path) -> None:
        content = torch.load(path, weights_only=True)
        change(content)
        torch.save(content, path)

    return rewrite


def positions(content: dict[str, Tensor]) -> None:
    content["model.encoder.embed_positions.weight"] = torch.zeros(512, 16)


def become_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


NAME = "model.decoder.layers.0.encoder_attn.k_proj.weight"
DAMAGE: list[tuple[Callable[[Path], object], str]] = [
    (edit(lambda content: content.pop(NAME)), f"has no {NAME}, expected 16 x 16"),
    (
        edit(lambda content: content.update({NAME: torch.zeros(16, 8)})),
        f"{NAME}: 16 x 8 of torch.float32, expect",
    ),
    (edit(lambda content: content.update({NAME: torch.zeros(16, 16).int()})), "16 x 16 of torch.int32"),
    (edit(lambda content: content[NAME].fill_(float("nan"))), f"{NAME}: has values that are not finite"),
    (edit(lambda content: content.update({"extra": torch.zeros(1)})), "extra: not part of a Marian model"),
    (
        edit(lambda content: content.update({"lm_head.weight": torch.zeros(268, 16)})),
        "lm_head.weight: differs",
    ),
    (edit(positions), "not the sines and cosines"),
    (
        edit(
            lambda content: content.update(epoch=3)  # type: ignore[call-overload]
        ),
        "expected tensors by name, and nothing else",
    ),
    (lambda path: path.write_bytes(path.read_bytes()[:-100]), "damaged, or holds more than tensors"),
    (lambda path: path.write_bytes(pickle.dumps({"a": os.system})), "damaged, or holds more than tensors"),
    (lambda path: path.write_bytes(b""), "damaged, or holds more than tensors"),
    (become_folder, "cannot read: Is a directory"),
    (lambda path: path.unlink(), r"model\.safetensors: missing, expected this file or pytorch_model\.bin"),
    (lambda path: path.rename(path.with_name("model.safetensors.index.json")), "weights in several files"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGE)
def test_weights_that_are_refused(
    folder: Path, tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    """One line that begins with the folder, and nothing is written."""
    other = Path(shutil.copytree(folder, tmp_path / "model"))
    damage(other / "pytorch_model.bin")
    with pytest.raises(DataError, match=message) as refused:
        import_model(other, tmp_path / "run")
    assert str(refused.value).startswith(str(other)) and not (tmp_path / "run").exists()


def test_damaged_safetensors(folder: Path, tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch", reason=WITHOUT)
    other = Path(shutil.copytree(folder, tmp_path / "model"))
    safetensors.save_file(torch.load(other / "pytorch_model.bin"), other / "model.safetensors")
    (other / "pytorch_model.bin").write_bytes(b"unused: the other file is read")
    import_model(other, tmp_path / "run")
    import_model(folder, tmp_path / "twin")
    weights = [run_directory.weights_path(tmp_path / name, 0).read_bytes() for name in ("run", "twin")]
    assert weights[0] == weights[1]
    data = (other / "model.safetensors").read_bytes()
    for broken in (data[:-5], b"\xff" * 8 + data[8:], b""):
        (other / "model.safetensors").write_bytes(broken)
        with pytest.raises(DataError, match=r"model\.safetensors: damaged"):
            import_model(other, tmp_path / "none")


def test_positions_that_old_files_have(folder: Path, tmp_path: Path) -> None:
    """The usual position vectors in the file are accepted, in half precision, too."""
    other = Path(shutil.copytree(folder, tmp_path / "model"))
    content = torch.load(other / "pytorch_model.bin")
    content["model.encoder.embed_positions.weight"] = split_sinusoids(512, 16).half()
    torch.save(content, other / "pytorch_model.bin")
    import_model(other, tmp_path / "run")
    assert (tmp_path / "run" / "step-0.pt").exists()
