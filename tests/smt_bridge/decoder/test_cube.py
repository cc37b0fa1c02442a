"""Cube pruning: compiled = plain; without limits = stack search; settings of an ini."""

import random
from pathlib import Path

import pytest

from nmt.compute.compiled import HAVE_NUMBA
from nmt.errors import ConfigError
from smt_bridge.decoder import system
from smt_bridge.decoder.arrays import StateSizes, allocate
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from tests.smt_bridge.decoder.models import (
    UNLIMITED,
    Stateful,
    cuts,
    decoder,
    edit,
    same_lists,
    sentence,
    write_model,
)

needs_numba = pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")


@needs_numba
@pytest.mark.parametrize("seed", range(8))
def test_compiled_is_plain(seed: int, tmp_path: Path) -> None:
    """Few pops, so that their order decides; with reordering or without, one or two language models, limits
    of distortion, its early cost, a least number for each coverage, and lists."""
    rng = random.Random(seed)
    folder = write_model(tmp_path, seed, reordering=seed != 1, lms=1 + seed % 2)
    settings: dict[str, object] = {
        "search": "cube",
        "stack": rng.choice([5, 20]),
        "pop_limit": rng.randint(2, 30),
        "diversity": seed % 3,
        "distortion_limit": rng.choice([-1, 1, 3]),
        "early_distortion_cost": seed % 4 == 0,
        "beam_threshold": rng.choice([1e-5, 0.01]),
        "nbest": 6 * (seed % 2),
    }
    one, other = decoder(folder, **settings), decoder(folder, True, **settings)
    for number in range(30):
        line = sentence(number, 1 + number % 8)
        ours, theirs = one.translate_line(line), other.translate_line(line)
        if cuts(one):  # ways into hypotheses below the cut are not listed
            del ours.derivations[1:], theirs.derivations[1:]
        same_lists(ours, theirs, line)


@needs_numba
def test_walls_and_zones(tmp_path: Path) -> None:
    folder = write_model(tmp_path, 2)
    settings: dict[str, object] = {"search": "cube", "pop_limit": 20, "xml_input": "exclusive"}
    one, other = decoder(folder, **settings), decoder(folder, True, **settings)
    for line in ("a b <wall/> c d a", "<zone>a b c</zone> d a", "a <zone>b <wall/> c</zone> d <wall/> a b"):
        same_lists(one.translate_line(line), other.translate_line(line), line)


@pytest.mark.parametrize("plain", [False, True])
def test_all_pops_are_stack_search(plain: bool, tmp_path: Path) -> None:
    """With enough pops for every cell the grids are searched exhaustively; fewer find no better ones."""
    folder = write_model(tmp_path, 3, options=2)
    stack = decoder(folder, plain, nbest=20, **UNLIMITED)
    whole, few = (
        decoder(folder, plain, nbest=20, search="cube", pop_limit=pops, **UNLIMITED) for pops in (100_000, 3)
    )
    worse = 0
    for number in range(6):
        line = sentence(number, 1 + number % 4)
        best = stack.translate_line(line)
        same_lists(whole.translate_line(line), best, line)
        total = few.translate_line(line).derivations[0].total
        assert total <= best.derivations[0].total + 1e-9
        worse += total < best.derivations[0].total - 1e-9
    assert worse


@needs_numba
def test_memory_and_slices(tmp_path: Path) -> None:
    """More memory where a search fills it, calls that do one pop each, and arrays that are used again: the
    same translations."""
    folder = write_model(tmp_path, 3)
    one, other = (decoder(folder, search="cube", pop_limit=60, nbest=4) for _ in range(2))
    assert other.compiled
    other.compiled.piece = 10
    other.compiled.memory.state = allocate(StateSizes(20, 60, 12, 30, 0, 100, 30, 40, 1, 0))
    for number in range(4):
        line = sentence(number, 4 + number)
        ours, theirs = (made.translate_line(line) for made in (one, other))
        assert [(d.text, d.total) for d in ours.derivations] == [
            (d.text, d.total) for d in theirs.derivations
        ]
    assert other.compiled.memory.factor > 1


def test_sections_of_an_ini(tmp_path: Path) -> None:
    """Moses' sections; options come first."""
    sections = {"search_algorithm": "1", "cube_pruning_pop_limit": "7", "cube_pruning_diversity": "2"}
    folder = edit(write_model(tmp_path, 1), **sections)
    made = decoder(folder)
    assert (made.settings.search, made.settings.pop_limit, made.settings.diversity) == ("cube", 7, 2)
    parameters = made.task(made.marked("a b"), made.listing).parameters
    assert (parameters.pops, parameters.diversity) == (7, 2)
    assert decoder(folder, search="stack").task(made.marked("a b"), made.listing).parameters.pops == 0
    assert decoder(folder, pop_limit=9).settings.pop_limit == 9


def test_networks_are_refused(tmp_path: Path) -> None:
    loaded = system.load(str(write_model(tmp_path, 1)), use_cache=False)
    loaded.weights["NMT0"] = [1.0]
    with pytest.raises(ConfigError, match="NMT0; give --search stack"):
        Decoder(loaded, DecoderConfig(search="cube"), features=[Stateful("NMT0")])
