"""Word alignments: read, written, of both directions; those of real programs found again."""

import os
import random
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import ConfigError, DataError, UserError
from nmt.formats import pharaoh
from nmt.formats.pharaoh import Links
from nmt.io import files
from nmt.work.executors import ExecutorConfig
from nmt.work.stages import SharedFolder
from smt_bridge.cli import align
from smt_bridge.extraction import alignment
from smt_bridge.extraction.alignment import ALIGNERS, Aligner, AlignmentCounts, AlignmentOutputs, Texts
from smt_bridge.extraction.heuristics import HEURISTICS
from smt_bridge.extraction.packed_corpus import PackedLinks, load_links, pack_links, pack_text
from smt_bridge.extraction.symmetrization import symmetrize
from tests.conftest import Command
from tests.nmt.work import clusters


@pytest.mark.ci
def test_real_alignments_are_fast_aligns(nmt_data: Path, tmp_path: Path, command: Command) -> None:
    """fast_align and atools, the real programs, made the alignment that lies beside the corpus, with several
    threads, which lose a count now and then: with one, all 29,000 lines are ours; here, all but five."""
    corpus = nmt_data / "moses-multi30k"
    texts = "-s corpus/train.tok.en -t corpus/train.tok.fr".split()
    done = command("smt-align", *texts, "-o", tmp_path / "out", cwd=corpus)
    assert done.returncode == 0, done.stderr
    paths = tmp_path / "out", corpus / "aligned.grow-diag-final-and.gz"
    ours, theirs = (list(pharaoh.read(path)) for path in paths)
    assert len(ours) == len(theirs) == 29_000
    different = [number for number, (a, b) in enumerate(zip(ours, theirs, strict=True), 1) if a != b]
    assert different == [534, 12_747, 20_353, 22_211, 23_787]


METHODS = [pytest.param(name, marks=pytest.mark.ci) for name in ("hmm", "ibm4")]
EFLOMAL = """#!/bin/sh
test "$1 $3 $5" = "--source --target --forward-links" || exit 1
grep -q '[^0-9 ]' "$2" "$4" && echo 'words, not numbers' >&2 && exit 1
paste -d '|' "$2" "$4" | awk -F '|' '{print split($1, a, " ") - 1 "-" split($2, b, " ") - 1}' > "$6"
"""


@pytest.fixture
def eflomal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program eflomal-align on PATH that links the last words of numbered sentences."""
    path = tmp_path / "bin/eflomal-align"
    path.parent.mkdir()
    path.write_text(EFLOMAL)
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
    return path


@pytest.mark.parametrize("pairs", [1, 3, 400])
def test_fast_align_is_that_of_sil_thot(pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two programs of one model: sentences much longer than their translation, words twice in a sentence,
    sides that are empty or too long. Without numba the links are sil-thot's."""
    rng = random.Random(pairs)
    sources, targets = (
        [[f"{int(60 * rng.random() ** 3)}" for _ in range(rng.randint(1, longest))] for _ in range(pairs)]
        for longest in (40, 7)
    )
    sources[1:2], targets[2:3] = [[]][: pairs - 1], [["0"] * (alignment.LONGEST + 1)][: pairs - 2]
    aligner = alignment.FastAlign()
    links = aligner.align(targets, sources)
    assert links == aligner.fallback.align(targets, sources) and any(links)
    assert aligner.align(sources, targets) == aligner.fallback.align(sources, targets)
    monkeypatch.setattr(alignment.FastAlign, "has_numba", lambda _: False)
    monkeypatch.setattr(alignment.FastAlign, "compiled", None)
    assert aligner.align(targets, sources) == links


def test_nothing_that_can_be_aligned() -> None:
    assert alignment.FastAlign().align([["a"], []], [[], ["b"]]) == [frozenset(), frozenset()]


