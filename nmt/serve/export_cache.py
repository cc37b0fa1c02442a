"""Runs that the server exports to CTranslate2 by itself; the exports are kept in the user's cache folder.

    exports/KEY/          a folder of nmt-export; KEY is a hash of all that the export depends on
    exports/KEY.partN/    an export that process N is writing; it is renamed once it is complete
    exports/.lock         names the process that is exporting

Torch, which an export needs, is loaded by a process that ends with it.
"""

import hashlib
import importlib.util
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from nmt.errors import ConfigError, DataError
from nmt.io import files, locks, manifest
from nmt.lazy import LazyPart
from nmt.runs import directory as run_directory
from nmt.runs.exported import FORMAT
from nmt.runs.framed import NO_ENGINE
from nmt.serve.config import AUTO, CTRANSLATE2, TORCH, EngineConfig
from nmt.work.executors import ExecutorConfig, Processes

log = logging.getLogger(__name__)

FOLDER = "exports"  # in the cache folder
UNUSED_DAYS = 30  # exports that no server has loaded for so long are removed at the next export
EXPORT, PARSE_YAML = LazyPart("nmt.runs.ctranslate2_export:export"), LazyPart("nmt.config.yaml_text:parse")
MODEL, OUTPUT = "transformer", "softmax"  # model.type and model.output that CTranslate2 can express

# ---- choice of the engine ----------------------------------------------------------------------------------


def choose_engine(paths: Sequence[str], config: EngineConfig) -> tuple[str, str]:
    """Choose the engine that computes runs; returns TORCH or CTRANSLATE2, and the reason. ConfigError if
    `config` requires CTranslate2, and it cannot compute them.

    `paths`: run directories of nmt-train; several are an ensemble.
    """
    if config.engine == TORCH:
        return TORCH, "--engine torch"
    reason = obstacle(paths)
    if config.engine == AUTO and not reason and config.device != "cpu":
        reason = f"--device {config.device}"
    if reason and config.engine == CTRANSLATE2:
        raise ConfigError(f"{','.join(paths)}: --engine {CTRANSLATE2}: {reason}; use --engine {AUTO}")
    return (TORCH, reason) if reason else (CTRANSLATE2, f"--engine {config.engine}")


def obstacle(paths: Sequence[str]) -> str:
    """Why CTranslate2 cannot compute runs; empty if it can, or for a damaged run: the export reports it."""
    if len(paths) > 1:
        return "CTranslate2 has no ensembles"
    if importlib.util.find_spec("ctranslate2") is None:
        return NO_ENGINE
    settings = model_settings(Path(paths[0]))
    kind, output = settings.get("type", MODEL), settings.get("output", OUTPUT)
    if kind != MODEL:
        return f"model.type: {kind}: CTranslate2 has no such model"
    if output != OUTPUT:
        return f"model.output: {output}: CTranslate2 has no such output layer"
    return ""


def model_settings(run: Path) -> dict[str, object]:
    """The section `model` of a run's configuration; empty if it cannot be read."""
    parse = cast(Callable[[str], dict[str, dict[str, object]]], PARSE_YAML.load())
    with suppress(OSError, ValueError, TypeError, AttributeError, DataError):
        content = parse(files.read_small(run / run_directory.CONFIG).decode("utf-8"))
        return dict(content.get("model") or {})
    return {}


# ---- exports -----------------------------------------------------------------------------------------------


def find_or_export(run: Path, config: EngineConfig) -> Path:
    """Return the folder with the export of a run's best checkpoint. It is written now unless the cache has
    it.

    UserError for a run that cannot be exported, or a folder that cannot be written."""
    run_directory.check_version(run)
    return run_directory.read_consistent(run, lambda: export_once(run, config))


def export_once(run: Path, config: EngineConfig) -> Path:
    """Look up the export in the cache, or write it. The run must not change meanwhile."""
    step = run_directory.find_step(run, "best")
    folder = files.cache_folder(config.cache) / FOLDER
    target = folder / export_key(run, step, config.quantization)
    with locks.locked(folder, "nmt-serve", wait=True):
        if is_complete(target):
            with suppress(OSError):
                os.utime(target)
            log.info("%s: computed by CTranslate2 in %s, from %s", run, config.quantization, target)
            return target
        log.info("%s: exporting it to CTranslate2 in %s: %s", run, config.quantization, target)
        remove_unused(folder)
        part = folder / f"{target.name}.part{os.getpid()}"
        try:
            with files.naming_unwritten(folder):
                with Processes[Task, None](write_export, make_export, ExecutorConfig(workers=1)) as process:
                    list(process.map([(run, part, step, config.quantization)]))
                shutil.rmtree(target, ignore_errors=True)
                part.rename(target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return target


Task = tuple[Path, Path, int, str]  # run, folder to write, step, quantization


def make_export() -> Callable[[Task], None]:
    """Return the function that the exporting process calls for each task."""
    return write_export


def write_export(task: Task) -> None:
    """Export a run. Imports torch."""
    run, output, step, quantization = task
    export = cast(Callable[[Path, Path, str, str], str], EXPORT.load())
    export(run, output, str(step), quantization)


def export_key(run: Path, step: int, quantization: str) -> str:
    """Compute the key of an export: a hash of all that it depends on, which are the name of the run, the
    checksums of its files at update `step`, the quantization and the format. DataError without a manifest."""
    entries = manifest.load(run)
    sums = {
        path.name: [entry.sha256 for entry in entries.get(path.name, [])]
        for path in run_directory.result_files(run, step)
    }
    content = [FORMAT, run.name, step, quantization, sums]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]


def is_complete(folder: Path) -> bool:
    """Whether a folder has an export, all files as they were written. Logs a warning for a damaged one."""
    if not folder.is_dir():
        return False
    try:
        manifest.verify(folder, manifest.load(folder))
    except DataError as error:
        log.warning("%s; exporting the run again", error)
        return False
    return True


# ---- the folder --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CachedExport:
    path: Path
    size: int  # bytes
    used: float  # time of the last use, in seconds since the epoch


def entries(cache: Path) -> list[CachedExport]:
    """The exports of a cache folder, unfinished ones included, most recently used first."""
    rows = []
    for path in (cache / FOLDER).glob("*/"):
        with suppress(FileNotFoundError):
            size = sum(part.stat().st_size for part in path.iterdir())
            rows.append(CachedExport(path, size, path.stat().st_mtime))
    return sorted(rows, key=lambda row: (-row.used, row.path))


def remove_unused(folder: Path) -> None:
    """Remove what killed processes have left, and exports unused for UNUSED_DAYS. The caller holds the lock,
    so no export is being written."""
    oldest = time.time() - UNUSED_DAYS * 24 * 3600
    for entry in entries(folder.parent):
        if ".part" in entry.path.name or entry.used < oldest:
            shutil.rmtree(entry.path, ignore_errors=True)


def clear(cache: Path) -> list[CachedExport]:
    """Remove all exports from the folder `cache` and return them. UserError if a server is exporting."""
    if not (cache / FOLDER).exists():
        return []
    with locks.locked(cache / FOLDER, "smt-cache clear"):
        removed = entries(cache)
        for entry in removed:
            shutil.rmtree(entry.path, ignore_errors=True)
    return removed
