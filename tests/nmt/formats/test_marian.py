"""Folders of Marian models: what they say, in which order words get their ids, and what is refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from nmt.errors import DataError
from nmt.formats.marian import read_folder, read_json
from nmt.text.vocab import SPECIALS, Vocab
from tests.nmt.training.marian_folders import TAGS, Shape, write_folder


@pytest.fixture(scope="module")
def folder(grammar: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape = Shape(tags=TAGS, layers=(1, 1))
    return write_folder(tmp_path_factory.mktemp("marian") / "opus-mt-en-fr", grammar, shape)


def test_a_folder_is_read(folder: Path, tmp_path: Path) -> None:
    """Each of our words has the number of its piece; <s> has that of <pad>. The vocabulary survives its
    file."""
    model = read_folder(folder)
    numbers = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    words = model.source.words.words
    assert words[:3] == SPECIALS and model.tags == words[3:5] == list(TAGS)
    assert model.source.numbers == [numbers["<pad>"], 0, 1, *(numbers[word] for word in words[3:])]
    assert sorted(model.source.numbers) == list(range(len(numbers))) and model.target is model.source
    others = model.source.numbers[5:]
    assert others == sorted(others)
    model.source.words.save(tmp_path / "vocab")
    assert Vocab.load(tmp_path / "vocab").with_tags(TAGS).words == words
    assert (model.name, model.license, model.languages) == ("opus-mt-en-fr", "cc-by-4.0", ("en", "fr"))
    assert model.generation["num_beams"] == 4


def change(path: Path, edit: Callable[[dict[str, object]], object]) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    edit(content)
    path.write_text(json.dumps(content), encoding="utf-8")


CONFIGS: list[tuple[dict[str, object], str]] = [
    ({"model_type": "bart"}, r"config\.json: model_type: '\"bart\"', expected 'marian'"),
    ({"scale_embedding": False}, "scale_embedding: 'false', expected true"),
    ({"scale_embedding": None}, "scale_embedding: 'null', expected true or false"),
    ({"normalize_before": True}, "normalize_before"),
    ({"activation_function": "gelu_new"}, "expected one of relu, gelu, swish, silu"),
    ({"d_model": "16"}, "d_model: '\"16\"', expected a whole number from 1 to"),
    ({"d_model": True}, "d_model"),
    ({"encoder_layers": 10**30}, "encoder_layers"),
    ({"decoder_attention_heads": 4}, "decoder_attention_heads: '4', expected 2 as encoder_attention_heads"),
    ({"dropout": 1}, "dropout: '1', expected a number from 0 to below 1"),
    ({"decoder_vocab_size": 9}, "since the vectors are shared"),
    ({"decoder_start_token_id": 0}, "decoder_start_token_id: '0', expected"),
    ({"eos_token_id": 5}, "forced_eos_token_id: '0', expected 5"),
    ({"vocab_size": 9, "decoder_vocab_size": 9}, r"vocab\.json: .* pieces, expected the numbers 0 to 8"),
    ({"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 9}, r"target_vocab\.json: missing"),
]


@pytest.mark.parametrize(("values", "message"), CONFIGS)
def test_settings_that_are_refused(
    folder: Path, tmp_path: Path, values: dict[str, object], message: str
) -> None:
    other = Path(shutil.copytree(folder, tmp_path / "model"))
    change(other / "config.json", lambda content: content.update(values))
    with pytest.raises(DataError, match=message):
        read_folder(other)


FILES: list[tuple[str, bytes | None, str]] = [
    ("config.json", None, "missing, expected with every Marian model"),
    ("config.json", b"{", "not valid JSON"),
    ("config.json", b"[]", "holds a list, expected a JSON object"),
    ("config.json", b"[" * 100_000, "not valid JSON"),
    ("config.json", b'{"a": 1, "a": 2}', "'a' occurs twice"),
    ("config.json", b"\xff", "not valid JSON"),
    ("generation_config.json", b'{"decoder_start_token_id": 3}', "decoder_start_token_id: '3', expected"),
    ("generation_config.json", b'{"bad_words_ids": [[1]]}', "bad_words_ids"),
    ("tokenizer_config.json", b'{"separate_vocabs": true}', r"expected target_vocab\.json with it"),
    ("target_vocab.json", b"{}", "a second vocabulary, but"),
    ("vocab.json", b'{"</s>": 0, "<unk>": 1}', "2 pieces, expected the numbers 0 to"),
    ("source.spm", None, r"source\.spm: missing, expected a SentencePiece model"),
    ("target.spm", b"lo wer\n", r"target\.spm: not a SentencePiece model"),
]


@pytest.mark.parametrize(("name", "content", "message"), FILES)
def test_files_that_are_refused(
    folder: Path, tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    other = Path(shutil.copytree(folder, tmp_path / "model"))
    (other / name).unlink(missing_ok=True)
    if content is not None:
        (other / name).write_bytes(content)
    with pytest.raises(DataError, match=message) as refused:
        read_folder(other)
    assert str(refused.value).startswith(str(other))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("", "<s>", "which our vocabularies cannot hold"),
        ("", "a\nb", "which our vocabularies cannot hold"),
        ("<unk>", "unknown", "<unk>: missing, expected a number"),
        ("<pad>", "padding", "<pad>: missing, expected 267 as in config.json"),
    ],
)
def test_pieces_that_are_refused(folder: Path, tmp_path: Path, old: str, new: str, message: str) -> None:
    other = Path(shutil.copytree(folder, tmp_path / "model"))
    numbers = json.loads((other / "vocab.json").read_text(encoding="utf-8"))
    numbers[new] = numbers.pop(old or next(piece for piece, number in numbers.items() if number == 5))
    (other / "vocab.json").write_text(json.dumps(numbers), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_folder(other)


def test_a_missing_folder_and_a_folder_as_file(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder; expected one with config"):
        read_folder(tmp_path / "none")
    (tmp_path / "config.json").mkdir()
    with pytest.raises(DataError, match=r"config\.json: cannot read: Is a directory"):
        read_json(tmp_path / "config.json")
    (tmp_path / "README.md").write_text("---\nlicense: [a, b\n---\n")
    other = Path(shutil.copytree(folder, tmp_path / "model"))
    shutil.copy(tmp_path / "README.md", other / "README.md")
    assert read_folder(other).license == ""
