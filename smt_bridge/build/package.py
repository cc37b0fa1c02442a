"""Copy everything that decoding needs out of the build into the hybrid folder, with paths relative to it.

The folder gets the full tables, not those filtered to the development set.
"""

import shutil
from pathlib import Path

from nmt.io import files, locks
from smt_bridge import train_system
from smt_bridge.build import evaluation, report, tuning
from smt_bridge.build.config import Build
from smt_bridge.build.corpus import BuildTexts, sides
from smt_bridge.build.networks import ORDER
from smt_bridge.build.tables import MODEL
from smt_bridge.build.training import NETWORKS
from smt_bridge.hybrid import folder as hybrid
from smt_bridge.hybrid.folder import SIDES, HybridConfig, truecase_file
from smt_bridge.moses import ini as moses_ini

INI, REPORT, GLOSSARY = "moses.ini", "report.html", "glossary.tsv"
TABLES = (train_system.TABLE, train_system.REORDERING, train_system.LM)
FILES = (  # all that a build writes into the system's folder
    *TABLES, *map(truecase_file, SIDES), INI, REPORT, GLOSSARY, hybrid.FILE,
    *(f"{NETWORKS}/{name}" for name in ORDER),
)  # fmt: skip


def package(build: Build) -> None:
    """Copy all files, then write system.json, which marks the folder as complete."""
    chosen = evaluation.read_evaluation(build).chosen
    folder, source, target = build.folder, *sides(build.config)
    for name in TABLES:
        copy(build.work / MODEL / name, folder / name)
    for name, side_config in zip(SIDES, (source, target), strict=True):
        if side_config.case == "truecase":
            copy(BuildTexts(build.work).path(truecase_file(name)), folder / truecase_file(name))
    if build.config.glossary:
        copy(Path(build.config.glossary), folder / GLOSSARY)
    names = [side_config.name for side_config in build.plan.networks] if chosen == tuning.HYBRID else []
    for network in names:
        copy_folder(build.work / NETWORKS / network, folder / NETWORKS / network)
    write_ini(build, chosen)
    report.write(folder / REPORT, report.gather_facts(build))
    glossary = GLOSSARY if build.config.glossary else ""
    hybrid.write_system(
        folder, HybridConfig(source, target, INI, glossary, search=tuning.search_settings(build.plan.tuning))
    )


def write_ini(build: Build, chosen: str) -> None:
    """Write the tuned ini with paths relative to the folder."""
    ini = moses_ini.read(str(tuning.ini_path(build, chosen)))
    for feature in ini.features:
        if "path" in feature.options:
            path = feature.options["path"].removeprefix("../").removeprefix(f"{MODEL}/")
            ini = moses_ini.set_path(ini, feature.name, path)
    moses_ini.write(build.folder / INI, ini)


def copy(source: Path, target: Path) -> None:
    """Copy a file atomically and byte by byte: a `.gz` is not compressed again."""
    part = target.with_name(f"{target.name}.part")
    with files.Writing(part) as out, open(source, "rb") as stream:
        while block := stream.read(1 << 20):
            out.write(block)
    try:
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise files.cannot_write(target, error) from error


def copy_folder(source: Path, target: Path) -> None:
    """Copy a run directory atomically. UserError if the disk is full."""
    part = target.with_name(f"{target.name}.part")
    for path in (part, target):
        shutil.rmtree(path, ignore_errors=True)
    try:
        for path in sorted(source.rglob("*")):
            if path.is_file() and path.name != locks.FILE:
                copy(path, part / path.relative_to(source))
        part.replace(target)
    except OSError as error:
        raise files.cannot_write(target, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
