"""Every reader of smt_bridge with a valid file for it."""

from pathlib import Path

import numpy as np

from nmt.errors import DataError
from nmt.formats import pharaoh
from nmt.io import files
from smt_bridge import jobs
from smt_bridge.decoder import system, xml_input
from smt_bridge.decoder.cache import Cache
from smt_bridge.decoder.table import PhraseTable
from smt_bridge.decoder.text_tables import read_table
from smt_bridge.moses import check as check_system
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses import ini as weights
from smt_bridge.tables import propose, score
from smt_bridge.tuning import loop, pool, tuner
from smt_bridge.tuning.mert import Mert
from smt_bridge.tuning.registry import TuneConfig
from tests.fuzz.cases import TABLE, Reader, drained, text
from tests.smt_bridge.decoder.models import write_model

WEIGHTS = ["# weights", "LM0= 0.5", "TM0= 0.2 -0.1", "UnknownWordPenalty0= 1"]
INI = [
    "[input-factors]", "0", "[mapping]", "0 T 0", "[distortion-limit]", "6", "[feature]",
    "UnknownWordPenalty", "Distortion",
    "PhraseDictionaryMemory name=TM0 num-features=4 path=table input-factor=0 output-factor=0 table-limit=20",
    "KENLM name=LM0 factor=0 path=lm order=3",
    "[weight]", "Distortion0= 0.3", "TM0= 0.2 0.2 0.2 0.2", "LM0= 0.5",
]  # fmt: skip
FEATURES = ["FEATURES_TXT_BEGIN_0 0 2 2 LM0_0 TM0_0", "-1 0.5", "-2 0.25", "FEATURES_TXT_END_0"]
SCORES = ["SCORES_TXT_BEGIN_0 0 2 9 BLEU", "4 4 3 3 2 2 1 1 4", "3 4 1 3 1 2 1 1 4", "SCORES_TXT_END_0"]


def pools(folder: Path) -> None:
    files.write_text(folder / "features", FEATURES)
    files.write_text(folder / "scores", SCORES)


def read_pool(path: Path) -> None:
    pool.read_moses([str(path.parent / "features")], [str(path.parent / "scores")]).pool()


def read_ini(path: Path) -> None:
    ini = moses_ini.read(str(path))
    drained(check_system.problems(ini, [str(path.parent)]))


def scored(folder: Path) -> None:
    files.write_text(folder / "table", TABLE)
    score.write_columns(str(folder / "table"), [{"identity": "a", "column": 4}])


def model(folder: Path) -> None:
    write_model(folder / "model", 1)


def read_model(path: Path) -> None:
    system.load(str(path.parent), use_cache=False)


def cached(folder: Path) -> None:
    """The one entry of a cache, with a file under another name; the reader gives it back the name it had."""
    model(folder)
    keep(folder)
    next((folder / "cache").glob("*.*/starts.npy")).rename(folder / "cached")


def keep(folder: Path) -> None:
    table = str(folder / "model" / "table")
    Cache(folder / "cache").keep([table], lambda: read_table(table, 4, None), PhraseTable)


def read_cached(path: Path) -> None:
    entry = next((path.parent / "cache").glob("*.*/contents.json")).parent
    (entry / "starts.npy").write_bytes(path.read_bytes())
    keep(path.parent)


def read_markup(path: Path) -> None:
    for number, line in enumerate(files.read_lines(path), 1):
        try:
            xml_input.parse_markup(line, xml_input.Markup("exclusive"))
        except ValueError as error:
            raise DataError(f"{path}:{number}: {error}") from error  # as the decoder does


def begun_job(folder: Path) -> None:
    begun = jobs.open_job(str(folder / "out"), {"table": "t", "features": ["a"]}, 2, resume=False)
    begun.add(np.ones((3, 2)))
    begun.add(np.zeros((2, 2)))


def read_job(path: Path) -> None:
    resumed = jobs.open_job(
        str(path.parent.parent / "out"), {"table": "t", "features": ["a"]}, 2, resume=True
    )
    drained(resumed.finished())


def tuned(folder: Path) -> None:
    (folder / "work").mkdir()
    loop.open_folder(folder / "work", {"model": "m"}, TuneConfig(), Mert())
    made = loop.Iteration(np.ones(2), 0.5, np.array([0, 0, 1]), np.ones((3, 2)), np.ones((3, 9)))
    loop.Tuning(folder / "work", ["LM0_0", "TM0_0"], 2, TuneConfig(), Mert()).save(made)


def read_tuned(path: Path) -> None:
    loop.open_folder(path.parent, {"model": "m"}, TuneConfig(), Mert())
    begun = loop.Tuning(path.parent, ["LM0_0", "TM0_0"], 2, TuneConfig(), Mert())
    begun.load()
    begun.pool()


READERS: dict[str, Reader] = {
    "word translation table": Reader(
        text("chat cat 0.5", "le the 0.25", "NULL the 1"),
        "file",
        lambda path: propose.read_lexicon(str(path)),
    ),
    "alignments": Reader(text("0-0 1-2", "", "0-0"), "file", lambda path: drained(pharaoh.read(path))),
    "weights": Reader(text(*WEIGHTS), "file", weights.read_weights),
    "starting weights": Reader(
        text("0.5 0.25 0.25"), "file", lambda path: tuner.read_start(str(path), ["LM0_0", "TM0_0", "TM0_1"])
    ),
    "moses.ini": Reader(text(*INI), "file", read_ini),
    "scores.json": Reader(
        scored,
        "table.scores.json",
        lambda path: score.OldTable(str(path).removesuffix(".scores.json"), ["a"]),
    ),
    "table of proposals": Reader(text(*TABLE), "file", lambda path: propose.read_table(str(path), None)),
    "features of mert": Reader(pools, "features", read_pool),
    "scores of mert": Reader(pools, "scores", read_pool),
    "decoder: moses.ini": Reader(model, "model/moses.ini", read_model),
    "decoder: table": Reader(model, "model/table", read_model),
    "decoder: reordering": Reader(model, "model/reordering", read_model),
    "decoder: lm": Reader(model, "model/lm0", read_model),
    "decoder: cache": Reader(cached, "cached", read_cached),
    "markup": Reader(
        text(
            'a <np translation="big house||mansion" prob="0.8||0.2">grosses haus</np> b',
            "<zone> a b </zone> c",
            'a <wall/> <x translation="y" span="0-0"/>',
        ),
        "file",
        read_markup,
    ),
    "job.json": Reader(begun_job, "out.job/job.json", read_job),
    "scores of a job": Reader(begun_job, "out.job/scores", read_job),
    "tune.json": Reader(tuned, "work/tune.json", read_tuned),
    "NN.npz": Reader(tuned, "work/00.npz", read_tuned),
}
