"""What the report of a build is told."""

from pathlib import Path

import pytest

from nmt import files
from nmt.analysis import report
from smt_bridge.build import clock, evaluation, facts, tuning
from tests.smt_bridge.build.builds import decodable


def test_the_report_has_what_the_steps_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = decodable(tmp_path, 8)
    for name in ("source", "target"):
        (build.work / "corpus" / f"truecase.{name}").write_text("the (1/1)\n")
    tuning.tune_phrase_based(build)
    evaluation.evaluate(build)
    files.write_text(build.work / clock.FILE, ['{"corpus": 1.2, "tune": 2}'])
    made, found = facts.gather(build), evaluation.read(build)
    assert [one.name for one in made.candidates] == ["phrase-based"] and made.candidates[0].chosen
    assert made.bleu == 100 * found.lists and "phrase-based system alone" in made.reason
    assert {one.part for one in made.ablations} == {"count language model", "lexical reordering"}
    assert {one.name: one.took for one in made.steps if one.took} == {"corpus": 1.2, "tune": 2}
    assert made.about["date"] == report.day([build.work / evaluation.FILE])
    assert made.about["languages"] == "en to fr" and "stack" in made.about["search"]
    assert made.sizes == {"pairs read": 3, "lines used for tuning": 8}
    assert len(made.dev.sources) == len(made.dev.outputs["phrase-based"]) == 8
    assert {one.name for one in made.features} >= {"LM0", "TranslationModel0"} and not made.networks
