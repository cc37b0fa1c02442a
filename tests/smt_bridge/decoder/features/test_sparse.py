"""Sparse features of phrase pairs: their values in n-best lists are those of a naive twin, which walks over
the segmentation and alignment that the list prints; totals and both searches use their weights."""

import random
from collections import Counter
from pathlib import Path

import pytest

from nmt.compute.compiled import HAVE_NUMBA
from nmt.errors import ConfigError, DataError, UserError
from nmt.formats import nbest
from nmt.io import files
from smt_bridge.decoder import system
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.features import protocol
from smt_bridge.decoder.features.protocol import SparseFeature
from smt_bridge.moses import check, sparse_weights
from smt_bridge.moses import ini as moses_ini
from tests.smt_bridge.decoder.models import (
    UNLIMITED,
    add_feature,
    decoder,
    edit,
    full_scores,
    range_of,
    same_lists,
    sentence,
    write_model,
)

SOURCE_WORDS, TARGET_WORDS = ["a", "b", "e"], ["p", "t&apos;"]
LINES = """WordTranslationFeature name=WT input-factor=0 output-factor=0 simple=1 source-path=s target-path=t
TargetWordInsertionFeature name=TWI factor=0 path=t
SourceWordDeletionFeature factor=0 path=s
PhraseLengthFeature name=PL"""
DELETION = "SourceWordDeletionFeature0"
WEIGHTS = {"WT_a~p": 0.9, "WT_OTHER~OTHER": -0.3, "TWI_p": 0.4, f"{DELETION}_OTHER": -0.2, "PL_2,1": 0.5}


def model(folder: Path, seed: int = 1, lines: str = LINES, weights: dict[str, float] | None = None) -> Path:
    """A random system whose phrase pairs have random links, with sparse features."""
    write_model(folder, seed)
    rng, rows = random.Random(seed), []
    for row in files.read_lines(folder / "table"):
        source, target, scores, _, *rest = row.split(" ||| ")
        cells = [f"{a}-{b}" for a in range(len(source.split())) for b in range(len(target.split()))]
        links = " ".join(sorted(rng.sample(cells, rng.randint(0, min(4, len(cells))))))
        rows.append(" ||| ".join([source, target, scores, links, *rest]))
    files.write_text(folder / "table", rows)
    files.write_text(folder / "s", SOURCE_WORDS)
    files.write_text(folder / "t", TARGET_WORDS)
    add_feature(folder, lines)
    if weights is not None:
        sparse_weights.write(folder / "w", weights, ["some"])
        edit(folder, weight_file="w")
    return folder


def twin(line: str, entry: str) -> dict[str, float]:
    """The values of a derivation, from the source and its printed entry alone. An unknown word is one that is
    copied: no target word is a source word."""
    hypothesis = nbest.parse(entry, "entry")
    source, target, counts = line.split(), hypothesis.text, Counter[str]()
    points = [tuple(map(int, point.split("-"))) for point in hypothesis.rest[1].split()]
    for pair in hypothesis.rest[0].split():
        inside, output = map(range_of, pair.split("="))
        unknown = len(inside) == len(output) == 1 and source[inside[0]] == target[output[0]]
        links = [] if unknown else [point for point in points if point[0] in inside and point[1] in output]
        for a, b in links:
            left = source[a] if source[a] in SOURCE_WORDS else "OTHER"
            right = target[b] if target[b] in TARGET_WORDS else "OTHER"
            counts[f"WT_{left}~{right}"] += 1
        if links or len(inside) > 1 or len(output) > 1:
            for b in set(output) - {point[1] for point in links}:
                counts["TWI_" + (target[b] if target[b] in TARGET_WORDS else "OTHER")] += 1
            for a in set(inside) - {point[0] for point in links}:
                counts[f"{DELETION}_" + (source[a] if source[a] in SOURCE_WORDS else "OTHER")] += 1
        for name in (f"s{len(inside)}", f"t{len(output)}", f"{len(inside)},{len(output)}"):
            counts[f"PL_{name}"] += 1
    return dict(counts)


