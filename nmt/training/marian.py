"""Runs made of Marian models (nmt/formats/marian.py): their weights, in our order of words and parts, with
their text and their settings. Such a run translates, scores and is trained further like any other."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from nmt.data.corpus import DataConfig
from nmt.errors import ConfigError, DataError
from nmt.formats.marian import MarianFolder, MarianSettings, MarianVocab, read_folder
from nmt.io import files, manifest
from nmt.layers.transformer import split_sinusoids
from nmt.models.registry import make
from nmt.models.transformer import TransformerConfig
from nmt.runs import checkpoint
from nmt.runs import directory as run_directory
from nmt.runs.safetensors import NO_SAFETENSORS
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.subwords import Subwords
from nmt.training.config import RunConfig, TrainingConfig
from nmt.training.config_file import check_config, to_yaml

log = logging.getLogger(__name__)

SAFE, PICKLED, SHARDS = "model.safetensors", "pytorch_model.bin", "model.safetensors.index.json"
STEP = 0  # the number of updates that the weights of an imported run have had here
SAME_POSITIONS = 1e-3  # position vectors that a file has anyway: half precision is this far off
# How the library searches, of generation_config.json, for origin.json.
SEARCH_KEYS = ("num_beams", "length_penalty", "early_stopping", "max_length", "no_repeat_ngram_size")


def import_model(folder: Path, output: Path, languages: tuple[str, str] | None = None) -> str:
    """Make a run in the folder `output`, which is missing or empty, of the Marian model in `folder`; returns
    a summary. `languages`: codes of source and target, instead of those in its files. DataError for files
    that are missing, damaged, or of a model that our Transformer cannot compute; ConfigError for weights that
    need a library that is not installed; UserError if the run cannot be written."""
    model = read_folder(folder)
    path = weights_file(folder)
    weights = convert(WeightsFile(path, read_weights(path)), model)
    config = run_config(model, output, languages or model.languages)
    assert isinstance(config.model, TransformerConfig)
    sizes = len(model.source.words), len(model.target.words)
    network = make(config.model, *sizes, fill=False, spelling=model.source.words.words)
    network.load_state_dict(weights)
    with run_directory.writing(output) as new:
        files.write_text(new / run_directory.CONFIG, to_yaml(config).rstrip("\n").split("\n"))
        for name, side, vocab, units in (
            ("source", config.data.source, model.source, model.source_pieces),
            ("target", config.data.target, model.target, model.target_pieces),
        ):
            TextPipeline.with_subwords(side, units, units.raw).save(new, name)
            vocab.words.save(new / f"{name}.vocab")
        origin = json.dumps(origin_content(model, path), indent=1, ensure_ascii=False)
        files.write_text(new / run_directory.ORIGIN, origin.split("\n"))
        checkpoint.save_tensors(network.state_dict(), run_directory.weights_path(new, STEP))
        run_directory.write_index(new, STEP, STEP)
        run_directory.write_version(new)
    return (
        f"{model.name}, license {model.license or 'not named'}, {checkpoint.parameter_count(network)}, "
        f"{sizes[0]:,} and {sizes[1]:,} units"
        f"{f', {len(model.tags):,} tags such as {model.tags[0]}' if model.tags else ''}"
    )


def origin_content(model: MarianFolder, weights: Path) -> dict[str, object]:
    """The content of origin.json: whose model a run has. `weights`: their file."""
    inputs = sorted(
        path for path in model.path.iterdir() if path.suffix in (".json", ".spm") and path.is_file()
    )
    return {
        "format": "nmt-origin 1",
        "kind": "marian",
        "name": model.name,
        "license": model.license,
        "folder": str(model.path),
        "search": {key: model.generation[key] for key in SEARCH_KEYS if key in model.generation},
        "sha256": {path.name: manifest.digest(path) for path in (*inputs, weights)},
    }


# ---- configuration -----------------------------------------------------------------------------------------


def run_config(model: MarianFolder, output: Path, languages: tuple[str, str]) -> RunConfig:
    """The configuration of the run, by which nmt-train can also train it further: `codes` and `vocab_file`
    are the run's own. ConfigError for sizes that do not go together."""
    settings = model.settings
    pieces = {"source": model.source_pieces, "target": model.target_pieces}
    source, target = (
        side_config(output, name, units, language)
        for (name, units), language in zip(pieces.items(), languages, strict=True)
    )
    if not model.two_vocabularies:
        source.vocab_file = target.vocab_file
    config = RunConfig(
        run=str(output),
        data=DataConfig(
            max_length=settings.positions - 1,
            source=source,
            target=target,
            shared_vocabulary=not model.two_vocabularies,
            line_tags=model.tags,
        ),
        model=TransformerConfig(
            embedding=settings.embedding,
            feed_forward=settings.feed_forward,
            heads=settings.heads,
            activation=settings.activation,
            positions="sinusoidal-split",
            encoder_layers=settings.encoder_layers,
            decoder_layers=settings.decoder_layers,
            dropout=settings.dropout,
            attention_dropout=settings.attention_dropout,
            feed_forward_dropout=settings.feed_forward_dropout,
            tied=shared_matrices(settings),
        ),
        training=TrainingConfig(
            optimizer="adam", learning_rate=5e-5, beta2=0.98, cost="word", label_smoothing=0.1,
            batch_tokens=2000, validate_every=500,
        ),
    )  # fmt: skip
    try:
        check_config(config)
    except ConfigError as error:
        raise DataError(f"{model.path}: {error}; this model cannot be imported") from error
    return config


