"""What a moses.ini can say: honored as real Moses does, the same in both decoders, or refused with its
line."""

import math
from pathlib import Path

import numpy as np
import pytest

from nmt.formats import nbest
from smt_bridge.decoder import system
from smt_bridge.decoder.config import SearchSettings
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.translation import PhraseTranslation
from smt_bridge.decoder.xml_input import Marked
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses.weights import read
from smt_bridge.tuning import pool
from tests.conftest import Command
from tests.smt_bridge.decoder.models import decoder, sentence, write_model

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


def values(made: Decoder, translation: PhraseTranslation, place: int = 0) -> dict[str, list[float]]:
    """The features of a derivation by name."""
    row = iter(translation.derivations[place].features.tolist())
    return {name: [next(row) for _ in range(size)] for name, size in made.system.sizes.items()}


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
def test_section_is_option(section: str, value: str, option: dict[str, object], tmp_path: Path) -> None:
    """A section does what the option of its name does, and is no empty word; the option wins."""
    write_model(tmp_path, 3, options=6)
    edit(tmp_path, ("[distortion-limit]\n3\n", ""))
    lines = [sentence(number, 8) for number in range(15)]

    def outcome(made: Decoder) -> list[tuple[list[str], float]]:
        return [(found.text, found.derivations[0].total) for found in map(made.translate_line, lines)]

    before, asked = outcome(decoder(tmp_path)), outcome(decoder(tmp_path, **option))
    edit(tmp_path, **{section: f"{value} # a comment"})
    assert outcome(decoder(tmp_path)) == asked != before
    name, default = next(iter(option)), system.load(str(tmp_path), False).search
    back = getattr(SearchSettings(), name)
    assert default[name] != back and outcome(decoder(tmp_path, **{name: back})) == before


def rows_of(made: Decoder) -> list[int]:
    """The options of `a b`, in their order."""
    return [int(row) for row in made.options.gather(Marked(["a", "b"])).rows]


def test_table_limits(tmp_path: Path) -> None:
    """table-limit= in the line of the table, and [max-trans-opt-per-coverage], leave the same best rows."""
    write_model(tmp_path, 4, options=9, longest=1)
    limited = [rows_of(decoder(tmp_path, table_limit=2))]
    edit(tmp_path, ("path=table", "path=table table-limit=2"))
    limited.append(rows_of(decoder(tmp_path)))
    edit(tmp_path, (" table-limit=2", ""), max_trans_opt_per_coverage="2")
    limited.append(rows_of(decoder(tmp_path, table_limit=0)))
    assert len(limited[0]) == 4 and limited[0] == limited[1] == limited[2]


def test_unknown_words(tmp_path: Path) -> None:
    """Copied, marked, or dropped unless they have digits; what is dropped has no word, no alignment, and
    still pays the penalty."""
    write_model(tmp_path, 0)
    copied = decoder(tmp_path, distortion_limit=0).translate_line("zz a z7")
    marked = decoder(
        edit(tmp_path, mark_unknown="true", unknown_word_prefix="<<", unknown_word_suffix=">>"),
        distortion_limit=0,
        nbest=1,
    )
    found = marked.translate_line("zz a z7")
    assert [word.strip("<>") for word in found.text] == copied.text
    assert (
        found.text[0] == "<<zz>>"
        and found.text[-1] == "<<z7>>"
        and math.isclose(found.derivations[0].total, copied.derivations[0].total)
    )
    assert "<<zz>>" in marked.entry(0, found, found.derivations[0])
    dropper = decoder(tmp_path, distortion_limit=0, drop_unknown=True, mark_unknown=False, nbest=1)
    dropped = dropper.translate_line("zz a z7")
    assert dropped.text == copied.text[1:]
    entry = nbest.parse(dropper.entry(0, dropped, dropped.derivations[0]), "entry")
    assert entry.rest[0].startswith("0=0 1=0") and entry.rest[1].startswith(
        "1-0"
    )  # as Moses writes a phrase without words
    assert entry.features["WordPenalty0"] == [-len(dropped.text)] and entry.features["PhrasePenalty0"] == [3]
    assert (
        dropper.translate_line("zz zz").text == []
        and dropper.translate_line("zz zz").derivations[0].features[1] == 0
    )  # not even an end of sentence


def test_end_behind_a_dropped_word(tmp_path: Path) -> None:
    """As Moses: where the last phrase has no words the end of the sentence is not scored."""
    made = decoder(write_model(tmp_path, 0, reordering=False), drop_unknown=True, distortion_limit=0, nbest=1)
    lm = made.model.word_lms[0]
    for line, complete in (("a zz", False), ("zz a", True)):
        translation = made.translate_line(line)
        expected = lm.sentence([lm.number(word) for word in translation.text], complete)
        assert math.isclose(values(made, translation)["LM0"][0], expected, abs_tol=1e-9)


def test_unknown_word_penalty(tmp_path: Path) -> None:
    """Its weight counts, and with tuneable=true it is printed."""
    line = "zz a zz b"
    before = decoder(write_model(tmp_path, 1), distortion_limit=0).translate_line(line).derivations[0].total
    edit(tmp_path, ("[weight]\n", "[weight]\nUnknownWordPenalty0= 0.1\n"))
    assert math.isclose(
        decoder(tmp_path, distortion_limit=0).translate_line(line).derivations[0].total,
        before + 180,
        abs_tol=1e-9,
    )
    made = decoder(
        edit(tmp_path, ("UnknownWordPenalty\n", "UnknownWordPenalty tuneable=true\n")), distortion_limit=0
    )
    assert values(made, made.translate_line(line))["UnknownWordPenalty0"] == [-200]
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
        translation = made.translate_line(sentence(number, 6))
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
    found = values(made, made.translate_line("a zz"))["LexicalReordering0"]
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
    translation = made.translate_line(line)
    known = [made.model.word_lms[1].knows(word) for word in translation.text]
    assert values(made, translation)["LM1"][1] == known.count(False) >= 2
    assert math.isclose(
        translation.derivations[0].total,
        before.translate_line(line).derivations[0].total - 0.25 * known.count(False),
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
    one, other = made.translate_line(line), before.translate_line(line)
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
        " ".join(word if number % 5 else "p" for number, word in enumerate(before.translate_line(line).text))
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
    before = decoder(write_model(tmp_path, 2)).translate_line(sentence(1, 6)).derivations[0]
    found = (
        decoder(edit(tmp_path, (REORDERING, f"type={kind}"))).translate_line(sentence(1, 6)).derivations[0]
    )
    assert found.text == before.text and found.total == before.total
