"""What a moses.ini can say: honored as real Moses does, the same in both decoders, or refused with its
line."""

import itertools
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt import files, nbest
from nmt.errors import UserError
from smt_bridge import moses_ini
from smt_bridge.decoder import sections, system
from smt_bridge.decoder.compiled import HAVE_NUMBA
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder, Translation
from smt_bridge.decoder.xml_input import Marked
from smt_bridge.tuning import pool
from smt_bridge.weights import read
from tests.conftest import Command
from tests.smt_bridge.decoder.models import sentence, write_model
from tests.smt_bridge.decoder.test_decoder import same_lists

REORDERING = "type=wbe-msd-bidirectional-fe-allff"


def edit(folder: Path, *changes: tuple[str, str], **found: str) -> Path:
    """The ini with some text replaced, and with sections: drop_unknown="true"."""
    text = (folder / "moses.ini").read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    for name, value in found.items():
        text = f"[{name.replace('_', '-')}]\n{value}\n{text}"
    (folder / "moses.ini").write_text(text, encoding="utf-8")
    return folder


def decoder(folder: Path, slow: bool = False, **config: Any) -> Decoder:
    made = Decoder(system.load(str(folder), use_cache=False), DecoderConfig(**config))
    if slow:
        made.compiled = False
    return made


def values(made: Decoder, translation: Translation, place: int = 0) -> dict[str, list[float]]:
    """The features of a derivation by name."""
    row = iter(translation.derivations[place].features.tolist())
    return {name: [next(row) for _ in range(size)] for name, size in made.system.sizes.items()}


# ---- real Moses --------------------------------------------------------------------------------------------

SETTINGS = [
    "baseline", "default-scores", "distortion-0", "drop-unknown", "early-distortion-cost", "mark-unknown",
    "max-phrase-length", "msd-bidirectional-fe",
    "no-reordering", "oov-feature", "stack-beam", "ttable-limit", "tuneable-components",
    "two-language-models", "unknown-weight",
]  # fmt: skip


@pytest.fixture(scope="module")
def moses(nmt_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Links to real Moses' settings, whose ini files name the real language model beside their folder."""
    folder = tmp_path_factory.mktemp("moses")
    for name in ("moses-settings", "moses-multi30k"):
        (folder / name).mkdir()
        for path in (nmt_data / name).iterdir():
            (folder / name / path.name).symlink_to(path)
    return folder / "moses-settings"


@pytest.mark.ci
@pytest.mark.skipif(not HAVE_NUMBA, reason="the plain decoder is too slow here")
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("count", [10, pytest.param(40, marks=pytest.mark.slow)])
def test_as_real_moses(name: str, count: int, moses: Path) -> None:
    """The output, and the 5-best list with segmentation, alignment, features and totals.

    Numbers agree to one unit of the sixth digit, which is the last one printed: Moses adds up in single
    precision, we in double. For the same reason neighbors whose totals are printed alike may change places;
    lists are compared without their order.
    """
    made = Decoder(system.load(str(moses / f"{name}.ini")), DecoderConfig(nbest=5))
    outputs = [line.rstrip(" ") for line in files.read_lines(moses / f"{name}.out")]
    lists = dict(nbest.by_sentence(moses / f"{name}.nbest"))
    for number, line in enumerate(itertools.islice(files.read_lines(moses / "in.en"), count)):
        translation = made.translate(line)
        assert " ".join(translation.text) == outputs[number]
        mine = [
            nbest.parse(made.entry(number, translation, derivation), "mine")
            for derivation in translation.derivations
        ]
        ours, theirs = (
            {(tuple(entry.words), *entry.rest): entry for entry in entries}
            for entries in (mine, lists[number])
        )
        assert ours.keys() == theirs.keys() and len(mine) == len(lists[number])
        for key, entry in theirs.items():
            assert list(ours[key].features) == list(entry.features)
            for feature, expected in entry.features.items():
                np.testing.assert_allclose(
                    ours[key].features[feature], expected, rtol=1.1e-5, atol=1.1e-5, err_msg=feature
                )
            assert math.isclose(ours[key].total, entry.total, rel_tol=1.1e-5, abs_tol=1.1e-5)


# ---- each setting, on small models -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("section", "value", "option"),
    [
        ("stack", "2", {"stack": 2}), ("beam_threshold", "0.5", {"beam_threshold": 0.5}),
        ("distortion_limit", "0", {"distortion_limit": 0}),
        ("max_phrase_length", "1", {"max_phrase_length": 1}),
        ("early_distortion_cost", "true", {"early_distortion_cost": True}),
        ("drop_unknown", "YES", {"drop_unknown": True}), ("mark_unknown", "1", {"mark_unknown": True}),
    ],
)  # fmt: skip
def test_section_is_option(section: str, value: str, option: dict[str, Any], tmp_path: Path) -> None:
    """A section does what the option of its name does, and is no empty word; the option wins."""
    write_model(tmp_path, 3, options=6)
    edit(tmp_path, ("[distortion-limit]\n3\n", ""))
    lines = [sentence(number, 8) for number in range(15)]

    def outcome(made: Decoder) -> list[tuple[list[str], float]]:
        return [(found.text, found.derivations[0].total) for found in map(made.translate, lines)]

    before, asked = outcome(decoder(tmp_path)), outcome(decoder(tmp_path, **option))
    edit(tmp_path, **{section: f"{value} # a comment"})
    assert outcome(decoder(tmp_path)) == asked != before
    name, default = next(iter(option)), system.load(str(tmp_path), False).search
    back = getattr(sections.SearchSettings(), name)
    assert default[name] != back and outcome(decoder(tmp_path, **{name: back})) == before


