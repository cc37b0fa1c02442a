"""What gives tokenized text away."""

import logging

import pytest

from nmt.text.inspection.tokenized import CUT, Punctuation, watched


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("You can 't go.", "n 't"),
        ("I ca n't go.", "a n't"),
        ("It 's here.", "t 's"),
        ("They ’ll go", "y ’ll"),
        ("L' homme dort.", "L' homme"),
        ("parce qu' il dort", "qu' il"),
    ],
)
def test_words_that_a_tokenizer_has_cut(line: str, part: str) -> None:
    match = CUT.search(line)
    assert match and match[0] == part


@pytest.mark.parametrize(
    "line",
    [
        "You can't go.",
        "rock 'n' roll",
        "the boys ' toys",
        "He said 'so' to me.",
        "L'homme, qu'il dort.",
        "a 's' b",
    ],
)
def test_raw_text_is_not_cut(line: str) -> None:
    assert not CUT.search(line)


def test_a_text_is_tokenized_where_nearly_all_of_its_punctuation_stands_alone() -> None:
    for raw, expected in ((0, True), (1, True), (3, False)):
        punctuation = Punctuation()
        for line in ["The man , here ."] * 9 + ["The man here."] * raw:
            punctuation.add(line)
        assert punctuation.is_tokenized() is expected
    assert not Punctuation().is_tokenized()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["Fine.", "You can &apos;t go.", "It 's late."], 'text.en:2: "n \'t"'),
        (["Done ."] * 10, "text.en: tokenized already"),
        (["Done ."] * 9, ""),
        (["Done."] * 20, ""),
    ],
)
def test_one_warning_at_most(lines: list[str], message: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert list(watched(lines, "text.en")) == lines
    assert len(caplog.records) == bool(message) and message in caplog.text
