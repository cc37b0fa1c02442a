"""Count models from files of any format, and files that are none."""

import gzip
import math
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import DataError
from nmt.io import files
from nmt.ngram import arpa
from nmt.ngram import count_model as count
from tests.nmt.ngram.test_arpa import TEXT


def test_an_arpa_file_may_be_compressed(tmp_path: Path) -> None:
    (tmp_path / "lm").write_text(TEXT)
    (tmp_path / "lm.gz").write_bytes(gzip.compress(TEXT.encode()))
    plain, packed = (count.load_count_model(tmp_path / name) for name in ("lm", "lm.gz"))
    texts = [["the", "dog"], ["unheard-of"], []]
    assert [s.tolist() for s in plain.scores(texts)] == [s.tolist() for s in packed.scores(texts)]
    assert plain.knows("dog") and not plain.knows("unheard-of") and not plain.knows("<unk>")
    assert plain.vocab_size == 3, "the, dog and </s>"


def test_other_files_are_no_models(tmp_path: Path) -> None:
    (tmp_path / "lm").write_bytes(b"hello")
    with pytest.raises(DataError, match=r"neither with .data. nor with .mmap lm."):
        count.load_count_model(tmp_path / "lm")
    (tmp_path / "lm").write_bytes(gzip.compress(TEXT.encode())[:-40])
    with pytest.raises(DataError, match="lm: "):
        count.load_count_model(tmp_path / "lm")
    with pytest.raises(DataError, match="no such file"):
        count.load_count_model(tmp_path / "nothing")


def test_a_damaged_binary_file(tmp_path: Path) -> None:
    pytest.importorskip("kenlm")
    (tmp_path / "lm").write_bytes(b"mmap lm http://kheafield.com/code format version 4\n\0" + bytes(400))
    with pytest.raises(DataError, match="not a KenLM file, or of another version"):
        count.load_count_model(tmp_path / "lm")


@pytest.mark.ci
def test_equal_to_kenlm(nmt_data: Path) -> None:
    """Every word of the test set by KenLM itself, which computes in float32."""
    kenlm = pytest.importorskip("kenlm")
    path = nmt_data / "moses-multi30k" / "lm.fr.arpa.gz"
    theirs, ours = count.KenLM(str(path)), arpa.read(path)
    assert kenlm and theirs.order == ours.order == 5
    texts = [
        files.split_words(line)
        for line in files.read_lines(nmt_data / "moses-multi30k" / "corpus" / "test_2016_flickr.tok.fr")
    ]
    for whole in (True, False):
        for one, other in zip(ours.scores(texts, whole), theirs.scores(texts, whole), strict=True):
            assert np.allclose(one, other, atol=1e-5)
    assert math.isclose(ours.scores([["<unk>"]])[0][0], theirs.scores([["nirgendwo"]])[0][0], abs_tol=1e-5)


def test_a_broken_gzip_file_is_one_error_wherever_it_breaks(tmp_path: Path) -> None:
    """Cut, and with a byte changed, at every place of the compressed data."""
    path, whole = tmp_path / "lm.gz", gzip.compress(TEXT.encode() * 3)
    for place in range(2, len(whole) - 1):
        for data in (whole[:place], whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :]):
            path.write_bytes(data)
            with suppress(
                DataError
            ):  # all else is an error of the test; a changed date in the header of the file is none
                count.load_count_model(path)
