"""What a moses.ini must not say: refused with its line; what changes no result is accepted."""

from pathlib import Path

import pytest

from nmt.errors import UserError
from smt_bridge.decoder import sections, system
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.moses import ini as moses_ini
from tests.smt_bridge.decoder.models import decoder, sentence, write_model
from tests.smt_bridge.decoder.test_settings import edit


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
    before = decoder(write_model(tmp_path, 1)).translate_line(line).derivations[0]
    text = "".join(f"[{name}]\n1\n" for name in [*sorted(sections.HARMLESS), "v"])
    (tmp_path / "moses.ini").write_text(f"# BLEU 0.5\n{text}{(tmp_path / 'moses.ini').read_text()}")
    found = decoder(tmp_path).translate_line(line).derivations[0]
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
