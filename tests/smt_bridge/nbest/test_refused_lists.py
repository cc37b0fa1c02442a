"""smt-rescore: what does not fit is said before the work begins."""

from pathlib import Path

import pytest

from smt_bridge.cli import rescore
from smt_bridge.features.translation import Translation
from tests.smt_bridge.nbest.lists import LIST, SOURCE


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("-3.8 ||| 0=0", "-3.8 ||| 0=7", "sentence 2: segmentation"),
        ("LM0= -6", "LM1= -6", "LM0"),
        ("WordPenalty0= -2 ||| -3.8", "WordPenalty0= -2 1 ||| -3.8", "n:5: features"),
    ],
)
def test_all_is_checked_before_the_work(
    old: str,
    new: str,
    message: str,
    tiny: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is wrong with the last sentence is said before the first is scored, and nothing is left that the
    next start would have to resume."""
    assert LIST.count(old) == 1
    texts = {"n": LIST.replace(old, new), "s": SOURCE, "w": "LM0= 0.5\nWordPenalty0= 0.2\nRNN0= 1\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr("smt_bridge.nbest.rescore.SENTENCES", 1)
    monkeypatch.setattr(Translation, "score", lambda self, pairs: pytest.fail("it has begun"))
    files = ["n", "-s", "s", "-w", "w", "-o", "o"]
    argv = [name if name.startswith("-") else str(tmp_path / name) for name in files]
    assert rescore.main([*argv, "-q", "--by-phrase", "-f", f"translation={tiny / 'run'}"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert message in line and sorted(path.name for path in tmp_path.iterdir()) == sorted(texts)
