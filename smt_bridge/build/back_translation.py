"""Translate monolingual text of the target language back into the source language (Sennrich et al. 2016a),
by a phrase-based system of the reverse direction. The attention model trains on these pairs besides the
others; their source sentences begin with a tag (Caswell et al. 2019).

back-translation/alignment.gz              the links of the build, reversed
back-translation/model                     tables and count model of the reverse direction
back-translation/train.source train.target the new pairs: translations, and the monolingual lines
back-translation/train.alignment.gz        the links of the new pairs, by the decoder
"""

from collections.abc import Iterable

from nmt.formats import pharaoh
from nmt.formats.pharaoh import Links
from nmt.io import files
from smt_bridge import train_system
from smt_bridge.build.config import Build, StepProgress
from smt_bridge.build.corpus import BuildTexts
from smt_bridge.build.training import (
    ALIGNMENT,
    BACK,
    BACK_ALIGNMENT,
    BACK_SOURCE,
    BACK_TARGET,
    MODEL,
    extract_config,
)
from smt_bridge.build.tuning import PHRASE_BASED, ini_path, sample_lines
from smt_bridge.config import TrainConfig
from smt_bridge.decoder import system as systems
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.translation import alignment
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses.ini import Ini

TABLE_FEATURE = "TranslationModel0"
STACK = 30  # 2 to 3 times as fast as 100; translations by 20 lose 0.4 BLEU (Multi30k)


def translate_back(build: Build) -> None:
    """Train the reverse system and translate the monolingual lines. Writes the files listed at the top of
    this module; BACK_SOURCE comes last. Raises the errors of `train_system.train`."""
    lines = sampled_lines(build)
    links = build.work / BACK / ALIGNMENT
    files.write_text(links, map(reversed_links, files.read_lines(build.work / ALIGNMENT)))
    texts, folder = BuildTexts(build.work), build.work / BACK / MODEL
    config = TrainConfig(
        source=str(texts.path("train.target")), target=str(texts.path("train.source")),
        alignment=str(links), extract=extract_config(build),
    )  # fmt: skip
    train_system.train(folder, config, on_step=lambda: build.store.record([f"{BACK}/{MODEL}/*"]))
    tuned = moses_ini.read(str(ini_path(build, PHRASE_BASED)))
    ini = reversed_weights(tuned, moses_ini.read(str(folder / train_system.INI)))
    moses_ini.write(folder / "reverse.ini", ini)
    decoder = Decoder(
        systems.load_ini(moses_ini.read(str(folder / "reverse.ini")), False), DecoderConfig(stack=STACK)
    )
    progress = StepProgress(build, len(lines))
    pairs = [
        (decoder.lines.text(translation), pharaoh.format_links(exchanged(alignment(translation))))
        for translation in progress.over(decoder.translate_all(lines, build.config.workers), 1)
    ]
    files.write_text(build.work / BACK_TARGET, lines)
    files.write_text(build.work / BACK_ALIGNMENT, [links for _, links in pairs])
    files.write_text(build.work / BACK_SOURCE, [line for line, _ in pairs])


def sampled_lines(build: Build) -> list[str]:
    """The monolingual lines that the plan translates back, in the words of the tables: spaced evenly over the
    text that the count model learns besides the training text."""
    return sample_lines(list(BuildTexts(build.work).monolingual()), build.plan.back_translated)


def reversed_links(line: str) -> str:
    """Exchange the two sides of the links of a line. DataError for a malformed one."""
    return pharaoh.format_links(exchanged(pharaoh.parse(line, ALIGNMENT)))


def exchanged(links: Iterable[tuple[int, int]]) -> Links:
    """Links (source, target) as (target, source)."""
    return frozenset((target, source) for source, target in links)


def reversed_weights(tuned: Ini, start: Ini) -> Ini:
    """The weights of a tuned system for the system of the reverse direction, `start`: those of p(s|t) and
    p(t|s) are exchanged, of phrases and of words, and all others are kept. So the reverse system needs no
    tuning of its own."""
    weights = {feature.name: moses_ini.feature_weights(tuned, feature) for feature in start.features}
    inverse_phrase, inverse_lexical, phrase, lexical, *others = weights[TABLE_FEATURE]
    weights[TABLE_FEATURE] = [phrase, lexical, inverse_phrase, inverse_lexical, *others]
    return moses_ini.set_weights(start, weights)
