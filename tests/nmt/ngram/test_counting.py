"""Counts of n-grams against a naive count."""

from collections import Counter

import numpy as np
import pytest

from nmt.errors import DataError
from nmt.ngram.counting import MINUS_ALL, count, log10_of, numbered
from tests.nmt.ngram.test_kneser_ney import some_text


def test_counts_are_those_of_a_naive_count() -> None:
    sentences = some_text()
    text = numbered(sentences)
    lines = [("<s>", *words, "</s>") for words in sentences]
    above: list[tuple[str, ...]] = [()]
    for n, here in enumerate(count(text, 4), 1):
        last = (here.keys % len(text.words)).tolist()
        grams = [(*above[parent], text.words[word]) for parent, word in zip(here.parents, last, strict=True)]
        naive = Counter(line[at : at + n] for line in lines for at in range(len(line) - n + 1))
        assert {gram: raw for gram, raw in zip(grams, here.raw.tolist(), strict=True) if raw} == naive
        assert here.begins.tolist() == [gram[0] == "<s>" for gram in grams]
        if n > 1:
            assert [above[row] for row in here.suffix] == [gram[1:] for gram in grams]
        above = grams


def test_texts_without_words() -> None:
    with pytest.raises(DataError, match="no words to estimate"):
        numbered([[], []])
    with pytest.raises(DataError, match="line 2: the text contains <s>"):
        numbered([["a"], ["<s>"]])
    assert numbered([["a", "</s>"]], skip_symbols=True).words == ["<unk>", "<s>", "</s>", "a"]


def test_logarithms_of_nothing() -> None:
    assert log10_of(np.array([0.0, 0.01])).tolist() == [MINUS_ALL, -2.0]
