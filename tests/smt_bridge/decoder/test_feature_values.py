"""Features of derivations: times weights they are the total; each is what its definition says."""

import math
from pathlib import Path

import numpy as np

from smt_bridge.decoder import feature_values
from tests.smt_bridge.decoder.models import all_weights, decoder, sentence, values, write_model


def test_features_make_up_the_total(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 1), nbest=20, distinct=True)
    for number in range(20):
        translation = made.translate_line(sentence(number, 6))
        texts = [tuple(derivation.text) for derivation in translation.derivations]
        assert len(set(texts)) == len(texts)
        totals = [derivation.total for derivation in translation.derivations]
        assert totals == sorted(totals, reverse=True)
        for derivation in translation.derivations:
            assert translation.sentence
            unknown = sum(translation.sentence.rows[option] < 0 for option in derivation.options)
            assert math.isclose(
                derivation.features @ all_weights(made) - 100 * unknown, derivation.total, abs_tol=1e-9
            )


def test_end_behind_a_dropped_word(tmp_path: Path) -> None:
    """As Moses: where the last phrase has no words the end of the sentence is not scored."""
    made = decoder(write_model(tmp_path, 0, reordering=False), drop_unknown=True, distortion_limit=0, nbest=1)
    lm = made.model.word_lms[0]
    for line, complete in (("a zz", False), ("zz a", True)):
        translation = made.translate_line(line)
        expected = lm.sentence([lm.number(word) for word in translation.text], complete)
        assert math.isclose(values(made, translation)["LM0"][0], expected, abs_tol=1e-9)


def jumps(spans: list[tuple[int, int]]) -> int:
    """Early distortion cost from its definition: the four cases of Moore and Quirk (2007), as Moses has
    them."""
    total, covered, before = 0, set[int](), -1
    for begin, last in spans:
        prefix = (
            next(word for word in range(100) if word not in covered) - 1
        )  # end of what is translated without a gap
        length = last - begin + 1
        if begin == prefix + 1:
            pass
        elif last < before:
            total += 2 * length
        elif before <= prefix:
            total += 2 * (begin - prefix - 1 + length)
        else:
            total += 2 * (begin - before - 1 + length)
        covered |= set(range(begin, last + 1))
        before = last
    return total


def test_early_distortion_cost(tmp_path: Path) -> None:
    made = decoder(
        write_model(tmp_path, 2),
        early_distortion_cost=True,
        distortion_limit=-1,
        nbest=50,
        beam_threshold=0.0,
    )
    moved = 0
    for number in range(6):
        translation = made.translate_line(sentence(number, 6))
        part = translation.sentence
        assert part
        for place, derivation in enumerate(translation.derivations):
            spans = [(int(part.begin[option]), int(part.last[option])) for option in derivation.options]
            assert values(made, translation, place)["Distortion0"] == [-jumps(spans)]
            moved += jumps(spans) > 0
    assert moved > 20


def test_phrases_one_by_one(tmp_path: Path) -> None:
    """Jumps, and which of the six reordering scores each phrase gets, from one phrase and the one before."""
    made = decoder(write_model(tmp_path, 2), nbest=30)
    task = made.task(made.marked(sentence(3, 6)), made.listing)
    part = task.sentence
    paths, _ = made.search(task, made.listing)
    found = feature_values.phrases(part, paths)
    values = np.random.default_rng(1).normal(size=(len(found.option), 6))
    six, jumps = feature_values.reorderings(found, values), feature_values.distortions(found, False)
    place, ways = 0, set[int]()
    for number, path in enumerate(paths):
        before = (-2, -1)
        for step, option in enumerate(path.tolist()):
            span = (int(part.begin[option]), int(part.last[option]))
            assert found.owner[place] == number and found.first[place] == (step == 0)
            assert (found.before_begin[place], found.before_last[place]) == before
            assert jumps[place, 0] == -abs(span[0] - before[1] - 1)
            way = 0 if span[0] == before[1] + 1 else 1 if span[1] == before[0] - 1 else 2
            ways.add(way)
            expected = np.zeros(6)
            expected[way] = values[place, way]
            if step:
                expected[3 + way] = values[place - 1, 3 + way]
            np.testing.assert_array_equal(six[place], expected)
            before, place = span, place + 1
    assert place == len(found.option) and ways == {0, 1, 2}


def test_sums() -> None:
    owner = np.array([2, 0, 2, 2])
    found = feature_values.sums(np.array([[1.0, 10], [2, 20], [4, 40], [8, 80]]), owner, 4)
    assert found.tolist() == [[2, 20], [0, 0], [13, 130], [0, 0]]