def printed(made: Decoder, line: str) -> list[str]:
    found = made.translate_line(line)
    return [made.entry(0, found, derivation) for derivation in found.derivations]


def test_values_are_those_of_the_twin(tmp_path: Path) -> None:
    made = decoder(model(tmp_path, weights=WEIGHTS), True, nbest=12, stack=8)
    names = set[str]()
    for number in range(8):
        line = sentence(number, 1 + number % 6)
        found = made.translate_line(line)
        for derivation, dense in zip(found.derivations, full_scores(made, found), strict=True):
            entry = made.entry(0, found, derivation)
            values = twin(line, entry)
            features = nbest.parse(entry, "entry").features
            assert {name: row for name, row in features.items() if "_" in name} == {
                name: [value] for name, value in values.items()
            }
            sparse = sum(WEIGHTS.get(name, 0.0) * value for name, value in values.items())
            assert derivation.total == pytest.approx(dense + sparse, abs=1e-9)
            names |= values.keys()
    assert {"WT_a~p", "WT_OTHER~OTHER", "TWI_p", "TWI_OTHER", f"{DELETION}_b", "PL_2,1"} <= names


@pytest.mark.ci
@pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")
def test_compiled_and_plain_search_agree(tmp_path: Path) -> None:
    folder = model(tmp_path, 3, weights=WEIGHTS)
    made, plain = decoder(folder, nbest=6, stack=8), decoder(folder, True, nbest=6, stack=8)
    for number in range(12):
        line = sentence(number, 1 + number % 6)
        same_lists(made.translate_line(line), plain.translate_line(line), line)


@pytest.mark.ci
def test_the_best_of_all_derivations(tmp_path: Path) -> None:
    """An unpruned search finds the derivation that is best by its whole total, among all of those that a
    search without sparse weights lists."""
    zero = decoder(model(tmp_path), True, nbest=100_000, **UNLIMITED)
    weights = {**zero.weights, **{name: [value] for name, value in WEIGHTS.items()}}
    tuned = Decoder(zero.system, zero.config, weights)
    changed = 0
    for number in range(4):
        line = sentence(number, 3)
        every, best = zero.translate_line(line), tuned.translate_line(line).derivations[0]
        totals = [
            derivation.total
            + sum(WEIGHTS.get(name, 0.0) * value for name, value in derivation.sparse.items())
            for derivation in every.derivations
        ]
        assert best.total == pytest.approx(max(totals), abs=1e-9)
        changed += totals.index(max(totals)) > 0
    assert changed


def test_explanations_add_up_to_totals(tmp_path: Path) -> None:
    made = decoder(model(tmp_path, weights=WEIGHTS), True, explain=True)
    for number in range(4):
        best = made.translate_line(sentence(number, 5)).derivations[0]
        assert best.shares is not None and best.shares.sum() == pytest.approx(best.total, abs=1e-9)


def test_hidden_values_count_but_are_not_printed(tmp_path: Path) -> None:
    folder = model(tmp_path, weights=WEIGHTS)
    seen = decoder(folder, True, nbest=5, stack=8).translate_line("a b c")
    hidden = decoder(edit(folder, ("name=WT", "name=WT tuneable=false")), True, nbest=5, stack=8)
    assert hidden.system.sparse == ["TWI", DELETION, "PL"]
    same_lists(hidden.translate_line("a b c"), seen, "a b c")
    assert "WT_" not in "".join(printed(hidden, "a b c"))


def test_without_lists_words_count_as_themselves(tmp_path: Path) -> None:
    lines = "WordTranslationFeature name=WT\nTargetWordInsertionFeature name=TWI"
    made = decoder(model(tmp_path, lines=lines), True, nbest=20, stack=8)
    text = " ".join(entry for number in range(6) for entry in printed(made, sentence(number, 5)))
    assert "WT_c~r= 1" in text and "TWI_q= 1" in text and "OTHER" not in text


