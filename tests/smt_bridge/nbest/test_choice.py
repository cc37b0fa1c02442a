"""The choice of the best translation: by total, by minimum Bayes risk, and with scales that are tuned on
references."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from nmt.errors import ConfigError
from nmt.formats import nbest
from nmt.formats.nbest import Hypothesis
from nmt.search.config import MBRConfig
from smt_bridge.moses import ini
from smt_bridge.nbest import choice
from smt_bridge.nbest.choice import GRID, ByRisk, ByTotal, Chooser, NbestEntry, TunedRisk, format_scales

# ---- test choice -------------------------------------------------------------------------------------------


Group = list[Hypothesis]


def group(**totals: float) -> Group:
    """A list of hypotheses: words joined by _, with their totals."""
    return [Hypothesis(0, text.split("_"), {}, total) for text, total in totals.items()]


def entries(*groups: Group) -> list[NbestEntry]:
    return [NbestEntry(one.total, "", one.text) for group in groups for one in group]


def decided(chooser: Chooser, *sentences: Sequence[Group]) -> list[str]:
    lines = [line for groups in sentences for line in chooser.add(groups, entries(*groups))]
    return lines + chooser.finish()


LIST = group(p_q_r_s=-1.0, a_b_c_d=-1.2, a_b_c_e=-1.2)


def test_by_total_or_by_risk() -> None:
    assert decided(ByTotal(), [LIST]) == ["p q r s"]
    assert decided(ByRisk(MBRConfig("bleu"), of_totals=False), [LIST]) == ["a b c d"]
    assert decided(ByRisk(MBRConfig("bleu", [100.0]), of_totals=False), [LIST]) == ["p q r s"]


def test_totals_of_one_model_are_one_list() -> None:
    """Lists with totals of their own count alike; with totals of one model all entries compete."""
    one, other = group(x_y=-1.0, z_y=-1.1), group(p_q=-7.0)
    assert decided(ByRisk(MBRConfig("bleu"), of_totals=False), [[*one], [*other]]) == ["p q"]
    assert decided(ByRisk(MBRConfig("bleu"), of_totals=True), [[*one], [*other]]) == ["x y"]


def test_texts_are_equal_whatever_their_escapes() -> None:
    """l&apos; of Moses and l' of nmt-translate are the same text, which is written as in its first entry."""
    moses, neural = group(un=-1.0), group(**{"l'_eau": -1.0, "un_os": -1.5})
    moses.append(Hypothesis(0, ["l&apos;", "eau"], {}, -1.1))
    chooser = ByRisk(MBRConfig("chrf"), of_totals=False)
    assert decided(chooser, [moses, neural]) == ["l&apos; eau"]
    assert decided(chooser, [neural, moses]) == ["l' eau"]


@pytest.mark.parametrize(
    ("metric", "corpus"), [("bleu", BLEU(tokenize="none", force=True)), ("chrf", CHRF())]
)
@pytest.mark.parametrize("lists", [1, 2])
def test_references_choose_the_scales(metric: str, corpus: BLEU | CHRF, lists: int) -> None:
    """The result is the same as if each choice of scales were tried by itself."""
    rng = random.Random(lists)
    references = [" ".join(rng.choice("abcd") for _ in range(7)) for _ in range(12 // lists)]
    sentences = [
        [
            [Hypothesis(0, [rng.choice([word, word, "x"]) for word in line.split()], {}, rng.uniform(-4, 0))
             for _ in range(6)]
            for _ in range(lists)
        ]
        for line in references
    ]  # fmt: skip

    def score(*scales: float) -> float:
        outputs = decided(ByRisk(MBRConfig(metric, list(scales)), of_totals=False), *sentences)
        return float(corpus.corpus_score(outputs, [references]).score)

    tuned = TunedRisk(ByRisk(MBRConfig(metric), of_totals=False), lists, [references])
    outputs = decided(tuned, *sentences)
    tried = [(scale,) for scale in GRID] if lists == 1 else [(one, other) for one in GRID for other in GRID]
    best = max(tried, key=lambda scales: score(*scales))
    assert score(*tuned.scales) == pytest.approx(score(*best)) and tuple(tuned.scales) == best
    assert corpus.corpus_score(outputs, [references]).score == pytest.approx(score(*best))
    assert format_scales(tuned.scales) == " ".join(f"{scale:g}" for scale in best)
    assert len({score(*scales) for scales in tried}) > 1


def test_too_many_lists_to_tune() -> None:
    with pytest.raises(ConfigError, match="scales of 4 lists are too many to tune, 3 at most"):
        TunedRisk(ByRisk(MBRConfig("bleu"), of_totals=False), 4, [["a"]])


# ---- test totals -------------------------------------------------------------------------------------------
# Totals are weights x features, and -100 for each unknown word.


ENTRY = "0 ||| a b ||| A= 1 2 B= -3 ||| {} ||| 0=0"


def test_a_total() -> None:
    features = nbest.parse(ENTRY.format(0), "n:1").features
    assert choice.entry_total(features, {"A": [0.5, 0.25], "B": [2.0]}) == -5
    with pytest.raises(ConfigError, match="no weight for feature B"):
        choice.check_weights(features, {"A": [1.0, 1.0]})
    with pytest.raises(ConfigError, match="feature A has 2 values, but 1 weights"):
        choice.check_weights(features, {"A": [1.0], "B": [1.0]})


def test_unknown_words() -> None:
    used = {"A": [0.5, 0.25], "B": [2.0]}
    for count in range(3):
        entry = nbest.parse(ENTRY.format(-5 - 100 * count), "n:1")
        assert choice.unknown_word_score(entry, used) == -100 * count == choice.unprinted_score(entry, used)
    with pytest.raises(ConfigError, match="these are not the weights that its decoder used"):
        choice.unknown_word_score(nbest.parse(ENTRY.format(-50), "n:1"), used)
    assert choice.unprinted_score(nbest.parse(ENTRY.format(-205), "n:1"), None) == 0


def test_real_lists_say_what_their_features_are(nmt_data: Path) -> None:
    """For each line of the real 100-best lists, Σ weight x feature plus -100 for each unknown word is the
    printed total to 1e-3."""
    folder = nmt_data / "moses-multi30k"
    tuned = ini.read_weights(folder / "moses.tuned.ini")
    count = unknown = 0
    for name in ("val", "test_2016_flickr"):
        for hypothesis in nbest.read(folder / "out" / f"{name}.100best.segalign.gz"):
            beyond = choice.unknown_word_score(hypothesis, tuned)
            assert abs(choice.entry_total(hypothesis.features, tuned) + beyond - hypothesis.total) < 1e-3
            count += 1
            unknown += beyond != 0
    assert count == 139374 and unknown > 1000
