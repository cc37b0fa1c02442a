"""BPE dropout on SentencePiece's merges."""

import random

from nmt.text.subwords import Learning
from nmt.text.subwords.sentencepiece_bpe import SentencePieceBPE
from nmt.text.vocab import UNK, Vocab
from tests.nmt.text.subwords.test_pieces import text
from tests.spaceless import japanese


def test_dropped_merges_keep_the_text_and_follow_their_key() -> None:
    """Rate 0 is the library's own cut, of blank-separated text too; a rate near 1 leaves characters."""
    lines = [line for pair in japanese(400) for line in pair]
    model = SentencePieceBPE.learn(text(lines), Learning(0, 200, True, "identity"))
    vocab = Vocab(dict.fromkeys(model.inventory((), True), 1), 9999)
    whole, none = model.sampler(0.0, vocab), model.sampler(1.0, vocab)
    for line in lines:
        ids = vocab.encode(model.apply(line.split(" ")))
        assert whole(ids, line) == ids
        assert vocab.decode(none(ids, line)) == list("".join(vocab.decode(ids)))
    sample = model.sampler(0.3, vocab)
    ids = vocab.encode(model.apply(["犬é" + lines[1], *lines[0].split(" ")]))
    drawn = [sample(ids, f"1 {row}") for row in range(30)]
    assert all(model.undo(vocab.decode(one)) == model.undo(vocab.decode(ids)) for one in drawn)
    assert len({tuple(one) for one in drawn}) > 20 and sample(ids, "1 7") == drawn[7]
    assert sample([UNK], "x") == [UNK]


def test_without_dropout_the_cut_is_the_library_s() -> None:
    """Of random letters, where it matters which of several pairs is merged first."""
    draw = random.Random(5)
    lines = ["".join(draw.choices("aab ", k=draw.randint(1, 60))).strip() or "a" for _ in range(400)]
    model = SentencePieceBPE.learn(text(lines), Learning(0, 60, True, "identity"))
    vocab = Vocab(dict.fromkeys(model.inventory((), True), 1), 9999)
    whole = model.sampler(0.0, vocab)
    for line in lines:
        ids = vocab.encode(model.apply(line.split()))
        assert whole(ids, line) == ids
