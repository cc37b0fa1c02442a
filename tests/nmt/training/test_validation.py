"""What a validation measures: that of nmt-translate's output, against the lines of the file."""

from dataclasses import replace
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from nmt.errors import ConfigError
from nmt.runs.migrations import TOKENIZED
from nmt.runs.run import Run
from nmt.search.config import BeamConfig
from nmt.text.pipeline import SideConfig
from nmt.training.prepare import make_dev
from nmt.training.validation import DevScore, DevSet, bleu_tokenizer, translations, validate_translator

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "0.5.0" / "translator"

SOURCE = [
    "A boy does not follow the man.",
    "",
    "She sees the dog; " * 70 + "the nurses hear her.",
    "A girl runs.",
]
TARGET = [
    "Un garçon ne suit pas l'homme.",
    "",
    "Elle voit le chien ; " * 70 + "Ils l'entendent.",
    "Une fille court. ",
]


def golden(folder: Path, tokenizer: str) -> tuple[Run, DevSet]:
    """A trained run, and a development set with an empty line and one that is translated in parts."""
    for name, lines in (("source", SOURCE), ("target", TARGET)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    run = Run.load(GOLDEN)
    [member] = run.members
    config = replace(member.data, dev_source=str(folder / "source"), dev_target=str(folder / "target"))
    pipelines, vocabs = (member.source, member.target), (member.source_words, member.target_words)
    dev = make_dev(config, pipelines, vocabs, tokenizer)
    assert dev
    return run, dev


def test_the_score_is_that_of_what_translate_writes(tmp_path: Path) -> None:
    run, dev = golden(tmp_path, "13a")
    written = run.translate(SOURCE, BeamConfig(beam_size=2))
    assert len(dev.sources[2]) > 1 and written[1] == ""
    assert translations(run.members[0].model, dev, 2) == written
    score = validate_translator(run.members[0].model, dev, 2, chrf=True)
    assert score.bleu == pytest.approx(BLEU().corpus_score(written, [TARGET]).score, abs=1e-9)
    assert score.chrf == pytest.approx(CHRF().corpus_score(written, [TARGET]).score, abs=1e-9)
    assert score.signature.startswith("BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert " chrF2|nrefs:1|case:mixed|eff:yes|nc:6|" in score.signature


def test_a_run_of_an_earlier_version_scores_its_tokens(tmp_path: Path) -> None:
    """As 0.5 did: lower-cased words on both sides, and the search of whole lines."""
    run, dev = golden(tmp_path, TOKENIZED)
    assert dev.references.lines[0] == "un garçon ne suit pas l' homme ."
    lines = translations(run.members[0].model, dev, 2)
    assert lines[0] == " ".join(run.n_best(SOURCE[:1], BeamConfig(beam_size=2))[0][0].words)
    assert [len(parts) for parts in dev.sources] == [1, 1, 1, 1]
    score = validate_translator(run.members[0].model, dev, 2)
    expected = BLEU(tokenize="none").corpus_score(lines, [dev.references.lines])
    assert score.bleu == pytest.approx(expected.score, abs=1e-9) and "|tok:none|" in score.signature


def test_the_tokenizer_follows_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.metrics.usable", lambda name: not name.endswith("mecab"))
    expected = {"fr": "13a", "cs": "13a", "zh": "zh", "ja": "char", "ko": "char", "th": "char", "my": "char"}
    assert {code: bleu_tokenizer("auto", SideConfig(language=code)) for code in expected} == expected
    assert bleu_tokenizer("auto", SideConfig(language="ja", tokenize=False)) == "none"
    assert bleu_tokenizer("intl", SideConfig(language="ja", tokenize=False)) == "intl"
    monkeypatch.setattr("nmt.metrics.usable", lambda name: True)
    assert bleu_tokenizer("auto", SideConfig(language="ja")) == "ja-mecab"


def test_a_tokenizer_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected one of none, zh, 13a"):
        golden(tmp_path, "13b")


def test_a_score_of_zero_is_below_any_other_and_the_cost_decides_between_them() -> None:
    """As it is printed: 0.004 is 0.00."""
    scores = [
        DevScore(3.0, 0.0),
        DevScore(2.0, 0.0),
        DevScore(1.5, 0.004),
        DevScore(9.0, 0.01),
        DevScore(9, 7),
    ]
    assert sorted(scores, key=lambda score: score.value("bleu")) == scores
    assert [score.is_zero("bleu") for score in scores] == [True, True, True, False, False]
    assert DevScore(9.0, 7.0).value("cost") == -9 and not DevScore(9.0).is_zero("cost")
    assert DevScore(9.0, 7.0, chrf=0.0).value("chrf") == -9 and DevScore(9.0, 0.0, 7.0).value("chrf") == 7
