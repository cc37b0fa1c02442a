"""smt-decode: its translations, lists and totals are those of the decoder; mistakes are reported before
anything is written."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

import nmt
import smt_bridge
from nmt.cli import options
from nmt.errors import ConfigError
from nmt.formats import nbest
from nmt.work.executors import EXECUTORS, Local
from smt_bridge.cli import decode, decoding
from smt_bridge.cli.decode import LineBlock, PhraseTranslator
from smt_bridge.decoder import system
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.hybrid import folder
from smt_bridge.moses import ini as moses_ini
from tests.conftest import refusal
from tests.smt_bridge.decoder.models import add_feature, edit, sentence, write_model

# ---- test decode -------------------------------------------------------------------------------------------


MODEL = Path(__file__).resolve().parents[2] / "models" / "phrase-based"
LINES = [sentence(number, number % 6) for number in range(1, 12)] + ["", "zz a"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in LINES))
    return write_model(tmp_path, 1)


def decoder(model: Path, **config: object) -> Decoder:
    return Decoder(system.load(str(model), use_cache=False), DecoderConfig(**config))  # type: ignore[arg-type]


def run(model: Path, *words: object) -> str:
    given = [str(model), "-i", f"{model}/in", "-o", f"{model}/out", "--no-cache", "-q", *map(str, words)]
    assert decode.main(given) == 0
    return (model / "out").read_text()


@pytest.mark.parametrize("workers", [1, 2])
def test_text_and_list(workers: int, model: Path) -> None:
    found = run(model, "--n-best-list", model / "list", "--n-best", 4, "--stack", 7, "--workers", workers)
    made = decoder(model, nbest=4, stack=7)
    expected = list(made.translate_all(iter(LINES)))
    assert found == "".join(f"{' '.join(one.text)}\n" for one in expected)
    entries = [
        made.entry(number, one, derivation)
        for number, one in enumerate(expected)
        for derivation in one.derivations
    ]
    assert (model / "list").read_text() == "".join(f"{entry}\n" for entry in entries)


def test_a_job_in_blocks_writes_what_threads_do(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--resume continues the job, which here has nothing left to compute."""
    monkeypatch.setattr(decode, "BLOCK", 4)
    monkeypatch.setitem(EXECUTORS, "blocks", Local)
    more = ["--n-best", 3, "--stack", 7]
    for name in ("n-best-list", "explain", "alignments", "target-words"):
        more += [f"--{name}", model / name]

    def files() -> list[bytes]:
        return [path.read_bytes() for path in sorted(model.iterdir()) if path.is_file()]

    run(model, *more)
    expected = files()
    with monkeypatch.context() as patch:
        patch.setattr("nmt.io.locks.clear", lambda folder: None)  # as if killed at the end
        run(model, *more, "--executor", "blocks")
    assert files() == expected
    with monkeypatch.context() as patch:
        patch.setattr(Local, "map", lambda self, tasks: iter(list(tasks) and [pytest.fail("computed")]))
        run(model, *more, "--executor", "blocks", "--resume")
    assert files() == expected and not (model / "out.job").exists()


def test_translations_depend_on_the_files_of_options(model: Path) -> None:
    """Besides those of the model: a job is not resumed with others."""
    plain = PhraseTranslator(decode.parser().parse_args([str(model)]), decoder(model), None).models()
    words = [str(model), "--glossary", f"{model}/terms", "--weights", f"{model}/weights"]
    given = PhraseTranslator(decode.parser().parse_args(words), decoder(model), None).models()
    assert {path.name for path in given} - {path.name for path in plain} == {"terms", "weights"}
    assert {"moses.ini", "table", "lm0"} <= {path.name for path in plain}


