"""Vocabularies whose units are words or parts of words."""

from nmt.text import spelling
from nmt.text.spelling import Spelling
from nmt.text.subwords.bpe import BPE
from nmt.text.subwords.sentencepiece import Unigram

SPECIALS = ["<s>", "</s>", "<unk>"]


def of_words(count: int) -> Spelling:
    return spelling.of_units([f"w{unit} " for unit in range(3 + count)], raw=False)


def of_bpe(*units: str) -> Spelling:
    return spelling.of_units([BPE.spell(unit) for unit in [*SPECIALS, *units]], raw=False)


def of_pieces(*units: str) -> Spelling:
    return spelling.of_units([Unigram.spell(unit) for unit in [*SPECIALS, *units]], raw=True)
