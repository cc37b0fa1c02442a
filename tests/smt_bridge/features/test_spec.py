"""Settings of features: those that a network's numbers depend on, and no others, are in identities."""

from dataclasses import fields, replace

from smt_bridge.features.spec import FeatureSettings

OTHERS = {
    "checkpoint": "last", "device": "cuda", "threads": 7, "back_end": "eigen", "precision": "int8",
    "unknown": "split", "side": "source", "assume_normalized": True, "backoff": "lm.arpa",
}  # fmt: skip


def test_what_numbers_depend_on() -> None:
    """The run's files, its checkpoint among them, the back-off file and the side are in identities too, where
    a feature reads them; threads and devices change nothing that a table could show."""
    settings = FeatureSettings()
    assert set(OTHERS) == {item.name for item in fields(FeatureSettings)}
    changed = {
        name
        for name, value in OTHERS.items()
        if replace(settings, **{name: value}).arithmetic() != settings.arithmetic()  # type: ignore[arg-type]
    }
    assert changed == {"precision", "unknown", "assume_normalized"}
    both = replace(settings, precision="int8", unknown="split").arithmetic()
    assert len({both, replace(settings, precision="int8").arithmetic(), settings.arithmetic()}) == 3