def shared_matrices(settings: MarianSettings) -> str:
    """The value of `model.tied`. Vectors that are shared while the output matrix is not become two copies."""
    if not settings.tied:
        return "none"
    return "all" if settings.shared else "target"


def side_config(output: Path, name: str, units: Subwords, language: str) -> SideConfig:
    """The text settings of a side, source or target."""
    return SideConfig(
        language=language,
        normalize=False,
        tokenize=False,
        subword=units.kind,
        codes=str(output / f"{name}.{units.suffix}"),
        vocab_file=str(output / f"{name}.vocab"),
    )


# ---- weights -----------------------------------------------------------------------------------------------


def weights_file(folder: Path) -> Path:
    """Path of the weights of a model; of two files, the one without pickles. DataError if there is none."""
    for name in (SAFE, PICKLED):
        if (folder / name).exists():
            return folder / name
    if (folder / SHARDS).exists():
        raise DataError(
            f"{folder / SHARDS}: weights in several files, expected {SAFE}; save them as one file"
        )
    raise DataError(f"{folder / SAFE}: missing, expected this file or {PICKLED}; copy the whole folder")


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read all tensors of a file, without running code from it. DataError for a file that is damaged or holds
    anything else, ConfigError if the library that reads it is not installed."""
    try:
        stream = files.open_regular(path)
    except OSError as error:
        raise files.cannot_read(path, error) from error
    with stream:
        try:
            if path.name == SAFE:
                content: object = parse_safetensors(path)
            else:
                content = torch.load(stream, map_location="cpu", weights_only=True)
        except ConfigError:
            raise
        except Exception as error:  # both libraries raise many kinds for a damaged file
            raise DataError(
                f"{path}: damaged, or holds more than tensors ({type(error).__name__}); copy it again"
            ) from error
    if not isinstance(content, Mapping) or not all(
        isinstance(name, str) and isinstance(value, Tensor) for name, value in content.items()
    ):
        raise DataError(f"{path}: expected tensors by name, and nothing else; copy it again")
    return dict(content)


def parse_safetensors(path: Path) -> dict[str, Tensor]:
    """Read a file of the library `safetensors`. ConfigError if that is not installed."""
    try:
        from safetensors.torch import load_file
    except ModuleNotFoundError as error:
        raise ConfigError(f"{path}: {NO_SAFETENSORS}") from error
    content: dict[str, Tensor] = load_file(path)
    return content


@dataclass
class WeightsFile:
    """The tensors of a file by name; what has been taken is remembered."""

    path: Path
    tensors: Mapping[str, Tensor]
    taken: set[str] = field(default_factory=set)

    def take(self, name: str, *shape: int) -> Tensor:
        """A tensor in float32. DataError if it is missing, not finite, or of another shape or type."""
        if name not in self.tensors:
            raise DataError(f"{self.path}: has no {name}, expected {self.size(shape)}; copy it again")
        value = self.tensors[name]
        if tuple(value.shape) != shape or not value.is_floating_point():
            raise DataError(
                f"{self.path}: {name}: {self.size(tuple(value.shape))} of {value.dtype}, expected "
                f"{self.size(shape)} of numbers, as config.json has it; are both files of one model?"
            )
        if not bool(torch.isfinite(value).all()):
            raise DataError(f"{self.path}: {name}: has values that are not finite; copy it again")
        self.taken.add(name)
        return value.float()

    @staticmethod
    def size(shape: Sequence[int]) -> str:
        return " x ".join(map(str, shape)) or "a single number"

    def check_same(self, name: str, value: Tensor) -> None:
        """DataError unless a tensor that the file may have is `value`."""
        if name in self.tensors and not torch.equal(self.take(name, *value.shape), value):
            raise DataError(
                f"{self.path}: {name}: differs from the vectors that config.json says are the same; are "
                "both files of one model?"
            )

    def check_empty(self) -> None:
        """DataError if there are tensors that nobody has taken."""
        if left := sorted(self.tensors.keys() - self.taken):
            raise DataError(
                f"{self.path}: {left[0]}: not part of a Marian model of these sizes ({len(left):,} such "
                "tensors); are config.json and this file of one model?"
            )


def convert(weights: WeightsFile, model: MarianFolder) -> dict[str, Tensor]:
    """Convert the weights of a model to those of our Transformer. DataError, which names the tensor, for
    weights that are missing, left over or do not fit config.json."""
    settings = model.settings
    result = word_weights(weights, model)
    for side, layers in (("encoder", settings.encoder_layers), ("decoder", settings.decoder_layers)):
        check_positions(weights, f"model.{side}.embed_positions.weight", settings)
        for number in range(layers):
            theirs, ours = f"model.{side}.layers.{number}", f"{side}.layers.{number}"
            parts = layer_weights(weights, theirs, settings, side == "decoder")
            result |= {f"{ours}.{name}": value for name, value in parts.items()}
    weights.check_empty()
    return result


def word_weights(weights: WeightsFile, model: MarianFolder) -> dict[str, Tensor]:
    """Word vectors, output matrix and output bias, whose rows are put into the order of our ids."""
    settings, width = model.settings, model.settings.embedding
    shapes = {"encoder": (settings.source_size, width), "decoder": (settings.target_size, width)}
    vectors = {side: side_vectors(weights, side, settings, *shape) for side, shape in shapes.items()}
    matrix = vectors["decoder"]
    if settings.tied:
        weights.check_same("lm_head.weight", matrix)
    else:
        matrix = weights.take("lm_head.weight", *shapes["decoder"])
    bias = torch.zeros(1, settings.target_size)
    if "final_logits_bias" in weights.tensors:
        bias = weights.take("final_logits_bias", *bias.shape)
    return {
        "encoder.embedding.weight": rows(vectors["encoder"], model.source),
        "decoder.embedding.weight": rows(vectors["decoder"], model.target),
        "output.words": rows(matrix, model.target),
        "output.words_bias": rows(bias[0], model.target),
    }


def side_vectors(weights: WeightsFile, side: str, settings: MarianSettings, *shape: int) -> Tensor:
    """The word vectors of `side`, encoder or decoder, in the order of the file's rows. `shape`: (words,
    width). As in `transformers`, both sides share vectors only if the output matrix is tied to them, too;
    otherwise a side uses its own if the file has them. DataError if they are missing or of another shape."""
    own, shared = f"model.{side}.embed_tokens.weight", "model.shared.weight"
    if not settings.shared:
        return weights.take(own, *shape)
    if settings.tied or own not in weights.tensors:
        vectors = weights.take(shared, *shape)
        weights.check_same(own, vectors)
        return vectors
    if shared in weights.tensors:  # nothing reads it
        weights.take(shared, *shape)
    return weights.take(own, *shape)


def rows(values: Tensor, vocab: MarianVocab) -> Tensor:
    """Put rows, one for each number of a piece, into the order of our ids."""
    return values[torch.tensor(vocab.numbers)]


def check_positions(weights: WeightsFile, name: str, settings: MarianSettings) -> None:
    """DataError for position vectors, as older versions wrote them, that are not Marian's sinusoids."""
    if name not in weights.tensors:
        return
    positions = weights.take(name, settings.positions, settings.embedding)
    expected = split_sinusoids(settings.positions, settings.embedding).float()
    if not torch.allclose(positions, expected, rtol=0, atol=SAME_POSITIONS):
        raise DataError(
            f"{weights.path}: {name}: not the sines and cosines of Marian; this model cannot be imported"
        )


