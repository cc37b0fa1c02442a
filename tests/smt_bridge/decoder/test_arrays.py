"""The memory of compiled search: as much as its sizes say."""

import numpy as np

from smt_bridge.decoder.arrays import StateSizes, allocate

GROUPS = {
    "hypotheses": "coverage begin end option parent score total context key memory following listed edge",
    "edges": "edge_parent edge_option edge_score edge_next",
    "coverages": "gap mask covered future first_move moves",
    "moves": "move_start move_end move_coverage",
    "candidates": "c_stack c_coverage c_parent c_option c_begin c_end c_score c_total c_context",
}


def test_each_array_has_room_for_its_group() -> None:
    sizes = StateSizes(
        hypotheses=11, edges=0, coverages=4, moves=17, candidates=3, words=6, models=2, features=5
    )
    state = allocate(sizes)
    left = set(state._fields) - {"counters"}
    for group, names in GROUPS.items():
        for name in names.split():
            assert len(getattr(state, name)) == getattr(sizes, group), name
            left.remove(name)
    for name in ("head", "size", "worst", "best"):
        assert len(getattr(state, name)) == sizes.words + 1
        left.remove(name)
    assert left == {"table", "coverage_table"}
    assert (
        state.context.shape == (11, 2) and state.c_context.shape == (3, 2) and state.memory.shape == (11, 5)
    )


def test_hash_tables_stay_half_empty() -> None:
    """Powers of two, so that a mask finds the place; a search for a missing key always ends."""
    for size in range(1, 70):
        state = allocate(StateSizes(size, 0, size, 0, 0, 1, 1, 0))
        for table in (state.table, state.coverage_table):
            assert len(table).bit_count() == 1 and 2 * size <= len(table) < 4 * size
            assert table.dtype == np.int32
