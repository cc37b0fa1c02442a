"""A language model of word classes in the search: a text's score is that of its classes by the n-gram model,
in compiled and plain search, from an ARPA file and a compiled folder."""

import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.cli import ngram
from nmt.compute.compiled import HAVE_NUMBA
from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.ngram import count_models
from nmt.ngram.word_classes import WordClasses, class_lines, write_classes
from smt_bridge.cli import compile as compile_command
from smt_bridge.decoder import system
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.moses import check
from smt_bridge.moses import ini as moses_ini
from tests.smt_bridge.decoder.models import (
    TARGET,
    add_feature,
    check_totals,
    decoder,
    edit,
    same_lists,
    sentence,
    values,
    write_model,
)

CLASSES: WordClasses = {"p": 1, "q": 1, "r": 12, "s": 12, "t&apos;": 3}  # u has none
LINE = "ClassLM name=CLM0 path=clm classes=classes.tsv order=4"


def write_class_system(folder: Path, seed: int = 1, line: str = LINE, weight: str = "0.7") -> Path:
    """A system whose ClassLM, which comes before the model of words, has the order 4."""
    rng = random.Random(seed)
    write_model(folder, seed)
    write_classes(folder / "classes.tsv", CLASSES)
    texts = [" ".join(rng.choice(TARGET[:5]) for _ in range(rng.randint(1, 9))) for _ in range(60)]
    files.write_text(folder / "text", texts)
    options = ["--word-classes", str(folder / "classes.tsv"), "--order", "4", "--discount-fallback", "-q"]
    assert ngram.main(["-i", str(folder / "text"), "-o", str(folder / "clm"), *options]) == 0
    return add_feature(folder, line, f"CLM0= {weight}")


def expected(folder: Path, text: list[str]) -> float:
    """Natural log p of a text of words by the n-gram model of classes."""
    (mapped,) = class_lines(CLASSES, [" ".join(text)])
    return float(count_models.read_arpa(folder / "clm").scores([mapped.split()])[0].sum())


@pytest.mark.ci
def test_the_score_is_that_of_the_classes(tmp_path: Path) -> None:
    """In n-best lists, also of unknown words, and totals are weights x features."""
    made = decoder(write_class_system(tmp_path), nbest=8, stack=20)
    assert next(iter(made.system.sizes)) == "CLM0"
    for number in range(12):
        translation = made.translate_line(f"{sentence(number, 1 + number % 5)} zz")
        check_totals(made, translation)
        for rank, derivation in enumerate(translation.derivations):
            score = values(made, translation, rank)["CLM0"]
            assert score == pytest.approx([expected(tmp_path, list(derivation.text))], abs=1e-9)


@pytest.mark.ci
def test_it_changes_the_search(tmp_path: Path) -> None:
    """The best derivation under the weights of both, not a rescored one: unlimited stacks list the same."""
    one = decoder(write_class_system(tmp_path / "one", weight="2"), stack=0, beam_threshold=0.0, nbest=200)
    other = decoder(write_class_system(tmp_path / "other", weight="2"), stack=0, beam_threshold=0.0)
    without = decoder(write_model(tmp_path / "without", 1), stack=0, beam_threshold=0.0)
    changed = 0
    for number in range(20):
        line = sentence(number, 4)
        best = other.translate_line(line)
        assert math.isclose(
            best.derivations[0].total, max(each.total for each in one.translate_line(line).derivations)
        )
        changed += best.text != without.translate_line(line).text
    assert changed


@pytest.mark.ci
@pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")
@pytest.mark.parametrize("seed", [1, 2])
def test_compiled_is_plain(seed: int, tmp_path: Path) -> None:
    folder = write_class_system(tmp_path, seed)
    settings: dict[str, object] = {"stack": 4, "nbest": 10 * (seed % 2)}
    one, plain = decoder(folder, **settings), decoder(folder, True, **settings)
    assert one.compiled is not None
    for number in range(40):
        line = sentence(number, 1 + number % 7)
        same_lists(one.translate_line(line), plain.translate_line(line), line)


def same_output(one: Decoder, other: Decoder) -> None:
    for number in range(6):
        line = sentence(number, 5)
        ours, theirs = one.translate_line(line), other.translate_line(line)
        assert [one.entry(number, ours, each) for each in ours.derivations] == [
            other.entry(number, theirs, each) for each in theirs.derivations
        ]


