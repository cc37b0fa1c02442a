"""Parallel text with its word alignment: links belong to the lines beside them. Training with guided
alignment: what it reads, what it refuses, and that it is resumed exactly."""

from dataclasses import replace
from pathlib import Path

import pytest

from nmt.data.batches import BatchStream, GuidedStream, row_links, unit_links
from nmt.data.corpus import CorpusConfig, DataConfig, FilterConfig, check_config
from nmt.data.tokenized import TokenizedText
from nmt.errors import ConfigError, DataError
from nmt.io.numbers import LARGEST
from nmt.text.pipeline import SideConfig
from nmt.training import alignment, config_file, prepare
from tests.commands.runs import equal_runs, joint_config, write_text
from tests.conftest import Command

# ---- guided alignment --------------------------------------------------------------------------------------


def data(folder: Path, **more: object) -> DataConfig:
    source, target, links = (f"{folder}/train.{name}" for name in ("s", "t", "align"))
    sides = {side: SideConfig(tokenize=False, normalize=False) for side in ("source", "target")}
    files = {"train_source": source, "train_target": target, "alignment": links}
    return DataConfig(**{**files, **sides, **more})  # type: ignore[arg-type]


def text(folder: Path) -> None:
    """Three pairs, the second longer than five units."""
    for name, lines in (
        ("s", "ab abc\na b c d e f\nb ab\n"),
        ("t", "x yx\nz\nx x yx\n"),
        ("align", "0-1 1-0\n5-0\n1-2 0-0\n"),
    ):
        (folder / f"train.{name}").write_text(lines)


def test_units_of_kept_pairs_are_linked_and_made_anew_when_the_text_changes(tmp_path: Path) -> None:
    text(tmp_path)
    config, cache = data(tmp_path, max_length=5, bpe_merges=1), tmp_path / "cache"
    words = TokenizedText([config.train_source, config.train_target])
    sides, vocabs = prepare.make_sides(config, words)
    pairs = prepare.ParallelData(config, sides, vocabs, words, cache)
    corpus = prepare.make_corpus(pairs)

    def make() -> GuidedStream:
        return alignment.guided_stream(pairs, BatchStream(corpus, 2, 1, 1), 2.0)

    stream, kept = make(), [("ab abc", "x yx", {(0, 1), (1, 0)}), ("b ab", "x x yx", {(1, 2), (0, 0)})]
    assert stream.count(0) == 1 and len(corpus) == len(stream.links) == 2
    units = 0
    for row, (line, other, links) in enumerate(kept):
        cut = sides[0].units(line), sides[1].units(other)
        assert len(cut[0]) > len(line.split())
        numbers = [side.word_numbers(part) for side, part in zip(sides, cut, strict=True)]
        assert row_links(stream.links, row).tolist() == unit_links(frozenset(links), *numbers).tolist()
        units += sum(word in {b for _, b in links} for word in numbers[1])
    [batch] = stream.batches(0)
    assert batch.guidance is not None
    assert float(batch.guidance.shares.sum()) == pytest.approx(2.0 * units)  # the weight for each linked unit
    ids = cache / "links" / "target.ids"
    before = ids.stat().st_ino
    make()
    assert ids.stat().st_ino == before
    (tmp_path / "train.align").write_text("0-0\n\n0-0\n")
    assert len(make().links.target) < len(stream.links.target) and ids.stat().st_ino != before


def test_links_of_long_words_have_room(tmp_path: Path) -> None:
    """300 words of one target word, one of them of hundreds of units: the product needs more than 16 bits."""
    links = " ".join(f"{word}-0" for word in range(300))
    for name, line in (("s", "abcdefghij" * 30 + " k" * 299), ("t", "x"), ("align", links)):
        (tmp_path / f"train.{name}").write_text(f"{line}\n")
    config = data(tmp_path, max_length=600, bpe_merges=1)
    words = TokenizedText([config.train_source, config.train_target])
    pairs = prepare.ParallelData(config, *prepare.make_sides(config, words), words, tmp_path / "cache")
    stream = alignment.guided_stream(pairs, BatchStream(prepare.make_corpus(pairs), 1, 1, 1), 1.0)
    assert row_links(stream.links, 0)[:, 2].max() > 1 << 16


def test_links_have_room_at_any_max_length(tmp_path: Path) -> None:
    text(tmp_path)
    config = data(tmp_path, max_length=LARGEST)
    words = TokenizedText([config.train_source, config.train_target])
    pairs = prepare.ParallelData(config, *prepare.make_sides(config, words), words, tmp_path / "cache")
    stream = alignment.guided_stream(pairs, BatchStream(prepare.make_corpus(pairs), 1, 1, 1), 1.0)
    assert row_links(stream.links, 1).tolist() == [[0, 5, 1]]


