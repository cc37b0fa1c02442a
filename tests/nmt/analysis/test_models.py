"""What trained models do: attention, phrases."""

import math
import shutil
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from nmt.analysis.attention import Attention, attend
from nmt.analysis.curves import TrainingHistory, history, read_column, read_curves
from nmt.analysis.embeddings import dense_regions, map_table, nearest, tsne
from nmt.analysis.phrases import PhrasesConfig, choose_sources, compare_phrases
from nmt.analysis.soft_parse import MergeNode, MergeTriangle, parse_line, visible_edges
from nmt.cli import analyze
from nmt.errors import ConfigError, DataError
from nmt.formats import word_vectors
from nmt.models.config import RNNConfig
from nmt.models.protocols import WordEmbeddings
from nmt.models.rnn import RNNTranslator
from nmt.runs import checkpoint
from nmt.runs.torch_run import TorchRun
from nmt.text.vocab import SPECIALS
from tests.conftest import ROOT
from tests.nmt.analysis.conftest import Analyze, Refuses

# ---- attention map -----------------------------------------------------------------------------------------
# Attention weights of a sentence.


@pytest.fixture(scope="module")
def run() -> TorchRun:
    """A small translator with attention."""
    return TorchRun.of(ROOT / "tests" / "models" / "translator")


def test_each_target_word_spreads_one_over_the_source(run: TorchRun) -> None:
    found = attend(run, "the man sees", "la femme")
    assert found.weights.shape == (len(found.target), len(found.source))
    assert found.weights.sum(1) == pytest.approx(1, abs=1e-5)
    assert found.source[-1] == found.target[-1] == "</s>"
    lines = list(found.table().lines())
    assert len(lines) == 1 + found.weights.size and lines[-1].split("\t")[2:4] == ["</s>", "</s>"]


def test_the_run_translates_where_no_target_is_given(run: TorchRun) -> None:
    found = attend(run, "The man sees.")
    again = attend(run, "The man sees.", run.translate(["The man sees."])[0])
    assert (again.source, again.target) == (found.source, found.target)
    assert again.weights == pytest.approx(found.weights)


def write_logs(folder: Path, bleu: str) -> None:
    folder.mkdir()
    (folder / "train.tsv").write_text("step\tcost\n5\t4.0\n10\t3.0\n")
    (folder / "dev.tsv").write_text(f"step\tcost\tbleu\tchrf\n10\t3.5\t{bleu}\t{bleu}\n")


def test_a_history_has_the_points_of_the_logs(tmp_path: Path) -> None:
    write_logs(tmp_path / "first", "nan")
    write_logs(tmp_path / "<second>", "20.5")
    together = history(tmp_path / "first", str(tmp_path / "<second>"))
    assert together.curves["first"] == {
        "train cost": [(5, 4), (10, 3)],
        "dev cost": [(10, 3.5)],
        "dev BLEU": [],
    }
    assert together.curves["<second>"]["dev BLEU"] == [(10, 20.5)]
    assert len(list(together.table().lines())) == 1 + 3 + 5
    write_logs(tmp_path / "first" / "first", "30.5")
    assert len(history(tmp_path / "first", tmp_path / "first" / "first").curves) == 2
    with pytest.raises(DataError, match=r"train\.tsv"):
        history(tmp_path)


