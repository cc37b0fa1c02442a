"""The target words that a sentence may need."""

from pathlib import Path

from nmt.runs.run import Run
from nmt.runs.shortlists import ShortlistOf
from nmt.text.lexicon import Lexicon
from nmt.text.vocab import BOS, EOS, UNK
from tests.nmt.runs.test_run import GOLDEN, make_run


def test_translations_of_the_words_and_the_frequent_ones() -> None:
    [member] = make_run().members
    short = ShortlistOf(member, Lexicon({"w3": ["w20", "w21", "nowhere"], "w4": ["w30"]}), frequent=2)
    ids, frequent = member.target_words.ids, {UNK, BOS, EOS, *member.target_words.encode(["w0", "w1"])}
    source = member.source_words.encode(["w3", "w5"])
    assert short(source) == frequent | {ids["w20"], ids["w21"]}


def test_a_word_stands_for_its_subwords() -> None:
    [member] = Run.of(Path(GOLDEN) / "translator").members
    word = "connaissances"
    units = member.target.cut([word])
    assert len(units) > 1
    short = ShortlistOf(member, Lexicon({"man": [word]}), frequent=1)
    found = short(member.source_words.encode(member.source.units("man")))
    assert {member.target_words.ids[unit] for unit in units if unit in member.target_words.ids} <= found
    assert len(found) <= 3 + 1 + len(units)