def test_eflomal_is_a_program(eflomal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets numbers, one for a word in capitals and in small letters; pairs without words are left out. Its
    failure, and its absence, are one line."""
    texts = [["A", "b"], [], ["a\xa0c", "B"]], [["x"], ["y"], ["X", "y", "z"]]
    assert list(alignment.numbered_lines(texts[0])) == ["0 1", "", "2 1"]
    aligner = ALIGNERS["eflomal"]
    assert aligner.align(*texts) == [frozenset({(1, 0)}), frozenset(), frozenset({(1, 2)})]
    assert aligner.align([[]], [["x"]]) == [frozenset()]
    eflomal.write_text("#!/bin/sh\necho Traceback >&2; echo 'ValueError: no' >&2; exit 1\n")
    with pytest.raises(UserError, match=r"^eflomal-align: ValueError: no$"):
        aligner.align(*texts)
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(ConfigError, match=r"eflomal-align is not installed; .* pip install eflomal "):
        aligner.check()


class Corner(Aligner):
    """Links the last word of the first text with the first word of the second."""

    def align(self, sources: Texts, targets: Texts) -> list[Links]:
        pairs = zip(sources, targets, strict=True)
        return [frozenset([(len(source) - 1, 0)] if source and target else []) for source, target in pairs]


def test_both_directions_have_the_source_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one is aligned the other way around."""
    monkeypatch.setitem(ALIGNERS, "corner", Corner())
    found = alignment.align_both_directions([["a", "b", "c"]], [["x", "y"]], "corner")
    assert list(map(list, found)) == [[frozenset([(2, 0)])], [frozenset([(0, 1)])]]
    assert list(symmetrize(*found, "union")) == [frozenset([(2, 0), (0, 1)])]


def test_heuristics_lie_between_intersection_and_union() -> None:
    rng = random.Random(1)
    for _ in range(300):
        forward, reverse = (
            frozenset((rng.randrange(6), rng.randrange(7)) for _ in range(rng.randrange(10)))
            for _ in range(2)
        )
        made = {name: combine(forward, reverse) for name, combine in HEURISTICS.items()}
        assert made["intersection"] == forward & reverse and made["union"] == forward | reverse
        grown = [links for name, links in made.items() if name.startswith("grow")]
        assert grown and all(made["intersection"] <= links <= made["union"] for links in grown)
        assert all(made["grow-diag"] <= made[f"grow-diag-final{end}"] for end in ("", "-and"))
        joined = {a for a, _ in made["grow-diag"]}, {b for _, b in made["grow-diag"]}
        added = made["grow-diag-final-and"] - made["grow-diag"]
        assert all(a not in joined[0] and b not in joined[1] for a, b in added)
        assert (made["forward"], made["reverse"]) == (forward, reverse)


def random_links(pairs: int) -> list[Links]:
    """Of sentences of up to 6 and 7 words."""
    rng = random.Random(pairs)
    return [
        frozenset((rng.randrange(6), rng.randrange(7)) for _ in range(rng.randrange(12)))
        for _ in range(pairs)
    ]


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_compiled_heuristics_are_those_of_sets(heuristic: str) -> None:
    forward, reverse = random_links(400), random_links(401)[:400]
    naive = list(map(HEURISTICS[heuristic], forward, reverse))
    assert list(symmetrize(forward, reverse, heuristic)) == naive and any(naive)


def test_a_heuristic_of_a_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HEURISTICS, "difference", frozenset.difference)
    forward, reverse = random_links(20), random_links(21)[:20]
    assert list(symmetrize(forward, reverse, "difference")) == [
        a - b for a, b in zip(forward, reverse, strict=True)
    ]


def test_packed_texts_and_links_are_what_was_packed(tmp_path: Path) -> None:
    """Read by index and slice, selected, swapped, spread, written as lines and into files."""
    texts = [["a", "b"], [], ["c", "a", "a"], ["b"]]
    packed = pack_text(texts)
    assert list(packed) == texts and packed[-1] == ["b"] and list(packed[1:3]) == texts[1:3]
    some = packed.select(np.array([2, 3]))
    assert list(some) == texts[2:] and some.words == ["c", "a", "b"] and some.ids.tolist() == [0, 1, 1, 2]
    links = random_links(300)
    pairs = pack_links(links)
    assert list(pairs) == links and list(pairs[7:20]) == links[7:20] and pairs[299] == links[-1]
    assert list(pairs.lines()) == list(map(pharaoh.format_links, links))
    swapped = pairs.swap()
    assert list(swapped) == [frozenset((b, a) for a, b in pair) for pair in links]
    assert list(swapped.lines()) == list(map(pharaoh.format_links, swapped))
    spread = pairs[:2].spread(np.array([1, 3]), 5)
    assert list(spread) == [frozenset(), links[0], frozenset(), links[1], frozenset()]
    pairs.save(str(tmp_path / "links"))
    loaded = load_links(str(tmp_path / "links"))
    assert isinstance(loaded, PackedLinks) and list(loaded) == links


