"""Translating and scoring on a GPU: beam search, phrase pairs, and the n-grams of a CSLM."""

import math
import time
from itertools import pairwise
from typing import cast

import numpy as np
import torch

from nmt.data.batches import Ids
from nmt.layers import batch_scores
from nmt.lm.cslm import CSLM, CSLMConfig, ngrams
from nmt.models.config import ModelConfig, RNNConfig
from nmt.models.registry import AnyModel, make
from nmt.models.rnn import RNNTranslator
from nmt.scoring import pair_scores
from nmt.search.beam import search
from nmt.search.config import BeamConfig
from nmt.text.vocab import EOS
from nmt.training import config_file

from .figures import Setting
from .kernels import tf32
from .text import Ints, pairs_of_sentences

BEAM, SENTENCES, FEWEST = 5, 2000, 100
ROWS = (100, 640, 2560, 10240)
PHRASE, OPTIONS = 7, 4  # most words of a phrase, mean targets of a source
PAIRS = 100_000
SPECIALS = 3


def preset_model(setting: Setting, preset: str, words: int) -> AnyModel:
    """The model of a preset over `words` words, with random weights."""
    content = {
        "run": f"{setting.folder}/none",
        "data": {"train_source": "train.en", "train_target": "train.fr", "bpe_merges": 0},
    }
    config = config_file.from_mapping(content, preset).model
    torch.manual_seed(1)
    size = words + SPECIALS
    model = make(cast(ModelConfig, config), size, size, spelling=[str(word) for word in range(size)])
    with torch.no_grad():  # half of the probability mass: hypotheses end soon after their least length
        biases = [item for name, item in model.named_parameters() if name.endswith("words_bias")]
        for bias in biases:
            bias[EOS] = math.log(words)
    return model.to(setting.device).eval()


def ids(sentences: list[Ints]) -> list[Ids]:
    return [cast(Ids, (row + SPECIALS).tolist()) for row in sentences]


