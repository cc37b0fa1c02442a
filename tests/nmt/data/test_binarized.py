"""Corpora as memory-mapped ids; running text in tracks and chunks, as nmt/data/running.py shows it."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nmt.data import binarized, running
from nmt.data.binarized import BinarizeReport, binarize, id_type, open_corpus, read_stamp
from nmt.data.corpus import Pair
from nmt.data.running import ChunkStream, as_corpus, join_sentences
from nmt.errors import DataError, UserError
from nmt.io import manifest
from nmt.text.vocab import EOS, UNK, Vocab

PAIRS: list[Pair] = [
    (["a", "b"], ["x"]),
    (["a"] * 4, ["x"]),
    ([], ["x"]),
    (["b"], ["y", "y", "x"]),
    (["b"], []),
]
FILES = ["source.ids", "source.offsets", "target.ids", "target.offsets", "stamp.json"]


def vocabs() -> tuple[Vocab, Vocab]:
    return Vocab({"a": 2, "b": 1}, 9), Vocab({"x": 2, "y": 1}, 9)


def test_long_and_empty_pairs_are_dropped_and_counted(tmp_path: Path) -> None:
    report = binarize(PAIRS, *vocabs(), tmp_path, max_length=3, stamp="s")
    assert report == BinarizeReport(kept=2, too_long=1, empty=2)
    corpus = open_corpus(tmp_path)
    pairs = [tuple(side.tolist() for side in corpus.pair(row)) for row in range(len(corpus))]
    assert pairs == [([3, 4], [3]), ([4], [4, 4, 3])]
    assert corpus.sizes(np.array([1, 0])).max(0).tolist() == [4, 3]
    assert isinstance(corpus.source, np.memmap) and corpus.source.dtype == np.uint16


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_offsets_are_checked_in_pieces(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever they decrease, and however many are read at a time."""
    monkeypatch.setattr(binarized, "BLOCK", size)
    binarize([(["a"], ["x"])] * 5, *vocabs(), tmp_path, 3, "s")
    assert len(open_corpus(tmp_path, *map(len, vocabs()))) == 5
    for place in range(1, 5):
        offsets = np.arange(6)
        offsets[place] = 9
        offsets.tofile(tmp_path / "source.offsets")
        manifest.write(tmp_path, FILES)
        with pytest.raises(DataError, match=r"source\.ids or .*source\.offsets: truncated or damaged"):
            open_corpus(tmp_path)


def test_the_pairs_of_each_corpus_are_counted(tmp_path: Path) -> None:
    pairs = [*PAIRS, *PAIRS, *PAIRS]
    report = binarize(iter(pairs), *vocabs(), tmp_path, 3, "s", [2 * len(PAIRS), len(PAIRS)])
    assert report.kept == 6 and open_corpus(tmp_path).parts == (4, 2)
    stamp = (tmp_path / "stamp.json").read_text()
    for damaged in ("[4, 3]", "[6, 0.0]", "[7, -1]", "6"):
        (tmp_path / "stamp.json").write_text(stamp.replace("[4, 2]", damaged))
        manifest.write(tmp_path, FILES)
        with pytest.raises(DataError, match=r"stamp\.json: damaged"):
            open_corpus(tmp_path)
    binarize(PAIRS, *vocabs(), tmp_path, 3, "s")
    assert "corpora" not in (tmp_path / "stamp.json").read_text() and open_corpus(tmp_path).parts == ()


def test_ids_get_wider_with_the_vocabulary(tmp_path: Path) -> None:
    assert (id_type(1 << 16), id_type((1 << 16) + 1)) == (np.uint16, np.uint32)
    big = Vocab({f"w{n:06}": 1 for n in range(70000)}, 70000)
    binarize([(["w069999"], ["w000000"])], big, big, tmp_path, 3, "s")
    assert open_corpus(tmp_path).pair(0)[0].tolist() == [70002]


def test_an_interrupted_start_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    binarize(PAIRS, *vocabs(), tmp_path, 3, "s")

    def broken() -> Iterator[Pair]:
        yield PAIRS[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        binarize(broken(), *vocabs(), tmp_path, 3, "t")
    assert read_stamp(tmp_path) == {}
    with pytest.raises(DataError, match="no binarized corpus"):
        open_corpus(tmp_path)


def test_a_folder_that_cannot_be_written_keeps_no_unfinished_files(tmp_path: Path) -> None:
    """The files of the source can be opened, that of the target cannot."""
    (tmp_path / "target.ids.part").mkdir()
    with pytest.raises(UserError, match="cannot write"):
        binarize(PAIRS, *vocabs(), tmp_path, 3, "s")
    assert [path.name for path in tmp_path.iterdir()] == ["target.ids.part"]


@pytest.mark.parametrize("name", FILES)
def test_truncated_files_are_refused(name: str, tmp_path: Path) -> None:
    """Cut at any byte, or with a flipped bit."""
    binarize(PAIRS, *vocabs(), tmp_path, 3, "s")
    data = (tmp_path / name).read_bytes()
    # Without its last line end a stamp is still whole.
    broken = [data[:length] for length in range(len(data) - 1)]
    for content in [*broken, bytes([data[0] ^ 1]) + data[1:], data + data]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(
            DataError, match=rf"{tmp_path}.*remove {tmp_path}, and the same command will create it again"
        ):
            open_corpus(tmp_path, *map(len, vocabs()))
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match="remove"):
        open_corpus(tmp_path)


def test_ids_and_offsets_out_of_range_are_refused(tmp_path: Path) -> None:
    """With a right checksum too: an id beyond the vocabulary would end in a traceback or worse, offsets that
    fall in empty sentences."""
    binarize(PAIRS, *vocabs(), tmp_path, 3, "s")
    open_corpus(tmp_path, 5, 5)
    with pytest.raises(DataError, match=r"source\.ids: an id is beyond the vocabulary of 4 words"):
        open_corpus(tmp_path, 4, 5)
    for name, values, message in (
        ("target.offsets", np.array([0, 9, 4]), "truncated or damaged"),
        ("target.ids", np.array([3, 4, 9, 3], np.uint16), "beyond"),
    ):
        whole = (tmp_path / name).read_bytes()
        values.tofile(tmp_path / name)
        manifest.write(tmp_path, FILES)
        with pytest.raises(DataError, match=message):
            open_corpus(tmp_path, 5, 5)
        if message == "beyond":  # what another process checks is not read
            assert len(open_corpus(tmp_path, 5, 5, thorough=False)) == 2
        (tmp_path / name).write_bytes(whole)
    for stamp in (
        '{"widths": ["float64", "uint16"], "kept": 2}',
        '{"widths": 3}',
        "[]",
        "5",
        '"abc"',
        '{"widths": []}',
        '{"widths": [["uint16"], 3]}',
    ):
        (tmp_path / "stamp.json").write_text(stamp)
        with pytest.raises(DataError, match="remove"):
            open_corpus(tmp_path)


# ---- running text ------------------------------------------------------------------------------------------


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
    report = running.binarize(lines, vocab, tmp_path / "data", "stamp")
    corpus = open_corpus(tmp_path / "data", len(vocab))
    assert report.kept == len(corpus) == 3
    found = join_sentences(corpus).tolist()
    a, b = vocab.encode(["a", "b"])
    assert found == [a] * 500 + [EOS, EOS, b, UNK, EOS]
