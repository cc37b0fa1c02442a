"""Options of a sentence as arrays equal those as lists; future costs equal the best of all ways to split a
span."""

import itertools
import math
import random
from pathlib import Path

import numpy as np

from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.sentence import (
    ExtraOption,
    GatheredOptions,
    future_costs,
    span_index,
    spans,
    target_words,
)
from smt_bridge.decoder.xml_input import MarkedLine
from tests.smt_bridge.decoder.models import UNLIMITED, build_trie, decoder, sentence, write_model


def test_future_cost_is_admissible(tmp_path: Path) -> None:
    """Without reordering and with weight 0 of the language model, the best derivation has exactly the future
    cost."""
    folder = write_model(tmp_path, 3, reordering=False)
    made = decoder(folder, nbest=50, **UNLIMITED)
    made.weights.update({"LM0": [0.0], "Distortion0": [0.0]})
    made = Decoder(made.system, made.config, made.weights)
    for number in range(20):
        line = sentence(number, 5)
        bound = made.task(MarkedLine(line.split(" ")), made.listing).options.future[0, -1]
        totals = [derivation.total for derivation in made.translate_line(line).derivations]
        assert max(totals) <= bound + 1e-9
        assert math.isclose(totals[0], bound, abs_tol=1e-9)


def test_options_know_their_words(tmp_path: Path) -> None:
    """Source words, target words and alignment points of options in the table and outside it."""
    made = decoder(write_model(tmp_path, 2))
    found = made.task(made.parse_line("a zz b"), made.listing).sentence
    spans = [(int(begin), int(last)) for begin, last in zip(found.first, found.last, strict=True)]
    assert [found.source(option) for option in range(found.size)] == [
        ["a", "zz", "b"][begin : last + 1] for begin, last in spans
    ]
    unknown = spans.index((1, 1))
    assert found.target(unknown) == ["zz"] and found.points(unknown) == [(0, 0)]
    row = next(option for option in range(found.size) if found.extra(option) is None)
    assert found.target(row) == made.system.table.text(int(found.rows[row])) and found.points(row) == [(0, 0)]
    lengths = {word: len(word) for word in itertools.chain(*found.targets())}
    assert found.ids(lengths.__getitem__).tolist() == [
        len(word) for target in found.targets() for word in target
    ]


def test_spans() -> None:
    for longest in (1, 2, 4, 9):
        assert spans(4, longest) == [
            (begin, last) for begin in range(4) for last in range(begin, 4) if last - begin < longest
        ]
    assert spans(0, 3) == []


def test_extras_stand_behind_the_rows() -> None:
    """Extra options are numbered -1, -2, ... in the order in which they are added; a span without options is
    left out."""
    one, two, three = (ExtraOption([word], []) for word in "xyz")
    found = GatheredOptions()
    found.add(0, 0, np.array([4, 2]), [one])
    found.add(0, 1, np.zeros(0, np.int64))
    found.add(1, 1, np.zeros(0, np.int64), [two, three])
    assert found.spans == [(0, 0), (1, 1)] and found.extras == [one, two, three]
    assert [rows.tolist() for rows in found.rows] == [[4, 2, -1], [-2, -3]]


def test_target_words_are_those_of_lists() -> None:
    rng = random.Random(1)
    for _ in range(30):
        targets = [[rng.randrange(9) for _ in range(rng.randint(1, 3))] for _ in range(4)]
        trie, nodes = build_trie(
            np.array([*itertools.chain(*targets)], np.int32), np.cumsum([0, *map(len, targets)]), 9
        )
        extras = [[rng.randrange(9) for _ in range(rng.randint(0, 3))] for _ in range(3)]
        target = [rng.randrange(4) for _ in range(6)]  # of each row
        rows = [rng.randint(-3, 5) for _ in range(10)]
        start, length, text = target_words(
            np.array(rows), np.array([len(targets[target[max(row, 0)]]) for row in rows]),
            nodes[[target[max(row, 0)] for row in rows]].astype(np.int32), trie.parent, trie.word,
            np.cumsum([0, *map(len, extras)]), np.array([*itertools.chain(*extras)], np.int32),
        )  # fmt: skip
        expected = [targets[target[row]] if row >= 0 else extras[-1 - row] for row in rows]
        found = [text[a : a + n].tolist() for a, n in zip(start, length, strict=True)]
        assert found == expected and len(text) == sum(map(len, expected))


def random_options(rng: random.Random, n: int, longest: int) -> list[tuple[int, int]]:
    """The sorted spans of random options; every word has an option of its own."""
    several = [(begin, last) for begin in range(n) for last in range(begin, min(n, begin + longest))]
    given = [(word, word) for word in range(n)] + [rng.choice(several) for _ in range(rng.randint(0, 9))]
    return sorted(given)


def test_places_and_future_costs() -> None:
    """The options of each span, and the best score of any way to split a span into spans with options."""
    rng = random.Random(2)
    for _ in range(40):
        n, longest = rng.randint(1, 7), rng.randint(1, 4)
        of = random_options(rng, n, longest)
        begin, last = (np.array(side, np.int32) for side in zip(*of, strict=True))
        estimate = np.array([rng.gauss(0, 3) for _ in of])
        first, number = span_index(begin, last, n, longest)
        for a in range(n):
            for size in range(longest):
                span = a * longest + size
                here = range(first[span], first[span] + number[span])
                assert [*here] == [place for place, other in enumerate(of) if other == (a, a + size)]
        best: dict[tuple[int, int], float] = {}
        for place, span_of in enumerate(of):
            best[span_of] = max(best.get(span_of, -math.inf), estimate[place])

        def cost(a: int, b: int, best: dict[tuple[int, int], float]) -> float:
            cut = [cost(a, middle, best) + cost(middle + 1, b, best) for middle in range(a, b)]
            return max([best.get((a, b), -math.inf), *cut])

        found = future_costs(n, longest, first, number, estimate)
        for a, b in itertools.combinations_with_replacement(range(n), 2):
            assert math.isclose(found[a, b], cost(a, b, best), abs_tol=1e-9)
