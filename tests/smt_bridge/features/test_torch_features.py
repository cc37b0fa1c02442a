"""Features that torch computes: translation models, joint models, neural language models, mixtures."""

import math
from pathlib import Path

import numpy as np
import pytest

import smt_bridge
from nmt.errors import ConfigError
from nmt.formats import nbest, phrase_table
from nmt.lm.base import choose_scorer
from nmt.runs import checkpoint, joint, language_model
from nmt.runs.language_model import MixtureFile, MixtureModel, fingerprint
from smt_bridge.cli import rescore
from smt_bridge.features.base import WordPairs, of_phrases
from smt_bridge.features.registry import FeatureSettings, FeatureSpec
from smt_bridge.features.torch_features import Joint, MixtureLM, NeuralLM, RunTranslation
from smt_bridge.features.translation import CorpusShares
from tests.commands.runs import joint_run
from tests.smt_bridge.cli.scored_tables import ARPA

# ---- test translation --------------------------------------------------------------------------------------
# The feature of a translation model: escapes, and words that its training corpus lacks.


def test_the_model_sees_no_escapes(tiny: Path) -> None:
    run = checkpoint.load(tiny / "run")
    run.source_words.ids["'s"], run.target_words.ids['"'] = 5, 6  # known words, which the tiny corpus lacks
    pairs = [
        (b"&apos;s dog", b"x &quot;"),
        (b"'s dog", b'x "'),
        (b"unknown dog", b"x &quot;"),
        (b"&apos;s dog", b"x unknown"),
    ]
    escaped, plain, other_source, other_target = RunTranslation(run).score(
        of_phrases([phrase_table.parse(b"%s ||| %s ||| 1" % pair, "t:1") for pair in pairs])
    )
    assert escaped == pytest.approx(plain, abs=1e-5)
    assert abs(escaped - other_source) > 1e-3 and abs(escaped - other_target) > 1e-3


def test_unknown_split_sums_to_one(tiny: Path) -> None:
    """The sum is over the full vocabulary, in which words that the training corpus lacks count as one."""
    run = checkpoint.load(tiny / "run")
    known = dict(list(run.target_words.ids.items())[:10])
    run.target_words.words, run.target_words.ids = run.target_words.words[: 3 + len(known)], known
    shares = CorpusShares(run.target_words)
    unknown = [word for word in run.target_words.counts if word not in known]
    assert len(unknown) > 5
    assert sum(math.exp(shares.log([word])) for word in [*unknown, "never seen"]) == pytest.approx(1)
    assert shares.log(["le", *unknown[:2]]) == pytest.approx(
        shares.log([unknown[0]]) + shares.log([unknown[1]])
    )
    most, least = (
        max(unknown, key=lambda word: run.target_words.counts[word]),
        min(unknown, key=lambda word: run.target_words.counts[word]),
    )
    assert shares.log([most]) >= shares.log([least]) >= shares.log(["never seen"])
    pairs = WordPairs(sources=[["the"]], targets=[["le", "never-seen"], ["le"]], source_of=[0, 0])
    plain, split = (
        RunTranslation(run, settings=FeatureSettings(unknown=mode)).score(pairs)
        for mode in ("plain", "split")
    )
    assert split[0] == pytest.approx(plain[0] + shares.log(["never-seen"])) and split[1] == plain[1]


# ---- test joint --------------------------------------------------------------------------------------------
# A joint model as a feature: log p of each hypothesis given its affiliations.


