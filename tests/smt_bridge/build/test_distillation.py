"""The text of a student: what is translated, with which tables, and which translations are chosen."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from nmt.io import files
from nmt.runs.run import BeamTranslation
from nmt.runs.torch_run import TorchRun
from smt_bridge import train_system
from smt_bridge.build import corpus, distillation, training
from smt_bridge.build.config import Build
from smt_bridge.build.corpus import BuildTexts
from smt_bridge.build.distillation import (
    LineGroup,
    SourceLine,
    StudentPlan,
    choose,
    fit,
    line_groups,
    nearest_text,
    remaining_group,
    share_with_network,
    train_without,
    translate_by_network,
    translate_groups,
    write_text,
)  # fmt: skip
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.tuning.bleu import BleuReferences
from smt_bridge.tuning.ranking import smoothed_bleu
from tests.smt_bridge.build.builds import config, small_plan
from tests.smt_bridge.build.test_student import build
from tests.smt_bridge.decoder.models import sentence, write_model

# ---- how much is translated --------------------------------------------------------------------------------


SPEEDS = ((50, 1.0), (30, 0.5), (10, 0.25))  # stack, seconds per line


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (100, (80, 20, 50)),
        (99, (80, 20, 30)),
        (30, (80, 20, 10)),
        (24, (80, 16, 10)),  # monolingual lines are the first to go
        (10, (40, 0, 10)),
        (0, (1, 0, 10)),
    ],
)
def test_the_largest_stack_with_which_all_lines_fit(limit: float, expected: tuple[int, int, int]) -> None:
    plan = fit(80, 20, iter(SPEEDS), limit)
    assert (plan.translated, plan.translated_monolingual, plan.stack) == expected
    assert plan.seconds <= max(limit, 0.3) and (plan.pairs, plan.monolingual) == (80, 20)


def test_no_stack_is_measured_that_is_not_needed() -> None:
    def speeds() -> Iterator[tuple[int, float]]:
        yield 50, 1.0
        pytest.fail("measured the next one")

    assert fit(5, 0, speeds(), 10).stack == 50


def test_pairs_without_time_are_the_networks() -> None:
    """All together take the time that the system's pairs took."""
    plan = fit(80, 0, iter(SPEEDS), 10)
    shared = share_with_network(plan, 0.05)
    assert not plan.by_network and shared.by_network and shared.translated == 30
    assert shared.seconds == 30 * 0.25 + 50 * 0.05 == plan.seconds
    assert share_with_network(plan, 1.0).translated == 1  # the system is faster, and still not alone
    whole = fit(80, 0, iter(SPEEDS), 100)
    assert share_with_network(whole, 0.05) == whole


# ---- which translation -------------------------------------------------------------------------------------


@pytest.fixture
def decoder(tmp_path: Path) -> Decoder:
    config = DecoderConfig(stack=10, nbest=20, distinct=True)
    return Decoder.load(str(write_model(tmp_path, 1)), config, cache=False)


