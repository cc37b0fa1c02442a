"""Lines in, translations out: workers, long lines, unknown words, what a caller gives up."""

import itertools
import threading
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import DataError
from smt_bridge.decoder.compiled import Stopped
from smt_bridge.decoder.translation import PhraseTranslation
from tests.smt_bridge.decoder.models import decoder, sentence, write_model


def test_any_number_of_workers(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 2), nbest=5)
    lines = [sentence(number, 1 + number % 9) for number in range(60)] + [""]
    alone = [
        made.entry(n, t, d) for n, t in enumerate(made.translate_all(iter(lines))) for d in t.derivations
    ]
    together = [
        made.entry(n, t, d) for n, t in enumerate(made.translate_all(iter(lines), 3)) for d in t.derivations
    ]
    assert alone == together and len(alone) > 200


@pytest.mark.parametrize("plain", [False, True])
def test_nobody_waits_for_a_stopped_search(plain: bool, tmp_path: Path) -> None:
    """Threads of a translation that is given up end before their sentences do."""
    made, asked = decoder(write_model(tmp_path, 2), plain, stack=20), itertools.count()
    if made.compiled:
        made.compiled.piece = 1000
    stop = threading.Event()
    stop.is_set = lambda: next(asked) > 5  # type: ignore[method-assign]
    with pytest.raises(Stopped):
        made.translate_line(sentence(1, 80), stop)
    found = made.translate_all(iter([sentence(number, 80) for number in range(40)]), 2)
    next(found)
    found.close()
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]


def test_unknown_words_and_empty_lines(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 0))
    assert made.translate_line("").text == [] and made.translate_line("  ").text == []
    translation = made.translate_line("xy\u00a0z e")
    assert sorted(translation.text) == sorted(["xy\u00a0z", "e"])  # e has no option in any model
    assert translation.derivations[0].total < -200


def test_long_lines_are_translated_in_parts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = write_model(tmp_path, 4)
    made = decoder(folder, stack=5, max_line_words=6)
    parts = [f"{sentence(number, 5)} ." for number in range(8)]
    lines = [parts[0], " ".join(parts), "", parts[1]]
    alone = [made.translate_line(part) for part in parts]
    found = list[PhraseTranslation]()
    for workers in (1, 2):
        caplog.clear()
        with caplog.at_level("WARNING", logger="smt_bridge"):
            found = list(made.translate_all(iter(lines), workers, "in.en"))
        assert [" ".join(one.text) for one in found] == [
            " ".join(word for part in group for word in part.text)
            for group in (alone[:1], alone, [], alone[1:2])
        ]
        assert [record.getMessage()[:20] for record in caplog.records] == ["in.en:2: 48 words, m"]
    np.testing.assert_allclose(found[1].derivations[0].total, sum(one.derivations[0].total for one in alone))
    assert found[1].derivations[0].features.shape == alone[0].derivations[0].features.shape
    lister = decoder(folder, stack=5, nbest=3, max_line_words=6)
    with pytest.raises(
        DataError, match=r"^in\.en:2: 48 words, more than --max-line-words 6: too long for an n-best list"
    ):
        list(lister.translate_all(iter(lines), 1, "in.en"))
    tagged = decoder(folder, stack=5, max_line_words=6, xml_input="exclusive")
    with pytest.raises(DataError, match="too long for tags"):
        tagged.translate_line(f'<x translation="p">a</x> {lines[1]}')
    assert tagged.translate_line(lines[1]).text == found[1].text
