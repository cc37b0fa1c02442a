"""Search without limits = all derivations; negative weights."""

from pathlib import Path

import numpy as np
import pytest

from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.feature_values import columns, features
from smt_bridge.decoder.sentence import Sentence
from smt_bridge.decoder.xml_input import Marked
from tests.smt_bridge.decoder.models import UNLIMITED, all_weights, decoder, same_lists, sentence, write_model


def exhaustive(made: Decoder, line: str) -> dict[tuple[int, ...], float]:
    """The total of every derivation, from its features alone."""
    task = made.task(Marked(line.split(" ")), made.listing)
    paths = every_path(task.sentence, made.settings.distortion_limit)
    values = features(made.options, columns(made.options, task, [np.array(path, np.int32) for path in paths]))
    unknown = [sum(task.sentence.rows[option] < 0 for option in path) for path in paths]
    totals = values @ all_weights(made) - 100 * np.array(unknown)
    return dict(zip(paths, totals.tolist(), strict=True))


def every_path(part: Sentence, limit: int) -> list[tuple[int, ...]]:
    """The options of every derivation: any order of phrases that the distortion limit allows."""
    n, found = len(part.words), list[tuple[int, ...]]()

    def extend(path: tuple[int, ...], covered: frozenset[int], end: int) -> None:
        if len(covered) == n:
            found.append(path)
            return
        gap = min(set(range(n)) - covered)
        for option in range(len(part.rows)):
            begin, last = int(part.begin[option]), int(part.last[option])
            span = set(range(begin, last + 1))
            if span & covered or (
                limit >= 0 and (abs(begin - end - 1) > limit or (begin != gap and last + 1 - gap > limit))
            ):
                continue
            extend((*path, option), covered | span, last)

    extend((), frozenset(), -1)
    return found


@pytest.mark.ci
@pytest.mark.parametrize("seed", range(6))
def test_unlimited_stacks_are_exhaustive(seed: int, tmp_path: Path) -> None:
    """The best total of all derivations, and the hundred best ones, in order."""
    folder = write_model(
        tmp_path, seed, options=2, reordering=seed % 2 == 0, columns=4 + seed % 3, lms=1 + seed % 2
    )
    made = decoder(folder, nbest=100, distortion_limit=-1 if seed == 5 else 2, **UNLIMITED)
    for words in (1, 3, 4):
        line = sentence(seed, words)
        totals = sorted(exhaustive(made, line).values(), reverse=True)
        found = [derivation.total for derivation in made.translate_line(line).derivations]
        # Recombination keeps every derivation: what the list holds is the head of the whole.
        np.testing.assert_allclose(found, totals[: len(found)], atol=1e-9)
        assert len(found) == min(100, len(totals))


def test_negative_weights(tmp_path: Path) -> None:
    """No bound may drop what a language model of negative weight likes."""
    folder = write_model(tmp_path, 1)
    one, other = (decoder(folder, plain, stack=3) for plain in (False, True))
    one, other = (Decoder(made.system, made.config, {**made.weights, "LM0": [-0.5]}) for made in (one, other))
    other.compiled = None
    for number in range(60):
        line = sentence(number, 2 + number % 6)
        same_lists(one.translate_line(line), other.translate_line(line), line)
