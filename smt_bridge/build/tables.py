"""Alignment, tables, count model, and the tables of the development set: what smt-align, smt-train and
smt-filter-table do."""

from nmt.errors import DataError
from nmt.formats.pharaoh import Links
from nmt.io import files
from smt_bridge import train_system
from smt_bridge.build.config import Build, matching_files, record_files
from smt_bridge.build.corpus import FOLDER, Texts
from smt_bridge.config import TrainConfig
from smt_bridge.extraction import alignment
from smt_bridge.moses import ini as moses_ini
from smt_bridge.tables.filter import Filtering, Occurring, filter_tables, read_texts

ALIGNMENT, DEV_ALIGNMENT = "alignment.gz", "dev.alignment.gz"
MODEL, DEV = (
    "model",
    "dev",
)  # folders: the whole model; the tables of the development set, and its translations
BASE = "moses.ini"


def align(build: Build) -> None:
    """Align training text and development set together: so the latter has the links that a joint model would
    meet, of words that it alone is too small for."""
    texts, config = Texts(build.work), train_config(build)
    sources, targets = alignment.read_texts(texts.path("train.source"), texts.path("train.target"))
    dev_sources, dev_targets = alignment.read_texts(texts.path("dev.source"), texts.path("dev.target"))
    directions = alignment.both(sources + dev_sources, targets + dev_targets, config.method)
    links: list[Links] = alignment.symmetrized(*directions, config.symmetrization)
    files.write_text(build.work / DEV_ALIGNMENT, map(alignment.line_of, links[len(sources) :]))
    files.write_text(build.work / ALIGNMENT, map(alignment.line_of, links[: len(sources)]))


def train_config(build: Build) -> TrainConfig:
    """What smt-train is given."""
    texts = Texts(build.work)
    return TrainConfig(
        source=str(texts.path("train.source")),
        target=str(texts.path("train.target")),
        alignment=str(build.work / ALIGNMENT),
        lm_text=str(build.work / texts.lm()),
    )


def train(build: Build) -> None:
    """Tables and count model; the checksums of what there is are noted after each of its steps, as a resumed
    training takes it as it is."""

    def note() -> None:
        record_files(build.work, matching_files(build.work, (f"{MODEL}/*",)))

    train_system.train(build.work / MODEL, train_config(build), on_step=note)


def filter_to_dev(build: Build) -> None:
    """The tables with the rows that the development set can use, and an ini for them."""
    model, dev = build.work / MODEL, build.work / DEV
    wanted = Occurring(read_texts([str(build.work / FOLDER / "dev.source")]))
    names = train_system.TABLE, train_system.REORDERING
    table, filtered, reordering, reordering_filtered = (
        folder / name for name in names for folder in (model, dev)
    )
    if not filter_tables(Filtering(table, filtered, reordering, reordering_filtered), wanted):
        raise DataError(
            f"{build.config.dev_source}: no phrase of it is in {build.config.source}, so that nothing can be "
            "tuned; give a development set of the same language and kind"
        )
    ini = moses_ini.read(str(model / train_system.INI))
    ini = moses_ini.set_path(ini, "LM0", f"../{MODEL}/{train_system.LM}")
    moses_ini.write(dev / BASE, ini)