def layer_weights(
    weights: WeightsFile, name: str, settings: MarianSettings, sees_source: bool
) -> dict[str, Tensor]:
    """The weights of a layer by the names of `nmt.layers.transformer.Layer`. `name`: of the layer in the
    file; `sees_source`: whether it also attends to the source."""
    width, inner = settings.embedding, settings.feed_forward
    result: dict[str, Tensor] = {}

    def linear(ours: str, theirs: Sequence[str], outputs: int = width, inputs: int = width) -> None:
        """Stack the matrices and biases of several layers of Marian as one layer of ours."""
        for part, shape in (("weight", (outputs, inputs)), ("bias", (outputs,))):
            parts = [weights.take(f"{name}.{layer}.{part}", *shape) for layer in theirs]
            result[f"{ours}.{part}"] = torch.cat(parts)

    def norm(ours: str, theirs: str) -> None:
        for part in ("weight", "bias"):
            result[f"{ours}.norm.{part}"] = weights.take(f"{name}.{theirs}.{part}", width)

    linear("attention.inputs", [f"self_attn.{part}_proj" for part in "qkv"])
    linear("attention.outputs", ["self_attn.out_proj"])
    norm("attended", "self_attn_layer_norm")
    if sees_source:
        linear("source.query", ["encoder_attn.q_proj"])
        linear("source.pairs", [f"encoder_attn.{part}_proj" for part in "kv"])
        linear("source.outputs", ["encoder_attn.out_proj"])
        norm("sourced", "encoder_attn_layer_norm")
    linear("feed_forward.inner", ["fc1"], inner, width)
    linear("feed_forward.outer", ["fc2"], width, inner)
    norm("fed", "final_layer_norm")
    return result