def test_the_translation_with_the_best_sentence_bleu(decoder: Decoder) -> None:
    """As a naive loop finds it; a translation in the list is itself the best for a reference that equals
    it."""
    different = 0
    for number in range(12):
        translation = decoder.translate_line(sentence(number, 5))
        texts = [derivation.text for derivation in translation.derivations]
        for reference in (texts[-1], texts[len(texts) // 2], ["p", *texts[0][1:]]):
            words = BleuReferences([reference])
            scores = [
                float(smoothed_bleu(np.array([words.statistics(text)], np.float64))[0]) for text in texts
            ]
            text, stats = choose(decoder, translation, reference)
            assert text.split() == texts[scores.index(max(scores))]
            assert stats == [words.statistics(texts[0]), words.statistics(text.split())]
            assert reference not in texts or text.split() == reference
            different += text.split() != texts[0]
    assert different > 12


def test_without_a_reference_the_best_translation(decoder: Decoder) -> None:
    translation = decoder.translate_line(sentence(3, 5))
    text, stats = choose(decoder, translation, None)
    assert text.split() == translation.text and not np.any(stats)


# ---- the text of the student -------------------------------------------------------------------------------


def pairs(count: int) -> list[SourceLine]:
    return [SourceLine(f"s{number}", f"r{number}") for number in range(count)]


def test_each_line_of_the_plan_is_in_one_group() -> None:
    """A part has the pairs whose tables lack them."""
    plan = StudentPlan(40, 9, translated=30, translated_monolingual=3, stack=10, seconds=1)
    texts, more = pairs(40), [SourceLine(f"m{number}") for number in range(9)]
    *parts, last = line_groups(plan, texts, more)
    assert [group.part for group in parts] == list(range(distillation.PARTS)) and last.part is None
    numbers = [number for group in parts for number in group.numbers]
    assert len({*numbers}) == len(numbers) == 30 and [line.text for line in last.lines] == ["m0", "m3", "m6"]
    for group in parts:
        assert group.lines == [texts[number] for number in group.numbers]
        assert all(number % distillation.PARTS == group.part for number in group.numbers)


def test_the_pairs_of_no_group() -> None:
    texts = pairs(9)
    groups = [LineGroup(0, [4, 0], [texts[4], texts[0]]), LineGroup(None, [1, 2], pairs(2))]
    others = remaining_group(groups, texts)
    assert others.numbers == [1, 2, 3, 5, 6, 7, 8] and others.lines == [texts[n] for n in others.numbers]
    assert others.part is not None  # they are pairs


def test_the_networks_translation_is_the_nearest_without_unknown_words() -> None:
    candidates = [BeamTranslation(line.split(), 0.0, 0.0) for line in ("a b", "a <unk> c d", "a b c", "b")]
    assert nearest_text(candidates, "a b c d") == "a b c"
    assert nearest_text(candidates, "a b") == "a b"
    assert nearest_text(candidates[1:2], "a <unk> c d") == ""


@pytest.mark.ci
def test_other_pairs_are_translated_by_the_attention_model(
    tmp_path: Path, grammar: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one by one; what is translated is not translated again."""
    made = Build(config(tmp_path, grammar, 60, workers=2), small_plan("attention"))
    corpus.prepare(made)
    files.write_text(made.work / "model" / "lex.f2e", ["b a 1"])
    training.train_all(made)
    monkeypatch.setattr(distillation, "NETWORK_CHUNK", 4)
    numbers, texts = [1, 2, 5, 8, 13, 21, 34, 55, 59], BuildTexts(made.work)
    lines = translate_by_network(made, numbers)
    target = texts.sides(made.config)[1]
    run = TorchRun.of(made.work / training.NETWORKS / "attention").for_text(tokenized=True)
    for number, line in zip(numbers, lines, strict=True):
        source, reference = (texts.lines(f"train.{side}")[number] for side in ("source", "target"))
        [candidates] = run.n_best([source], distillation.NETWORK_BEAM)
        assert line == target.text(nearest_text(candidates, reference).split(" "))
    assert any(lines)
    folder = made.work / distillation.NETWORK
    files.write_text(folder / "4", ["x", "", "y z", "."])
    (folder / "8").unlink()
    assert translate_by_network(made, numbers) == [*lines[:4], "X", "", "Y z", ".", lines[8]]


@pytest.mark.parametrize("references", [False, True])
def test_lines_that_are_not_translated_keep_their_reference(references: bool, tmp_path: Path) -> None:
    made, texts = build(tmp_path, student_references=references), pairs(4)
    groups = [
        LineGroup(0, [2, 0], [texts[2], texts[0]]),
        LineGroup(1, [1], [texts[1]]),
        LineGroup(None, [0, 1], [SourceLine("m0"), SourceLine("m1")]),
    ]
    write_text(made, texts, groups, [["t2", "t0"], [""], ["u0", ""]])  # a translation may be empty
    rows = list(files.parallel(made.work / distillation.SOURCE, made.work / distillation.TARGET))
    again = [(pair.text, pair.reference) for pair in texts] if references else []
    assert rows == [("s0", "t0"), ("s1", "r1"), ("s2", "t2"), ("s3", "r3"), ("m0", "u0"), *again]


class Words:
    """Splits lines at blanks."""

    def words(self, line: str) -> list[str]:
        return line.split()


def test_what_is_translated_is_saved_and_not_translated_again(
    decoder: Decoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it is interrupted, the same text; the decoder of a finished part is not loaded."""
    made = build(tmp_path)
    made.work.joinpath(distillation.FOLDER).mkdir(parents=True)
    monkeypatch.setattr(distillation, "CHUNK", 3)
    monkeypatch.setattr(BuildTexts, "sides", lambda self, config: (Words(), Words()))
    lines = [SourceLine(sentence(number, 4), sentence(number + 1, 4)) for number in range(11)]
    groups = [LineGroup(0, [], lines[:5]), LineGroup(1, [], lines[5:9]), LineGroup(None, [], lines[9:])]
    loaded, seen = list[int | None](), list[str]()

    def load(limit: int) -> Callable[[int | None], Decoder]:
        def load_part(part: int | None) -> Decoder:
            loaded.append(part)
            return decoder

        loaded.clear()
        seen.clear()
        translate_all = Decoder.translate_all

        def interrupted(self: Decoder, texts: list[str], workers: int) -> object:
            if len(seen) >= limit:
                raise KeyboardInterrupt
            seen.extend(texts)
            return translate_all(self, texts, workers)

        patch.setattr(Decoder, "translate_all", interrupted)
        return load_part

    with monkeypatch.context() as patch:
        whole = translate_groups(made, groups, load(100))
    assert made.share == 1.0 and list(map(len, whole)) == [5, 4, 2] and loaded == [0, 1, None]
    (made.work / distillation.CHUNKS).unlink()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        translate_groups(made, groups, load(6))
    assert seen == [line.text for line in lines[:8]]
    with monkeypatch.context() as patch:
        assert translate_groups(made, groups, load(100)) == whole
    assert seen == [line.text for line in lines[8:]] and loaded == [1, None]


@pytest.mark.ci
def test_the_tables_of_a_part_know_nothing_of_it(tmp_path: Path, grammar: ModuleType) -> None:
    made = Build(config(tmp_path, grammar), small_plan())
    corpus.prepare(made)
    training.align(made)
    texts = BuildTexts(made.work)
    assert [pair.text for pair in distillation.training_pairs(made)] == list(
        files.read_lines(made.config.source)
    )
    model = train_without(made, 1)
    source = list(files.read_lines(model.parent / "source"))
    assert source == [line for number, line in enumerate(texts.lines("train.source")) if number % 4 != 1]
    left_out = {word for line in texts.lines("train.source")[1::4] for word in line.split()}
    unseen = left_out - {word for line in source for word in line.split()}
    table = {line.partition(" ||| ")[0] for line in files.read_lines(model / train_system.TABLE)}
    assert unseen and unseen.isdisjoint(" ".join(table).split()) and len(table) > 100
    rest = list(files.read_lines(model.parent / "lm"))
    assert rest == [line for number, line in enumerate(texts.lines("train.target")) if number % 4 != 1]
