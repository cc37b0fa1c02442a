"""Running text in tracks and chunks, as the picture of nmt/data/running.py has it."""

from pathlib import Path

from nmt.data.binarized import open_corpus
from nmt.data.running import ChunkStream, as_corpus, binarize, join_sentences
from nmt.text.vocab import EOS, UNK, Vocab


def test_chunks_of_running_text() -> None:
    """The picture of nmt/data/running.py: letters are 3 to 10, `.` is the end symbol."""
    text = join_sentences(as_corpus([[3, 4], [5, 6, 7, 8], [9], [10]]))
    assert text.tolist() == [3, 4, EOS, 5, 6, 7, 8, EOS, 9, EOS, 10, EOS]
    chunks = list(ChunkStream(text, 2, 4).batches(0))
    assert [chunk.ids.view(-1, 2).t().tolist() for chunk in chunks] == [
        [[3, 4, EOS, 5], [8, EOS, 9, EOS]],
        [[6, 7], [10, EOS]],
    ]
    assert [chunk.previous.view(-1, 2).t().tolist() for chunk in chunks] == [
        [[EOS, 3, 4, EOS], [EOS, 8, EOS, 9]],
        [[5, 6], [EOS, 10]],
    ]
    assert [chunk.fresh for chunk in chunks] == [True, False] and ChunkStream(text, 2, 4).count(0) == 2
    later = next(ChunkStream(text, 2, 4).batches(3, start=1))
    assert later.ids.tolist() == chunks[1].ids.tolist(), "going on in the middle of an epoch"


def test_a_remainder_of_the_tracks_is_dropped_and_nothing_else() -> None:
    text = join_sentences(as_corpus([[3, 4, 5], [6], [7]]))  # 8 units
    stream = ChunkStream(text, 3, 100)
    assert next(stream.batches(0)).ids.view(-1, 3).t().tolist() == [[3, 4], [5, EOS], [6, EOS]]
    assert ChunkStream(text, 100, 1).count(0) == 1, "no more tracks than units"


def test_binarized_text_keeps_every_sentence(tmp_path: Path) -> None:
    vocab = Vocab.count([["a", "b", "a"], ["b"]], 2)
    lines = [["a"] * 500, [], ["b", "new"]]
    report = binarize(lines, vocab, tmp_path / "data", "stamp")
    corpus = open_corpus(tmp_path / "data", len(vocab))
    assert report.kept == len(corpus) == 3
    found = join_sentences(corpus).tolist()
    a, b = vocab.encode(["a", "b"])
    assert found == [a] * 500 + [EOS, EOS, b, UNK, EOS]
