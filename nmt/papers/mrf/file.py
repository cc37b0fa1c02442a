"""The file of a Markov random field: settings, vocabulary and potentials in one, without code in it."""

from dataclasses import asdict
from pathlib import Path

from nmt.config import settings
from nmt.errors import CheckpointError, ConfigError
from nmt.papers.mrf.config import MRFConfig
from nmt.papers.mrf.model import ChainMRF
from nmt.runs.weights import load_tensors, save_tensors
from nmt.text.vocab import Vocab

FORMAT = "nmt-mrf 1"


def save(path: Path, model: ChainMRF, vocab: Vocab) -> None:
    """Write a model, whole or not at all."""
    content = {
        "format": FORMAT,
        "settings": asdict(model.config),
        "counts": {word: vocab.counts[word] for word in vocab.ids},
        "weights": model.state_dict(),
    }
    save_tensors(content, path)


def load(path: Path) -> tuple[ChainMRF, Vocab]:
    """CheckpointError for another file, or a damaged one."""
    content = load_tensors(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CheckpointError(f"{path}: is not a Markov random field of nmt-mrf ({FORMAT})")
    try:
        config = MRFConfig(**content["settings"])
        settings.check(config)
        vocab = Vocab(content["counts"], len(content["counts"]))
        model = ChainMRF(config, len(vocab))
        model.load_state_dict(content["weights"])
    except (KeyError, TypeError, AttributeError, RuntimeError, ConfigError) as error:
        raise CheckpointError(f"{path}: damaged; copy it again, or train it anew") from error
    return model, vocab