def test_what_is_written_is_read(tmp_path: Path) -> None:
    sparse_weights.write(tmp_path / "w", {"WT_=~=": -1.5, "WT_a~b": 0.25, "PL_s1": 0.0}, ["a comment"])
    assert sparse_weights.read(tmp_path / "w") == {"WT_=~=": -1.5, "WT_a~b": 0.25}
    assert (tmp_path / "w").read_text() == "# a comment\nWT_=~= -1.5\nWT_a~b 0.25\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("WT_a~b\n", "w:1: 'WT_a~b' is not a sparse weight, expected 'NAME_WORD number'"),
        ("\nWT_a~b x\n", "w:2: 'WT_a~b x' is not"),
        ("WT_a~b 1\nWT_a~b 2\n", "w:2: WT_a~b already has a weight"),
        ("XY_a 1\n", "w: a weight of 'XY_a', but .*moses.ini has no such sparse feature"),
    ],
)
def test_weights_that_are_refused(text: str, message: str, tmp_path: Path) -> None:
    model(tmp_path, weights={})
    (tmp_path / "w").write_text(text)
    with pytest.raises(UserError, match=message):
        system.load(str(tmp_path), use_cache=False)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("simple=1", "simple=0", "simple=0 without a context"),
        ("simple=1", "source-context=1", "word translations without context"),
        (" target-path=t", "", "both source-path= and target-path="),
        ("name=WT", "name=W_T", "no _ in its name"),
        ("name=WT", "name=WT num-features=1", "WordTranslationFeature has no scores"),
        ("name=TWI", "name=TWI pth=x", "no argument 'pth'"),
        ("path=s\n", "path=none\n", "none found neither"),
        ("w\n[input", "none\n[input", "none not found"),
        ("w\n[input", "w\nw\n[input", "names 2 files"),
        ("factor=0 path=s", "factor=1 path=s", "factors are not supported"),
    ],
)
def test_lines_that_are_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    edit(model(tmp_path, weights=WEIGHTS), (old, new))
    with pytest.raises((ConfigError, DataError), match=message):
        decoder(tmp_path)


def test_new_weights_replace_those_of_the_file(tmp_path: Path) -> None:
    made = decoder(model(tmp_path, weights={"WT_a~p": 1.0, "PL_s1": 2.0}), True)
    new = {"WT_a~p": [0.0], "TWI_p": [3.0]}
    assert made.system.with_sparse_weights(new) == {"WT_a~p": 0.0, "PL_s1": 2.0, "TWI_p": 3.0}
    for wrong, message in (
        ({"XX_a": [1.0]}, "no such sparse feature"),
        ({"WT_a~p": [1.0, 2.0]}, "2 weights"),
    ):
        with pytest.raises(ConfigError, match=message):
            made.system.with_sparse_weights(wrong)


def test_files_of_a_system(tmp_path: Path) -> None:
    """All files are found, checked, and named by absolute paths in an ini elsewhere."""
    ini = moses_ini.read(str(model(tmp_path / "m", weights=WEIGHTS) / "moses.ini"))
    names = {path.name for path in system.system_files(ini)}
    assert {"s", "t", "w", "table", "lm0"} <= names
    moved = moses_ini.with_moved_paths(ini, tmp_path / "other.ini")
    assert moved.weight_file == str(tmp_path / "m" / "w")
    assert moved.feature("WT").options["source-path"] == str(tmp_path / "m" / "s")
    roots = [str(tmp_path / "m")]
    assert not list(check.problems(ini, roots))
    for name in ("w", "t"):
        (tmp_path / "m" / name).unlink()
    wrong = "\n".join(check.problems(ini, roots))
    assert "w does not exist" in wrong and "target-path=t of WT does not exist" in wrong


def test_a_full_cache_of_rows_is_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It never holds more rows than it may, and values stay the same."""
    folder, lines = model(tmp_path, weights=WEIGHTS), [sentence(number, 6) for number in range(3)]
    expected = [derivation.sparse for line in decoder(folder).nbest(lines, 5) for derivation in line]
    monkeypatch.setattr(protocol, "REMEMBERED", 3)
    small = decoder(folder)
    assert [derivation.sparse for line in small.nbest(lines, 5) for derivation in line] == expected
    caches = [feature.rows for feature in small.features if isinstance(feature, SparseFeature)]
    assert [0 < len(cache.values) <= 3 for cache in caches] == [True] * 4
