"""A tag that is put before each line of a text."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from nmt import files
from nmt.errors import ConfigError, DataError
from nmt.text.pipeline import TextPipeline


class Tagged(Protocol):
    """A trained run."""

    @property
    def name(self) -> str: ...

    @property
    def source(self) -> TextPipeline: ...


def check(tag: str, runs: Iterable[Tagged], path: str) -> None:
    """ConfigError for a tag that a run does not know, DataError for a line that begins with one already."""
    for run in runs:
        if tag not in run.source.tags:
            known = ", ".join(run.source.tags) or "none"
            raise ConfigError(f"--tag {tag}: {run.name} was not trained with it; its tags: {known}")
        for number, line in enumerate(files.preview(path), 1):
            if found := run.source.tagged(line)[0]:
                raise DataError(
                    f"{path}:{number}: begins with {found}; take the tags away, or leave --tag out"
                )


def of_line(alignment: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The points of an alignment of a line with its tag, counted without the tag."""
    return ((source - 1, target) for source, target in alignment if source)
