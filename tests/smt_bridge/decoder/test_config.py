"""Settings of the decoder: options come first, then the ini, then Moses' defaults."""

from dataclasses import fields
from pathlib import Path

import pytest

from nmt.errors import ConfigError, UserError
from smt_bridge.decoder import config, system
from smt_bridge.decoder.config import SEARCH_FIELDS, DecoderConfig, SearchSettings, search_settings
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.moses import ini
from tests.smt_bridge.decoder.models import decoder, edit, sentence, write_model

# ---- test config -------------------------------------------------------------------------------------------


OTHERS = {
    "stack": (7, 0), "table_limit": (3, 0), "distortion_limit": (4, 0), "beam_threshold": (0.5, 0.0),
    "max_phrase_length": (5, 6), "nbest_factor": (9, 0), "early_distortion_cost": (True, False),
    "drop_unknown": (True, False), "mark_unknown": (True, False), "xml_input": ("exclusive", "ignore"),
    "xml_brackets": (("{", "}"), ("[", "]")), "search": ("cube", "stack"), "pop_limit": (7, 1),
    "diversity": (3, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_the_option_before_the_ini_before_moses(name: str) -> None:
    """An option of 0 or false overrides the ini too."""
    ini, asked = OTHERS[name]
    default = SearchSettings()
    assert search_settings(DecoderConfig(), {}) == default
    for options, sections, expected in (
        (DecoderConfig(), {name: ini}, ini),
        (DecoderConfig(**{name: asked}), {name: ini}, asked),  # type: ignore[arg-type]
        (DecoderConfig(**{name: asked}), {}, asked),  # type: ignore[arg-type]
    ):
        found = search_settings(options, sections)
        assert getattr(found, name) == expected
        assert all(
            getattr(found, other) == getattr(default, other) for other in SEARCH_FIELDS if other != name
        )


def test_every_option_of_the_search_is_unset_at_first() -> None:
    """Otherwise an ini could never set it."""
    options = DecoderConfig()
    shared = [item.name for item in fields(DecoderConfig) if item.name in SEARCH_FIELDS]
    assert sorted(shared) == sorted(OTHERS) and all(getattr(options, name) is None for name in shared)


@pytest.mark.parametrize(
    ("name", "value"),
    [("stack", -1), ("beam_threshold", 1.5), ("max_phrase_length", 0), ("nbest", -1), ("buffer", 0)],
)
def test_out_of_range(name: str, value: float) -> None:
    DecoderConfig().check()
    option = "--" + name.replace("_", "-")
    with pytest.raises(ConfigError, match=f"^{option}: {value} is out of range"):
        DecoderConfig(**{name: value}).check()  # type: ignore[arg-type]


# ---- test sections -----------------------------------------------------------------------------------------
# Sections of a moses.ini: honored as the option of their name, refused with their line, or without
# effect.


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
        ("phrase-pair-feature", "0-0", "no such sparse feature"),
        ("word-translation-feature", "0-0 1", "write sparse features as lines of [feature]"),
        ("search-algorithm", "2", "cube pruning, 1, not '2'"), ("inputtype", "2", "plain text"),
        ("ttable-limit", "20", "write table-limit=N in the line of the table"),
        ("output-unknowns", "x", "does not write this file"),
        ("s", "10", "write [stack], or remove it"), ("stak", "10", "section 'stak' is unknown"),
        ("table-limit", "20", "section 'table-limit' is unknown"),
        ("xml-brackets", "<>", "expected two strings"),
        ("xml-input", "all", "[xml-input]: 'all' is unknown, expected one of 'pass-through'"),
        ("report-segmentation", "true", "plain translations"),
        ("lmodel-oov-feature", "yes", "write oov-feature=1"),
    ],
)  # fmt: skip
def test_refused_sections(section: str, value: str, told: str, tmp_path: Path) -> None:
    """The message names the line of the value, or of the header if the section itself is refused."""
    text = (write_model(tmp_path, 0) / "moses.ini").read_text()
    text = text[text.index("[feature]") :]  # each section once
    (tmp_path / "moses.ini").write_text(f"[threads]\n4\n[{section}]\n{value}\n{text}")
    with pytest.raises(UserError) as error:
        system.load(str(tmp_path), use_cache=False)
    row = int(str(error.value).removeprefix(f"{tmp_path}/moses.ini:").split(":")[0])
    assert told in str(error.value) and row in (3, 4, 5) and "\n" not in str(error.value)


def test_every_parameter_has_one_place() -> None:
    tables = [
        set(config.HONORED_SECTIONS),
        config.MODEL_SECTIONS,
        set(config.RESTRICTED_SECTIONS),
        config.HARMLESS_SECTIONS,
        set(config.REFUSED_SECTIONS),
        ini.OLD_SECTIONS,
        set(config.SHORT_NAMES),
    ]
    assert sum(map(len, tables)) == len(set().union(*tables))
    assert set(config.SHORT_NAMES.values()) <= set().union(*tables[:-1])


def test_harmless_sections(tmp_path: Path) -> None:
    """All of them together, and those that mert-moses.pl writes into its ini, change no setting."""
    line = sentence(1, 6)
    before = decoder(write_model(tmp_path, 1)).translate_line(line).derivations[0]
    text = "".join(f"[{name}]\n1\n" for name in [*sorted(config.HARMLESS_SECTIONS), "v"])
    (tmp_path / "moses.ini").write_text(f"# BLEU 0.5\n{text}{(tmp_path / 'moses.ini').read_text()}")
    found = decoder(tmp_path).translate_line(line).derivations[0]
    assert found.text == before.text and found.total == before.total


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
    """A section sets the same field as the option of its name, and the option overrides it."""
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
