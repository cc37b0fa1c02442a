"""What all trained models have in common."""

from pathlib import Path

from nmt.runs.saved import Saved


def test_results_name_the_run_and_the_update_and_depend_on_their_files(tmp_path: Path) -> None:
    saved = Saved()
    saved.directory, saved.step = tmp_path / "en-fr", 20
    saved.directory.mkdir()
    for name in ("config.yaml", "source.vocab", "step-10.pt", "step-20.pt", "train.tsv"):
        (saved.directory / name).touch()
    assert saved.name == "en-fr@20"
    assert [path.name for path in saved.files()] == ["config.yaml", "source.vocab", "step-20.pt"]
