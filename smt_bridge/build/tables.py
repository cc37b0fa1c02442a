"""Align the corpus, train tables and count model, and filter the tables to the development set.

The steps do the work of smt-align, smt-train and smt-filter-table.
"""

from nmt.errors import DataError
from nmt.formats.pharaoh import Links
from nmt.io import files
from smt_bridge import train_system
from smt_bridge.build.config import Build, matching_files, record_files
from smt_bridge.build.corpus import FOLDER, BuildTexts
from smt_bridge.config import TrainConfig
from smt_bridge.extraction import alignment
from smt_bridge.moses import ini as moses_ini
from smt_bridge.tables.filter import Filtering, Occurring, filter_tables, read_texts

ALIGNMENT, DEV_ALIGNMENT = "alignment.gz", "dev.alignment.gz"
MODEL, DEV = "model", "dev"  # folders: the full model; tables and translations of the development set
BASE = "moses.ini"


def align(build: Build) -> None:
    """Align training text and development set together.

    A joint model then validates on links like those that it trains on; the development set alone is too small
    to align.
    """
    texts, config = BuildTexts(build.work), train_config(build)
    sources, targets = alignment.read_texts(texts.path("train.source"), texts.path("train.target"))
    dev_sources, dev_targets = alignment.read_texts(texts.path("dev.source"), texts.path("dev.target"))
    directions = alignment.align_both_directions(sources + dev_sources, targets + dev_targets, config.method)
    links: list[Links] = alignment.symmetrize(*directions, config.symmetrization)
    files.write_text(build.work / DEV_ALIGNMENT, map(alignment.format_links, links[len(sources) :]))
    files.write_text(build.work / ALIGNMENT, map(alignment.format_links, links[: len(sources)]))


def train_config(build: Build) -> TrainConfig:
    texts = BuildTexts(build.work)
    return TrainConfig(
        source=str(texts.path("train.source")),
        target=str(texts.path("train.target")),
        alignment=str(build.work / ALIGNMENT),
        lm_text=str(build.work / texts.lm()),
    )


def train(build: Build) -> None:
    """Train tables and count model.

    Checksums are recorded after each step of the training, since a resumed training reuses finished files.
    """

    def note() -> None:
        record_files(build.work, matching_files(build.work, (f"{MODEL}/*",)))

    train_system.train(build.work / MODEL, train_config(build), on_step=note)


def filter_to_dev(build: Build) -> None:
    """Keep the rows that the development set can use, and write an ini for them."""
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