def test_table_limits(tmp_path: Path) -> None:
    """table-limit= in the line of the table, and [max-trans-opt-per-coverage], leave the same best rows."""
    write_model(tmp_path, 4, options=9, longest=1)
    limited = [decoder(tmp_path, table_limit=2).gathered(Marked(["a", "b"]), 2).rows]
    edit(tmp_path, ("path=table", "path=table table-limit=2"))
    limited.append(decoder(tmp_path).gathered(Marked(["a", "b"]), 2).rows)
    edit(tmp_path, (" table-limit=2", ""), max_trans_opt_per_coverage="2")
    limited.append(decoder(tmp_path, table_limit=0).gathered(Marked(["a", "b"]), 2).rows)
    assert all(len(rows) == 2 for found in limited for rows in found)
    assert all(
        (one == other).all() for found in limited[1:] for one, other in zip(limited[0], found, strict=True)
    )


def test_unknown_words(tmp_path: Path) -> None:
    """Copied, marked, or dropped unless they have digits; what is dropped has no word, no alignment, and
    still pays the penalty."""
    write_model(tmp_path, 0)
    copied = decoder(tmp_path, distortion_limit=0).translate("zz a z7")
    marked = decoder(
        edit(tmp_path, mark_unknown="true", unknown_word_prefix="<<", unknown_word_suffix=">>"),
        distortion_limit=0,
        nbest=1,
    )
    found = marked.translate("zz a z7")
    assert [word.strip("<>") for word in found.text] == copied.text
    assert (
        found.text[0] == "<<zz>>"
        and found.text[-1] == "<<z7>>"
        and math.isclose(found.derivations[0].total, copied.derivations[0].total)
    )
    assert "<<zz>>" in marked.entry(0, found, found.derivations[0])
    dropper = decoder(tmp_path, distortion_limit=0, drop_unknown=True, mark_unknown=False, nbest=1)
    dropped = dropper.translate("zz a z7")
    assert dropped.text == copied.text[1:]
    entry = nbest.parse(dropper.entry(0, dropped, dropped.derivations[0]), "entry")
    assert entry.rest[0].startswith("0=0 1=0") and entry.rest[1].startswith(
        "1-0"
    )  # as Moses writes a phrase without words
    assert entry.features["WordPenalty0"] == [-len(dropped.text)] and entry.features["PhrasePenalty0"] == [3]
    assert (
        dropper.translate("zz zz").text == [] and dropper.translate("zz zz").derivations[0].features[1] == 0
    )  # not even an end of sentence


def test_end_behind_a_dropped_word(tmp_path: Path) -> None:
    """As Moses: where the last phrase has no words the end of the sentence is not scored."""
    made = decoder(write_model(tmp_path, 0, reordering=False), drop_unknown=True, distortion_limit=0, nbest=1)
    lm = made.word_of[0]
    for line, complete in (("a zz", False), ("zz a", True)):
        translation = made.translate(line)
        expected = lm.sentence([lm.number(word) for word in translation.text], complete)
        assert math.isclose(values(made, translation)["LM0"][0], expected, abs_tol=1e-9)


