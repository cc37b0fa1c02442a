"""Codes of languages: what is none is refused, what Moses has no rules for is told."""

import logging

import pytest

from nmt.cli import tokenize
from nmt.errors import ConfigError
from nmt.text import languages
from nmt.text.pipeline import SideConfig, TextPipeline


@pytest.mark.parametrize(
    "language", ["zz", "../../etc/passwd", "", "EN", "english", "eng", "x" * 5000, "en\n"]
)
def test_what_is_no_code_is_refused(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="expected an ISO 639 code") as refused:
        languages.check(language)
    assert len(str(refused.value)) < 200
    with pytest.raises(ConfigError):
        TextPipeline.of(SideConfig(language))
    assert tokenize.main(["-l", language]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_text_that_is_neither_normalized_nor_tokenized_has_any_language() -> None:
    TextPipeline.of(SideConfig("zz", normalize=False, tokenize=False))


def test_languages_without_rules_of_their_own_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    languages.warn.cache_clear()
    with caplog.at_level(logging.WARNING, "nmt"):
        for language in ("en", "fr", "de", "ja", "ko", "zh", "yue", "cjk"):
            languages.check(language)
        assert not caplog.records
        for _ in range(2):
            languages.check("hsb")
    assert len(caplog.records) == 1 and "hsb" in caplog.text


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("corpus/train.en", "en"),
        ("train.tok.de.gz", "de"),
        ("news.cs.txt", "cs"),
        ("news.cs.txt.gz", "cs"),
        ("a.en/train.yue", "yue"),
        ("train.hsb", "hsb"),
        *((path, "") for path in ("train", "en", "train.EN", "train.zz", "corpus.en/train", "ptb.train.txt")),
        *((path, "") for path in ("train.en-de", "-", "", "phrase-table.gz", "train.bin", "train.new")),
    ],
)
def test_the_ending_of_a_file_says_its_language(path: str, language: str) -> None:
    assert languages.of_file(path) == language
