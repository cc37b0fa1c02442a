"""Settings of language models that cannot be are refused by name."""

import pytest

from tests.nmt.lm.models import config_of


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {"type": "ngram"},
            "lm.type: 'ngram' is unknown, expected one of 'cslm', 'log-bilinear', 'recurrent'",
        ),
        ({"order": 1}, "lm.order: 1 is out of range, expected 2 to 1000"),
        ({"layers": []}, "lm.layers: expected one size or more"),
        (
            {"type": "recurrent", "tied": True, "embedding": 4},
            "lm.tied: needs embedding = hidden, found 4 and 512",
        ),
        ({"type": "recurrent", "cell": "vcrnn", "recompute": 8}, "lm.recompute: cell vcrnn"),
        ({"type": "recurrent", "cell": "gru", "layer_norm": True}, "lm.layer_norm: only cell: lstm has it"),
        ({"normalizer": -1}, "lm.normalizer: -1 is out of range, expected 0 or more"),
    ],
)
def test_impossible_sizes(options: dict[str, object], message: str) -> None:
    with pytest.raises(Exception, match="lm") as error:
        config_of(**{"type": "cslm", **options}).check()  # type: ignore[arg-type]
    assert message in str(error.value)