PAIRS = WordPairs(
    sources=[["a", "b", "e"], ["zz"], []],
    targets=[["p", "t&apos;"], [], ["q", "q", "zz"], ["p"], [], ["p", "t&apos;"]],
    source_of=[0, 1, 0, 1, 2, 0],
    whole=True,
    affiliations=[[0, 2], [], [1, 1, 0], [0], [], [0, 0]],
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return joint_run(tmp_path_factory.mktemp("joint"), "training.max_steps=20")


def joint_feature(run: Path, kind: str = "joint", **settings: object) -> Joint:
    spec = FeatureSpec(kind=kind, name="NNJM0", path=str(run))
    return Joint.load(spec, FeatureSettings(**settings))  # type: ignore[arg-type]


def test_one_by_one_through_the_run(run: Path) -> None:
    """Escapes are undone; the target's end symbol is affiliated with that of the source."""
    saved, expected = joint.load_aligned(run).for_text(tokenized=True), []
    assert PAIRS.affiliations
    for words, source, places in zip(PAIRS.targets, PAIRS.source_of, PAIRS.affiliations, strict=True):
        text = " ".join(words).replace("&apos;", "'")
        points = " ".join(f"{place}-{number}" for number, place in enumerate(places))
        pair = (" ".join(PAIRS.sources[source]), text, points)
        (scores,) = joint.aligned_word_scores(saved, [pair], "l")
        expected.append(sum(scores))
    assert joint_feature(run).score(PAIRS).tolist() == pytest.approx(expected, abs=1e-5)
    part = joint_feature(run).score(PAIRS.take([5, 3])).tolist()
    assert part == pytest.approx([expected[5], expected[3]], abs=1e-5)


def test_the_other_direction_scores_the_exchanged_pair(run: Path) -> None:
    """Affiliations are then of source words, with target words."""
    exchanged = WordPairs(
        sources=[["p", "t&apos;"], ["q"], []],
        targets=[["a", "b", "e"], ["a", "b", "e"], ["zz"], []],
        source_of=[0, 1, 0, 2],
        whole=True,
        affiliations=[[0, 1, 1], [0, 0, 0], [1], []],
    )
    pairs = WordPairs(
        sources=[["a", "b", "e"], ["zz"], []],
        targets=[["p", "t&apos;"], ["q"], ["p", "t&apos;"], []],
        source_of=[0, 0, 1, 2],
        whole=True,
        affiliations=exchanged.affiliations,
    )
    inverse, forward = joint_feature(run, "inverse-joint"), joint_feature(run)
    assert inverse.score(pairs).tolist() == pytest.approx(forward.score(exchanged).tolist(), abs=1e-5)
    assert inverse.identity() != forward.identity()


def test_from_right_to_left(tmp_path: Path) -> None:
    """One by one through the run, whose word scores are in the order of the line."""
    run = joint_run(tmp_path, "model.direction=right-to-left", "training.max_steps=20")
    saved = joint.load_aligned(run).for_text(tokenized=True)
    rows = [("a b e", "p t'", "0-0 2-1"), ("c", "r u u", "0-0"), ("a b", "p q", "0-0 1-1")]
    pairs = WordPairs(
        [row[0].split() for row in rows], [row[1].split() for row in rows], [0, 1, 2], True,
        [[0, 2], [0, 0, 0], [0, 1]],
    )  # fmt: skip
    found = joint.aligned_word_scores(saved, rows, "l")
    assert joint_feature(run).score(pairs).tolist() == pytest.approx([sum(line) for line in found], abs=1e-5)
    (changed,) = joint.aligned_word_scores(saved, [("a b", "r q", "0-0 1-1")], "l")
    assert changed[1] == pytest.approx(found[2][1], abs=1e-5), "the last word does not see the first"
    assert abs(changed[0] - found[2][0]) > 1e-4 and abs(changed[2] - found[2][2]) > 1e-4


def test_both_directions_of_a_list(run: Path, tmp_path: Path) -> None:
    """smt-rescore takes segmentation and alignment from the list."""
    (tmp_path / "n").write_text("0 ||| p q r ||| F0= 1 ||| 1 ||| 1-2=0-1 0=2 ||| 1-0 1-1 0-2\n")
    (tmp_path / "s").write_text("a b e\n")
    given = [str(tmp_path / "n"), "-s", str(tmp_path / "s"), "-o", str(tmp_path / "o"), "-q"]
    assert rescore.main([*given, "-f", f"joint={run}", "-f", f"inverse-joint={run}"]) == 0
    (found,) = nbest.read(tmp_path / "o")
    for kind, name, places in (("joint", "NNJM0", [1, 1, 0]), ("inverse-joint", "InverseNNJM0", [2, 0, 0])):
        pairs = WordPairs([["a", "b", "e"]], [["p", "q", "r"]], [0], True, [places])
        assert found.features[name] == pytest.approx(joint_feature(run, kind).score(pairs).tolist(), abs=1e-4)


def test_log_z_taken_as_0(run: Path, tmp_path: Path) -> None:
    """Scores and identity change; only a model that was trained with a normalizer accepts it."""
    exact, free = joint_feature(run), joint_feature(run, assume_normalized=True)
    assert exact.identity() != free.identity()
    assert not (abs(exact.score(PAIRS) - free.score(PAIRS)) < 1e-6).any()
    plain = joint_run(tmp_path, "model.normalizer=0", "training.max_steps=1")
    with pytest.raises(ConfigError, match=r"was not trained with model\.normalizer"):
        joint_feature(plain, assume_normalized=True)


def test_phrases_alone_are_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="scores whole sentences with their word alignment"):
        joint_feature(run).score(WordPairs([["a"]], [["p"]], [0]))
    (tmp_path / "table").write_text("a ||| p ||| 1\n")
    with pytest.raises(ConfigError, match="--feature joint: needs the sentence around a phrase"):
        smt_bridge.score_table(str(tmp_path / "table"), str(tmp_path / "o"), [f"joint={run}"])
    assert [path.name for path in tmp_path.iterdir()] == ["table"]


