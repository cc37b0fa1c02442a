"""Small random models for tests of the decoder (phrase tables, reordering tables, ARPA files, a moses.ini),
and functions that compare translations."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from nmt.ngram import count_models, estimators
from smt_bridge.decoder import system
from smt_bridge.decoder.arrays import Floats
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.features.protocol import SentenceScorer, StatefulFeature
from smt_bridge.decoder.phrases import GrowingTrie, Int32s, Int64s, PhraseTrie
from smt_bridge.decoder.sentence import Sentence
from smt_bridge.decoder.translation import PhraseTranslation
from smt_bridge.moses.ini import FeatureLine
from smt_bridge.moses.reordering import ReorderingType
from tests.conftest import Command

# ---- phrases -----------------------------------------------------------------------------------------------


def build_trie(ids: Int32s, cut: Int64s, words: int) -> tuple[PhraseTrie, Int32s]:
    """A trie of P phrases, and the node of each: (P,). The word ids of phrase i are ids[cut[i] : cut[i +
    1]]."""
    growing = GrowingTrie()
    found = growing.add(ids, cut)
    trie, number = growing.sort(np.arange(words, dtype=np.int32))
    return trie, number[found]


# ---- models ------------------------------------------------------------------------------------------------


SOURCE = ["a", "b", "c", "d", "e"]
REORDERING = "type=wbe-msd-bidirectional-fe-allff"
UNLIMITED = {"stack": 0, "table_limit": 0, "beam_threshold": 0.0}
TARGET = ["p", "q", "r", "s", "t&apos;", "u"]


class Stateful(StatefulFeature):
    """A stateful feature that is not used: it has a name, a beam and a stand-in."""

    stand_in = 0.5

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def load(cls, line: FeatureLine, config: DecoderConfig) -> Self:
        return cls(line.name)

    def start(self, sentence: Sentence) -> SentenceScorer:
        raise NotImplementedError


def write_model(
    folder: Path,
    seed: int,
    options: int = 3,
    longest: int = 3,
    reordering: bool = True,
    columns: int = 4,
    lms: int = 1,
    kind: str = "wbe-msd-bidirectional-fe-allff",
) -> Path:
    """Write a random system over five source words, in which some phrases have no options. `kind`: type of
    the reordering model."""
    rng, kinds = random.Random(seed), ReorderingType.parse(kind)
    folder.mkdir(parents=True, exist_ok=True)
    rows, extra = set(), []
    for _ in range(60):
        source = " ".join(rng.choice(SOURCE[:4]) for _ in range(rng.randint(1, longest)))
        for _ in range(rng.randint(1, options)):
            rows.add((source, " ".join(rng.choice(TARGET) for _ in range(rng.randint(1, 3)))))
    table = []
    for source, target in sorted(rows):
        scores = " ".join(f"{rng.uniform(0.01, 1):.6g}" for _ in range(columns))
        table.append(f"{source} ||| {target} ||| {scores} ||| 0-0 ||| 3 2 1 ||| |||")
        values = " ".join(f"{rng.uniform(0.05, 1):.6g}" for _ in range(kinds.probabilities))
        extra.append(f"{source} ||| {target} ||| {values}")
    (folder / "table").write_text("".join(line + "\n" for line in sorted(table)), encoding="utf-8")
    (folder / "reordering").write_text("".join(line + "\n" for line in sorted(extra)), encoding="utf-8")
    features = ["UnknownWordPenalty", "WordPenalty", "PhrasePenalty", "Distortion"]
    weights = ["WordPenalty0= -0.3", "PhrasePenalty0= 0.1", "Distortion0= 0.2"]
    features.append(
        f"PhraseDictionaryMemory name=TranslationModel0 num-features={columns} path=table input-factor=0 "
        "output-factor=0"
    )
    weights.append(f"TranslationModel0= {' '.join(f'{rng.uniform(0.05, 0.4):.3f}' for _ in range(columns))}")
    if reordering:
        features.append(
            f"LexicalReordering name=LexicalReordering0 num-features={kinds.scores} type={kind} "
            "input-factor=0 output-factor=0 path=reordering"
        )
        values = " ".join(f"{rng.uniform(0, 0.4):.3f}" for _ in range(kinds.scores))
        weights.append(f"LexicalReordering0= {values}")
    for number in range(lms):
        sentences = [[rng.choice(TARGET[:5]) for _ in range(rng.randint(1, 8))] for _ in range(40)]
        count_models.write_arpa(
            estimators.estimate_kneser_ney(
                sentences, estimators.KneserNeyConfig(3, discount_fallback=estimators.FALLBACK_DISCOUNTS)
            ),
            folder / f"lm{number}",
        )
        features.append(f"KENLM name=LM{number} factor=0 path=lm{number} order=3")
        weights.append(f"LM{number}= {rng.uniform(0.2, 0.6):.3f}")
    head = ["[input-factors]", "0", "[mapping]", "0 T 0", "[distortion-limit]", "3"]
    lines = [*head, "[feature]", *features, "[weight]", *weights]
    (folder / "moses.ini").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def decoder(folder: Path, plain: bool = False, /, **config: Any) -> Decoder:
    """Load a model's decoder; `plain`: with the search in plain Python."""
    made = Decoder(system.load(str(folder), use_cache=False), DecoderConfig(**config))
    if plain:
        made.compiled = None
    return made


def sentence(seed: int, words: int) -> str:
    rng = random.Random(seed)
    return " ".join(rng.choice(SOURCE) for _ in range(words))