def links_of(config: DataConfig, cache: Path) -> list[list[list[int]]]:
    """The links of each pair that training uses."""
    words = prepare.training_text(config)
    pairs = prepare.ParallelData(config, *prepare.make_sides(config, words), words, cache)
    corpus = prepare.make_corpus(pairs)
    stream = alignment.guided_stream(pairs, BatchStream(corpus, 2, 1, 1), 1.0)
    return [row_links(stream.links, row).tolist() for row in range(len(corpus))]


def test_links_of_several_corpora_are_those_of_one_text(tmp_path: Path) -> None:
    """The text in two parts, the second with a tag and with a line between that its filters drop; then
    without its alignment, which changes while the text does not."""
    text(tmp_path)
    config = data(tmp_path, max_length=6)
    for name, lines in (
        ("a.s", "ab abc\na b c d e f\n"), ("a.t", "x yx\nz\n"), ("a.align", "0-1 1-0\n5-0\n"),
        ("b.s", "q\nb ab\n"), ("b.t", "q\nx x yx\n"), ("b.align", "0-0\n1-2 0-0\n"),
    ):  # fmt: skip
        (tmp_path / name).write_text(lines)

    def part(name: str, **more: object) -> CorpusConfig:
        paths = (str(tmp_path / f"{name}.{side}") for side in ("s", "t", "align"))
        return CorpusConfig("", *paths, **more)  # type: ignore[arg-type]

    def several(**more: object) -> DataConfig:
        files = dict.fromkeys(("train_source", "train_target", "alignment"), "")
        parts = [part("a"), part("b", filters=FilterConfig(drop_copies=True), **more)]
        config = data(tmp_path, max_length=7, corpora=parts, **files)
        alignment.check_guided(config, thorough=True)
        alignment.check_links(config, prepare.training_text(config))
        return config

    whole = links_of(config, tmp_path / "whole")
    assert len(whole) == 3 and all(whole)
    assert links_of(several(), tmp_path / "parts") == whole
    tagged = links_of(several(tag="<b>"), tmp_path / "parts")
    assert tagged == [*whole[:2], [[target, source + 1, size] for target, source, size in whole[2]]]
    unlinked = several(tag="<b>")
    unlinked.corpora[1].alignment = ""
    assert links_of(unlinked, tmp_path / "parts") == [*whole[:2], []]
    with pytest.raises(ConfigError, match=r"data\.alignment: give the alignments of corpora as"):
        alignment.check_guided(replace(unlinked, alignment=str(tmp_path / "a.align")))
    with pytest.raises(ConfigError, match=r"data\.corpora\[0\]\.alignment: read with training.guided_al"):
        check_config(unlinked)
    with pytest.raises(ConfigError, match=r"data\.corpora\[0\]\.alignment is missing: give the word al"):
        alignment.check_guided(replace(unlinked, corpora=unlinked.corpora[1:]))
    (tmp_path / "b.align").write_text("0-0\n2-0\n")
    with pytest.raises(DataError, match=r"b\.align:2: point 2-0 is outside the sentence pair"):
        several()
    (tmp_path / "b.align").write_text("0-0\n")
    with pytest.raises(DataError, match=r"b\.align: not as many lines"):
        links_of(replace(unlinked, corpora=[part("a"), part("b")]), tmp_path / "parts")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alignment": __file__}, r"test_alignment\.py"),  # of another length
        (
            {"alignment": ""},
            r"data\.alignment is missing: give the word alignment of .*train\.s and .*train\.t",
        ),
        ({"bpe_merges": 9, "bpe_dropout": 0.1}, r"cannot be combined with data\.bpe_dropout"),
        ({"source": SideConfig(tokenize=False)}, r"data\.source\.normalize: joins some words"),
        ({"dev_alignment": "x"}, r"data\.dev_alignment: for model\.type joint only"),
    ],
    ids=str,
)
def test_refused_settings(tmp_path: Path, change: dict[str, object], message: str) -> None:
    text(tmp_path)
    alignment.check_guided(data(tmp_path))
    with pytest.raises((ConfigError, DataError), match=message):
        alignment.check_guided(data(tmp_path, **change), thorough=True)


def config_of(folder: Path, run: str, *more: str) -> list[str]:
    """Arguments of nmt-train for a small model over text in which each word has its own translation."""
    if not (folder / "train.s").exists():
        write_text(folder, "train", 200, 1)
        write_text(folder, "dev", 30, 2)
    files = [
        f"data.{name}_{side}={folder}/{name}.{side[0]}"
        for name in ("train", "dev")
        for side in ("source", "target")
    ]
    plain = [f"data.{side}.{key}=false" for side in ("source", "target") for key in ("tokenize", "normalize")]
    (folder / "c.yaml").write_text(
        "training: {optimizer: adam, learning_rate: 0.01, batch_size: 16, max_steps: 60, patience: 0,\n"
        "  validate_every: 20, dev_beam: 0, metric: cost, guided_alignment: 0.5}\n"
    )
    return [
        str(folder / "c.yaml"), *files, *plain, f"data.alignment={folder}/train.align", f"run={folder}/{run}",
        "data.bpe_merges=5", "matmul=mkl", *more,
    ]  # fmt: skip