def beam(setting: Setting) -> None:
    """Beam 5 with random weights: translations of 1 to 1.2 times as many words as their sources."""
    words, most = (300, 40) if setting.small else (10_000, SENTENCES)
    sources = ids(pairs_of_sentences(most, words, 2, mean=13, deviation=4)[0])
    for preset in ("small", "transformer-small"):
        model = preset_model(setting, preset, words)
        warm = 0.0
        for rows in ROWS:
            name = f"beam {preset} rows {rows}"
            with setting.attempt(name, 3 * setting.seconds + 20):
                config = BeamConfig(BEAM, min_length_factor=1.0, max_length_factor=1.2, rows=rows)
                if not warm:
                    search(model, sources[:10], config)
                began = setting.now()
                search(model, sources[:FEWEST], config)
                warm = (setting.now() - began) / len(sources[:FEWEST])
                count = min(most, max(FEWEST, rows // BEAM, int(setting.seconds / warm)))
                began = setting.now()
                answers = search(model, sources[:count], config)
                speed = count / (setting.now() - began)
                ended = sum(answer[0].complete for answer in answers) / count
                what = f"beam {BEAM}, {count:,} sentences, {words:,} words, {ended:.0%} ended"
                setting.figure(name, speed, "sentences/s", what)


def phrase_pairs(words: int, pairs: int, seed: int) -> tuple[list[Ids], list[Ids], list[int]]:
    """A generated phrase table, sorted by source: sources, targets, and the source of each target. Sources
    are the phrases of generated sentences; a target is as long as its source, give or take a word."""
    generator = np.random.default_rng(seed)
    distinct: set[tuple[int, ...]] = set()
    options: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for source, target in zip(*pairs_of_sentences(pairs // 20, words, seed), strict=True):
        for start in range(min(len(source), len(target))):
            length = int(generator.integers(1, PHRASE + 1))
            phrase = tuple((source[start : start + length] + SPECIALS).tolist())
            if phrase in distinct:
                continue
            distinct.add(phrase)
            variants = {
                tuple((target[first : first + size] + SPECIALS).tolist())
                for first, size in zip(
                    start + generator.integers(-1, 2, OPTIONS * 2),
                    np.clip(len(phrase) + generator.integers(-1, 2, OPTIONS * 2), 1, PHRASE),
                    strict=True,
                )
                if first >= 0
            }
            kept = sorted(variants)[: generator.integers(1, 2 * OPTIONS)]
            options.extend((phrase, variant) for variant in kept if variant)
        if len(options) >= pairs:
            break
    options.sort()
    sources: dict[tuple[int, ...], int] = {}
    source_of = [sources.setdefault(source, len(sources)) for source, _ in options]
    return [list(source) for source in sources], [list(target) for _, target in options], source_of


def chunks(
    table: tuple[list[Ids], list[Ids], list[int]], size: int
) -> list[tuple[list[Ids], list[Ids], list[int]]]:
    """A table in chunks of about `size` pairs, cut between sources."""
    sources, targets, source_of = table
    starts = [0]
    for row in range(1, len(source_of)):
        if row - starts[-1] >= size and source_of[row] != source_of[row - 1]:
            starts.append(row)
    return [
        (
            sources[source_of[start] : source_of[stop - 1] + 1],
            targets[start:stop],
            [number - source_of[start] for number in source_of[start:stop]],
        )
        for start, stop in pairwise([*starts, len(source_of)])
    ]


def phrases(setting: Setting) -> None:
    """The model of Cho et al. 2014a on a generated phrase table."""
    words, pairs = (500, 600) if setting.small else (15_000, PAIRS)
    config = RNNConfig(embedding=100, hidden=1000, maxout=500, output_rank=100, init="glorot", bias=True)
    if setting.small:
        config = RNNConfig(embedding=10, hidden=40, maxout=20, output_rank=10, init="glorot", bias=True)
    torch.manual_seed(1)
    model = RNNTranslator(config, words, words).eval()
    with torch.no_grad():  # far from uniform, as a trained model is
        model.decoder.output.words.normal_(0, 0.5)
    model = model.to(setting.device)
    table = phrase_pairs(words - SPECIALS, pairs, 3)
    print(f"  {len(table[1]):,} pairs, {len(table[0]):,} sources")
    for size in (4096, 16384, 65536):
        parts = chunks(table, size)
        for softmax_rows in (batch_scores.SOFTMAX_ROWS, 1024):
            name = f"phrases chunks {size} blocks {softmax_rows}"
            with setting.attempt(name, 2 * setting.seconds + 20), tf32(False):
                before, batch_scores.SOFTMAX_ROWS = batch_scores.SOFTMAX_ROWS, softmax_rows
                try:
                    pair_scores(model, *parts[0])
                    began, done = setting.now(), 0
                    for part in parts:
                        pair_scores(model, *part)
                        done += len(part[1])
                        if time.perf_counter() - began > setting.seconds / 2:
                            break
                    speed = done / (setting.now() - began)
                finally:
                    batch_scores.SOFTMAX_ROWS = before
                setting.figure(name, speed, "pairs/s", f"exact fp32, {done:,} pairs, {words:,} words")


def cslm(setting: Setting) -> None:
    """A CSLM of 7-grams over 16,000 words, full softmax."""
    words, texts = (500, 60) if setting.small else (16_000, 20_000)
    torch.manual_seed(1)
    config = CSLMConfig(init="glorot")
    if setting.small:
        config = CSLMConfig(init="glorot", embedding=16, layers=[24, 16])
    model = CSLM(config, words + SPECIALS).to(setting.device).eval()
    contexts, answers = ngrams(ids(pairs_of_sentences(texts, words, 4)[0]), model.order)
    for normalized in (False, True):
        for block in (batch_scores.WINDOW_ROWS, 8192):
            name = f"cslm {'log Z 0 ' if normalized else ''}blocks {block}"
            with setting.attempt(name, 2 * setting.seconds + 20), tf32(False), torch.no_grad():
                before, batch_scores.WINDOW_ROWS = batch_scores.WINDOW_ROWS, block
                try:
                    scorer = model.ngram_scores(normalized=normalized)
                    scorer.score(contexts[:block], answers[:block])
                    count = min(len(answers), 50_000)
                    began = setting.now()
                    scorer.score(contexts[:count], answers[:count])
                    count = min(len(answers), int(setting.seconds / 3 * count / (setting.now() - began)))
                    began = setting.now()
                    scorer.score(contexts[:count], answers[:count])
                    speed = count / (setting.now() - began)
                finally:
                    batch_scores.WINDOW_ROWS = before
                setting.figure(name, speed, "n-grams/s", f"{count:,} n-grams, {words:,} words")
    with setting.attempt("cslm network alone", 2 * setting.seconds), tf32(False), torch.no_grad():
        rows = torch.from_numpy(contexts[:8192]).to(setting.device)
        picked = torch.from_numpy(answers[:8192, None]).to(setting.device)
        seconds = setting.median(lambda: model.output.log_probs(model.features(rows)).gather(1, picked))
        setting.figure("cslm network alone", len(rows) / seconds, "n-grams/s", "contexts on the device")