@pytest.mark.ci
def test_compiled_models(tmp_path: Path) -> None:
    """The same lists from the folder of smt-compile, which has a copy of the classes, wherever it is, and
    from one of nmt-ngram compile, which smt-compile leaves where it is."""
    folder = write_class_system(tmp_path / "model")
    one = decoder(folder, nbest=10)
    assert compile_command.main([str(folder), "-o", str(tmp_path / "small"), "-q"]) == 0
    assert (tmp_path / "small" / "mapped-lm0").is_dir() and (tmp_path / "small" / "mapped-lm1").is_dir()
    same_output(one, decoder((tmp_path / "small").rename(tmp_path / "moved"), nbest=10))
    assert ngram.main(["compile", str(folder / "clm"), "-o", str(folder / "clm.trie"), "-q"]) == 0
    same_output(one, decoder(edit(folder, ("path=clm ", "path=clm.trie ")), nbest=10))
    assert compile_command.main([str(folder), "-o", str(tmp_path / "other"), "-q"]) == 0
    line = moses_ini.read(str(tmp_path / "other" / "moses.ini")).feature("CLM0")
    assert line.options["path"] == f"{folder}/clm.trie" and line.options["classes"] == "mapped-words0.txt"


@pytest.mark.ci
def test_oov_feature(tmp_path: Path) -> None:
    """It counts the words without a class."""
    made = decoder(write_class_system(tmp_path, line=f"{LINE} oov-feature=1", weight="0.7 -0.2"))
    for number in range(10):
        translation = made.translate_line(f"zz {sentence(number, 5)}")
        unknown = [word for word in translation.text if word not in CLASSES]
        assert values(made, translation)["CLM0"][1] == len(unknown) >= 1


@pytest.mark.ci
def test_a_class_that_the_model_lacks(tmp_path: Path) -> None:
    """Its words are unknown."""
    write_class_system(tmp_path)
    write_classes(tmp_path / "classes.tsv", CLASSES | {"q": 99})
    made = decoder(tmp_path, distortion_limit=0)
    lm = made.model.word_lms[1]
    assert lm.number("q") == lm.number("zz") != lm.number("p")
    assert lm.knows("p") and not lm.knows("q") and not lm.knows("zz")


@pytest.mark.ci
def test_the_model_of_words_comes_first(tmp_path: Path) -> None:
    """It stands in for features that have not scored; columns stay in the order of the ini."""
    made = system.load(str(write_class_system(tmp_path)), use_cache=False)
    assert made.lm_names == ["LM0", "CLM0"]
    assert [name for name in made.printed if name in made.lm_names] == ["CLM0", "LM0"]


def test_its_files(tmp_path: Path) -> None:
    """The classes are one of the files of a system, and a path of its ini."""
    ini = moses_ini.read(str(write_class_system(tmp_path) / "moses.ini"))
    assert {tmp_path / "classes.tsv", tmp_path / "clm"} <= set(system.system_files(ini))
    absolute = moses_ini.with_absolute_paths(ini, [tmp_path])
    assert absolute.feature("CLM0").options["classes"] == f"{tmp_path}/classes.tsv"


def with_line(old: str, new: str) -> Callable[[Path], Path]:
    return lambda folder: edit(folder, (old, new))


def with_binary(folder: Path) -> Path:
    (folder / "clm").write_bytes(b"mmap lm http://kheafield.com/code format version 5\n\0")
    return folder


def with_bad_row(folder: Path) -> Path:
    (folder / "classes.tsv").write_text("p\t1\nq 2\n")
    return folder


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (with_line(" classes=classes.tsv", ""), ConfigError, r"moses\.ini:\d+: CLM0 has no classes="),
        (with_line("classes.tsv", "nowhere"), DataError, r"moses\.ini:\d+: nowhere found neither"),
        (
            with_line("KENLM name", "KENLM classes=c name"),
            ConfigError,
            "KENLM has no argument 'classes' here",
        ),
        (with_binary, ConfigError, r"moses\.ini:\d+: path=.*clm: neither an ARPA file nor a folder"),
        (with_bad_row, DataError, r"classes\.tsv:2: expected 'word<TAB>class'"),
    ],
)
def test_refused(
    change: Callable[[Path], Path], error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        system.load(str(change(write_class_system(tmp_path))), use_cache=False)


def test_moses_does_not_know_it(tmp_path: Path) -> None:
    ini = moses_ini.read(str(write_class_system(tmp_path) / "moses.ini"))
    (problem,) = check.problems(ini, [str(tmp_path)])
    assert problem.startswith(
        f"{ini.feature('CLM0').location}: Moses has no feature ClassLM, and stops at it"
    )