def test_unknown_word_penalty(tmp_path: Path) -> None:
    """Its weight counts, and with tuneable=true it is printed."""
    line = "zz a zz b"
    before = decoder(write_model(tmp_path, 1), distortion_limit=0).translate(line).derivations[0].total
    edit(tmp_path, ("[weight]\n", "[weight]\nUnknownWordPenalty0= 0.1\n"))
    assert math.isclose(
        decoder(tmp_path, distortion_limit=0).translate(line).derivations[0].total, before + 180, abs_tol=1e-9
    )
    made = decoder(
        edit(tmp_path, ("UnknownWordPenalty\n", "UnknownWordPenalty tuneable=true\n")), distortion_limit=0
    )
    assert values(made, made.translate(line))["UnknownWordPenalty0"] == [-200]
    assert list(made.system.sizes)[-4:] == [
        "UnknownWordPenalty0",
        "WordPenalty0",
        "PhrasePenalty0",
        "TranslationModel0",
    ]


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
        translation = made.translate(sentence(number, 6))
        part = translation.sentence
        assert part
        for place, derivation in enumerate(translation.derivations):
            spans = [(int(part.begin[option]), int(part.last[option])) for option in derivation.options]
            assert values(made, translation, place)["Distortion0"] == [-jumps(spans)]
            moved += jumps(spans) > 0
    assert moved > 20


def test_default_scores(tmp_path: Path) -> None:
    """Logarithms of the given probabilities for pairs without a reordering row, and for unknown words."""
    write_model(tmp_path, 2)
    rows = (tmp_path / "reordering").read_text().split("\n")
    (tmp_path / "reordering").write_text("\n".join(row for row in rows if not row.startswith("a |||")))
    edit(tmp_path, (REORDERING, f"{REORDERING} default-scores=0.1,0.2,0.3,0.4,0.5,0.6"))
    made = decoder(tmp_path, distortion_limit=0)
    assert made.system.table.forward[made.system.table.of(b"a")[0]] == -1
    found = values(made, made.translate("a zz"))["LexicalReordering0"]
    np.testing.assert_allclose(
        found, [2 * math.log(0.1), 0, 0, math.log(0.4), 0, 0], atol=1e-6
    )  # monotone: two phrases, one transition


def test_oov_feature(tmp_path: Path) -> None:
    """A second score: words that the language model does not know; Moses counts the scores itself."""
    line = "zz a zz"
    before = decoder(write_model(tmp_path, 1, lms=2), distortion_limit=0)
    weight = before.weights["LM1"][0]
    edit(tmp_path, ("path=lm1", "path=lm1 oov-feature=1"), (f"LM1= {weight:.3f}", f"LM1= {weight:.3f} -0.25"))
    made = decoder(tmp_path, distortion_limit=0)
    translation = made.translate(line)
    known = [made.word_of[1].knows(word) for word in translation.text]
    assert values(made, translation)["LM1"][1] == known.count(False) >= 2
    assert math.isclose(
        translation.derivations[0].total,
        before.translate(line).derivations[0].total - 0.25 * known.count(False),
        abs_tol=1e-9,
    )
    assert made.system.sizes["LM1"] == 2 and pool.columns(made.system.sizes)[-9:-6] == [
        "LM0_0",
        "LM1_0",
        "LM1_1",
    ]


def test_tuneable(tmp_path: Path) -> None:
    """What is not tuneable counts and is not printed; weights for the printed scores leave the others as they
    are."""
    line = sentence(1, 6)
    before = decoder(write_model(tmp_path, 1))
    edit(
        tmp_path,
        ("path=table", "path=table tuneable-components=1,0,true,no"),
        ("WordPenalty\n", "WordPenalty tuneable=false\n"),
    )
    made = decoder(tmp_path)
    one, other = made.translate(line), before.translate(line)
    assert one.text == other.text and one.derivations[0].total == other.derivations[0].total
    assert "WordPenalty0" not in made.system.sizes
    assert values(made, one)["TranslationModel0"] == values(before, other)["TranslationModel0"][::2]
    names = pool.columns(made.system.sizes)
    start = pool.from_weights(names, made.system.tuneable_weights())
    again = made.system.with_weights(pool.to_weights(names, 2 * start))
    table = before.weights["TranslationModel0"]
    assert (
        again["TranslationModel0"] == [2 * table[0], table[1], 2 * table[2], table[3]]
        and again["WordPenalty0"] == before.weights["WordPenalty0"]
    )


