"""Networks read Moses' words, or the text that they make, or are refused: a run of SentencePiece on either
side, for every feature."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.errors import ConfigError
from nmt.runs import checkpoint, language_model
from nmt.runs.language_model import MixtureFile, MixtureModel, fingerprint
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.subwords.bpe import BPE
from nmt.text.subwords.protocol import LearnSettings, TrainingText
from nmt.text.subwords.sentencepiece import Unigram
from nmt.text.tokenize import Tokenizer, unescape
from smt_bridge.cli import propose
from smt_bridge.decoder.features import load_joint, load_network, load_translator
from smt_bridge.features.registry import FEATURES, FeatureSettings, FeatureSpec
from smt_bridge.moses.words import check_detokenizes, check_reads_words, unescaped_units, units


def test_words_are_unescaped_and_cut() -> None:
    text = TextPipeline.of(SideConfig(tokenize=False, normalize=False))
    assert units(["l&apos;", "a&amp;b"], text) == ["l'", "a&b"]


def test_a_network_of_raw_text_gets_detokenized_words() -> None:
    """Unescaped, joined by the rules of its language, and cut like a line of nmt-score."""
    config = SideConfig(language="fr", tokenize=False, normalize=False, subword="unigram")
    learned = TrainingText(sentences=True)
    for line in ("l'homme dort.", "la fille, qui dort.") * 20:
        learned.add(line.split())
    settings = LearnSettings(merges=0, pieces=30, byte_fallback=False, unicode="identity")
    text = TextPipeline.with_subwords(config, Unigram.learn(learned, settings), True)
    words = ["l&apos;", "homme", ",", "qui", "dort", "."]
    assert units(words, text) == text.units("l'homme, qui dort.") != text.cut(list(map(unescape, words)))
    assert unescaped_units(["a", "&amp;"], text) == text.units("a &amp;")
    check_detokenizes("run", target=text)
    text.tokenizer = Tokenizer("xx", normalize=False, tokenize=False)
    with pytest.raises(ConfigError, match=r"^runs/x: reads raw text .* target\.language: 'xx' is unknown"):
        check_detokenizes("runs/x", target=text)


def test_the_message_names_the_run_and_its_sides() -> None:
    """It recommends no command that would score such a run by words."""
    check_reads_words("run", source=False, target=False)
    with pytest.raises(ConfigError, match=r"^runs/ja: reads raw text .*; source and target") as error:
        check_reads_words("runs/ja", source=True, target=True)
    assert "smt-" not in str(error.value)


def feature(kind: str, path: Path) -> Callable[[], object]:
    return lambda: FEATURES[kind].load(FeatureSpec(kind=kind, name="X", path=str(path)), FeatureSettings())


def mixed(folder: Path, saved_runs: Path) -> Path:
    """A mixture of one language model."""
    step = checkpoint.load_lm(saved_runs / "lm").step
    part = MixtureModel(str(saved_runs / "lm"), step, fingerprint(saved_runs / "lm", step))
    language_model.write_mixture(folder / "mixture", MixtureFile([part], [[1.0]]))
    return folder / "mixture"


@pytest.mark.parametrize("side", ["source", "target"])
def test_every_feature_of_two_languages(side: str, monkeypatch: pytest.MonkeyPatch, saved_runs: Path) -> None:
    """In phrase tables, n-best lists, proposals and the search: what needs words one by one is refused."""
    run, path = checkpoint.load(saved_runs / "translator"), str(saved_runs / "translator")
    args = propose.parser().parse_args(
        ["table", path, "--lexical", "lex", "-i", "text", "-o", "out", "--threads", "1"]
    )
    users: list[Callable[[], object]] = [
        feature("translation", saved_runs / "translator"),
        feature("inverse", saved_runs / "translator"),
        lambda: load_translator(path, False),
    ]
    for use in users:
        use()
    propose.load_networks(args)
    getattr(run, side).subwords = Raw([])
    monkeypatch.setattr("nmt.runs.checkpoint.load", lambda *given, **more: run)
    monkeypatch.setattr("nmt.runs.joint.load_aligned", lambda *given: run)
    for use in users:
        use()
    refused: list[Callable[[], object]] = [
        feature("joint", Path(path)),
        lambda: load_joint(path, False),
        lambda: propose.load_networks(args),
    ]
    for use in refused:
        with pytest.raises(ConfigError, match=rf"translator: reads raw text \(SentencePiece; {side}\)"):
            use()


def test_every_feature_of_one_language(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, saved_runs: Path
) -> None:
    """Alone, in a mixture, and in the search."""
    run, path = checkpoint.load_lm(saved_runs / "lm"), str(saved_runs / "lm")
    users: list[Callable[[], object]] = [
        feature("neural-lm", saved_runs / "lm"),
        feature("neural-lm", mixed(tmp_path, saved_runs)),
        lambda: load_network("CSLM0", path, False),
    ]
    for use in users:
        use()
    run.text.subwords = Raw([])
    monkeypatch.setattr("nmt.runs.checkpoint.load_lm", lambda *given, **more: run)
    users[0]()
    for use in users[1:]:
        with pytest.raises(ConfigError, match=r"reads raw text \(SentencePiece; target\)"):
            use()


class Raw(BPE):
    """Subwords that read raw text."""

    raw = True
