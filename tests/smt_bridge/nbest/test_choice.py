"""Several n-best lists read as one, and the choice of the best translation: by total, by minimum Bayes risk,
and with scales that are tuned on references."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from nmt.errors import ConfigError, DataError, UserError
from nmt.formats import nbest
from nmt.formats.nbest import UNLABELED, Hypothesis
from nmt.search.config import MBRConfig
from smt_bridge.moses import ini
from smt_bridge.nbest import choice
from smt_bridge.nbest.choice import GRID, ByRisk, ByTotal, Chooser, NbestEntry, TunedRisk, format_scales
from smt_bridge.nbest.union import NbestLists, NbestSentence, missing_features, union

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


@pytest.mark.ci
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
    with pytest.raises(ConfigError, match="too large for a number"):
        choice.entry_total({"A": [1e308, -1e308]}, {"A": [100.0, 100.0]})
    with pytest.raises(ConfigError, match="no weight for feature B"):
        choice.check_weights(features, {"A": [1.0, 1.0]})
    with pytest.raises(ConfigError, match="feature A has 2 values, but 1 weights"):
        choice.check_weights(features, {"A": [1.0], "B": [1.0]})


def test_unknown_words() -> None:
    used = {"A": [0.5, 0.25], "B": [2.0]}
    for count in range(3):
        entry = nbest.parse(ENTRY.format(-5 - 100 * count), "n:1")
        assert choice.unknown_word_score(entry, used) == -100 * count == choice.unprinted_score(entry, used)
    for total in (-50, 95):  # half an unknown word, and less than none
        with pytest.raises(ConfigError, match="these are not the weights that its decoder used"):
            choice.unknown_word_score(nbest.parse(ENTRY.format(total), "n:1"), used)
    assert choice.unprinted_score(nbest.parse(ENTRY.format(-205), "n:1"), None) == 0
    many = nbest.parse(ENTRY.format(f"{-5.04 - 100 * 150:.6g}"), "n:1")  # -15005
    assert choice.unknown_word_score(many, {"A": [0.5, 0.25], "B": [2.0 + 0.04 / 3]}) == -15000


@pytest.mark.ci
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


# ---- union of lists ----------------------------------------------------------------------------------------


def hypothesis(text: str, **features: float) -> Hypothesis:
    return Hypothesis(0, text.split(), {name: [value] for name, value in features.items()}, 0.0, [])


def lists(folder: Path, *texts: str, source: str = "a\n", fill_missing: bool = False) -> NbestLists:
    paths = [folder / f"list{number}" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    (folder / "s").write_text(source)
    return NbestLists(paths=list(map(str, paths)), source=str(folder / "s"), fill_missing=fill_missing)


def test_one_entry_for_each_derivation_of_the_first_list_that_has_a_text() -> None:
    one = [hypothesis("l&apos; eau", A=1), hypothesis("l&apos; eau", A=2), hypothesis("x", A=3)]
    other = [hypothesis("l' eau", B=4), hypothesis("y", B=5)]
    entries, holders = union([one, other])
    assert [" ".join(entry.text) for entry in entries] == ["l&apos; eau", "l&apos; eau", "x", "y"]
    assert holders == [{0, 1}, {0, 1}, {0}, {1}]
    assert [entry.features for entry in entries[:2]] == [{"A": [1], "B": [4]}, {"A": [2], "B": [4]}]


def test_the_first_list_has_the_features_of_both() -> None:
    [entry], _ = union([[hypothesis("x", A=1)], [hypothesis("x", A=2, B=3)]])
    assert entry.features == {"A": [1], "B": [3]}


def test_what_an_entry_lacks() -> None:
    entries = [hypothesis("x", A=1, S_rule=1), hypothesis("y", B=1)]
    sentence = NbestSentence(
        number=0, source=["a"], hypotheses=entries, lists=[frozenset([0]), frozenset([1])]
    )
    assert missing_features(sentence, []) == (0, ["B"])
    assert missing_features(sentence, ["B"]) == (1, ["A"])
    assert missing_features(sentence, ["A", "B"]) == (0, [])  # a sparse feature is 0 where it is not


def test_names_that_are_taken(tmp_path: Path) -> None:
    both = lists(tmp_path, "0 ||| x ||| A= 1 B= 2 W= 1 2 ||| 0\n", "0 ||| x ||| A= 1 C= 2 ||| 0\n")
    assert both.survey() == ["A", "List0", "List1", "W"] and both.sizes == {"A": 1, "B": 1, "W": 2, "C": 1}
    assert lists(tmp_path, "0 ||| x ||| A= 1 ||| 0\n").survey() == ["A"]
    nameless = "0 ||| x ||| 1 2 ||| 0\n"
    assert lists(tmp_path, nameless).survey() == [UNLABELED]
    with pytest.raises(ConfigError, match="features without names"):
        lists(tmp_path, nameless, nameless).survey()


def test_a_feature_of_other_sizes_is_refused(tmp_path: Path) -> None:
    first, second = "0 ||| a ||| TM= 1 1 WT_a= 1 ||| 1\n", "0 ||| b ||| TM= 1 1 1 ||| 1\n"
    with pytest.raises(DataError, match=r"TM has 3 values, but 2 in the lists before"):
        lists(tmp_path, first, second).survey()
    one = lists(tmp_path, first)
    one.survey()
    assert one.sizes == {"TM": 2}  # not the sparse value, which other entries need not get


def test_completing_has_one_order(tmp_path: Path) -> None:
    both = lists(tmp_path, "0 ||| x ||| A= 1 ||| 0\n", "0 ||| y ||| B= 2 ||| 0\n", fill_missing=True)
    both.survey()
    for sentence in both.sentences([]):
        for entry, holders in zip(sentence.hypotheses, sentence.lists, strict=True):
            both.complete(entry, {"A": [9.0], "N": [8.0]}, holders)
    assert [list(entry.features.items()) for entry in sentence.hypotheses] == [
        [("A", [1.0]), ("B", [0.0]), ("List0", [1.0]), ("List1", [0.0])],
        [("A", [9.0]), ("B", [2.0]), ("List0", [0.0]), ("List1", [1.0])],
    ]


def test_refusals(tmp_path: Path) -> None:
    entry = "0 ||| x y ||| A= 1 ||| 0\n"
    with pytest.raises(DataError, match=r"no entry for sentence 1 \(line 2"):
        list(lists(tmp_path, entry, source="a\nb\n").sentences([]))
    with pytest.raises(DataError, match=r"entries for sentence 0, but .* has 0 lines"):
        list(lists(tmp_path, entry, source="").sentences([]))
    with pytest.raises(DataError, match="list0: sentence 0"):
        list(lists(tmp_path, entry).sentences([], limit=1))
    assert list(lists(tmp_path, entry).sentences([], limit=2))
    with pytest.raises(UserError, match="list1: sentence 0 has hypotheses without A"):
        list(lists(tmp_path, entry, "0 ||| z ||| B= 1 ||| 0\n").sentences(["B"]))
