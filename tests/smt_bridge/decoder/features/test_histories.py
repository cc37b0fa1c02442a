"""The n-grams of candidates, one option after the other, are those of their derivation."""

from pathlib import Path

import numpy as np
import pytest

from nmt.text.vocab import BOS, EOS
from smt_bridge.decoder.compiled import HAVE_NUMBA
from smt_bridge.decoder.features.histories import END, Histories
from smt_bridge.decoder.features.protocol import Candidates
from smt_bridge.decoder.xml_input import Marked
from tests.smt_bridge.decoder.models import decoder, write_model

pytestmark = pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")


@pytest.mark.parametrize("order", [2, 4])
def test_extended_is_of_derivations(order: int, tmp_path: Path) -> None:
    """`zz` is dropped: an option without words leaves the memory alone."""
    part = decoder(write_model(tmp_path, 2), drop_unknown=True).options.gather(
        Marked(["a", "b", "zz", "a", "c"])
    )
    ids = part.text + 5
    rng = np.random.default_rng(1)
    paths = [rng.integers(0, part.size, length).astype(np.int32) for length in (1, 3, 5, 3)]
    assert any(part.length[option] == 0 for option in range(part.size))
    whole = Histories(part, ids, order).of_derivations(paths)
    histories = Histories(part, ids, order)
    for number, path in enumerate(paths):
        state, rows = 0, []
        for step, option in enumerate(path.tolist()):
            last = step == len(path) - 1
            found, (state,), _ = histories.extended(Candidates(np.array([option]), np.array([state]), last))
            assert (found.owner == 0).all()
            rows += list(
                zip(found.contexts.tolist(), found.words.tolist(), found.place.tolist(), strict=True)
            )
        own = whole.owner == number
        parts = (whole.contexts[own].tolist(), whole.words[own].tolist(), whole.place[own].tolist())
        assert rows == list(zip(*parts, strict=True))
        text = [BOS] * (order - 1) + [int(ids[place]) for _, _, place in rows[:-1]]
        assert [context for context, _, _ in rows] == [text[at : at + order - 1] for at in range(len(rows))]
        assert rows[-1][1:] == (EOS, END)


def test_keys_are_those_of_the_last_words(tmp_path: Path) -> None:
    part = decoder(write_model(tmp_path, 2)).options.gather(Marked(["a", "b", "a"]))
    histories = Histories(part, part.text, 3)
    option = np.arange(part.size)
    found, states, keys = histories.extended(Candidates(option, np.zeros(part.size, np.int64), False))
    last = [tuple(row) for row in histories.rows[states].tolist()]
    assert len(set(last)) == len(set(keys.tolist())) == len(set(zip(last, keys.tolist(), strict=True)))
    assert found.sums(np.ones(len(found.words)), part.size)[:, 0].tolist() == part.length.tolist()
