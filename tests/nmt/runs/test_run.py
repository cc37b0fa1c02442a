"""The Python interface: one `Run` from several threads; which word a unit belongs to; word alignment."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from nmt.cli import score
from nmt.data.corpus import DataConfig
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.formats.pharaoh import parse
from nmt.models.config import RNNConfig
from nmt.models.rnn import RNNTranslator
from nmt.runs.checkpoint import SavedRun
from nmt.runs.constraints import Constraints
from nmt.runs.pair import load_lexicon
from nmt.runs.run import GIANT_WORD, BeamTranslation, LineLengths, Run, TranslationRequest, join_translations
from nmt.runs.torch_run import RunShortlist, TorchRun, align, check_attention
from nmt.search.config import BeamConfig, SamplingConfig
from nmt.search.mbr import least_risk
from nmt.text.lexicon import Lexicon
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.subwords.bpe import BPE
from nmt.text.vocab import BOS, EOS, UNK, Vocab

# ---- test run ----------------------------------------------------------------------------------------------


MODELS = Path(__file__).resolve().parents[2] / "models"
WORDS = [f"w{number}" for number in range(36)]


def make_run(attention: int = 64, seed: int = 1) -> TorchRun:
    """Random weights, tokenized text of the words above."""
    torch.manual_seed(seed)
    config = RNNConfig(
        embedding=8, hidden=16, maxout=8, encoder="birnn", attention=attention, init="uniform", init_scale=0.5
    )
    vocab = Vocab(dict.fromkeys(WORDS, 1), len(WORDS))
    text = TextPipeline.of(SideConfig(tokenize=False, normalize=False))
    return TorchRun(
        [
            SavedRun(
                Path("run"),
                RNNTranslator(config, len(vocab), len(vocab)).eval(),
                text,
                text,
                vocab,
                vocab,
                DataConfig(),
                0,
            )
        ]
    )


@pytest.mark.ci
def test_two_threads_share_a_run() -> None:
    """Each thread finds what one alone finds, however often they meet inside the attention."""
    run, config = make_run(), BeamConfig(beam_size=5, max_length=25)
    lines = [
        " ".join(WORDS[(7 * place + number) % 36] for place in range(20 + number)) for number in range(8)
    ]

    def found(half: list[str]) -> list[list[tuple[list[str], float]]]:
        return [
            [(translation.words, translation.log_prob) for translation in translations]
            for translations in run.n_best(half, config)
        ]

    halves = [lines[:4], lines[4:]]
    expected = [found(half) for half in halves]
    with ThreadPoolExecutor(2) as crew:
        for _ in range(12):
            assert list(crew.map(found, halves)) == expected


def test_a_run_in_the_working_folder_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(MODELS / "translator")
    assert Run.load(".").name == "translator@500"


def test_each_score_has_its_unit() -> None:
    run = TorchRun.of(MODELS / "translator")
    lines = ["la femme", "", "des xylophones", "Le garçon voit."]
    for line, scores in zip(lines, run.word_scores([("the man sees", line) for line in lines]), strict=True):
        units = run.target_units(line)
        assert len(units) == len(scores) and units[-1] == "</s>"
        assert "".join(units[:-1]).replace("@@", "").lower() == line.replace(" ", "").lower()


def test_a_limit_of_no_words_is_refused() -> None:
    run = make_run().for_text(tokenized=True)
    for words in (0, -1):
        with pytest.raises(ConfigError, match=f"max_line_words: {words} is out of range, expected 1 or more"):
            run.translate(["w1 w2"], max_line_words=words)


def test_the_number_of_updates_may_be_an_int() -> None:
    assert Run.load(MODELS / "translator", which=500).name == "translator@500"  # type: ignore[arg-type]


def test_no_run_is_named() -> None:
    with pytest.raises(ConfigError, match="no run directory is named"):
        Run.load()


def test_long_lines_are_translated_in_parts() -> None:
    """One text for each line; that of a long one is what its parts give alone. Lists and scores of it are
    refused by its number."""
    run, config = make_run().for_text(tokenized=True), BeamConfig(beam_size=2, max_length=8)
    sentences = [
        " ".join(WORDS[(3 * number + place) % 36] for place in range(6)) + " ." for number in range(40)
    ]
    lines = [sentences[0], " ".join(sentences), "", sentences[1]]
    alone = run.translate(sentences, config, max_line_words=12)
    assert run.translate(lines, config, max_line_words=12) == [alone[0], " ".join(alone), "", alone[1]]
    assert run.translate(lines[:1], config) == alone[:1]
    together = TorchRun([run.members[0], make_run(seed=2).members[0]])  # an ensemble
    assert len(together.translate(lines, config, max_line_words=12)) == 4
    whole = run.translate(lines, config, max_line_words=400)
    assert whole[0] == alone[0] and whole[1] != " ".join(alone)
    pairs = [(line, "w1") for line in lines]
    for call in (
        lambda: run.n_best(lines, config),
        lambda: run.score(pairs),
        lambda: run.score([("w1", lines[1])]),
    ):
        with pytest.raises(DataError, match=r"^line [12]: 280 words, more than --max-line-words 250"):
            call()


def test_draws_depend_on_the_seed_and_the_number_of_a_line() -> None:
    run, lines, config = make_run(), ["w1 w2", "", "w3 w4", "w1 w2"], SamplingConfig(samples=3)
    drawn = run.sample(TranslationRequest(lines), config)
    later = TranslationRequest(lines[1:], limit=run.source_lengths.limit(first=1))
    assert run.sample(later, config) == drawn[1:] and drawn[3] != drawn[0]
    assert [draw.words for draw in drawn[1]] == [[]] * 3


def test_a_word_of_a_million_characters() -> None:
    """No model of whole words minds it; where words are cut into subwords it becomes pieces, before it is
    cut."""
    run, config = make_run().for_text(tokenized=True), BeamConfig(beam_size=1, max_length=5)
    assert len(run.translate(["w1 " + "x" * 10**6], config)) == 1
    run.members[0].source.subwords = BPE(["#version: 0.2", "x x", "w 1</w>"])
    assert len(run.translate(["w1 " + "x" * 10**4], config, max_line_words=500)) == 1


def test_settings_of_the_search_by_name() -> None:
    """They win over a configuration; an unknown one is named, and a bad value refused."""
    run, lines = make_run().for_text(tokenized=True), [" ".join(WORDS[:6])]
    expected = run.translate(lines, BeamConfig(beam_size=3, max_length=8, normalize="none"))
    assert run.translate(lines, beam_size=3, max_length=8, normalize="none") == expected
    given = BeamConfig(beam_size=9, max_length=8, normalize="none")
    assert run.translate(lines, given, beam_size=3) == expected and given.beam_size == 9
    assert len(run.n_best(lines, beam_size=3)[0]) == 3
    with pytest.raises(TypeError, match="unknown setting 'beam'; did you mean 'beam_size'"):
        run.translate(lines, beam=3)
    with pytest.raises(TypeError, match="unknown setting 'x'; expected one of beam_size, normalize"):
        run.n_best(lines, x=3)
    with pytest.raises(ConfigError, match="beam_size: 0 is out of range"):
        run.translate(lines, beam_size=0)


def test_a_run_says_what_it_is() -> None:
    run = make_run()
    count = sum(part.numel() for part in run.members[0].model.parameters())
    run.members[0].data.source.language, run.members[0].data.target.language = "en", "fr"
    one = f"run@0: rnn from en to fr, 39 and 39 units, {count:,} parameters"
    assert repr(run) == f"<Run {one}>" and repr(TorchRun([*run.members] * 2)) == f"<Run {one} + {one}>"
    assert repr(make_run()).startswith("<Run run@0: rnn, 39 and 39 units, ")  # of tokenized text


def test_sentences_go_with_raw_text_and_without_constraints_of_lines() -> None:
    run, of_a_line = make_run(), Constraints(required=[["w1"]])
    for reader, constraints in ((run.for_text(tokenized=True), None), (run, of_a_line)):
        with pytest.raises(ConfigError, match="split_sentences"):
            reader.translate(["w1 w2"], split_sentences=True, constraints=constraints)


def test_translations_begin_with_their_prefixes() -> None:
    """As with a request of the search; an empty prefix allows anything; constraints hold, too."""
    run, config = make_run().for_text(tokenized=True), BeamConfig(beam_size=3, max_length=8)
    lines, prefixes = ["w1 w2", "w3", "w4 w5 w6"], ["w8", "", "w9 w7"]
    best = run.search(TranslationRequest(lines, prefixes), config)
    translations = run.translate(lines, config, prefixes=prefixes)
    assert translations == [
        run.text(run.translation(line, row[0])) for line, row in zip(lines, best, strict=True)
    ]
    assert translations[0].startswith("w8") and translations[2].startswith("w9 w7")
    assert [
        run.translate([line], config, prefixes=[first]) for line, first in zip(lines, prefixes, strict=True)
    ] == [[text] for text in translations]
    assert run.translate(lines, config, prefixes=[""] * 3) == run.translate(lines, config)
    required = Constraints(required=[["w20"]] * 3)
    both = run.translate(lines, config, prefixes=prefixes, constraints=required)
    assert all("w20" in text.split() for text in both) and both[2].startswith("w9 w7")
    with pytest.raises(DataError, match="2 prefixes of 3 lines"):
        run.translate(lines, prefixes=["w8", "w9"])
    with pytest.raises(TypeError, match="expected a list of prefixes"):
        run.translate(lines, prefixes="w8")
    with pytest.raises(ConfigError, match="split_sentences"):
        make_run().translate(["w1"], split_sentences=True, prefixes=["w2"])


def test_a_prefix_keeps_words_that_the_model_does_not_know() -> None:
    run = TorchRun.of(MODELS / "translator")
    lines, prefixes = ["The man sees the dog.", ""], ["Zork le", "Zork"]
    for one in (run, run.replacing_unknown(Lexicon({}))):
        begun, empty = one.translate(lines, prefixes=prefixes)
        assert begun.startswith("Zork le ") and empty == ""


def test_the_lexicon_of_a_run(tmp_path: Path) -> None:
    assert load_lexicon(tmp_path) is None
    (tmp_path / "lexicon").write_text("dog chien\n")
    assert load_lexicon(tmp_path) == Lexicon({"dog": ["chien"]})
    (tmp_path / "lexicon").write_text("dog\n")
    for run in (make_run(attention=0), TorchRun.of(MODELS / "translator")):  # without attention, and with it
        replacing = run.replacing_unknown(Lexicon({}))
        assert replacing.fitted(BeamConfig()).allow_unknown == run.attends
        assert not run.fitted(BeamConfig()).allow_unknown
    with pytest.raises(CheckpointError, match=f"{tmp_path}: damaged run directory: .*lexicon:1: expected"):
        load_lexicon(tmp_path)


# ---- test translation --------------------------------------------------------------------------------------
# Translations of lines that were cut into parts; the one of minimum Bayes risk.


def test_parts_are_joined_in_order_and_their_scores_added() -> None:
    parts = [
        BeamTranslation(words=["a", "b"], log_prob=-1.0, score=-0.5, alignment=[(0, 0)]),
        BeamTranslation(words=["c"], log_prob=-2.0, score=-2.0),
    ]
    target = TextPipeline.of(SideConfig("fr"))
    whole = join_translations(parts, target)
    assert (whole.words, whole.log_prob, whole.score, whole.alignment) == (["a", "b", "c"], -3.0, -2.5, [])
    assert join_translations(parts[:1], target) is parts[0]


def test_least_risk() -> None:
    """At a large scale the best; else what many agree on, draws counted alike by a scale of 0."""
    scores = {"p q r s": -1.0, "a b c d": -1.2, "a b c e": -1.3}
    found = [
        BeamTranslation(words=text.split(), log_prob=3 * score, score=score) for text, score in scores.items()
    ]
    for metric in ("bleu", "chrf"):
        assert least_risk(found, metric, 100.0) is found[0]
        assert least_risk(found, metric, 1.0) is found[1]
        assert least_risk([found[2], found[2], *found], metric, 0.0) is found[2]
        assert least_risk(found[2:], metric, 1.0) is found[2]


# ---- test shortlists ---------------------------------------------------------------------------------------
# The target words that a sentence may need.


def test_translations_of_the_words_and_the_frequent_ones() -> None:
    [member] = make_run().members
    short = RunShortlist(member, Lexicon({"w3": ["w20", "w21", "nowhere"], "w4": ["w30"]}), frequent=2)
    ids, frequent = member.target_words.ids, {UNK, BOS, EOS, *member.target_words.encode(["w0", "w1"])}
    source = member.source_words.encode(["w3", "w5"])
    assert short(source) == frequent | {ids["w20"], ids["w21"]}


def test_a_word_stands_for_its_subwords() -> None:
    [member] = TorchRun.of(Path(MODELS) / "translator").members
    word = "connaissances"
    units = member.target.cut([word])
    assert len(units) > 1
    short = RunShortlist(member, Lexicon({"man": [word]}), frequent=1)
    found = short(member.source_words.encode(member.source.units("man")))
    assert {member.target_words.ids[unit] for unit in units if unit in member.target_words.ids} <= found
    assert len(found) <= 3 + 1 + len(units)


# ---- test lengths ------------------------------------------------------------------------------------------
# Lengths of lines in the units of several runs.


def pipeline(characters: bool = False) -> TextPipeline:
    """For tokenized text."""
    side = SideConfig(tokenize=False, normalize=False, characters=characters)
    return TextPipeline.of(side).for_text(tokenized=True)


def test_a_line_is_as_long_as_in_the_run_that_segments_it_finest() -> None:
    words, both = LineLengths([pipeline()], 5), LineLengths([pipeline(), pipeline(characters=True)], 5)
    limit = words.limit(3)
    assert words.count_units("ab cd ef gh", limit) == 4
    assert both.count_units("ab cd ef gh", limit) == 8
    assert both.count_units("a b", limit) == 0  # no more characters than the limit has words


def test_the_limit_is_what_the_training_allowed_if_that_is_more() -> None:
    assert LineLengths([pipeline()], 5).limit().words == 250
    assert LineLengths([pipeline()], 900).limit().words == 900
    assert LineLengths([pipeline()], 900).limit(7).words == 7


def test_long_lines_are_refused_by_number_or_cut_into_parts() -> None:
    lengths = LineLengths([pipeline()], 5)
    limit = lengths.limit(3, "text", first=10)
    with pytest.raises(DataError, match=r"^text:12: 4 words"):
        lengths.refuse(["a b", "a b c d"], limit, "a score")
    assert lengths.parts("a b . c d", limit) == ["a b .", "c d"]
    assert lengths.parts("a b", limit) == ["a b"]


def test_a_giant_word_counts_by_its_characters() -> None:
    lengths = LineLengths([pipeline(characters=True)], 5)
    limit = lengths.limit(3)
    assert lengths.count_units("x" * (GIANT_WORD * 3 + 1), limit) == GIANT_WORD * 3 + 1


# ---- word alignment ----------------------------------------------------------------------------------------
# Given pairs are aligned as the search aligns its translations.


@pytest.fixture(scope="module")
def run() -> TorchRun:
    """It has attention and subwords."""
    return TorchRun.of(MODELS / "translator")


def test_forced_alignments_are_those_of_the_search(run: TorchRun) -> None:
    """Where the search has cut its words as the subwords do."""
    member = run.members[0]
    lines = (MODELS / "source.en").read_text(encoding="utf-8").split("\n")[:20]
    sources = [" ".join(member.source.words(line)) for line in lines]
    run = run.for_text(tokenized=True)
    translations = run.search(TranslationRequest(sources), BeamConfig(beam_size=2))
    pairs, expected = [], []
    for source, [best, *_] in zip(sources, translations, strict=True):
        translation = run.translation(source, best)
        target = " ".join(translation.words)
        if run.target_ids(target) == best.words:
            pairs.append((source, target))
            expected.append(set(translation.alignment))
    aligned = align(run, pairs)
    assert aligned == expected and sum(map(len, aligned)) > 50
    backwards = align(run, pairs[::-1])
    assert backwards[::-1] == aligned and align(run, pairs[:1]) == aligned[:1]


def test_every_target_word_is_linked_and_empty_sides_have_no_links(run: TorchRun) -> None:
    pairs = [("the man sleeps .", "l' homme dort ."), ("", "oui"), ("yes", ""), ("", "")]
    found = align(run.for_text(tokenized=True), pairs)
    assert {target for _, target in found[0]} == set(range(4)) and found[1:] == [set()] * 3
    with pytest.raises(DataError):
        align(run, [("a " * 300, "b")])


def test_models_without_attention_are_refused(tiny: Path) -> None:
    with pytest.raises(ConfigError, match="has no attention to align by"):
        check_attention(TorchRun.of(tiny / "run"))


def test_the_command_writes_them_beside_the_scores(
    run: TorchRun, tiny: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s").write_text("The man sleeps.\n\nA boy.\n")
    (tmp_path / "t").write_text("L'homme dort.\n\nUn garçon.\n", encoding="utf-8")
    run_dir = shutil.copytree(MODELS / "translator", tmp_path / "run")  # it takes a file
    given = [str(run_dir), "-q", "-s", str(tmp_path / "s"), "-t", str(tmp_path / "t")]
    assert score.main([*given, "-o", str(tmp_path / "plain")]) == 0
    assert score.main([*given, "-o", str(tmp_path / "out"), "--alignments", str(tmp_path / "links")]) == 0
    assert (tmp_path / "out").read_text() == (tmp_path / "plain").read_text()
    lines = (tmp_path / "links").read_text().split("\n")[:-1]
    pairs = zip(
        *((tmp_path / name).read_text(encoding="utf-8").split("\n")[:-1] for name in "st"), strict=True
    )
    assert [parse(line, "") for line in lines] == align(run, list(pairs))
    plain = [
        str(shutil.copytree(tiny / "run", tmp_path / "without")),
        *given[1:],
        "-o",
        str(tmp_path / "x"),
        "--alignments",
        str(tmp_path / "y"),
    ]
    assert score.main(plain) == 2 and "has no attention to align by" in capfd.readouterr().err
    assert not (tmp_path / "y").exists()