def test_tuning_leaves_hidden_weights(tmp_path: Path, command: Command) -> None:
    """smt-tune: scores that are not tuneable keep their weights, the others move, with both of a language
    model's."""
    before = decoder(write_model(tmp_path, 1), stack=5)
    edit(
        tmp_path,
        ("path=table", "path=table tuneable-components=1,0,1,0"),
        ("PhrasePenalty\n", "PhrasePenalty tuneable=false\n"),
    )
    weight = f"LM0= {before.weights['LM0'][0]:.3f}"
    edit(tmp_path, ("path=lm0", "path=lm0 oov-feature=1"), (weight, f"{weight} -0.1"))
    lines = [sentence(number, 6) for number in range(30)]
    references = [
        " ".join(word if number % 5 else "p" for number, word in enumerate(before.translate(line).text))
        for line in lines
    ]
    for name, text in (("source", lines), ("reference", references)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in text))
    given = ["--stack", 5, "--iterations", 2, "--restarts", 2, "--n-best", 20, "--no-cache"]
    done = command("smt-tune", tmp_path, "-s", tmp_path / "source", "-r", tmp_path / "reference", *given)
    assert done.returncode == 0, done.stderr
    table = before.weights["TranslationModel0"]
    tuned = moses_ini.read(str(tmp_path / "moses.tuned.ini")).weights
    assert tuned["PhrasePenalty0"] == [0.1] and tuned["TranslationModel0"][1::2] == table[1::2]
    assert tuned["TranslationModel0"][0] != table[0] and len(tuned["LM0"]) == 2 and tuned["LM0"][1] != -0.1
    made = system.load(str(tmp_path), use_cache=False)
    assert made.with_weights(read(tmp_path / "moses.tuned.ini.tuning" / "weights")) == made.with_weights(
        tuned
    )


@pytest.mark.parametrize(
    "kind",
    [
        "msd-bidirectional-fe",
        "wbe-msd-bidirectional-fe",
        "phrase-msd-bidirectional-fe-allff",
        "fe-msd-bidirectional",
    ],
)
def test_reordering_types(kind: str, tmp_path: Path) -> None:
    before = decoder(write_model(tmp_path, 2)).translate(sentence(1, 6)).derivations[0]
    found = decoder(edit(tmp_path, (REORDERING, f"type={kind}"))).translate(sentence(1, 6)).derivations[0]
    assert found.text == before.text and found.total == before.total


@pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")
@pytest.mark.parametrize("seed", [*range(8), 11, 23])
def test_compiled_is_plain_with_any_settings(seed: int, tmp_path: Path) -> None:
    """Random settings, small stacks: the same texts, totals and lists; features x weights are the totals.

    Where a stack was cut while it filled, the compiled search, as Moses, no longer lists ways into hypotheses
    that are worse than what the cut left; the plain one lists them all. There only the best derivations are
    compared.
    """
    rng = random.Random(seed)
    lms = rng.randint(1, 2)
    folder = write_model(tmp_path, seed, reordering=seed % 4 != 3, lms=lms)
    edit(
        folder,
        ("UnknownWordPenalty\n", "UnknownWordPenalty tuneable=true\n"),
        ("[weight]\n", f"[weight]\nUnknownWordPenalty0= {rng.uniform(0.01, 1):.2f}\n"),
    )
    if rng.random() < 0.6:
        last = next(
            line
            for line in (folder / "moses.ini").read_text().split("\n")
            if line.startswith(f"LM{lms - 1}=")
        )
        edit(
            folder,
            (f"path=lm{lms - 1}", f"path=lm{lms - 1} oov-feature=1"),
            (last, f"{last} {rng.uniform(-1, 0.2):.2f}"),
        )
    if seed % 4 != 3:
        (folder / "reordering").write_text(
            "".join(
                f"{row}\n"
                for row in (folder / "reordering").read_text().split("\n")[:-1]
                if rng.random() < 0.7
            )
        )
        edit(
            folder,
            (
                REORDERING,
                (
                    "type=msd-bidirectional-fe "
                    f"default-scores={','.join(f'{rng.uniform(0.01, 1):.2f}' for _ in range(6))}"
                ),
            ),
        )
    edit(
        folder,
        ("[distortion-limit]\n3\n", f"[distortion-limit]\n{rng.randint(-1, 4)}\n"),
        stack=str(rng.randint(2, 8)),
        beam_threshold="0.001",
    )
    flags = {
        name: str(rng.random() < 0.6).lower()
        for name in ("early_distortion_cost", "drop_unknown", "mark_unknown")
    }
    edit(folder, **flags, max_phrase_length=str(rng.randint(1, 3)), n_best_factor="3")
    one, other = (decoder(folder, slow, nbest=6, distinct=seed % 2 == 1) for slow in (False, True))
    weights = np.array([value for name in one.system.sizes for value in one.weights[name]])
    whole = 0
    for number in range(40):
        line = " ".join(
            word if rng.random() < 0.8 else rng.choice(["zz", "z7", "p"])
            for word in sentence(number, 1 + number % 7).split()
        )
        ours, theirs = one.translate(line), other.translate(line)
        cut = bool((one.local.state.listed[: one.local.state.counters[0]] == 0).any())
        whole += not cut
        if cut:
            del ours.derivations[1:], theirs.derivations[1:]
        same_lists(ours, theirs, line)
        for derivation in [*ours.derivations, *theirs.derivations]:
            assert math.isclose(derivation.features @ weights, derivation.total, abs_tol=1e-9)
    assert whole > 20


