"""What is asked as text is there, or not there, in the text of translations."""

import logging
import re
from dataclasses import replace
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError
from nmt.runs.checkpoint import SavedRun
from nmt.runs.constraints import ConstraintMaker, Constraints
from nmt.runs.run import TranslationRequest
from nmt.runs.torch_run import TorchRun
from nmt.search.config import BeamConfig
from nmt.text import truecase
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.subwords.bpe import BPE
from nmt.text.vocab import Vocab
from tests.nmt.runs.test_run import WORDS, make_run

LINES = ["w1 w2 w3", "w4", "", "w5 w6 w1 w2"]
SHORT = BeamConfig(beam_size=6, max_length=12)


def count(phrase: str, text: str) -> int:
    return len(re.findall(f"(?<!\\S)(?={re.escape(phrase)}(?!\\S))", text))


def cut_run() -> TorchRun:
    """Units are parts of words: `w1` is `w 1`."""
    run = make_run()
    codes = BPE(["#version: 0.2"])
    units = ["w@@", *"0123456789", *(f"{digit}@@" for digit in range(1, 4)), *(f"x{n}" for n in range(22))]
    assert len(units) == len(WORDS)
    member = run.members[0]
    vocab = Vocab(dict.fromkeys(units, 1), len(units))
    text = TextPipeline.with_subwords(SideConfig(tokenize=False, normalize=False), codes, raw=False)
    return TorchRun([replace(member, source=text, target=text, source_words=vocab, target_words=vocab)])


RUNS = {"words": make_run, "units": cut_run}


@pytest.mark.parametrize("kind", list(RUNS))
@pytest.mark.parametrize("allocation", ["dynamic", "grid"])
def test_every_hypothesis_has_what_is_required(kind: str, allocation: str) -> None:
    run = RUNS[kind]()
    asked = Constraints(required=[["w7 w8", "w9"], ["w1", "w1"], [], ["w3", "w30 w3"]])
    config = replace(SHORT, allocation=allocation)
    found = run.n_best(LINES, config, constraints=asked)
    for phrases, translations in zip(asked.required, found, strict=True):
        for one in translations:
            text = " ".join(one.words)
            for phrase in phrases:
                assert count(phrase, text) >= sum(count(phrase, other) for other in phrases), text
    pairs = [(line, " ".join(one.words)) for line, some in zip(LINES, found, strict=True) for one in some]
    same_units = [pair for pair in pairs if kind == "words" and pair[0]]
    scores = dict(zip(same_units, run.score(same_units), strict=True))
    for line, some in zip(LINES, found, strict=True):
        for one in some:
            if (pair := (line, " ".join(one.words))) in scores:
                assert one.log_prob == pytest.approx(scores[pair], abs=1e-4)
    assert run.translate(LINES, config, constraints=asked) == [" ".join(some[0].words) for some in found]


@pytest.mark.parametrize("kind", list(RUNS))
def test_no_hypothesis_has_what_is_avoided(kind: str) -> None:
    """Neither as one unit nor as several; for all lines, and for one of them."""
    run = RUNS[kind]()
    plain = run.n_best(LINES, SHORT)
    words = [word for some in plain for one in some for word in one.words]
    often = max(words, key=words.count)
    found = run.n_best(LINES, SHORT, constraints=Constraints(avoid=[often]))
    assert not any(often in one.words for some in found for one in some)
    mine = run.n_best(LINES, SHORT, constraints=Constraints(avoided=[[often], [], [], []]))
    assert mine[0] == found[0] and mine[1:] == plain[1:]


def test_terms_are_found_in_the_source() -> None:
    """The longest term, each time it occurs, from a dictionary or a file."""
    run = make_run()
    terms = {"w1 w2": "w20 w21", "w1": "w22", "w4": "w4 w4"}
    found = run.translate([*LINES, "w1 w1", "w2"], SHORT, constraints=Constraints(terms=terms))
    assert [count("w20 w21", text) for text in found[:4]] == [1, 0, 0, 1]
    assert count("w4 w4", found[1]) >= 1 and count("w22", found[4]) >= 2
    assert found[5] == run.translate(["w2"], SHORT)[0]


def test_terms_of_a_file(tmp_path: Path) -> None:
    run, path = make_run(), tmp_path / "terms"
    path.write_text("# terms\nw1 w2\tw20 w21\nw4\tw4 w4\n")
    by_file = run.translate(LINES, SHORT, constraints=Constraints(terms=str(path)))
    terms = {"w1 w2": "w20 w21", "w4": "w4 w4"}
    assert by_file == run.translate(LINES, SHORT, constraints=Constraints(terms=terms))
    path.write_text("# terms\nw1\tw99 w2\n")
    with pytest.raises(DataError, match=r"terms:2: 'w99 w2' cannot be required: the model has no unit 'w99'"):
        run.translate(LINES, SHORT, constraints=Constraints(terms=str(path)))