def test_threads_keep_no_job(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [model, "-i", model / "in", "-o", model / "out", "--no-cache", "--resume", "--workers", 2]
    assert "--resume: not possible with threads" in refusal(decode.main, capsys, *given)


@pytest.mark.ci
def test_processes_write_what_threads_do(
    hybrid_system: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With relative paths too, which workers resolve."""
    monkeypatch.chdir(hybrid_system.parent)
    system = Path(hybrid_system.name)
    here = raw(tmp_path, system, "--explain", tmp_path / "here")
    assert raw(tmp_path, system, "--explain", tmp_path / "there", "--executor", "processes") == here
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


def test_a_list_of_different_texts(model: Path) -> None:
    run(model, "--n-best-list", model / "list", "--n-best", 5, "--distinct")
    texts = [tuple(line.split(" ||| ")[:2]) for line in (model / "list").read_text().split("\n")[:-1]]
    assert len(set(texts)) == len(texts)


@pytest.mark.ci
def test_the_ini_may_choose_cube_pruning(model: Path) -> None:
    expected = run(model, "--search", "cube", "--pop-limit", 9)
    edit(model, search_algorithm="1")
    assert run(model, "--pop-limit", 9) == expected


def test_weights_instead_of_the_inis(model: Path) -> None:
    made = decoder(model)
    other = {name: [-value for value in values] for name, values in made.system.tuneable_weights().items()}
    moses_ini.write_weights(model / "w", other)
    found = run(model, "-w", model / "w")
    assert found != run(model)
    changed = Decoder(made.system, made.config, moses_ini.read_weights(model / "w"))
    assert found == "".join(f"{line}\n" for line in changed.translate(LINES))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--n-best", "0"], "argument --n-best"),
        (["--xml-input", "all"], "argument --xml-input"),
        (["--xml-input", "exclusive"], "in:2: "),
        (["--max-line-words", "3", "--n-best-list", "list"], "in:1: 4 words, more than --max-line-words 3"),
        (["-w", "nowhere"], "nowhere"),
        (["--n-best", "5"], "--n-best goes with --n-best-list"),
        (["--distinct"], "--distinct goes with --n-best-list"),
        (["--pop-limit", "5"], "--pop-limit goes with --search cube"),
    ],
)
def test_refused_before_a_line_is_written(
    words: list[str],
    message: str,
    model: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (model / "in").write_text("a b c d\n<x translation='p'>a\n")
    monkeypatch.setattr(decode, "translate", lambda decoder, args: pytest.fail("a line is translated"))
    given = [model, "-i", model / "in", "-o", model / "out", "--no-cache", "-q"]
    assert message in refusal(decode.main, capsys, *given, *words)
    assert not (model / "out").exists()


def test_long_lines_are_refused_for_a_list_only(model: Path) -> None:
    assert run(model, "--max-line-words", 3).count("\n") == len(LINES)


# ---- hybrid systems ----------------------------------------------------------------------------------------

RAW = ["The man isn't big. I see <b>the house</b>!", "", "Paris is 3.5 at http://x.org/a_b?c=d."]


def raw(place: Path, system: Path, *words: object, lines: Sequence[str] = RAW) -> str:
    (place / "raw").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    given = [str(system), "-i", f"{place}/raw", "-o", f"{place}/out", "-q", *map(str, words)]
    assert decode.main(given) == 0
    return (place / "out").read_text(encoding="utf-8")


@pytest.mark.ci
def test_the_student_translates_as_nmt_translate_does(
    system_with_student: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["The man sees the house. A boy runs.", "", "A boy does not follow the man."]
    found = raw(tmp_path, system_with_student, "--quality", "fast", "--verify", lines=lines)
    student = nmt.Run.load(system_with_student / "fast")
    assert found == "".join(f"{line}\n" for line in student.translate(lines))
    split = raw(tmp_path, system_with_student, "--quality=fast", "--split-sentences", lines=lines)
    assert split == "".join(f"{line}\n" for line in student.translate(lines, split_sentences=True)) != found
    best = raw(tmp_path, system_with_student, "--quality", "best", lines=lines)
    assert best == raw(tmp_path, system_with_student, lines=lines) != found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--stack", 5, "--diversity", 1], "--quality fast cannot be combined with --stack; leave it out"),
        (["--glossary", "none.tsv"], "--quality fast cannot be combined with --glossary"),
        (["--alignments", "points"], "--quality fast cannot be combined with --alignments"),
    ],
)
def test_the_student_has_no_options_of_the_search(
    options: list[object], message: str, system_with_student: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refusal(decode.main, capsys, system_with_student, "--quality=fast", *options)


def test_a_model_without_a_student(hybrid_system: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = (("is not the folder of a hybrid system", MODEL), ("has neither an attention", hybrid_system))
    for message, path in given:
        assert message in refusal(
            decode.main, capsys, path, "-i", hybrid_system / "moses.ini", "--quality=fast"
        )


@pytest.mark.parametrize("workers", [1, 2])
def test_a_system_reads_and_writes_raw_text(workers: int, hybrid_system: Path, tmp_path: Path) -> None:
    found = raw(tmp_path, hybrid_system, "--workers", workers, "--verify")
    assert found == "".join(f"{line}\n" for line in smt_bridge.load(str(hybrid_system)).translate(RAW))
    assert found.split("\n")[0] == "L'homme n'est pas grande. Je vois <b>la maison</b> !"


@pytest.mark.parametrize("options", [[], ["--workers", 2], ["--executor", "blocks"]])
def test_sentences_of_a_line_are_translated_one_by_one(
    options: list[object], hybrid_system: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By threads and in blocks: the text between sentences stays, and each line remains one line."""
    monkeypatch.setattr(decode, "BLOCK", 2)
    monkeypatch.setitem(EXECUTORS, "blocks", Local)
    sentences = ["The man sees the house.", "I see <b>the house</b> !", "the nurses hear her."]
    text = f"{sentences[0]}\t {sentences[1]}\n\n{sentences[2]}\n{sentences[0]}  {sentences[0]}\n"
    (tmp_path / "in").write_text(text)
    output = tmp_path / "out"
    given = [hybrid_system, "-i", tmp_path / "in", "-o", output, "--no-cache", "-q", "--split-sentences"]
    assert decode.main([str(word) for word in [*given, *options]]) == 0
    first, second, third = smt_bridge.load(str(hybrid_system)).translate(sentences)
    assert output.read_text() == f"{first}\t {second}\n\n{third}\n{first}  {first}\n"


@pytest.mark.parametrize("option", ["--n-best-list", "--alignments", "--explain", "--source-words"])
def test_sentences_do_not_go_with_what_speaks_of_whole_lines(
    option: str, hybrid_system: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").write_text("A man.\n")
    given = (hybrid_system, "-i", tmp_path / "in", "-o", tmp_path / "out", "--no-cache", "--split-sentences")
    message = refusal(decode.main, capsys, *given, option, tmp_path / "file")
    assert option in message and "--split-sentences" in message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]
    assert "exclusive" in refusal(decode.main, capsys, *given, "-q", "--xml-input", "exclusive")


def test_sentences_are_of_raw_text(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = (model, "-i", model / "in", "-o", model / "out", "--no-cache", "--split-sentences")
    assert f"{model} reads tokenized text" in refusal(decode.main, capsys, *given)


def test_files_beside_a_translation(hybrid_system: Path, tmp_path: Path) -> None:
    """The outputs agree with each other, and smt-rescore accepts the list with the source words."""
    names = ("alignments", "explain", "source-words", "target-words", "n-best-list")
    options = [word for name in names for word in (f"--{name}", tmp_path / name)]
    raw(tmp_path, hybrid_system, *options, "--n-best", 3)
    read = {name: (tmp_path / name).read_text(encoding="utf-8").split("\n")[:-1] for name in names}
    hybrid = folder.read(hybrid_system)
    assert read["source-words"] == [" ".join(hybrid.source.words(line)) for line in RAW]
    assert [len(read[name]) for name in names[:1]] == [3]
    entries = [nbest.parse(line, "list") for line in read["n-best-list"]]
    first = [next(entry for entry in entries if entry.sentence == number) for number in range(3)]
    table = [line.split("\t") for line in read["explain"]]
    assert {len(row) for row in table} == {len(table[0])}
    sums = {row[0]: row for row in table if row[1] == "sum"}
    for number, (entry, points, words) in enumerate(
        zip(first, read["alignments"], read["target-words"], strict=True)
    ):
        assert " ".join(entry.words) == words and sorted(entry.rest[1].split()) == sorted(points.split())
        if RAW[number]:
            assert sums[str(number + 1)][3:5] == [read["source-words"][number], words]
            assert float(sums[str(number + 1)][5]) == pytest.approx(entry.total, rel=1e-5)


def test_files_beside_a_translation_of_a_model(model: Path) -> None:
    found = run(model, "--target-words", model / "words", "--source-words", model / "source")
    assert (model / "words").read_text() == found and (model / "source").read_text() == (
        model / "in"
    ).read_text()


def test_options_of_the_system_are_defaults(
    hybrid_system: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = shutil.copytree(hybrid_system, tmp_path / "system")
    config = folder.read(system).config
    config.search = {"stack": 7, "neural_beam": 9, "max_line_words": 11}
    folder.write_system(system, config)
    seen: list[DecoderConfig] = []
    monkeypatch.setattr(decode, "translate", lambda decoder, args, sentences: seen.append(decoder.config))
    (tmp_path / "raw").write_text("")
    for words in ([], ["--stack", "8", "--neural-beam", "500"]):
        assert decode.main([str(system), "-i", f"{tmp_path}/raw", "-q", *words]) == 0
    names = "stack", "neural_beam", "max_line_words"
    assert [tuple(getattr(one, name) for name in names) for one in seen] == [(7, 9, 11), (8, 500, 11)]


def test_a_glossary(hybrid_system: Path, tmp_path: Path) -> None:
    (tmp_path / "terms").write_text("the house\tChez  MOI\n")
    found = raw(tmp_path, hybrid_system, "--glossary", tmp_path / "terms", lines=["The house is big."])
    assert found == "Chez  MOI est grande.\n"


def test_a_glossary_of_tokenized_text(model: Path) -> None:
    (model / "terms").write_text("a b\tX y\n")
    found, before = run(model, "--glossary", model / "terms").split("\n"), run(model).split("\n")
    for line, new, old in zip(LINES, found, before, strict=False):
        assert new.count("X y") == line.count("a b") and (new == old or "a b" in line)


@pytest.mark.parametrize(
    ("line", "words", "message"),
    [
        ('a <np translation="x">b', ["--xml-input", "exclusive"], "/raw:2: tag 'np' is never closed"),
        ("x", ["--glossary", "terms"], "/terms:1: 'no tab'"),
        ("x", ["--stack", "-2"], "argument --stack"),
        ("x", ["-o", "system/lm.arpa.gz"], "lm.arpa.gz: is also read"),
        ("x", ["--explain", "system/system.json"], "system.json: is also read"),
        ("x", ["--explain", "out"], "is also written"),
        ("x", ["--n-best-list", "list", "--max-line-words", "1"], "raw:1: 3 words, more than"),
    ],
)
def test_a_system_refuses_before_a_line_is_written(
    line: str,
    words: list[str],
    message: str,
    hybrid_system: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    system = shutil.copytree(hybrid_system, tmp_path / "system")
    (tmp_path / "raw").write_text(f"I see Paris\n{line}\n")
    (tmp_path / "terms").write_text("no tab\n")
    before = sorted(tmp_path.rglob("*"))
    given = [system, "-i", tmp_path / "raw", "-o", tmp_path / "out", "-q"]
    more = [tmp_path / word if word in ("terms", "list", "out") or "/" in word else word for word in words]
    assert message in refusal(decode.main, capsys, *given, *more)
    assert sorted(tmp_path.rglob("*")) == before


def test_only_systems_have_checksums(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--verify: " in refusal(decode.main, capsys, model, "-i", model / "in", "--verify")


# ---- test decoding -----------------------------------------------------------------------------------------


def test_who_decodes() -> None:
    parser = options.Parser("test", "")
    decoding.add_search(parser)
    for words, threads in (
        ([], True),
        (["--workers", "3"], True),
        (["--executor", "local"], True),
        (["--executor", "processes"], False),
        (["--cluster", "127.0.0.1:8786"], False),
    ):
        assert decoding.uses_threads(parser.parse_args(words)) == threads


def test_an_ini_for_other_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path is resolved from the ini's folder, then from the working directory."""
    write_model(tmp_path / "model", 1)
    (tmp_path / "table").touch()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model" / "lm0").rename(tmp_path / "lm0")
    made = decoding.absolute_ini(moses_ini.read("model/moses.ini"))
    paths = {line.options["path"] for line in made.features if "path" in line.options}
    assert {str(tmp_path / "model" / "table"), str(tmp_path / "lm0")} <= paths


# ---- test translator ---------------------------------------------------------------------------------------
# Blocks of lines as smt-decode computes them.


BLOCK_LINES = [sentence(number, 4) for number in range(1, 4)] + [""]


def made(model: Path, *words: object) -> PhraseTranslator:
    args = decode.parser().parse_args([str(model), "--no-cache", *map(str, words)])
    hybrid = decode.load_hybrid(args)
    ini = moses_ini.read(hybrid.ini if hybrid else str(model / "moses.ini"))
    return decode.load_translator(args, decoding.absolute_ini(ini))


def test_lines_of_each_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Line numbers are those of the input, and the header of a table is written once, before its first
    line."""
    monkeypatch.chdir(write_model(tmp_path, 1))
    work = made(tmp_path, "--n-best-list", "list", "--n-best", 2, "--explain", "table")
    marked = list(work.decoder.parse_lines(BLOCK_LINES, "in"))
    lines = list(decode.split_lines(work.args, work.hybrid, BLOCK_LINES))
    texts, entries, table = work.lines(LineBlock(0, lines, marked))
    assert texts == work.decoder.translate(BLOCK_LINES)
    assert {entry.split(" ||| ")[0] for entry in entries} == {"0", "1", "2", "3"}
    parts = [
        work.lines(LineBlock(first, lines[first : first + 2], marked[first : first + 2])) for first in (0, 2)
    ]
    assert [texts, entries, table] == [a + b for a, b in zip(*parts, strict=True)]


def test_the_files_of_a_system(hybrid_system: Path) -> None:
    names = {path.name for path in made(hybrid_system).models()}
    assert {folder.FILE, *(Path(name).name for name in folder.read(hybrid_system).parts)} == names


def test_a_table_of_another_model_in_the_current_folder(
    model: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is not read, but Moses would read it."""
    ini = moses_ini.read(str(model / "moses.ini"))
    other = tmp_path_factory.mktemp("other")
    monkeypatch.chdir(other)
    decoding.check_tables(ini, [])
    shutil.copy(model / ini.paths[0], ini.paths[0])
    decoding.check_tables(ini, [])
    assert "there twice" in caplog.text
    caplog.clear()
    monkeypatch.chdir(model)
    decoding.check_tables(ini, [])
    assert not caplog.messages


def test_no_output_is_a_file_of_the_model(tmp_path: Path) -> None:
    """Neither a table nor a list of words nor the file of sparse weights."""
    model = write_model(tmp_path / "model", 1)
    edit(add_feature(model, "TargetWordInsertionFeature name=TWI path=words"), weight_file="sparse")
    for name in ("words", "sparse"):
        (model / name).write_text("")
    ini = moses_ini.read(str(model / "moses.ini"))
    decoding.check_tables(ini, [("--output", str(model / "new"))])
    (model / "table").rename(model / "table.gz")  # named without .gz, as Moses accepts
    for name in ("moses.ini", "table.gz", "lm0", "words", "sparse"):
        with pytest.raises(ConfigError, match="an input is never overwritten"):
            decoding.check_tables(ini, [("--output", str(model / name))])
