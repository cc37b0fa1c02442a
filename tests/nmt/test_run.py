"""The Python interface: one `Run` from several threads; which word a unit belongs to."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from nmt.checkpoint import SavedRun
from nmt.data.corpus import DataConfig
from nmt.data.text import SideConfig, TextPipeline
from nmt.data.vocab import Vocab
from nmt.models.config import ModelConfig
from nmt.models.translator import Translator
from nmt.run import Run, word_numbers
from nmt.search.beam import BeamConfig

WORDS = [f"w{number}" for number in range(36)]


def make_run(attention: int = 64, seed: int = 1) -> Run:
    """Random weights, tokenized text of the words above."""
    torch.manual_seed(seed)
    config = ModelConfig(embedding=8, hidden=16, maxout=8, encoder="birnn", attention=attention, init="uniform", init_scale=0.5)
    vocab = Vocab(dict.fromkeys(WORDS, 1), len(WORDS))
    text = TextPipeline.of(SideConfig(tokenize=False, normalize=False))
    return Run([SavedRun(Path("run"), Translator(config, len(vocab), len(vocab)).eval(), text, text, vocab, vocab, DataConfig(), 0)])


def test_units_belong_to_words() -> None:
    assert word_numbers(["lo@@", "w@@", "er", "case", "x@@"]) == [0, 0, 0, 1, 2] and word_numbers([]) == []


def test_two_threads_share_a_run() -> None:
    """Each thread finds what one alone finds, however often they meet inside the attention."""
    run, config = make_run(), BeamConfig(5, max_length=25)
    lines = [" ".join(WORDS[(7 * place + number) % 36] for place in range(20 + number)) for number in range(8)]

    def found(half: list[str]) -> list[list[tuple[list[str], float]]]:
        return [[(translation.words, translation.log_prob) for translation in translations] for translations in run.n_best(half, config)]

    halves = [lines[:4], lines[4:]]
    expected = [found(half) for half in halves]
    with ThreadPoolExecutor(2) as crew:
        for _ in range(12):
            assert list(crew.map(found, halves)) == expected