@pytest.mark.ci
def test_a_notebook_shows_a_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a figure, or where matplotlib is missing as a table."""
    write_logs(tmp_path / "<run>", "20.5")
    shown = history(tmp_path / "<run>")
    drawing = ElementTree.fromstring(shown._repr_html_())
    assert "dev BLEU" in "".join(drawing.itertext()) and "<run>" in "".join(drawing.itertext())
    shown.plot(tmp_path / "curves.svg")
    assert (tmp_path / "curves.svg").stat().st_size > 1000
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    rows = ElementTree.fromstring(shown._repr_html_())
    assert rows.tag == "table" and len(rows) == 1 + 5 and rows[1][0].text == "<run>"


def test_a_notebook_shows_a_table_of_weights() -> None:
    """A row for each target unit, a column for each source unit; units are text, whatever they look like."""
    attention = Attention(["<b>", "&", "</s>"], ["x", "</s>"], np.array([[0.7, 0.2, 0.1], [0, 0.25, 0.75]]))
    table = ElementTree.fromstring(attention._repr_html_())
    rows = [["".join(cell.itertext()) for cell in row] for row in table]
    assert rows == [["", "<b>", "&", "</s>"], ["x", "0.70", "0.20", "0.10"], ["</s>", "0.00", "0.25", "0.75"]]
    shades = [cell.get("style", "").split()[-1] for row in table for cell in row if cell.tag == "td"]
    assert shades == ["0.700)", "0.200)", "0.100)", "0.000)", "0.250)", "0.750)"]


def test_an_empty_line_is_refused(run: TorchRun) -> None:
    with pytest.raises(DataError, match="no words to attend to"):
        attend(run, " ")


# ---- phrases -----------------------------------------------------------------------------------------------
# Targets of phrases, by the table and by a model.


def test_targets_by_the_table_by_the_model_and_drawn(tmp_path: Path) -> None:
    lines = [
        f"the man ||| {target} ||| 1 1 {p} 1 ||| ||| 1 7 1"
        for target, p in (("le chat", 0.25), ("l' homme", 0.5))
    ]
    (tmp_path / "table").write_text("\n".join(lines) + "\n")
    run = TorchRun.of(ROOT / "tests" / "models" / "translator")
    config = PhrasesConfig(sources=1, min_words=2, min_targets=2, samples=6)
    rows = [row for row in compare_phrases(run, str(tmp_path / "table"), config) if row.kind == "rare"]
    by_table = [row for row in rows if row.by == "table"]
    assert [row.target for row in by_table] == ["l' homme", "le chat"]
    assert by_table[0].ln_table == pytest.approx(math.log(0.5)) and by_table[0].drawn is None
    by_model = [row for row in rows if row.by == "model"]
    assert by_model == sorted(by_model, key=lambda row: -row.ln_model) and len(by_model) == 2
    drawn = [row.drawn or 0 for row in rows if row.by == "samples"]
    assert drawn and 0 < sum(drawn) <= 6


# ---- phrase choice -----------------------------------------------------------------------------------------
# The source phrases that are shown.


def test_the_most_frequent_and_the_rarest_long_sources_with_enough_targets(tmp_path: Path) -> None:
    """`a b` 5 times, `c d` 3, `e f` 9 but with one target, `g` 9 but of one word."""
    lines = [
        f"{source} ||| {target} ||| 1 ||| ||| 1 {count} 1"
        for source, count, targets in (("a b", 5, "xy"), ("c d", 3, "xy"), ("e f", 9, "x"), ("g", 9, "xy"))
        for target in targets
    ]
    (tmp_path / "table").write_text("\n".join(lines) + "\n")
    config = PhrasesConfig(sources=1, min_words=2, min_targets=2)
    found = [
        (kind, pairs[0].source, len(pairs)) for kind, pairs in choose_sources(str(tmp_path / "table"), config)
    ]
    assert found == [("frequent", b"a b", 2), ("rare", b"c d", 2)]


# ---- grconv parse ------------------------------------------------------------------------------------------
# The picture of a soft parse, from gates set by hand.


def test_a_notebook_shows_the_parse_of_a_run(run: TorchRun) -> None:
    torch.manual_seed(0)
    config = RNNConfig(embedding=4, hidden=5, maxout=3, encoder="grconv")
    sizes = len(run.members[0].source_words), len(run.members[0].target_words)
    member = replace(run.members[0], model=RNNTranslator(config, *sizes).eval())
    parse = parse_line(TorchRun([member]), "the man sees")
    T = len(parse.units)
    assert parse.weights.shape == (T * (T - 1) // 2, 3) and parse.weights.sum(1) == pytest.approx(1, abs=1e-5)
    assert len(list(parse.table().lines())) == 1 + len(parse.nodes)
    drawing = ElementTree.fromstring(parse._repr_html_())
    assert "".join(drawing.itertext()).count("new") == len(parse.nodes)
    with pytest.raises(DataError, match="two words or more"):
        parse_line(TorchRun([member]), "man" if len(member.source.units("man")) == 1 else " ")
    with pytest.raises(ConfigError, match="not a grconv"):
        parse_line(run, "the man sees")


def test_nodes_and_edges_by_hand() -> None:
    """Three words: two nodes on level 1, the root. The first is all new, the second a copy of its left, the
    root half and half."""
    weights = np.array([[1.0, 0.0, 0.0], [0.05, 0.9, 0.05], [0.5, 0.1, 0.4]])
    parse = MergeTriangle(["a", "b", "c"], weights)
    assert parse.nodes == [
        MergeNode(1, 0, 1, 1.0, 0.0, 0.0),
        MergeNode(1, 1, 2, 0.05, 0.9, 0.05),
        MergeNode(2, 0, 2, 0.5, 0.1, 0.4),
    ]
    drawn = [
        (edge.level, edge.position, edge.child, edge.kind, edge.weight) for edge in visible_edges(parse.nodes)
    ]
    assert drawn == [
        (1, 0, 0, "new", 1.0),
        (1, 0, 1, "new", 1.0),
        (1, 1, 1, "left", 0.9),
        (2, 0, 0, "new", 0.5),
        (2, 0, 1, "new", 0.5),
        (2, 0, 1, "right", 0.4),
    ]
    assert list(parse.table().lines())[-1] == "2\t0\t2\t0.500000\t0.100000\t0.400000\ta b c"


def test_hard_gates_give_a_tree() -> None:
    """Where each node is new or one copy, every node but the root that is reached has one parent: n words, n
    leaves."""
    hard = [MergeNode(1, 0, 1, 1, 0, 0), MergeNode(1, 1, 2, 0, 0, 1), MergeNode(2, 0, 2, 1, 0, 0)]
    reached, frontier = set(), [(2, 0)]
    while frontier:
        level, position = frontier.pop()
        reached.add((level, position))
        frontier += [
            (edge.level - 1, edge.child)
            for edge in visible_edges(hard)
            if (edge.level, edge.position) == (level, position)
        ]
    assert {place for place in reached if place[0] == 0} == {(0, 0), (0, 1), (0, 2)} and len(reached) == 6


def test_the_picture_is_xml_and_says_everything() -> None:
    parse = MergeTriangle(["<a>", "b & c"], np.array([[0.7, 0.2, 0.1]]))
    root = ElementTree.fromstring(parse.draw([('un "deux"', -2.06)]))
    said = [node.text for node in root.iter() if node.tag.endswith("text")]
    assert (
        said == ["<a>", "b & c", '2.06   un "deux"']
        and len([node for node in root.iter() if node.tag.endswith("line")]) == 3
    )


# ---- maps --------------------------------------------------------------------------------------------------
# Regions of a map.


# A crowd of five at the origin, a pair far away, and two loners.
POINTS = np.array(
    [[0, 0], [0.1, 0], [0, 0.1], [0.1, 0.1], [0.05, 0.05], [9, 9], [9.1, 9], [0, 10], [10, 0]], np.float64
)


def test_the_densest_places_come_first_and_do_not_overlap() -> None:
    found = dense_regions(POINTS, count=2)
    assert found[0].members == [0, 1, 2, 3, 4] and found[1].members == [5, 6]
    assert abs(found[0].x - found[1].x) > 2 * found[0].half
    assert len(dense_regions(POINTS, count=99)) == 4  # no place is left for a fifth
    assert dense_regions(POINTS, count=0) == []


def test_regions_need_memory_for_the_points_alone() -> None:
    """Not for the distance of each pair: 50,000 words took 40 GB, after the map had been computed."""
    points = np.random.default_rng(1).normal(size=(1500, 2))
    tracemalloc.start()
    dense_regions(points, count=3)
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


def test_a_region_lists_its_nearest_points_at_most() -> None:
    assert len(dense_regions(POINTS, count=1, most=3)[0].members) == 3


def test_the_table_names_the_region_of_a_point() -> None:
    lines = list(map_table([*"abcdefghi"], POINTS, dense_regions(POINTS, count=2)).lines())
    assert lines[1] == "a\t0.0000\t0.0000\t1" and lines[6].endswith("\t2") and lines[9].endswith("\t")


@pytest.mark.ci
def test_five_vectors_make_a_map_and_four_do_not() -> None:
    pytest.importorskip("sklearn")
    assert tsne(np.eye(5), 1, 30.0).shape == (5, 2)
    with pytest.raises(DataError, match="4 vectors are too few"):
        tsne(np.zeros((4, 3)), 1, 30.0)


# ---- neighbors ---------------------------------------------------------------------------------------------
# Nearest neighbors by the cosine.


def test_nearest() -> None:
    vocab = ["east", "north", "zero", "northeast"]
    vectors = np.array([[2.0, 0], [0, 1], [0, 0], [3, 3]])
    found = nearest(["north", "steep"], np.array([[0, 5.0], [1, 3]]), vocab, vectors, 2)
    assert [(row.word, row.known, row.rank, row.neighbor) for row in found] == [
        ("north", True, 1, "northeast"),
        ("north", True, 2, "east"),
        ("steep", False, 1, "north"),
        ("steep", False, 2, "northeast"),
    ]
    assert round(found[0].cosine, 6) == round(0.5**0.5, 6)
    assert len(nearest(["north"], vectors[1:2], vocab, vectors, 9)) == 3


# ---- neighbors ---------------------------------------------------------------------------------------------
# nmt-analyze neighbors of a run with a table of word vectors; tests/commands/test_characters.py has the
# other kind.


MODELS = Path(__file__).resolve().parents[2] / "models"
LM = str(MODELS / "lm")


def test_neighbors(rows: Analyze) -> None:
    found = rows("neighbors", LM, "--words", "chat", "chat", "le", "--count", 2, "-q")
    assert [(row["word"], row["known"], row["rank"]) for row in found] == [
        ("chat", "1", "1"), ("chat", "1", "2"), ("le", "1", "1"), ("le", "1", "2")
    ]  # fmt: skip
    assert 1 >= float(found[0]["cosine"]) >= float(found[1]["cosine"])
    assert "chat" not in [row["neighbor"] for row in found[:2]]


def test_what_is_refused(refuses: Refuses) -> None:
    assert "zzz: not in the vocabulary of" in refuses("neighbors", LM, "--words", "le", "zzz", "-q")
    message = refuses("neighbors", LM, "--words", "le", "--before-highway", "-q")
    assert "is not a run with lm.type characters" in message


# ---- vectors -----------------------------------------------------------------------------------------------
# nmt-analyze vectors.


@pytest.mark.parametrize(("run", "side"), [("lm", "target"), ("translator", "source")])
def test_the_file_has_the_vectors_of_all_words(run: str, side: str, tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    copy = shutil.copytree(MODELS / run, tmp_path / "run")  # it takes a file
    assert analyze.main(["vectors", str(copy), "--side", side, "-o", str(path), "-q"]) == 0
    load = checkpoint.load_lm if run == "lm" else checkpoint.load
    saved = load(MODELS / run)
    words = saved.words if isinstance(saved, checkpoint.SavedLM) else saved.source_words
    model: object = saved.model
    assert isinstance(model, WordEmbeddings)
    table = model.word_embedding(side).weight
    assert isinstance(table, torch.Tensor)
    found = dict(word_vectors.read(path, words.ids, table.shape[1], ""))
    assert list(found) == words.words[len(SPECIALS) :]
    for word, vector in found.items():
        assert torch.equal(torch.from_numpy(vector), table[words.ids[word]])


# ---- curves ------------------------------------------------------------------------------------------------
# Learning curves from the logs of training.


def test_values_by_update_without_those_that_were_not_measured(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("step\tcost\n10\t2.5\n20\t2\n")
    (tmp_path / "dev.tsv").write_text("step\tepoch\tcost\tbleu\tchrf\n20\t1\t3\tnan\tnan\n")
    found = read_curves(tmp_path)
    assert found == {"train cost": [(10, 2.5), (20, 2)], "dev cost": [(20, 3)], "dev BLEU": []}
    assert list(TrainingHistory({"run": found}).table().lines())[1:] == [
        "run\ttrain cost\t10\t2.500000",
        "run\ttrain cost\t20\t2.000000",
        "run\tdev cost\t20\t3.000000",
    ]


def test_chrf_where_it_was_measured(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("step\tcost\n")
    for values, expected in ("nan", []), ("30.5", [(20, 30.5)]):
        (tmp_path / "dev.tsv").write_text(f"step\tcost\tbleu\tchrf\tsignature\n20\t3\t1\t{values}\tBLEU|x\n")
        assert read_curves(tmp_path).get("dev chrF", []) == expected


def test_a_damaged_log_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("step\tcost\n10\t2.5\n20\n")
    with pytest.raises(DataError, match="log:3: expected 2 columns"):
        read_column(tmp_path / "log", "cost")
    with pytest.raises(DataError, match="no columns 'step' and 'bleu'"):
        read_column(tmp_path / "log", "bleu")
