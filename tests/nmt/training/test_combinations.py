"""Settings of different sections that exclude each other are refused, with the place of the key."""

from pathlib import Path

import pytest

from nmt.errors import ConfigError
from nmt.training.config_file import from_mapping, load


def test_messages_have_the_line_of_the_key(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "run: r\nlm: {type: cslm, output: learned-tree}\ntraining: {ema: 0.99}\n"
    )
    with pytest.raises(
        ConfigError, match=r"c\.yaml:3: training\.ema: does not go with lm\.output: learned-tree"
    ):
        load(str(tmp_path / "c.yaml"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"training": {"label_smoothing": 0.1}, "model": {"output": "nce"}},
            r"training\.label_smoothing: does not go with model\.output: nce",
        ),
        (
            {"training": {"guided_alignment": 0.1}, "model": {"type": "rnn"}},
            r"training\.guided_alignment: rnn has no attention over the source here; set model\.attention",
        ),
        ({"training": {"guided_alignment": 0.1}, "model": {"type": "joint"}}, "joint has no attention"),
        (
            {"training": {"guided_alignment": 0.1}, "lm": {"type": "cslm"}},
            "a language model has no attention",
        ),
        (
            {"data": {"source_vectors": "v"}, "model": {"source_words": "characters"}},
            r"data\.source_vectors: rnn has no table of source word vectors",
        ),
        (
            {"data": {"target_vectors": "v"}, "lm": {"type": "characters"}},
            "characters has no table of target",
        ),
        (
            {"data": {"source_vectors": "v"}, "lm": {"type": "cslm"}},
            "cslm has no table of source word vectors",
        ),
        (
            {
                "data": {"source_vectors": "v", "target_vectors": "v"},
                "model": {"type": "transformer", "tied": "all"},
            },
            r"data\.source_vectors: model\.tied: all has one table",
        ),
        (
            {"data": {"target_vectors": "v"}, "training": {"freeze_vectors": "both"}},
            r"training\.freeze_vectors: both needs data\.source_vectors",
        ),
    ],
    ids=str,
)
def test_refused_settings(content: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_mapping({"run": "r", **content})


def test_what_goes_together_is_accepted() -> None:
    guided = {"guided_alignment": 0.1, "ema": 0.9}
    from_mapping({"run": "r", "training": guided, "model": {"type": "transformer"}})
    from_mapping({"run": "r", "training": guided, "model": {"attention": 5}, "data": {"source_vectors": "v"}})
