"""Loading the system that an ini names: tables, language models, features and weights."""

import math
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import ConfigError, DataError, UserError
from smt_bridge.decoder import system
from smt_bridge.decoder.cache import Cache
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.moses import ini as moses_ini
from smt_bridge.tuning import pool
from tests.smt_bridge.decoder.models import (
    REORDERING,
    decoder,
    edit,
    sentence,
    values,
    weight_line,
    write_model,
)

# ---- test system -------------------------------------------------------------------------------------------


def test_a_folder_or_its_ini(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model", 0)
    assert (
        system.ini_path(str(folder))
        == system.ini_path(str(folder / "moses.ini"))
        == str(folder / "moses.ini")
    )
    with pytest.raises(DataError, match=r"no moses\.ini in this folder"):
        system.ini_path(str(tmp_path))


def test_files_from_beside_the_ini_then_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compressed files too; for a missing file the message names its line."""
    folder, here = write_model(tmp_path / "model", 0), tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    ini = moses_ini.read(str(folder / "moses.ini"))
    line = ini.feature("TranslationModel0")
    (here / "table.gz").write_bytes(b"")
    assert system.feature_path(ini, line) == str(folder / "table")
    (folder / "table").unlink()
    assert Path(system.feature_path(ini, line)).resolve() == here / "table.gz"
    (here / "table.gz").unlink()
    with pytest.raises(DataError, match=rf"moses.ini:{line.row + 1}: table found neither beside the ini"):
        system.feature_path(ini, line)


def test_weights_of_all_scores_or_of_the_printed_ones(tmp_path: Path) -> None:
    edit(write_model(tmp_path, 1), ("path=table", "path=table tuneable-components=1,0,1,0"))
    made = system.load(str(tmp_path), use_cache=False)
    printed, before = made.tuneable_weights(), made.weights["TranslationModel0"]
    assert printed["TranslationModel0"] == before[::2] and list(printed) == list(made.sizes)
    assert {name: len(values) for name, values in printed.items()} == made.sizes
    assert made.with_weights(printed) == made.with_weights(made.weights) == made.weights
    more = {**printed, "TranslationModel0": [7.0, 8.0]}
    assert made.with_weights(more)["TranslationModel0"] == [7.0, before[1], 8.0, before[3]]
    with pytest.raises(ConfigError, match="weights of 'LM7', but the model has no such feature"):
        made.with_weights({**printed, "LM7": [1.0]})
    with pytest.raises(ConfigError, match="TranslationModel0 has 4 scores, but 3 weights"):
        made.with_weights({**printed, "TranslationModel0": [1.0] * 3})
    del more["Distortion0"]
    with pytest.raises(ConfigError, match="no weights for Distortion0, which has 1 scores"):
        made.with_weights(more)


def test_weights_of_a_name_with_an_underscore(tmp_path: Path) -> None:
    """It is no sparse value where the system has a feature of this name."""
    edit(write_model(tmp_path, 1), ("name=LM0", "name=My_LM"), ("LM0=", "My_LM="))
    loaded = system.load(str(tmp_path), use_cache=False)
    weights = {**loaded.tuneable_weights(), "My_LM": [0.75]}
    assert Decoder(loaded, weights=weights).weights == {**loaded.weights, "My_LM": [0.75]}
    with pytest.raises(ConfigError, match="a weight of 'My_word', but the model has no such sparse feature"):
        Decoder(loaded, weights={**weights, "My_word": [1.0]})


def test_a_feature_that_is_not_there(tmp_path: Path) -> None:
    """It has no name and weight 0; a system without a language model gets one that scores nothing."""
    made = system.load(str(write_model(tmp_path, 1, lms=0, reordering=False)), use_cache=False)
    assert made.name("Distortion") == "Distortion0" and made.weight("Distortion", made.weights) == 0.2
    assert made.name("KENLM") == "" and made.weight("KENLM", made.weights) == 0.0
    (lm,) = made.word_lms
    assert not made.lms and lm.sentence([lm.number("p")]) == 0.0
    assert made.reordering_name == "" and made.default_reordering == [0.0] * 6


def test_scores_that_the_ini_does_not_count(tmp_path: Path) -> None:
    """A wrong num-features= is refused even if the table comes from the cache."""
    folder, store = write_model(tmp_path / "model", 1), Cache(tmp_path / "cache")
    system.load(str(folder), store)
    weights = weight_line(folder, "TranslationModel0")
    edit(folder, ("num-features=4 path", "num-features=5 path"), (weights, f"{weights} 0.1"))
    for cache in (False, store):
        with pytest.raises(DataError, match="num-features=5"):
            system.load(str(folder), cache)


# ---- test feature lines ------------------------------------------------------------------------------------
# Lines of [feature]: honored as real Moses does, or refused with their line.


def test_default_scores(tmp_path: Path) -> None:
    """Logarithms of default-scores= are used for pairs without a reordering row, and for unknown words."""
    write_model(tmp_path, 2)
    rows = (tmp_path / "reordering").read_text().split("\n")
    (tmp_path / "reordering").write_text("\n".join(row for row in rows if not row.startswith("a |||")))
    edit(tmp_path, (REORDERING, f"{REORDERING} default-scores=0.1,0.2,0.3,0.4,0.5,0.6"))
    made = decoder(tmp_path, distortion_limit=0)
    assert np.isnan(made.system.table.reordering[made.system.table.find_rows("a")[0]]).all()
    found = values(made, made.translate_line("a zz"))["LexicalReordering0"]
    np.testing.assert_allclose(
        found, [2 * math.log(0.1), 0, 0, math.log(0.4), 0, 0], atol=1e-6
    )  # monotone: two phrases, one transition


def test_oov_feature(tmp_path: Path) -> None:
    """It adds a second score, the number of words that the language model does not know; the number of scores
    follows from it."""
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
    assert made.system.sizes["LM1"] == 2 and pool.column_names(made.system.sizes)[-9:-6] == [
        "LM0_0",
        "LM1_0",
        "LM1_1",
    ]


def test_tuneable(tmp_path: Path) -> None:
    """Scores that are not tuneable count but are not printed; weights for the printed scores leave the others
    unchanged."""
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
    names = pool.column_names(made.system.sizes)
    start = pool.from_weights(names, made.system.tuneable_weights())
    again = made.system.with_weights(pool.to_weights(names, 2 * start))
    table = before.weights["TranslationModel0"]
    assert (
        again["TranslationModel0"] == [2 * table[0], table[1], 2 * table[2], table[3]]
        and again["WordPenalty0"] == before.weights["WordPenalty0"]
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
        ("fe-allff", "fe-collapseff", "type=wbe-msd-bidirectional-fe-collapseff has 2 scores"),
        ("wbe-msd", "hier-mslr", "type=hier-mslr-bidirectional-fe-allff has 8 scores"),
        ("wbe-msd", "msd-wbe-mslr", "expected a reordering type [wbe|phrase|hier]-"),
        ("msd-", "", "expected a reordering type"),
        ("fe-allff", "fe-allff-collapseff", "expected a reordering type"),
        ("wbe-msd-bidirectional", "wbe-monotonicity-bidirectional", "has 4 scores"),
        ("path=reordering", "path=reordering default-scores=1,1,1,1,1,0", "6 probabilities above 0"),
        ("factor=0 path=lm0", "factor=1 path=lm0", "factors"),
        (" path=lm0", "", "LM0 has no path="),
        ("path=reordering", "path=table", "6 probabilities for a pair, but"),
        ("PhrasePenalty\n", "GlobalLexicalModel\n", "the embedded engine has no feature GlobalLexicalModel"),
        ("path=table", "path=table tuneable-components=1,1", "2 values, but TranslationModel0 has 4 scores"),
        ("fe-allff", "f-allff", "models of the source alone (-f) are not supported"),
        ("path=lm0", "path=lm0 tuneable-components=1", "use tuneable=false"),
        ("path=table", "path=table tuneable=perhaps", "neither true nor false"),
        ("PhrasePenalty\n", "PhrasePenalty per-dictionary=true\n", "not supported by the engine"),
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