# ---- test neural lm ----------------------------------------------------------------------------------------
# A neural language model as a feature: sums of the model's own log probabilities, of whole sentences and of
# phrases.


NEURAL_TARGETS = [["la", "fille"], [], ["zzz", "l&apos;", "chien"]]


@pytest.fixture
def lm(saved_runs: Path) -> Path:
    """The run of a language model."""
    return saved_runs / "lm"


def neural_feature(run: Path, **settings: object) -> NeuralLM:
    found = NeuralLM.load(
        FeatureSpec(kind="neural-lm", name="N", path=str(run)),
        FeatureSettings(**settings),  # type: ignore[arg-type]
    )
    assert isinstance(found, NeuralLM)
    return found


def pairs(whole: bool) -> WordPairs:
    return WordPairs(sources=[["x"]], targets=NEURAL_TARGETS, source_of=[0, 0, 0], whole=whole)


@pytest.mark.parametrize("whole", [False, True])
def test_neural_lm_one_by_one(whole: bool, lm: Path) -> None:
    """Escapes are undone, and text is cut into the run's units; a phrase has no end symbol."""
    run = checkpoint.load_lm(str(lm), "best", "cpu")
    scorer = choose_scorer(run.model, False, run.directory)
    expected = []
    for words in NEURAL_TARGETS:
        text = run.text.cut([word.replace("&apos;", "'") for word in words])
        expected.append(float(scorer.score_sentences([run.words.encode(text)], ends=whole)[0]))
    np.testing.assert_allclose(neural_feature(lm).score(pairs(whole)), expected, atol=1e-5)


def test_the_share_of_unknown_words(tmp_path: Path, lm: Path) -> None:
    """With a back-off model an unknown word costs more than p(UNK), which all of them share; the scores of
    known words stay the same."""
    counted = ["zzz", "yyy"]
    lines = "".join(f"-{number}\t{word}\t0\n" for number, word in enumerate(["<unk>", "</s>", *counted], 1))
    (tmp_path / "lm").write_text(
        f"\\data\\\nngram 1=5\n\n\\1-grams:\n-99\t<s>\t0\n{lines}\n\\end\\\n", encoding="utf-8"
    )
    before, after = (
        neural_feature(lm).score(pairs(True)),
        neural_feature(lm, backoff=str(tmp_path / "lm")).score(pairs(True)),
    )
    run = checkpoint.load_lm(str(lm), "best", "cpu")
    texts = [run.text.cut([word.replace("&apos;", "'") for word in words]) for words in NEURAL_TARGETS]
    unknown = [any(unit not in run.words.ids for unit in text) for text in texts]
    assert unknown[2] and not unknown[1]
    for old, new, has in zip(before, after, unknown, strict=True):
        assert new < old if has else new == old


def test_an_identity_of_the_arithmetic_and_the_shares(tmp_path: Path, lm: Path) -> None:
    (tmp_path / "lm").write_text(ARPA)
    found = [
        neural_feature(lm).identity(),
        neural_feature(lm, precision="int8").identity(),
        neural_feature(lm, backoff=str(tmp_path / "lm")).identity(),
    ]
    assert len(set(found)) == 3 and neural_feature(lm, threads=2, back_end="eigen").identity() == found[0]


def test_only_the_target_side_is_read(lm: Path) -> None:
    readers = neural_feature(lm).readers()
    assert list(readers) == ["target"] and "zzz" not in readers["target"].vocabulary


# ---- test mixture lm ---------------------------------------------------------------------------------------
# A mixture of language models as a feature.


def spec(path: Path) -> FeatureSpec:
    return FeatureSpec(kind="neural-lm", name="M", path=str(path))


@pytest.mark.parametrize("whole", [False, True])
def test_two_equal_runs_are_the_run(whole: bool, tmp_path: Path, lm: Path) -> None:
    step = checkpoint.load_lm(lm).step
    parts = [MixtureModel(str(lm), step, fingerprint(lm, step))] * 2
    language_model.write_mixture(tmp_path / "mix", MixtureFile(parts, [[0.25, 0.75]]))
    found = NeuralLM.load(spec(tmp_path / "mix"), FeatureSettings())
    assert isinstance(found, MixtureLM)
    assert found.score(pairs(whole)).tolist() == pytest.approx(
        neural_feature(lm).score(pairs(whole)).tolist(), abs=1e-4
    )
    first = found.identity()
    language_model.write_mixture(tmp_path / "mix", MixtureFile(parts, [[0.5, 0.5]]))
    assert NeuralLM.load(spec(tmp_path / "mix"), FeatureSettings()).identity() != first
    with pytest.raises(ConfigError, match=r"--assume-normalized: .* is a mixture"):
        NeuralLM.load(spec(tmp_path / "mix"), FeatureSettings(assume_normalized=True))
