"""The Python interface: one `Run` from several threads; which word a unit belongs to."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from nmt.data.corpus import DataConfig
from nmt.errors import ConfigError, DataError
from nmt.models.config import RNNConfig
from nmt.models.rnn.translator import Translator
from nmt.runs.checkpoint import SavedRun
from nmt.runs.constraints import Constraints
from nmt.runs.run import Run
from nmt.search.config import BeamConfig
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.subwords.bpe import BPE
from nmt.text.vocab import Vocab

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "0.5.0"
WORDS = [f"w{number}" for number in range(36)]


def make_run(attention: int = 64, seed: int = 1) -> Run:
    """Random weights, tokenized text of the words above."""
    torch.manual_seed(seed)
    config = RNNConfig(
        embedding=8, hidden=16, maxout=8, encoder="birnn", attention=attention, init="uniform", init_scale=0.5
    )
    vocab = Vocab(dict.fromkeys(WORDS, 1), len(WORDS))
    text = TextPipeline.of(SideConfig(tokenize=False, normalize=False))
    return Run(
        [
            SavedRun(
                Path("run"),
                Translator(config, len(vocab), len(vocab)).eval(),
                text,
                text,
                vocab,
                vocab,
                DataConfig(),
                0,
            )
        ]
    )


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


def test_long_lines_are_translated_in_parts() -> None:
    """One text for each line; that of a long one is what its parts give alone. Lists and scores of it are
    refused by its number."""
    run, config = make_run(), BeamConfig(beam_size=2, max_length=8)
    sentences = [
        " ".join(WORDS[(3 * number + place) % 36] for place in range(6)) + " ." for number in range(40)
    ]
    lines = [sentences[0], " ".join(sentences), "", sentences[1]]
    alone = run.translate(sentences, config, tokenized=True, max_line_words=12)
    assert run.translate(lines, config, True, max_line_words=12) == [alone[0], " ".join(alone), "", alone[1]]
    assert run.translate(lines[:1], config, True) == alone[:1]
    together = Run([run.members[0], make_run(seed=2).members[0]])  # an ensemble
    assert len(together.translate(lines, config, True, max_line_words=12)) == 4
    whole = run.translate(lines, config, True, max_line_words=400)
    assert whole[0] == alone[0] and whole[1] != " ".join(alone)
    pairs = [(line, "w1") for line in lines]
    for call in (
        lambda: run.n_best(lines, config, True),
        lambda: run.score(pairs, True),
        lambda: run.score([("w1", lines[1])], True),
    ):
        with pytest.raises(DataError, match=r"^line [12]: 280 words, more than --max-line-words 250"):
            call()


def test_a_word_of_a_million_characters() -> None:
    """No model of whole words minds it; where words are cut into subwords it becomes pieces, before it is
    cut."""
    run = make_run()
    assert len(run.translate(["w1 " + "x" * 10**6], BeamConfig(beam_size=1, max_length=5), True)) == 1
    run.members[0].source.subwords = BPE(["#version: 0.2", "x x", "w 1</w>"])
    config = BeamConfig(beam_size=1, max_length=5)
    assert len(run.translate(["w1 " + "x" * 10**4], config, True, max_line_words=500)) == 1


def test_settings_of_the_search_by_name() -> None:
    """They win over a configuration; an unknown one is named, and a bad value refused."""
    run, lines = make_run(), [" ".join(WORDS[:6])]
    expected = run.translate(lines, BeamConfig(beam_size=3, max_length=8, normalize="none"), True)
    assert run.translate(lines, tokenized=True, beam_size=3, max_length=8, normalize="none") == expected
    given = BeamConfig(beam_size=9, max_length=8, normalize="none")
    assert run.translate(lines, given, True, beam_size=3) == expected and given.beam_size == 9
    assert len(run.n_best(lines, tokenized=True, beam_size=3)[0]) == 3
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
    assert repr(run) == f"<Run {one}>" and repr(Run([*run.members] * 2)) == f"<Run {one} + {one}>"
    assert repr(make_run()).startswith("<Run run@0: rnn, 39 and 39 units, ")  # of tokenized text


def test_sentences_go_with_raw_text_and_without_constraints_of_lines() -> None:
    run = make_run()
    for more in ({"tokenized": True}, {"constraints": Constraints(required=[["w1"]])}):
        with pytest.raises(ConfigError, match="split_sentences"):
            run.translate(["w1 w2"], split_sentences=True, **more)
