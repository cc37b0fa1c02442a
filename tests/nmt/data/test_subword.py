"""BPE dropout: cuts that change, text that does not."""

import random
from collections import Counter

from nmt.data import subword
from nmt.data.vocab import UNK, Vocab


def test_dropped_merges_keep_the_text_and_follow_their_key() -> None:
    """All cuts join to the same words; the same key cuts alike, others differ; rate 0 is the plain cut; what was dropped is not remembered."""
    counts = Counter({"lower": 9, "lowest": 7, "newer": 5, "wide": 3})
    lines = subword.learn(counts, 12)
    plain = subword.Subwords(lines)
    words = ["lower", "newer", "lowest", "wide"]
    units = Counter(plain.apply(words)) + subword.all_units(lines, counts)
    vocab = Vocab(units, 999)
    ids = vocab.encode(plain.apply(words))
    dropped = subword.DroppedMerges(lines, 0.5, vocab)
    cuts = [dropped(ids, f"1 2 {row}") for row in range(30)]
    assert all(subword.undo(vocab.decode(cut)) == words and UNK not in cut for cut in cuts)
    assert len({tuple(cut) for cut in cuts}) > 10 and dropped(ids, "1 2 7") == cuts[7]
    assert subword.DroppedMerges(lines, 0.0, vocab)(ids, "x") == ids
    assert plain.apply(words) == vocab.decode(ids)
    assert dropped([*ids, UNK], "1") == [*ids, UNK]
    state = random.getstate()
    dropped(ids, "y")
    assert random.getstate() == state
