"""CTranslate2 models of other toolkits with random weights, for tests: the library `transformers` makes them,
and CTranslate2's own converter converts them."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
import torch
from ctranslate2.converters import TransformersConverter
from torch import Tensor

from nmt.layers.output import Softmax
from nmt.models.transformer import Transformer, TransformerConfig
from nmt.runs.ctranslate2_export import transformer_spec
from tests.nmt.training.marian_folders import Shape, fill, learn_pieces, sentences, settings, write_texts

WITHOUT = "needs transformers and safetensors: pip install 'nmt-smt[marian,dev]'"
POSITIONS = 128
END = 0.2  # how likely translations end


@dataclass
class ForeignModel:
    """A model as `transformers` has it, and its conversion."""

    folder: Path  # of CTranslate2, with the SentencePiece models
    search: Callable[..., Tensor]  # generate() of transformers
    numbers: dict[str, int]  # token -> number in transformers

    def generate(self, source: list[str], forced: str, banned: list[str], longest: int) -> list[str]:
        """The greedy translation of source tokens by transformers, without the end symbol. `forced`: the
        first target token, left out of the result, or empty; `banned`: tokens that it may not have."""
        end = self.numbers["</s>"]
        token_ids = torch.tensor([[self.numbers.get(token, self.numbers["<unk>"]) for token in source]])
        with torch.no_grad():
            [result] = self.search(
                token_ids,
                attention_mask=torch.ones_like(token_ids),
                num_beams=1,
                do_sample=False,
                max_new_tokens=longest + bool(forced),
                forced_bos_token_id=self.numbers[forced] if forced else None,
                bad_words_ids=[[self.numbers[token]] for token in banned if token in self.numbers],
            )
        names = {number: token for token, number in self.numbers.items()}
        written = result.tolist()[1 + bool(forced) :]
        return [names[number] for number in written[: written.index(end) if end in written else None]]


def load_library() -> ModuleType:
    os.environ["HF_HUB_OFFLINE"] = "1"
    transformers: ModuleType = pytest.importorskip("transformers", reason=WITHOUT)
    pytest.importorskip("safetensors", reason=WITHOUT)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


def convert(folder: Path, output: Path) -> None:
    TransformersConverter(str(folder)).convert(str(output))


def marian(folder: Path, grammar: ModuleType, tags: tuple[str, ...] = ()) -> ForeignModel:
    """A Marian model, whose decoder begins with a vector of zeros."""
    transformers = load_library()
    shape, theirs = Shape(tags=tags, seed=3), folder / "transformers"
    sizes = write_texts(theirs, grammar, shape)
    model = transformers.MarianMTModel(transformers.MarianConfig(**settings(shape, sizes))).eval()
    fill(dict(model.state_dict()), shape, end_bias=2.8)
    with torch.no_grad():
        model.model.shared.weight[-1] = 0
    model.save_pretrained(theirs)
    convert(theirs, folder / "model")
    for side in ("source", "target"):
        (folder / "model" / f"{side}.spm").write_bytes((theirs / f"{side}.spm").read_bytes())
    model.generation_config.forced_eos_token_id = None
    return ForeignModel(
        folder / "model", model.generate, json.loads((theirs / "vocab.json").read_text("utf-8"))
    )


def many_languages(folder: Path, grammar: ModuleType, tokens: tuple[str, ...]) -> ForeignModel:
    """A model like M2M-100 and NLLB, which are one architecture. `tokens`: of its languages."""
    transformers = load_library()
    theirs = folder / "transformers"
    theirs.mkdir(parents=True)
    english, french = sentences(grammar, 400, seed=5)
    pieces = learn_pieces([*english, *french])
    pieces.save(theirs / "sentencepiece.bpe.model")
    listed = [*list(pieces.pieces())[:-5], *tokens]
    numbers = {token: index for index, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", *listed])}
    (theirs / "vocab.json").write_text(json.dumps(numbers), encoding="utf-8")
    tokenizer = transformers.M2M100Tokenizer(
        vocab_file=str(theirs / "vocab.json"), spm_file=str(theirs / "sentencepiece.bpe.model")
    )
    tokenizer.save_pretrained(theirs)
    config = transformers.M2M100Config(
        vocab_size=len(numbers) + tokenizer.num_madeup_words, d_model=16, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24,
        max_position_embeddings=POSITIONS,
    )  # fmt: skip
    model = transformers.M2M100ForConditionalGeneration(config).eval()
    fill(dict(model.state_dict()), Shape(seed=12))
    with torch.no_grad():
        ending = model.model.decoder.layer_norm.bias.mul_(3)  # outputs lie towards it
        model.model.shared.weight[numbers["</s>"]] += END * ending
        model.model.shared.weight[numbers["<pad>"]] = 0
    model.save_pretrained(theirs)
    convert(theirs, folder / "model")
    copied = (theirs / "sentencepiece.bpe.model").read_bytes()
    (folder / "model" / "sentencepiece.bpe.model").write_bytes(copied)
    made_up = {f"madeupword{index}": len(numbers) + index for index in range(tokenizer.num_madeup_words)}
    model.generation_config.forced_eos_token_id = None
    return ForeignModel(folder / "model", model.generate, {**numbers, **made_up})


def opennmt(folder: Path, grammar: ModuleType) -> Path:
    """A model as OpenNMT's are converted: `<s>` begins targets, and sources have no end. Returns its folder,
    whose SentencePiece models lie beside it."""
    sides = [learn_pieces(lines) for lines in sentences(grammar, 400, seed=5)]
    vocabularies = [["<unk>", "<blank>", "<s>", "</s>", *side.pieces()] for side in sides]
    config = TransformerConfig(embedding=16, feed_forward=32, heads=4, encoder_layers=2, decoder_layers=2)
    torch.manual_seed(3)
    model = Transformer(config, len(vocabularies[0]), len(vocabularies[1])).eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(3 if weights.dim() == 2 else 1)
        assert isinstance(model.output, Softmax) and model.output.words_bias is not None
        model.output.words_bias[vocabularies[1].index("</s>")] += 8
    spec = transformer_spec(model)
    spec.register_source_vocabulary(vocabularies[0])
    spec.register_target_vocabulary(vocabularies[1])
    spec.validate()
    spec.optimize()
    folder.mkdir(parents=True)
    spec.save(str(folder))
    for name, side in zip(("source", "target"), sides, strict=True):
        side.save(folder.parent / f"{name}.model")
    return folder