def all_weights(made: Decoder) -> Floats:
    """The weights of all printed scores, in order."""
    return np.array([value for name in made.system.sizes for value in made.weights[name]])


def same_lists(ours: PhraseTranslation, theirs: PhraseTranslation, line: str, close: float = 1e-9) -> None:
    """Assert that two lists have the same totals, and the same texts, except for texts whose total occurs
    twice or is the last one, since their order is undefined."""
    totals = [derivation.total for derivation in ours.derivations]
    np.testing.assert_allclose(totals, [derivation.total for derivation in theirs.derivations], atol=close)
    for place, (one, other) in enumerate(zip(ours.derivations, theirs.derivations, strict=True)):
        near = [totals[other] for other in (place - 1, place + 1) if 0 <= other < len(totals)]
        if not any(abs(total - one.total) < 10 * close for total in near) and (
            place + 1 < len(totals) or place == 0
        ):
            assert one.text == other.text, line


def full_scores(made: Decoder, found: PhraseTranslation) -> Floats:
    """The total of each derivation under the decoder's weights: weights x features, and -100 for each unknown
    word."""
    rows = np.stack([derivation.features for derivation in found.derivations])
    extras = [
        [found.sentence.extra(option) for option in derivation.options] if found.sentence else []
        for derivation in found.derivations
    ]
    unknown = [sum(extra is not None and extra.unknown for extra in row) for row in extras]
    return np.asarray(rows @ all_weights(made) - 100.0 * np.array(unknown))


def check_totals(made: Decoder, found: PhraseTranslation, close: float = 1e-9) -> None:
    """Assert that totals are weights x features, and sorted."""
    totals = [derivation.total for derivation in found.derivations]
    np.testing.assert_allclose(full_scores(made, found), totals, rtol=0, atol=close)
    assert totals == sorted(totals, reverse=True)


def check_unpruned(folder: Path, count: int, **config: int) -> None:
    """Assert for `count` sentences that scoring candidates in a second stage, with none of them pruned
    before, gives the lists of plain search, which scores them at once."""
    one = decoder(folder, stack=6, neural_beam=0, nbest=5, **config)
    other = decoder(folder, True, stack=6, nbest=5)
    for number in range(count):
        line = sentence(number, 1 + number % 5)
        same_lists(one.translate_line(line), other.translate_line(line), line, 1e-5)


def cuts(made: Decoder) -> int:
    """Number of hypotheses of the last sentence that were dropped because a stack was full."""
    assert made.compiled and made.compiled.memory.state
    state = made.compiled.memory.state
    return int((state.hypotheses.listed[: state.counters[0]] == 0).sum())


def edit(folder: Path, *changes: tuple[str, str], **found: str) -> Path:
    """Replace text in the ini and add sections, such as drop_unknown="true"."""
    text = (folder / "moses.ini").read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    for name, value in found.items():
        text = f"[{name.replace('_', '-')}]\n{value}\n{text}"
    (folder / "moses.ini").write_text(text, encoding="utf-8")
    return folder


def range_of(span: str) -> range:
    """Parse a span of an n-best list, 3 or 3-5, to its words."""
    first, _, last = span.partition("-")
    return range(int(first), int(last or first) + 1)


def weight_line(folder: Path, name: str) -> str:
    """The line of a feature in [weight]."""
    lines = (folder / "moses.ini").read_text(encoding="utf-8").split("\n")
    return next(line for line in lines if line.startswith(f"{name}="))


def add_feature(folder: Path, line: str, *weights: str) -> Path:
    """Add a feature to a system: its line in [feature], and lines in [weight]."""
    return edit(
        folder, ("[feature]\n", f"[feature]\n{line}\n"), ("[weight]\n", "\n".join(["[weight]", *weights, ""]))
    )


def values(made: Decoder, translation: PhraseTranslation, place: int = 0) -> dict[str, list[float]]:
    """The features of a derivation by name."""
    row = iter(translation.derivations[place].features.tolist())
    return {name: [next(row) for _ in range(size)] for name, size in made.system.sizes.items()}


# ---- networks ----------------------------------------------------------------------------------------------
# Small neural models for tests of the decoder, trained on the target words of models.py.


TEXT = ["p q r", "q t ' s", "r r p u", "s q", "t ' u p q r", "u u s"] * 4


def train_cslm(folder: Path, command: Command, order: int = 4, layers: Sequence[int] = (8,)) -> Path:
    """Train a CSLM over the target words of models.py, without their escapes; the word r is so rare that it
    is unknown."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "text").write_text("".join(line.replace("t '", "t'") + "\n" for line in TEXT), encoding="utf-8")
    given = [
        f"run={folder}/run",
        f"data.train_text={folder}/text",
        "data.target.tokenize=false",
        "data.target.normalize=false",
        "data.target.vocabulary=6",
    ]
    (folder / "train.yaml").write_text(
        f"lm: {{type: cslm, order: {order}, embedding: 6, layers: {list(layers)}, "
        "normalizer: 0.1, init: uniform, init_scale: 0.8}\n"
        "training: {optimizer: adam, learning_rate: 0.02, cost: word, batch_size: 8, max_steps: 30, "
        "dev_beam: 0, metric: cost, tensorboard: false}\n"
    )
    done = command("nmt-train", folder / "train.yaml", *given)
    assert done.returncode == 0, done.stderr
    return folder / "run"
