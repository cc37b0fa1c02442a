"""A run as one file of the library safetensors, to share or to keep, and runs made of such files. No code is
run from a file.

The tensors are those of the model by their names in torch, `state_dict`. Matrices that are one in the model
(tied) are stored once. The file's metadata has one entry, `nmt_smt`: a `Description` as JSON, with `format`
before its keys. It holds all texts that the model needs: configuration, vocabularies, subwords.
"""

import base64
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from nmt import __version__
from nmt.config import typed_json
from nmt.data.corpus import DataConfig
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.io import files, manifest
from nmt.runs import checkpoint
from nmt.runs import directory as run_directory
from nmt.runs.pair import model_name
from nmt.runs.text import parse_yaml

log = logging.getLogger(__name__)

FORMAT, KEY = "nmt-safetensors 1", "nmt_smt"
NO_SAFETENSORS = "safetensors is not installed; pip install 'nmt-smt[safetensors]'"
COPY = "copy it again, or export the run again with nmt-export --format safetensors"
BASE64 = "base64:"  # before the content of a file that is not text
BINARY = (".spm",)


@dataclass
class Description:
    """The metadata of a file: everything about its model but the weights."""

    version: str  # of the run's format
    name: str  # of the model in results
    type: str  # model.type or lm.type
    languages: list[str]  # source and target; "" where the configuration names none
    step: int  # the weights are those after this many updates
    license: str  # "": not stated
    made_with: str  # the program that trained or exported the model
    trained_on: dict[str, dict[str, object]]  # size and SHA-256 of each training and development file, by key
    tied: dict[str, str]  # names of tensors that are not stored -> the stored tensor that each is
    files: dict[str, str]  # name in the run -> content


# ---- export ------------------------------------------------------------------------------------------------


def export(run: Path, output: Path, which: str, license: str = "") -> str:
    """Write a run as one file, completely or not at all; returns the name of its model. `run`: its directory;
    `which`: best, last or a number of updates; `license`: of the model, by default what origin.json says.
    CheckpointError for a directory that is not a run or is damaged, DataError for a damaged origin.json,
    ConfigError without the library and for texts that are too large for such a file, UserError if it cannot
    be written."""
    try:
        from safetensors import SafetensorError
        from safetensors.torch import save
    except ModuleNotFoundError as error:
        raise ConfigError(f"--format safetensors: {NO_SAFETENSORS}") from error

    def describe_run() -> tuple[Description, dict[str, Tensor]]:
        config = checkpoint.checked_config(run)
        step = run_directory.find_step(run, which)
        weights = checkpoint.load_tensors(run_directory.weights_path(run, step))
        stored, tied = separate_tied(weights)
        texts = read_texts(run)
        description = Description(
            version=run_directory.VERSION,
            name=model_name(run, step),
            type=config.model.type,
            languages=languages(config.data),
            step=step,
            license=license or str(origin(texts, run).get("license", "")),
            made_with=f"nmt-smt {__version__}",
            trained_on=trained_on(run),
            tied=tied,
            files=texts,
        )
        return description, stored

    description, stored = run_directory.read_consistent(run, describe_run)
    if not description.license:
        log.warning("%s: no license is stated; --license names it, such as CC-BY-4.0", run)
    metadata = json.dumps({"format": FORMAT, **asdict(description)}, ensure_ascii=False, sort_keys=True)
    try:
        content = save(stored, {KEY: metadata})
    except SafetensorError as error:  # a header of more than 100 MB
        raise ConfigError(f"{run}: cannot be one file of safetensors: {error}") from error
    with files.Writing(output) as out:
        out.write(content)
    return description.name


