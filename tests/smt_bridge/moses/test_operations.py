"""Operation sequences: those of a naive twin, which can be undone; the words that are copied; mistakes in
alignments."""

import random
from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.io import files
from smt_bridge.moses.operations import ClassMaps, copied_words, operation_lines, sequence
from tests.smt_bridge.moses.operation_twin import Story

Row = tuple[list[str], list[str], frozenset[tuple[int, int]]]


def pair(seed: int) -> Row:
    """A random sentence pair with between no links and many."""
    rng = random.Random(seed)
    source, target = ([f"{side}{word}" for word in range(rng.randint(1, 12))] for side in "st")
    cells = [(a, b) for a in range(len(source)) for b in range(len(target))]
    return source, target, frozenset(rng.sample(cells, rng.randint(0, min(len(cells), 11))))


def undo(operations: list[str]) -> list[str]:
    """Source words in order, from operations alone: a list of words and gaps (None) with a cursor, which
    jumps between gaps (Durrani et al. 2011, section 2)."""
    words: list[str | None] = []
    cursor, rest = 0, list[str]()
    for name in operations:
        if name == "_INS_GAP_":
            words.insert(cursor, None)
            cursor += 1
        elif name == "_JMP_FWD_":
            cursor = len(words)
        elif name.startswith("_JMP_BCK_"):
            gaps = [at for at, word in enumerate(words) if word is None]
            cursor = gaps[-int(name[9:])]
            del words[cursor]  # what is left of it becomes a gap when it is left
        elif not name.startswith("_DEL_"):
            if name.startswith("_INS_"):
                produced = name[5:]
            else:
                rest = name.partition("_TO_")[2].split("^_^") if name != "_CONT_CEPT_" else rest
                produced = rest.pop(0)
            words.insert(cursor, produced)
            cursor += 1
    assert None not in words, operations
    return [word for word in words if word]


def test_an_example() -> None:
    """Counted by hand: `hat ... gegessen` is a cept with a gap; `heute` and `it` have no link."""
    links = [(0, 0), (1, 1), (5, 1), (5, 2), (3, 4), (4, 5)]
    operations = sequence("er hat heute ein eis gegessen".split(), "he ate up it an ice".split(), links)
    assert (
        operations
        == (
            "_TRANS_he_TO_er _TRANS_ate^_^up_TO_hat^_^gegessen _INS_heute _INS_GAP_ _CONT_CEPT_ _DEL_it "
            "_JMP_BCK_1 _TRANS_an_TO_ein _TRANS_ice_TO_eis"
        ).split()
    )


def test_sequences_are_those_of_the_twin_and_can_be_undone() -> None:
    jumps = set[str]()
    for seed in range(400):
        source, target, links = pair(seed)
        operations, story = sequence(source, target, links), Story(len(source))
        story.add_phrase(0, source, target, links)
        assert operations == story.names, (source, target, links)
        assert undo(operations) == source, operations
        jumps |= {name for name in operations if name.startswith(("_JMP", "_CONT"))}
    assert {"_JMP_FWD_", "_JMP_BCK_1", "_JMP_BCK_2", "_JMP_BCK_3", "_CONT_CEPT_"} <= jumps


def test_classes_take_the_place_of_words() -> None:
    """The operations are those of the words, with the names of the classes; which words are copied is decided
    by the words."""
    for seed in range(100):
        source, target, links = pair(seed)
        rng = random.Random(seed)
        maps = [
            {word: rng.randint(1, 3) for word in words if rng.random() < 0.8} for words in (source, target)
        ]
        mapped = [
            [str(classes.get(word, "<unk>")) for word in words]
            for classes, words in zip(maps, (source, target), strict=True)
        ]
        assert sequence(source, target, links, classes=ClassMaps(*maps)) == sequence(
            mapped[0], mapped[1], links
        )
    both = ClassMaps({"a": 1, "b": 2}, {"a": 1, "b": 1})
    assert sequence(["a", "b"], ["a", "b"], [(0, 0), (1, 1)], {"b"}, both) == ["_TRANS_1_TO_1", "_TRANS_SLF_"]


def test_copied_words() -> None:
    """A word that is linked once, to itself; not one that occurs twice, has two links, or has none."""
    rows: list[Row] = [
        ("anna sees bob".split(), "anna voit bob".split(), frozenset([(0, 0), (1, 1), (2, 2)])),
        ("bob eve sees".split(), "bob eve eve".split(), frozenset([(0, 0), (1, 1), (1, 2), (2, 2)])),
        ("cleo".split(), "cleo".split(), frozenset()),
    ]
    assert copied_words(rows) == {"anna"}
    assert sequence(*rows[0], copied_words(rows)) == [
        "_TRANS_SLF_",
        "_TRANS_voit_TO_sees",
        "_TRANS_bob_TO_bob",
    ]


@pytest.mark.parametrize(
    ("points", "problem"),
    [
        ("0-0 1-1\n", "a:1: point 1-1 is outside the sentence pair"),
        ("0:0\n", "a:1: '0:0' is not an alignment"),
    ],
)
def test_mistakes_in_the_alignment(points: str, problem: str, tmp_path: Path) -> None:
    files.write_text(tmp_path / "s", ["a b"])
    files.write_text(tmp_path / "t", ["x"])
    (tmp_path / "a").write_text(points)
    with pytest.raises(DataError) as raised:
        list(operation_lines(str(tmp_path / "s"), str(tmp_path / "t"), str(tmp_path / "a")))
    assert str(raised.value).startswith(f"{tmp_path}/{problem}")
