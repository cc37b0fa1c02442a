"""The second search, without networks: what it lists competes by the full score, and nothing else changes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from smt_bridge.decoder import system
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.features.registry import SEARCH_FEATURES
from smt_bridge.decoder.translation import Derivation, PhraseTranslation, alignment
from tests.smt_bridge.decoder.features.test_protocol import Few
from tests.smt_bridge.decoder.models import add_feature, all_weights, decoder, sentence, write_model

NARROW: dict[str, Any] = {"stack": 3, "neural_beam": 2}  # so that the search with the network loses much
SIZE = 12
WEIGHT = 0.6
LINES = [sentence(number, 3 + number % 6) for number in range(40)]


def marked(line: str) -> str:
    """The line with a translation to be taken, words that stay together, and one that they may not cross."""
    first, second, third, *others = line.split()
    return f'{first} <zone> {second} <np translation="q q||s">{third}</np> </zone> {" <wall/> ".join(others)}'


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    SEARCH_FEATURES["Few"] = Few
    yield
    del SEARCH_FEATURES["Few"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return add_feature(write_model(tmp_path, 3), "Few name=Few0", f"Few0= {WEIGHT}")


def without_network(folder: Path, nbest: int, distinct: bool = True, **config: Any) -> Decoder:
    """A decoder that does not search with the network: the first language model stands in for it."""
    loaded = system.load(str(folder), use_cache=False)
    lm = [loaded.weights["LM0"][0] + Few.stand_in * WEIGHT]
    weights = loaded.tuneable_weights() | {"LM0": lm, "Few0": [0.0]}
    settings = DecoderConfig(nbest=nbest, distinct=distinct, **(NARROW | config))
    return Decoder(loaded, settings, weights)


def full_scores(made: Decoder, translated: PhraseTranslation) -> list[float]:
    """The total of each derivation by the weights of another decoder of the system."""
    searched = translated.sentence
    assert searched
    totals = []
    for item in translated.derivations:
        extras = [searched.extra(option) for option in item.options]
        unknown = sum(extra is not None and extra.unknown for extra in extras)
        totals.append(float(item.features @ all_weights(made)) - 100.0 * unknown)
    return totals


def merged(first: list[Derivation], second: list[tuple[Derivation, float]], distinct: bool) -> list[float]:
    """Totals of the union of two lists, best first, naively."""
    best: dict[tuple[object, ...], float] = {}
    for item, total in [*((item, item.total) for item in first), *second]:
        key = tuple(item.text) if distinct else tuple(item.options.tolist())
        best[key] = max(total, best.get(key, total))
    return sorted(best.values(), reverse=True)


@pytest.mark.parametrize("markup", [False, True])
def test_the_better_of_both_searches_is_taken(folder: Path, markup: bool) -> None:
    """Its total is the highest of the first search's translation and of the list without the network; for
    many lines the second search gives it."""
    policy: dict[str, Any] = {"xml_input": "exclusive"} if markup else {}
    both = decoder(folder, second_search=SIZE, **NARROW, **policy)
    first = decoder(folder, **NARROW, **policy)
    second = without_network(folder, SIZE, **policy)
    won = 0
    for line in map(marked, LINES) if markup else LINES:
        listed = second.translate_line(line)
        best, alone = max(full_scores(first, listed)), first.translate_line(line).derivations[0].total
        (chosen,) = both.translate_line(line).derivations
        assert chosen.total == pytest.approx(max(best, alone), abs=1e-6), line
        won += best > alone + 1e-6
    assert won >= (2 if markup else 5)


@pytest.mark.parametrize("distinct", [False, True])
def test_lists_are_the_union(folder: Path, distinct: bool) -> None:
    """Each text, or derivation, once; ordered by the full score; as long as asked for."""
    config = {**NARROW, "nbest": 8, "distinct": distinct}
    first, both = decoder(folder, **config), decoder(folder, second_search=SIZE, **config)
    second = without_network(folder, SIZE)
    for line in LINES:
        listed = second.translate_line(line)
        scored = list(zip(listed.derivations, full_scores(first, listed), strict=True))
        expected = merged(first.translate_line(line).derivations, scored, distinct)[:8]
        ours = both.translate_line(line).derivations
        assert [item.total for item in ours] == pytest.approx(expected, abs=1e-6), line
        keys = [tuple(item.text) if distinct else tuple(item.options.tolist()) for item in ours]
        assert len({*keys}) == len(keys)


def test_without_a_network_or_a_second_search_nothing_changes(folder: Path, tmp_path: Path) -> None:
    plain = write_model(tmp_path / "plain", 3)
    for model, size in ((plain, SIZE), (folder, 0)):
        usual, other = (
            decoder(model, nbest=5, **NARROW),
            decoder(model, nbest=5, second_search=size, **NARROW),
        )
        for line in LINES[:10]:
            entries = [
                [made.entry(0, result, item) for item in result.derivations]
                for made in (usual, other)
                for result in [made.translate_line(line)]
            ]
            assert entries[0] == entries[1]


@pytest.mark.parametrize("weight", [WEIGHT, -2.0])
def test_plain_search_lists_the_same(weight: float, tmp_path: Path) -> None:
    """Also where the network's weight is negative, so that the language model's becomes smaller."""
    folder = add_feature(write_model(tmp_path, 3), "Few name=Few0", f"Few0= {weight}")
    made, plain = (decoder(folder, way, second_search=SIZE, **NARROW) for way in (False, True))
    for line in LINES[:12]:
        lists = []
        for one in (made, plain):
            assert one.second
            task = made.task(made.marked(line), made.listing)
            lists.append([path.tolist() for path in one.second.paths(task)])
        assert lists[0] == lists[1], line


def test_threads_give_the_same(folder: Path) -> None:
    made = decoder(folder, second_search=SIZE, nbest=6, **NARROW)
    lists = [
        [[(item.text, item.total) for item in result.derivations] for result in results]
        for results in (
            map(made.translate_line, LINES),
            *(made.translate_all(iter(LINES), n) for n in (1, 2)),
        )
    ]
    assert lists[0] == lists[1] == lists[2]


def test_a_chosen_translation_is_explained_and_aligned(folder: Path) -> None:
    made = decoder(folder, second_search=SIZE, explain=True, **NARROW)
    for line in LINES[:10]:
        result = made.translate_line(line)
        (chosen,) = result.derivations
        assert chosen.shares is not None and chosen.shares.sum() == pytest.approx(chosen.total, abs=1e-6)
        assert result.sentence and result.sentence.target_of(chosen.options) == chosen.text
        words = {source for source, _ in alignment(result)}
        assert words <= set(range(len(line.split())))


def test_a_long_line_is_searched_twice_in_each_of_its_parts(folder: Path) -> None:
    config = {**NARROW, "second_search": SIZE}
    line = " ".join(LINES[:4])
    parts = decoder(folder, max_line_words=6, **config).translate_line(line).parts
    assert len(parts) > 1
    whole = decoder(folder, **config)
    for part in parts:
        assert part.sentence
        alone = whole.translate_line(" ".join(part.sentence.words)).derivations[0]
        assert part.derivations[0].total == pytest.approx(alone.total)