# ---- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("section", "value", "told"),
    [
        ("stack", "-1", "[stack]: -1 is out of range, expected 0 or more"),
        ("stack", "1e2", "[stack]: '1e2' is not a whole number"),
        ("stack", "10\n20", "has a second value"), ("stack", "", "is empty"),
        ("beam-threshold", "nan", "'nan' is not a number"),
        ("beam-threshold", "2", "expected 0 to 1"), ("distortion-limit", "-7", "expected -1 or more"),
        ("max-phrase-length", "0", "expected 1 or more"),
        ("drop-unknown", "maybe", "'maybe' is neither true nor false"),
        ("consensus-decoding", "true", "best derivation"),
        ("minimum-bayes-risk", "1", "best derivation"), ("input-factors", "0\n1", "one factor"),
        ("input-factors", "1", "one factor"),
        ("mapping", "0 T 0\n0 G 0", "one translation step"), ("mapping", "1 T 0", "one translation step"),
        ("output-factors", "1", "one factor"),
        ("weight-file", "sparse.weights", "sparse features are not supported"),
        ("search-algorithm", "1", "stack search"), ("inputtype", "2", "plain text"),
        ("ttable-limit", "20", "write table-limit=N in the line of the table"),
        ("output-unknowns", "x", "does not write this file"),
        ("s", "10", "write [stack], or remove it"), ("stak", "10", "section 'stak' is unknown"),
        ("xml-brackets", "<>", "expected two strings"),
        ("xml-input", "all", "[xml-input]: 'all' is unknown, expected one of 'pass-through'"),
        ("report-segmentation", "true", "plain translations"),
        ("lmodel-oov-feature", "yes", "write oov-feature=1"),
    ],
)  # fmt: skip
def test_refused_sections(section: str, value: str, told: str, tmp_path: Path) -> None:
    """With the line of the value, or of the header where the section itself is too much."""
    text = (write_model(tmp_path, 0) / "moses.ini").read_text()
    text = text[text.index("[feature]") :]  # each section once
    (tmp_path / "moses.ini").write_text(f"[threads]\n4\n[{section}]\n{value}\n{text}")
    with pytest.raises(UserError) as error:
        system.load(str(tmp_path), use_cache=False)
    row = int(str(error.value).removeprefix(f"{tmp_path}/moses.ini:").split(":")[0])
    assert told in str(error.value) and row in (3, 4, 5) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("path=table", "path=table table-limit=-3", "table-limit='-3' is not a count"),
        ("path=table", "path=table table-limit=abc", "table-limit='abc'"),
        ("path=table", "path=table sparse=1", "has no argument 'sparse'"),
        ("path=lm0", "path=lm0 oov=1", "has no argument 'oov'"),
        ("path=reordering", "path=reordering tuneable=false", "has no argument 'tuneable'"),
        ("path=lm0", "path=lm0 num-features=2", "oov-feature=1"),
        ("path=reordering", "path=reordering sparse-words=x", "sparse features are not supported"),
        ("path=lm0", "path=lm0 oov-feature=2", "neither true"),
        ("path=reordering", "path=reordering default-scores=1,1", "6 probabilities above 0"),
        ("fe-allff", "fe-collapseff", "type=msd-bidirectional-fe"),
        ("path=reordering", "path=reordering default-scores=1,1,1,1,1,0", "6 probabilities above 0"),
        ("factor=0 path=lm0", "factor=1 path=lm0", "factors"),
        ("path=table", "path=table tuneable-components=1,1", "2 values, but TranslationModel0 has 4 scores"),
        ("fe-allff", "f-allff", "type=msd-bid"),
        ("path=lm0", "path=lm0 tuneable-components=1", "use tuneable=false"),
        ("path=table", "path=table tuneable=perhaps", "neither true nor false"),
        ("PhrasePenalty\n", "PhrasePenalty per-dictionary=true\n", "does not do this"),
        ("Distortion\n", "Distortion\nDistortion\n", "a second Distortion"),
        ("Distortion\n", "Distortion name=LM0\n", "a second feature of name 'LM0'"),
        ("UnknownWordPenalty\n", "", "Moses crashes at the first unknown word"),
        ("WordPenalty0= -0.3", "WordPenalty0= -0.3\nTM_sparse= 1",
        "weights of 'TM_sparse', but there is no such feature"),
        ("WordPenalty0= -0.3\n", "", "no line 'WordPenalty0=' in [weight]"),
        ("WordPenalty0= -0.3", "WordPenalty0= 1 2", "1 scores and 2 weights"),
        ("KENLM name=LM0 factor=0 path=lm0 order=3", "SRILM name=LM0 factor=0 path=lm0 order=2",
        "order=2, but"),
        ("PhraseDictionaryMemory", "ProbingPT",
        "give the text table that it was made from as PhraseDictionaryMemory"),
        ("PhraseDictionaryMemory", "PhraseDictionaryMultiModel",
        "decode with Moses, or with one of the tables that it combines"),
        ("path=table", "path=table num-features=²", "num-features is given twice"),
        ("num-features=4", "num-features=²", "num-features='²' is not a count"),
    ],
)  # fmt: skip
def test_refused_features(old: str, new: str, told: str, tmp_path: Path) -> None:
    write_model(tmp_path, 0)
    edit(tmp_path, (old, new))
    with pytest.raises(UserError) as error:
        system.load(str(tmp_path), use_cache=False)
    rest = str(error.value).removeprefix(f"{tmp_path}/moses.ini:")
    assert (
        told in rest
        and (rest.split(":")[0].isdigit() or "UnknownWordPenalty" in told + rest)
        and "\n" not in rest
    )


