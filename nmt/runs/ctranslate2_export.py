"""Export of a trained Transformer to CTranslate2: a folder that nmt/runs/exported.py translates with, without
torch. Only the export needs torch, which `ctranslate2.specs` imports.

The weights are those of the run. Position vectors are written as a table, since CTranslate2's own sinusoids
are in another order.
"""

from dataclasses import replace
from pathlib import Path

import torch
from ctranslate2 import specs
from torch import Tensor, nn

from nmt.errors import ConfigError
from nmt.io import files
from nmt.layers.output import Softmax
from nmt.layers.transformer import Affine, Layer, NoPositions, Stack
from nmt.models.transformer import Transformer
from nmt.runs import checkpoint
from nmt.runs import directory as run_directory
from nmt.runs.checkpoint import SavedRun
from nmt.runs.exported import ExportSettings
from nmt.runs.framed import POSITIONS
from nmt.text.pipeline import SideConfig
from nmt.text.vocab import BOS, EOS, SPECIALS, UNK


def export(run: Path, output: Path, which: str, quantization: str) -> str:
    """Write a run to the folder `output` for CTranslate2, completely or not at all; returns the name of the
    model. `run`: its directory; `which`: best, last or a number of updates; `quantization`: precision of the
    matrices, one of `nmt.runs.exported.QUANTIZATIONS`. ConfigError for a model that CTranslate2 cannot
    compute, CheckpointError for a directory that is not a run or is damaged, UserError if the disk is
    full."""
    saved = checkpoint.load(run, which)
    model = exportable_model(saved)
    with run_directory.writing(output) as new:
        write(saved, model, quantization, new)
    return saved.name


def exportable_model(saved: SavedRun) -> Transformer:
    """The model of a run. ConfigError unless it is a Transformer with a softmax, which CTranslate2 needs."""
    model = saved.model
    if type(model) is not Transformer:
        raise ConfigError(
            f"{saved.directory}: model.type: {saved.kind}: CTranslate2 has no such model; expected a "
            "transformer"
        )
    if type(model.output) is not Softmax:
        raise ConfigError(
            f"{saved.directory}: model.output: CTranslate2 has no such output layer, expected softmax"
        )
    return model


def write(saved: SavedRun, model: Transformer, quantization: str, new: Path) -> None:
    """Write all files of an exported run, but the manifest, to the folder `new`. `model`: that of `saved`."""
    spec = transformer_spec(model)
    spec.register_source_vocabulary(saved.source_words.words)
    spec.register_target_vocabulary(saved.target_words.words)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = (
        SPECIALS[index] for index in (UNK, BOS, EOS)
    )
    spec.config.decoder_start_token, spec.config.add_source_eos = SPECIALS[BOS], True
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(new))
    for side, pipeline, words in (
        ("source", saved.source, saved.source_words),
        ("target", saved.target, saved.target_words),
    ):
        pipeline.save(new, side)
        words.save(new / f"{side}.vocab")
    if (saved.directory / run_directory.ORIGIN).exists():
        files.write_text(new / run_directory.ORIGIN, files.read_lines(saved.directory / run_directory.ORIGIN))
    data = saved.data
    ExportSettings(
        name=saved.name,
        step=saved.step,
        parameters=sum(part.numel() for part in model.parameters()),
        quantization=quantization,
        max_length=data.max_length,
        source=text_settings(data.source),
        target=text_settings(data.target),
        tags=list(data.tags),
        shared_vocabulary=data.shared_vocabulary,
    ).save(new)


def text_settings(side: SideConfig) -> SideConfig:
    """The settings of a side, without the paths of files that only training reads."""
    return replace(side, codes="", vocab_file="")


# ---- weights -----------------------------------------------------------------------------------------------


ACTIVATIONS = {  # of nmt/layers/transformer.py -> those of CTranslate2
    "relu": specs.Activation.RELU,
    "gelu": specs.Activation.GELU,
    "swish": specs.Activation.SWISH,
}


def transformer_spec(model: Transformer) -> specs.TransformerSpec:
    """Copy the weights of a model, whose output layer is a softmax, into the layout of CTranslate2."""
    source, target, (shown, heads) = model.encoder, model.decoder, model.shown
    activation = ACTIVATIONS[source.activation]
    encoder = specs.TransformerEncoderSpec(
        len(source.blocks), source.heads, pre_norm=source.norm is not None, activation=activation
    )
    decoder = specs.TransformerDecoderSpec(
        len(target.blocks),
        target.heads,
        pre_norm=target.norm is not None,
        activation=activation,
        alignment_layer=shown,
        alignment_heads=heads or target.heads,
    )
    fill_stack(encoder, model.encoder, encoder.embeddings[0])
    fill_stack(decoder, model.decoder, decoder.embeddings)
    assert isinstance(model.output, Softmax)
    matrix, bias = model.output.weights()
    decoder.projection.weight = cpu_copy(matrix)
    if bias is not None:
        decoder.projection.bias = cpu_copy(bias)
    return specs.TransformerSpec(encoder, decoder)


def fill_stack(spec: specs.LayerSpec, stack: Stack, embeddings: specs.LayerSpec) -> None:
    """Fill in the word vectors, the position vectors and the layers of an encoder or a decoder."""
    embeddings.weight = cpu_copy(stack.embedding.weight)
    spec.position_encodings.encodings = position_table(stack)
    if stack.norm is not None:
        fill_norm(spec.layer_norm, stack.norm)
    for layer_spec, layer in zip(spec.layer, stack.blocks, strict=True):
        fill_layer(layer_spec, layer)


def position_table(stack: Stack) -> Tensor:
    """The vectors of the first positions: (POSITIONS, D)"""
    if isinstance(stack.positions, NoPositions):
        return torch.zeros(POSITIONS, stack.embedding.embedding_dim)
    return cpu_copy(stack.positions(torch.arange(POSITIONS)))


def fill_layer(spec: specs.LayerSpec, layer: Layer) -> None:
    """Copy the weights of a layer into CTranslate2's specification."""
    fill_linear(spec.self_attention.linear[0], layer.attention.inputs)
    fill_linear(spec.self_attention.linear[1], layer.attention.outputs)
    fill_norm(spec.self_attention.layer_norm, layer.attended.norm)
    if layer.source is not None and layer.sourced is not None:
        fill_linear(spec.attention.linear[0], layer.source.query)
        fill_linear(spec.attention.linear[1], layer.source.pairs)
        fill_linear(spec.attention.linear[2], layer.source.outputs)
        fill_norm(spec.attention.layer_norm, layer.sourced.norm)
    fill_linear(spec.ffn.linear_0, layer.feed_forward.inner)
    fill_linear(spec.ffn.linear_1, layer.feed_forward.outer)
    fill_norm(spec.ffn.layer_norm, layer.fed.norm)


def fill_linear(spec: specs.LayerSpec, layer: Affine) -> None:
    spec.weight, spec.bias = cpu_copy(layer.weight), cpu_copy(layer.bias)


def fill_norm(spec: specs.LayerSpec, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = cpu_copy(norm.weight), cpu_copy(norm.bias)


def cpu_copy(values: Tensor) -> Tensor:
    """Copy a tensor to the CPU, since CTranslate2 may quantize it in place."""
    return values.detach().cpu().clone()
