"""Folders of Marian models with random weights, for tests: their text by the grammar of the quickstart, their
weights by the library `transformers` or, without it, by name."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor

from nmt.text.subwords.protocol import LearnSettings, TrainingText
from nmt.text.subwords.sentencepiece import Unigram

TAGS = (">>fra<<", ">>deu<<")
LEARN = LearnSettings(merges=0, pieces=150, byte_fallback=False, unicode="nmt_nfkc")


@dataclass(frozen=True)
class Shape:
    """What the model of a folder is like."""

    width: int = 16
    heads: int = 2
    layers: tuple[int, int] = (2, 2)
    feed_forward: int = 24
    activation: str = "swish"
    shared: bool = True  # word vectors
    tied: bool = True  # the output matrix
    vocabularies: int = 1
    tags: Sequence[str] = ()
    seed: int = 1


def sentences(grammar: ModuleType, count: int, seed: int) -> tuple[list[str], list[str]]:
    """English and French lines."""
    writer = grammar.Writer(seed)
    pairs = [writer.sentence(4) for _ in range(count)]
    return [grammar.text(pair.source) for pair in pairs], [grammar.text(pair.target) for pair in pairs]


def learn_pieces(lines: Sequence[str]) -> Unigram:
    text = TrainingText(sentences=True)
    for line in lines:
        text.add(line.split(" "))
    return Unigram.learn(text, LEARN)


def write_texts(folder: Path, grammar: ModuleType, shape: Shape) -> tuple[int, int]:
    """Write SentencePiece models and vocabularies, in an order of their own; returns the numbers of pieces.
    Some pieces of the source have no number: they are unknown."""
    folder.mkdir(parents=True, exist_ok=True)
    sides = [learn_pieces(lines) for lines in sentences(grammar, 400, seed=5)]
    for name, side in zip(("source", "target"), sides, strict=True):
        side.save(folder / f"{name}.spm")
    source, target = ([*side.pieces()] for side in sides)
    lists = [source[5:], target] if shape.vocabularies == 2 else [sorted({*source[5:], *target})]
    if shape.vocabularies == 2:  # <pad> has one number for both
        size = max(map(len, lists))
        lists = [[*pieces, *(f"unused{index}" for index in range(size - len(pieces)))] for pieces in lists]
    lists[0] += shape.tags
    if shape.vocabularies == 2:
        lists[1] += [f"unused-{tag}" for tag in shape.tags]
    for name, pieces in zip(("vocab", "target_vocab"), lists, strict=False):
        numbers = {piece: number for number, piece in enumerate(["</s>", "<unk>", *pieces, "<pad>"])}
        (folder / f"{name}.json").write_text(json.dumps(numbers, ensure_ascii=False), encoding="utf-8")
    names: dict[str, object] = {"source_lang": "en", "target_lang": "fr"}
    if shape.vocabularies == 2:
        names["separate_vocabs"] = True
    (folder / "tokenizer_config.json").write_text(json.dumps(names), encoding="utf-8")
    (folder / "README.md").write_text("---\nlanguage: [en, fr]\nlicense: cc-by-4.0\n---\n# Test\n")
    sizes = [len(pieces) + 3 for pieces in lists]
    return sizes[0], sizes[-1]


def settings(shape: Shape, sizes: tuple[int, int]) -> dict[str, object]:
    """The content of config.json."""
    pad = sizes[0] - 1
    return {
        "vocab_size": sizes[0], "decoder_vocab_size": sizes[1], "d_model": shape.width,
        "encoder_layers": shape.layers[0], "decoder_layers": shape.layers[1],
        "encoder_attention_heads": shape.heads, "decoder_attention_heads": shape.heads,
        "encoder_ffn_dim": shape.feed_forward, "decoder_ffn_dim": shape.feed_forward,
        "activation_function": shape.activation, "scale_embedding": True, "static_position_embeddings": True,
        "share_encoder_decoder_embeddings": shape.shared, "tie_word_embeddings": shape.tied,
        "max_position_embeddings": 512, "pad_token_id": pad, "decoder_start_token_id": pad,
        "eos_token_id": 0, "forced_eos_token_id": 0, "dropout": 0.1,
    }  # fmt: skip


def fill(tensors: Mapping[str, Tensor], shape: Shape, end_bias: float = 3.0) -> None:
    """Random weights, in place; nothing is zero, not even the vector of <pad>. `end_bias`: of `</s>`, so that
    translations end."""
    torch.manual_seed(shape.seed)
    with torch.no_grad():
        for name, value in sorted(tensors.items()):
            if "layer_norm.weight" in name:
                value.uniform_(0.5, 1.5)
            elif any(part in name for part in ("embed_tokens", "shared", "lm_head")):
                value.normal_(0, 0.7 * value.shape[-1] ** -0.5)
            elif "embed_positions" not in name:
                value.normal_(0, 2 * value.shape[-1] ** -0.5 if value.dim() > 1 else 0.3)
            if name == "final_logits_bias":
                value.normal_(0, 0.3)[0, 0] = end_bias


def write_config(folder: Path, content: Mapping[str, object]) -> None:
    """Write config.json and generation_config.json."""
    pad = content["pad_token_id"]
    (folder / "config.json").write_text(json.dumps({"model_type": "marian", **content}))
    (folder / "generation_config.json").write_text(
        json.dumps(
            {"bad_words_ids": [[pad]], "decoder_start_token_id": pad, "eos_token_id": 0, "num_beams": 4}
        )
    )


def tensors_by_name(shape: Shape, sizes: tuple[int, int]) -> dict[str, Tensor]:
    """The tensors of a model, by the names that the library gives them; empty of values."""
    width, inner = shape.width, shape.feed_forward
    result = {"final_logits_bias": torch.zeros(1, sizes[1])}
    if shape.shared:
        result["model.shared.weight"] = torch.zeros(sizes[0], width)
    else:
        for side, size in zip(("encoder", "decoder"), sizes, strict=True):
            result[f"model.{side}.embed_tokens.weight"] = torch.zeros(size, width)
    if not shape.tied:
        result["lm_head.weight"] = torch.zeros(sizes[1], width)
    for side, layers in zip(("encoder", "decoder"), shape.layers, strict=True):
        attentions = ["self_attn", "encoder_attn"][: 1 + (side == "decoder")]
        for number in range(layers):
            name = f"model.{side}.layers.{number}"
            parts = ("q", "k", "v", "out")
            squares = [f"{attention}.{part}_proj" for attention in attentions for part in parts]
            linear = {**dict.fromkeys(squares, (width, width)), "fc1": (inner, width), "fc2": (width, inner)}
            for part, (outputs, inputs) in linear.items():
                result[f"{name}.{part}.weight"] = torch.zeros(outputs, inputs)
                result[f"{name}.{part}.bias"] = torch.zeros(outputs)
            for part in (*(f"{attention}_layer_norm" for attention in attentions), "final_layer_norm"):
                result |= {f"{name}.{part}.{leaf}": torch.zeros(width) for leaf in ("weight", "bias")}
    return result


def write_folder(folder: Path, grammar: ModuleType, shape: Shape, end_bias: float = 3.0) -> Path:
    """Write a whole model without the library; its weights are in pytorch_model.bin."""
    sizes = write_texts(folder, grammar, shape)
    write_config(folder, settings(shape, sizes))
    tensors = tensors_by_name(shape, sizes)
    fill(tensors, shape, end_bias)
    torch.save(tensors, folder / "pytorch_model.bin")
    return folder
