"""Repeated lines by their digests, as sets of the lines themselves say."""

import random

import numpy as np

from nmt.text.inspection.repeats import Digests64, Repeated, Shared


def of(*lines: str) -> Digests64:
    found = Digests64()
    for line in lines:
        found.add(line)
    return found


def test_the_first_repeated_line() -> None:
    assert of("a", "b", "c", "b", "a", "b").repeated() == Repeated(3, (4, 2))
    assert of("a", "b").repeated() == of().repeated() == Repeated(0, None)
    assert of("a", "b", "c", "b").unique().tolist() == [True, False, True, False]


def test_lines_of_another_text() -> None:
    assert of("x", "b", "a").within(of("a", "b", "b")) == Shared(2, (2, 2))
    assert of("x").within(of("a")) == of().within(of("a")) == of("x").within(of()) == Shared(0, None)


def test_as_sets_say() -> None:
    rng = random.Random(1)
    lines = [str(rng.randrange(40)) for _ in range(60)]
    others = [str(rng.randrange(80)) for _ in range(50)]
    assert of(*lines).repeated().lines == len(lines) - len(set(lines))
    assert of(*others).within(of(*lines)).lines == sum(line in lines for line in others)
    assert np.flatnonzero(of(*lines).unique()).tolist() == [
        place for place, line in enumerate(lines) if lines.count(line) == 1
    ]