def test_grow_diag_final_and_by_hand() -> None:
    """Intersection 0-0; 1-1 is a diagonal neighbor with a free word; 3-3 is joined by no neighbor and has two
    free words; 0-3 has one only."""
    forward, reverse = frozenset({(0, 0), (1, 1), (3, 3)}), frozenset({(0, 0), (0, 3)})
    assert HEURISTICS["grow-diag"](forward, reverse) == {(0, 0), (1, 1)}
    assert HEURISTICS["grow"](forward, reverse) == {(0, 0)}
    assert HEURISTICS["grow-diag-final-and"](forward, reverse) == {(0, 0), (1, 1), (3, 3)}
    assert HEURISTICS["grow-diag-final"](forward, reverse) == {(0, 0), (1, 1), (3, 3)}
    # One free word is enough for a neighbor, none is not: 1-0 joins, then 1-1 has a free target, and 0-1
    # nothing new.
    forward, reverse = frozenset({(0, 0), (1, 0), (1, 1), (0, 1)}), frozenset({(0, 0)})
    assert HEURISTICS["grow"](forward, reverse) == {(0, 0), (0, 1), (1, 0)}


# ---- several workers ---------------------------------------------------------------------------------------
# The links of one process, whatever the shards and workers.


ENDS = ("", ".f", ".r")


def write_texts(folder: Path) -> None:
    """Words with their translation; an empty line, and one that is too long."""
    rng = random.Random(5)
    rows = [[rng.randrange(12) for _ in range(rng.randint(1, 9))] for _ in range(40)]
    sources = [" ".join(f"s{word}" for word in row) for row in rows]
    targets = [" ".join(f"t{word}" for word in row[::-1]) for row in rows]
    sources[3], targets[5] = "", " ".join("t1" for _ in range(alignment.LONGEST + 1))
    for name, lines in (("s", sources), ("t", targets)):
        files.write_text(folder / name, lines)


def outputs(folder: Path, name: str) -> AlignmentOutputs:
    both, forward, reverse = (str(folder / f"{name}{end}") for end in ENDS)
    return AlignmentOutputs(both, forward, reverse)


def alone(folder: Path, method: str, heuristic: str = "union") -> None:
    words = alignment.read_texts(folder / "s", folder / "t")
    forward, reverse = alignment.align_both_directions(*words, method)
    both = symmetrize(forward, reverse, heuristic)
    for end, links in zip(ENDS, (both, forward, reverse), strict=True):
        files.write_text(folder / f"one{end}", map(pharaoh.format_links, links))


def shared(
    folder: Path, method: str, words: int = 60, executor: ExecutorConfig | None = None, resume: bool = False
) -> AlignmentCounts:
    job, texts = SharedFolder(folder / "job", "smt-align", resume), (str(folder / "s"), str(folder / "t"))
    made = outputs(folder, "many")
    return alignment.align_shared(*texts, made, method, "union", executor or ExecutorConfig(), job, words)