MODELS = {
    "rnn": "encoder=birnn embedding=8 hidden=12 attention=8 maxout=8 init=glorot",
    "transformer": "type=transformer embedding=16 feed_forward=32 heads=2 attention_heads=1 encoder_layers=2 "
    "decoder_layers=2",
}


@pytest.mark.ci
@pytest.mark.parametrize("kind", MODELS)
def test_resumed_is_bit_equal_and_overwriting_leaves_nothing(
    kind: str, tmp_path: Path, command: Command
) -> None:
    model = [f"model.{setting}" for setting in MODELS[kind].split()]
    for run, steps in (("whole", 40), ("parts", 20), ("parts", 40)):
        done = command("nmt-train", *config_of(tmp_path, run, *model, f"training.max_steps={steps}"))
        assert done.returncode == 0, done.stderr
    equal_runs(tmp_path / "whole", tmp_path / "parts")
    assert (tmp_path / "parts/data/links/target.ids").exists()
    without = config_of(tmp_path, "parts", *model, "training.guided_alignment=0", "data.alignment=")
    done = command("nmt-train", *without, "training.max_steps=1", "--overwrite")
    assert done.returncode == 0 and not (tmp_path / "parts/data/links").exists(), done.stderr


@pytest.mark.ci
def test_corpora_of_which_one_is_guided(tmp_path: Path, command: Command) -> None:
    """Batches of three pairs, so that some have no links at all. Guidance changes the cost of training."""
    model = [f"model.{setting}" for setting in MODELS["rnn"].split()]
    files = ", ".join(f"{side}: {tmp_path}/train.{side[0]}" for side in ("source", "target"))
    links = {"plain": "", "guided": f", alignment: {tmp_path}/train.align"}
    costs = {}
    for run, alignment_key in links.items():
        corpora = f"data.corpora=[{{{files}{alignment_key}}}, {{{files}, tag: <b>, weight: 3}}]"
        given = config_of(tmp_path, run, *model, corpora, "training.batch_size=3", "training.log_every=20")
        single = ("data.train_source=", "data.train_target=", "data.alignment=")
        given = [word for word in given if not word.startswith(single)]
        done = command("nmt-train", *given, *([] if alignment_key else ["training.guided_alignment=0"]))
        assert done.returncode == 0, done.stderr
        costs[run] = (tmp_path / run / "train.tsv").read_text().split("\n")[1].split("\t")[3]
    assert float(costs["guided"]) > float(costs["plain"])


@pytest.mark.ci
def test_a_bad_alignment_is_one_line_and_makes_no_run(tmp_path: Path, command: Command) -> None:
    given = config_of(tmp_path, "run", *(f"model.{setting}" for setting in MODELS["rnn"].split()))
    path = tmp_path / "train.align"
    lines = path.read_text().split("\n")
    for change, message in (
        (["9-0", *lines[1:]], f"{path}:1: point 9-0 is outside the sentence pair"),
        (["0-0", "0:1", *lines[2:]], f"{path}:2: '0:1' is not an alignment point"),
        (lines[1:], f"{path}"),
    ):
        path.write_text("\n".join(change))
        done = command("nmt-train", *given)
        assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr
        assert not (tmp_path / "run").exists()


# ---- links -------------------------------------------------------------------------------------------------


def test_links_of_each_pair(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("0-0 2-1\n\n")
    rows = [(["a", "b", "c"], ["x", "y"]), (["a"], [])]
    found = list(alignment.add_links(rows, str(tmp_path / "a")))
    assert [(pair.source, pair.target) for pair in found] == rows
    assert [set(pair.links) for pair in found] == [{(0, 0), (2, 1)}, set()]
    for short in (rows[:1], [*rows, rows[0]]):
        with pytest.raises(DataError, match="not as many lines as the text"):
            list(alignment.add_links(short, str(tmp_path / "a")))
    with pytest.raises(DataError, match=r"a:1: point 2-1 is outside"):
        list(alignment.add_links([(["a", "b"], ["x", "y"]), rows[1]], str(tmp_path / "a")))


def test_words_are_counted_as_the_text_pipeline_makes_them(tmp_path: Path) -> None:
    """`Go, go.` has two words between blanks, and four for Moses' tokenizer."""
    given = joint_config(tmp_path, "run")
    for name, content in (("train.s", "Go, go.\n"), ("train.t", "Va, va.\n"), ("train.align", "3-3\n")):
        (tmp_path / name).write_text(content)
    change = [
        f"data.{side}.{key}" for side in ("source", "target") for key in ("tokenize=true", "language=en")
    ]
    data = config_file.load(given[0], [*given[1:], *change]).data
    text = TokenizedText([data.train_source, data.train_target])
    alignment.check_links(data, text)
    data.target.tokenize = False
    with pytest.raises(DataError, match=r"train\.align:1: point 3-3 is outside .*\(4 and 2 words\)"):
        alignment.check_links(data, text)
