"""Word alignments: read, written, of both directions; those of real programs found again."""

import random
from pathlib import Path

import pytest

from nmt.formats import pharaoh
from nmt.formats.pharaoh import Links
from smt_bridge.extraction import alignment
from tests.conftest import Command


@pytest.mark.ci
def test_real_alignments_are_fast_aligns(nmt_data: Path, tmp_path: Path, command: Command) -> None:
    """fast_align and atools, the real programs, made the alignment that lies beside the corpus; ours differs
    in 5 of 29,000 lines."""
    corpus = nmt_data / "moses-multi30k"
    done = command(
        "smt-align",
        "-s",
        corpus / "corpus/train.tok.en",
        "-t",
        corpus / "corpus/train.tok.fr",
        "-o",
        tmp_path / "out",
    )
    assert done.returncode == 0, done.stderr
    ours, theirs = (
        list(pharaoh.read(tmp_path / "out")),
        list(pharaoh.read(corpus / "aligned.grow-diag-final-and.gz")),
    )
    assert len(ours) == len(theirs) == 29_000
    assert sum(a != b for a, b in zip(ours, theirs, strict=True)) <= 20


def random_links(rng: random.Random) -> Links:
    return frozenset((rng.randrange(12), rng.randrange(12)) for _ in range(rng.randrange(8)))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    rng = random.Random(1)
    links = [random_links(rng) for _ in range(50)]
    (tmp_path / "a").write_text("".join(f"{alignment.line_of(one)}\n" for one in links))
    assert list(pharaoh.read(tmp_path / "a")) == links
    assert alignment.swapped(alignment.swapped(links)) == links


def test_both_directions_have_the_source_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one is aligned the other way around."""

    class Corner:
        """The last word of the first text with the first word of the second."""

        def check(self) -> None:
            pass

        def align(self, sources: alignment.Texts, targets: alignment.Texts) -> list[Links]:
            return [frozenset([(len(source) - 1, 0)]) for source in sources]

    monkeypatch.setitem(alignment.ALIGNERS, "corner", Corner())
    found = alignment.both([["a", "b", "c"]], [["x", "y"]], "corner")
    assert found == ([frozenset([(2, 0)])], [frozenset([(0, 1)])])
    assert alignment.symmetrized(*found, "union") == [frozenset([(2, 0), (0, 1)])]