def same(folder: Path) -> bool:
    assert not (folder / "job").exists()
    return all((folder / f"one{end}").read_bytes() == (folder / f"many{end}").read_bytes() for end in ENDS)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Models are trained in this process; the directions that were."""
    ways = []

    def train(arguments: list[str]) -> None:
        folder, method, way, prefix = arguments
        ways.append(way)
        alignment.train_on_shards(Path(folder), method, int(way), prefix)

    monkeypatch.setattr("smt_bridge.extraction.alignment.run_training", train)
    return ways


@pytest.mark.parametrize("words", [1, 60, 100_000])
@pytest.mark.ci
def test_shards_change_nothing(words: int, here: list[str], tmp_path: Path) -> None:
    write_texts(tmp_path)
    alone(tmp_path, "fast_align")
    found = shared(tmp_path, "fast_align", words)
    assert same(tmp_path)
    links = sum(len(line.split()) for line in (tmp_path / "many").read_text().split("\n"))
    assert found == AlignmentCounts(pairs=40, links=links, skipped=2)
    assert here == ["0", "1"]  # each model once


@pytest.mark.parametrize("method", ["corner", "eflomal", *METHODS])
def test_all_methods(
    method: str, here: list[str], eflomal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """eflomal and an aligner of a plugin have no model that aligns: their links are those of the training."""
    monkeypatch.setitem(ALIGNERS, "corner", Corner())
    write_texts(tmp_path)
    alone(tmp_path, method)
    shared(tmp_path, method)
    assert same(tmp_path)


def test_it_resumes(here: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended after the training, and the model of one direction has been damaged since."""
    write_texts(tmp_path)
    alone(tmp_path, "fast_align")

    def stop(worker: alignment.AlignmentWorker, number: int) -> list[bytes]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setitem(alignment.STAGES, alignment.ALIGN, stop)
        shared(tmp_path, "fast_align")
    model = tmp_path / "job" / alignment.TRAIN / "00001"
    model.write_bytes(model.read_bytes()[:-1])
    with pytest.raises(ConfigError, match=r"other settings \(method\)"):
        shared(tmp_path, "hmm", resume=True)
    shared(tmp_path, "fast_align", resume=True)
    assert same(tmp_path) and here == ["0", "1", "1"]


def test_nothing_to_align(tmp_path: Path) -> None:
    for name, text in (("s", "a\n\n"), ("t", "\nb\n")):
        (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match="s: no pair has words on both sides, nothing to align"):
        shared(tmp_path, "fast_align")
    assert {path.name for path in tmp_path.iterdir()} == {"s", "t"}


@pytest.mark.ci
def test_a_cluster(tmp_path: Path) -> None:
    write_texts(tmp_path)
    alone(tmp_path, "fast_align")
    (tmp_path / "cluster").mkdir()
    with clusters.cluster(tmp_path / "cluster") as where:
        shared(tmp_path, "fast_align", executor=ExecutorConfig(cluster=where))
    assert same(tmp_path)


@pytest.mark.ci
def test_the_command_with_real_sentences(nmt_data: Path, tmp_path: Path) -> None:
    """300 of Multi30k, by two processes."""
    for name, language in (("s", "en"), ("t", "fr")):
        path = nmt_data / "moses-multi30k" / f"corpus/train.tok.{language}"
        files.write_text(tmp_path / name, islice(files.read_lines(path), 300))
    alone(tmp_path, "fast_align", "grow-diag-final-and")
    call = "-q -s s -t t -o many --forward-output many.f --reverse-output many.r --work job --workers 2"
    words = [word if word[0] in "-2" else str(tmp_path / word) for word in call.split()]
    assert align.main(words) == 0
    assert same(tmp_path)


@pytest.mark.ci
def test_a_training_that_fails_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^.*job/shards: missing or damaged; .*$"):
        alignment.run_training([str(tmp_path / "job"), "fast_align", "0", str(tmp_path / "model")])
    with pytest.raises(UserError, match=r"^training of word alignment: .*TypeError"):
        alignment.run_training(["too", "few"])


def test_a_training_that_is_killed_says_so_whatever_it_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho a warning >&2\nkill -9 $$\n")
    program.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(program))
    with pytest.raises(UserError, match=r"^training of word alignment: it was killed by signal 9; is memory"):
        alignment.run_training(["job", "fast_align", "0", "model"])


@pytest.mark.ci
def test_a_training_ends_with_its_parent() -> None:
    code = "import time; from smt_bridge.extraction import alignment; import threading; "
    code += "threading.Thread(target=alignment.follow_parent, daemon=True).start(); time.sleep(300)"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    assert process.stdin
    process.stdin.close()
    assert process.wait(timeout=120) == 1