def test_nothing_asked_nothing_changed() -> None:
    run = make_run()
    plain = run.n_best(LINES, SHORT)
    for asked in (
        Constraints(),
        Constraints(required=[[]] * 4, avoided=[[""]] * 4),
        Constraints(avoid=["zz"]),
    ):
        assert run.n_best(LINES, SHORT, constraints=asked) == plain


def test_what_cannot_be_met(caplog: pytest.LogCaptureFixture) -> None:
    """One line that says where, or a warning and the translation without constraints."""
    run = make_run()
    for asked, order, message in (
        (Constraints(required=[[], [], ["w1"], []]), 0, "line 3: the line has no words"),
        (Constraints(required=[[], ["w99"], [], []]), 0, "line 2: 'w99' cannot be required; leave it out"),
        (
            Constraints(required=[[], ["w1 w2"], [], []], avoid=["w2"]),
            0,
            "line 2: 'w1 w2' is required, but contains",
        ),
        (Constraints(required=[[], ["w1", "w1"], [], []]), 1, "line 2: no translation contains all"),
    ):
        config = replace(SHORT, no_repeat_ngram=order)
        with pytest.raises(DataError, match=f"^{message}"):
            run.translate(LINES, config, constraints=asked)
        with caplog.at_level(logging.WARNING):
            found = run.translate(LINES, config, constraints=replace(asked, unmet="warn"))
        assert message.split(";")[0] in caplog.text
        without = replace(asked, required=())
        assert found == run.translate(LINES, config, constraints=without)


def test_wrong_numbers_and_kinds_are_refused() -> None:
    run = make_run()
    with pytest.raises(ConfigError, match="required: 1 list of phrases, but 4 lines"):
        run.translate(LINES, constraints=Constraints(required=[["w1"]]))
    with pytest.raises(ConfigError, match="unmet: 'x' is unknown"):
        run.translate(LINES, constraints=Constraints(unmet="x"))
    for asked in (Constraints(avoid="w1"), Constraints(required=["w1"] * 4)):
        with pytest.raises(TypeError, match="expected a list of phrases, found a str"):
            run.translate(LINES, constraints=asked)


def test_long_lines() -> None:
    """Terms and what is avoided hold in each part; constraints of a line need it whole."""
    run, long = make_run().for_text(tokenized=True), " . ".join(["w1 w2 w3"] * 8)
    terms = Constraints(terms={"w1": "w22"}, avoid=["w30"])
    [found] = run.translate([long], SHORT, max_line_words=8, constraints=terms)
    assert count("w22", found) >= 8 and count("w30", found) == 0
    with pytest.raises(DataError, match="line 1: 31 words, more than --max-line-words 8: too long for"):
        run.translate([long], SHORT, max_line_words=8, constraints=Constraints(required=[["w1"]]))


def test_prefixes_short_lists_and_ensembles() -> None:
    run = TorchRun([make_run().members[0], make_run(seed=2).members[0]])
    maker = run.maker(Constraints(avoid=["w5"]))
    given = [maker.for_line(line, "here", ["w7", "w8 w9"] if line else []) for line in LINES]
    prefixes = ["w8", "w9 w7", "", "w8 w9"]
    found = run.search(TranslationRequest(LINES, prefixes, given), SHORT)
    for line, prefix, candidates in zip(LINES, prefixes, found, strict=True):
        for one in candidates:
            text = " ".join(run.translation(line, one).words)
            assert not line or (text.startswith(prefix) and count("w7", text) and count("w8 w9", text))
            assert not count("w5", text)


# ---- case, and raw text ------------------------------------------------------------------------------------


def maker_of(target: TextPipeline, units: list[str], given: Constraints) -> ConstraintMaker:
    member = make_run().members[0]
    vocab = Vocab(dict.fromkeys(units, 1), len(units))
    changed: SavedRun = replace(member, target=target, target_words=vocab)
    return ConstraintMaker(changed, given)


def test_case() -> None:
    """A required phrase keeps its case; one that is avoided is so at the start of a sentence, too."""
    text = TextPipeline.of(SideConfig("fr", case="truecase"))
    text.tokenizer.truecaser = truecase.learn([["x", "la", "pompe", "Acme"]] * 2)
    maker = maker_of(text, ["la", "pompe", "Acme", "La"], Constraints(avoid=["La pompe"]))
    assert maker.units("La pompe") == ["La", "pompe"] and maker.units("Acme") == ["Acme"]
    assert [phrase.split("\0")[1:-1] for phrase in maker.everywhere] == [["La", "pompe"], ["la", "pompe"]]
    lower = TextPipeline.of(SideConfig("fr", case="lower"))
    maker = maker_of(lower, ["la", "pompe"], Constraints(avoid=["La Pompe"]))
    assert maker.units("La Pompe") == ["la", "pompe"] and len(maker.everywhere) == 1
