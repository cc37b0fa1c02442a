"""Parts of nmt/papers: each can be imported, precedes what it says, and waits until it is used."""

from dataclasses import dataclass, field, fields

import pytest

from nmt import papers
from nmt.lazy import LazyPart
from nmt.plugins import Registry, with_settings

NAMES = [(kind, name) for kind, parts in papers.PARTS.items() for name in parts]


@dataclass
class Extra:
    """What a paper adds to the settings of a test."""

    slope: float = field(default=0.5, metadata={"help": "how steep"})
    steps: int = 3


EXTRA = LazyPart(f"{__name__}:Extra", precedes="last")


@pytest.mark.parametrize(("kind", "name"), NAMES)
def test_each_part_can_be_imported(kind: str, name: str) -> None:
    assert papers.PARTS[kind][name].load() is not None


def test_a_registry_has_the_parts_in_order_and_imports_them_late(monkeypatch: pytest.MonkeyPatch) -> None:
    part = LazyPart(f"{__name__}:Extra", precedes="b", help="c is new")
    monkeypatch.setattr(papers, "PARTS", {"test": {"c": part, "d": LazyPart("no_such_module:name")}})
    registry: Registry[object] = Registry("test", {"a": 1, "b": 2})
    assert list(registry) == ["a", "c", "b", "d"] and "d" in registry
    assert registry["c"] is registry.get("c") is Extra and registry["a"] == 1
    assert registry.explain("which one") == "which one; c is new"
    with pytest.raises(ModuleNotFoundError):
        registry["d"]
    registry["d"] = 4
    assert dict(registry) == {"a": 1, "c": Extra, "b": 2, "d": 4}


def test_settings_of_a_paper_are_fields_of_the_dataclass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(papers, "PARTS", {"test": {"extra": EXTRA}})

    @dataclass
    @with_settings("test")
    class Settings:
        first: str = "a"
        last: str = "b"

    assert [item.name for item in fields(Settings)] == ["first", "slope", "steps", "last"]
    assert fields(Settings)[1].metadata["help"] == "how steep"
    assert vars(Settings(last="c")) == {"first": "a", "slope": 0.5, "steps": 3, "last": "c"}