def separate_tied(weights: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Separate the tensors to store from those that are the same memory as a stored one; returns the former
    by name, and for each of the latter its name -> that of the stored one."""
    stored: dict[str, Tensor] = {}
    tied: dict[str, str] = {}
    first: dict[tuple[object, ...], str] = {}
    for name, value in weights.items():
        memory = (value.data_ptr(), value.shape, value.stride(), value.dtype)
        if value.numel() and memory in first:
            tied[name] = first[memory]
        else:
            first[memory] = name
            stored[name] = value.detach().clone(memory_format=torch.contiguous_format)
    return stored, tied


def read_texts(run: Path) -> dict[str, str]:
    """Read all files that the model of a run needs besides its weights."""
    texts: dict[str, str] = {}
    for name in run_directory.TEXTS:
        if (run / name).exists():
            content = (run / name).read_bytes()
            binary = name.endswith(BINARY)
            texts[name] = BASE64 + base64.b64encode(content).decode() if binary else content.decode("utf-8")
    return texts


def languages(data: DataConfig) -> list[str]:
    return [data.source.language, data.target.language]


def origin(texts: Mapping[str, str], path: Path) -> dict[str, object]:
    """The content of origin.json among the texts of a run; empty without one. `path`: where they come from,
    for messages. DataError if it is damaged."""
    try:
        return dict(json.loads(texts.get(run_directory.ORIGIN, "{}")))
    except (ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{path}: {run_directory.ORIGIN}: damaged ({error}); copy it again") from error


def trained_on(run: Path) -> dict[str, dict[str, object]]:
    """Size and SHA-256 of the files that a run was trained on, by their keys below `data`; empty for the mean
    of checkpoints and for an imported run, which do not say. CheckpointError for a damaged file."""
    entries = manifest.load(run)
    if run_directory.INPUTS not in entries:
        return {}
    try:
        with manifest.open_verified(run, run_directory.INPUTS, entries) as stream:
            stamps = json.load(stream)
        return {key: {part: stamp[part] for part in ("size", "sha256")} for key, stamp in stamps.items()}
    except DataError as error:
        raise CheckpointError(str(error)) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(f"{run / run_directory.INPUTS}: damaged; copy it again") from error


# ---- import ------------------------------------------------------------------------------------------------


def import_file(path: Path, output: Path) -> str:
    """Make a run of a file that `export` has written, in the folder `output`, which is missing or empty;
    returns a summary. DataError for a file that is damaged or not of this toolkit, ConfigError without the
    library, UserError if the run cannot be written. Nothing is written for a file that is refused."""
    description, tensors = read(path)
    weights = {**tensors, **{name: tensors[stored] for name, stored in description.tied.items()}}
    with run_directory.writing(output) as new:
        for name, content in description.files.items():
            write_file(new / name, content, path)
        about = json.dumps(origin_content(description, path), indent=1, ensure_ascii=False)
        files.write_text(new / run_directory.ORIGIN, about.split("\n"))
        checkpoint.save_tensors(weights, run_directory.weights_path(new, description.step))
        run_directory.write_index(new, description.step, description.step)
        run_directory.write_version(new)
    return f"{description.name}: {description.type}, license {description.license or 'not stated'}"


def read(path: Path) -> tuple[Description, dict[str, Tensor]]:
    """Read the description and the stored tensors of a file; errors as from `import_file`."""
    try:
        from safetensors import SafetensorError, safe_open
    except ModuleNotFoundError as error:
        raise ConfigError(f"{path}: {NO_SAFETENSORS}") from error
    try:
        files.open_regular(path).close()
        with safe_open(path, "pt") as content:
            metadata = (content.metadata() or {}).get(KEY)
            if metadata is None:
                raise DataError(
                    f"{path}: not a run of this toolkit; expected a file of nmt-export --format safetensors"
                )
            description = typed_json.parse(Description, metadata, {"format": FORMAT})
            tensors = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118 it is no dict
    except OSError as error:
        raise files.cannot_read(path, error) from error
    except (SafetensorError, ValueError) as error:
        raise DataError(f"{path}: damaged ({error}); {COPY}") from error
    check_description(description, tensors, path)
    return description, tensors


def check_description(description: Description, tensors: Mapping[str, Tensor], path: Path) -> None:
    """DataError for a description with a file that no run has, another version, a negative step, a tied
    tensor that is stored itself or whose stored tensor the file lacks, or a damaged configuration."""
    for name in description.files:
        if name not in run_directory.TEXTS:
            raise DataError(f"{path}: holds a file that no run has, {name[:40]!r}; {COPY}")
    if description.version != run_directory.VERSION:
        raise DataError(
            f"{path}: a run of format {description.version[:40]!r}, this version reads "
            f"{run_directory.VERSION!r}; use the version that wrote it"
        )
    if description.step < 0:
        raise DataError(f"{path}: step: expected 0 or more, found {description.step}; {COPY}")
    for name, stored in description.tied.items():
        if stored not in tensors or name in tensors:
            raise DataError(f"{path}: tied: {name[:40]!r} is no name beside a stored tensor; {COPY}")
    try:
        checkpoint.parse_config(parse_yaml(description.files.get(run_directory.CONFIG, ""), path), path)
    except CheckpointError as error:
        raise DataError(str(error)) from error


def write_file(path: Path, content: str, source: Path) -> None:
    """Write a file of a run from the content in a description, decoding base64. `source`: the file of the
    description, for messages. DataError for damaged base64, and for text that UTF-8 cannot hold."""
    try:
        if content.startswith(BASE64):
            raw = base64.b64decode(content[len(BASE64) :], validate=True)
        else:
            raw = content.encode("utf-8")
    except ValueError as error:  # binascii.Error, UnicodeEncodeError
        raise DataError(f"{source}: {path.name}: damaged ({error}); {COPY}") from error
    with files.Writing(path) as out:
        out.write(raw)


def origin_content(description: Description, path: Path) -> dict[str, object]:
    """The content of origin.json: that of the exported run, with the license of the file, or a new one."""
    if imported := origin(description.files, path):
        return imported | {"license": description.license}
    return {
        "format": "nmt-origin 1",
        "kind": "safetensors",
        "name": description.name,
        "license": description.license,
        "made_with": description.made_with,
        "trained_on": description.trained_on,
        "sha256": {path.name: manifest.digest(path)},
    }
