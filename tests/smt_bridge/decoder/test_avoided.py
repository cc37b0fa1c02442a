"""Phrases that a translation may not contain."""

from smt_bridge.decoder.avoided import NOTHING, AvoidedPhrases


def test_whole_words_in_a_row() -> None:
    phrases = AvoidedPhrases([["a", "b"], ["c"], []])
    assert phrases.occurs(["x", "a", "b"]) and phrases.occurs(["c"])
    assert not phrases.occurs(["a", "x", "b"]) and not phrases.occurs(["b", "a"]) and not phrases.occurs([])
    assert phrases and not NOTHING and not NOTHING.occurs(["a"])