def test_weights_of_nothing(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 0))
    with pytest.raises(UserError, match="weights of 'LM7', but the model has no such feature"):
        Decoder(made.system, DecoderConfig(), {**made.weights, "LM7": [1.0]})


def test_every_parameter_has_one_place() -> None:
    tables = [
        set(sections.HONORED),
        sections.MODEL,
        set(sections.ONLY),
        sections.HARMLESS,
        set(sections.REFUSED),
        moses_ini.OLD_SECTIONS,
        set(sections.SHORT),
    ]
    assert sum(map(len, tables)) == len(set().union(*tables))
    assert set(sections.SHORT.values()) <= set().union(*tables[:-1])


def test_harmless_sections(tmp_path: Path) -> None:
    """All of them together, and what mert-moses.pl writes into its ini, change nothing."""
    line = sentence(1, 6)
    before = decoder(write_model(tmp_path, 1)).translate(line).derivations[0]
    text = "".join(f"[{name}]\n1\n" for name in [*sorted(sections.HARMLESS), "v"])
    (tmp_path / "moses.ini").write_text(f"# BLEU 0.5\n{text}{(tmp_path / 'moses.ini').read_text()}")
    found = decoder(tmp_path).translate(line).derivations[0]
    assert found.text == before.text and found.total == before.total


def test_comments_and_order(tmp_path: Path) -> None:
    """Comments behind values, sections in any order, one of them twice: as Moses reads them."""
    before = moses_ini.read(str(write_model(tmp_path, 1) / "moses.ini"))
    head, _, tail = (tmp_path / "moses.ini").read_text().partition("[weight]\n")
    lines = tail.split("\n")
    text = (
        "[weight] # first\n"
        + lines[0]
        + " # a weight\n"
        + head.replace("Distortion\n", "Distortion   # of jumps\n")
        + "[weight]\n"
        + "\n".join(lines[1:])
    )
    found = moses_ini.parse("ini", text.split("\n"))
    assert found.weights == before.weights and [line.name for line in found.features] == [
        line.name for line in before.features
    ]
    changed = moses_ini.set_weights(found, {"WordPenalty0": [0.5]})
    assert changed.weights["WordPenalty0"] == [0.5] and changed.lines[1].endswith(" # a weight")
    more = moses_ini.parse(
        "ini",
        [
            moses_ini.with_options(line, {"tuneable": "false"}) if line.startswith("Distortion ") else line
            for line in found.lines
        ],
    )
    assert more.feature("Distortion0").options == {"tuneable": "false"}
