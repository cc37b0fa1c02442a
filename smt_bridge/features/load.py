"""From `--feature` to features that compute. The only place that knows all of them."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from nmt import checkpoint, manifest, run_directory
from nmt.errors import ConfigError
from smt_bridge.features.base import Feature
from smt_bridge.features.count_lm import CountLM
from smt_bridge.features.neural_lm import NeuralLM
from smt_bridge.features.spec import NETWORKS, Settings, Spec
from smt_bridge.features.translation import Translation
from smt_bridge.features.unknown_words import UnknownWords, load_vocab


def load(specs: Sequence[Spec], settings: Settings) -> list[Feature]:
    """ConfigError, DataError or CheckpointError, in one line, for what cannot be loaded."""
    return [one(spec, settings) for spec in specs]


def one(spec: Spec, settings: Settings) -> Feature:
    if spec.kind in NETWORKS:
        run = checkpoint.load(spec.path, settings.checkpoint, settings.device)
        return Translation(run, spec.kind == "inverse", settings.unknown, settings.precision)
    if spec.kind in ("lm", "reverse-lm"):
        return CountLM(spec.path, spec.kind == "reverse-lm")
    if spec.kind == "unknown-words":
        return UnknownWords(load_vocab(spec.path, settings.side), settings.side)
    if spec.kind == "neural-lm":
        return NeuralLM(
            checkpoint.load_lm(spec.path, settings.checkpoint, settings.device),
            settings.assume_normalized,
            settings.backoff,
        )
    raise ConfigError(f"--feature {spec.kind}={spec.path}: unknown type")


def identity(spec: Spec, settings: Settings) -> str:
    """Changes when the feature would give other numbers: its files, and the settings that bear on it."""
    digest = hashlib.sha256(spec.kind.encode())
    for path in files_of(spec, settings):
        digest.update(path.name.encode() + hash_of(path))
    if spec.kind in (*NETWORKS, "neural-lm"):
        digest.update(
            (
                f"{settings.precision} "
                f"{settings.unknown}{' normalized' if settings.assume_normalized else ''}"
            ).encode()
        )
    if spec.kind == "neural-lm" and settings.backoff:
        digest.update(hash_of(Path(settings.backoff)))
    if spec.kind == "unknown-words":
        digest.update(settings.side.encode())
    return digest.hexdigest()[:32]


def hash_of(path: Path) -> bytes:
    return bytes.fromhex(manifest.digest(path))


def files_of(spec: Spec, settings: Settings) -> list[Path]:
    place = Path(spec.path)
    if spec.kind in ("lm", "reverse-lm") or not place.is_dir():
        return [place]
    if spec.kind == "unknown-words":
        return [place / f"{settings.side}.vocab"]
    texts = sorted(
        place / name
        for name in run_directory.TEXTS
        if name != run_directory.CONFIG and (place / name).exists()
    )
    return [
        place / run_directory.CONFIG,
        *texts,
        run_directory.weights_path(place, run_directory.find_step(place, settings.checkpoint)),
    ]
