"""YAML from outside, made safe: nothing nested without end, no few lines that stand for more than any memory
holds."""

from typing import Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

MOST_NODES = 100_000  # values, those of an alias counted each time


class NotYaml(ValueError):
    """`line` counts from 1; 0: not known."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str) -> Any:
    """A text as OmegaConf has it. NotYaml says in one line what is wrong, and where."""
    try:
        if (size := nodes(yaml.compose(text, yaml.SafeLoader), {})) > MOST_NODES:
            raise NotYaml(f"{size:,} values, aliases followed, expected at most {MOST_NODES:,}")
        return OmegaConf.create(text) if text.strip() else OmegaConf.create({})
    except NotYaml:
        raise
    except (
        YAMLError,
        OmegaConfBaseException,
        ValueError,
        RecursionError,
    ) as error:  # ValueError: a number of 5,000 digits
        mark = getattr(error, "problem_mark", None)
        raise NotYaml(reason(error), mark.line + 1 if mark else 0) from error


def nodes(node: Any, known: dict[int, int]) -> int:
    if not isinstance(node, yaml.CollectionNode):
        return 1
    if id(node) not in known:
        parts = [part for item in node.value for part in (item if isinstance(item, tuple) else (item,))]
        known[id(node)] = 1 + sum(nodes(part, known) for part in parts)
    return known[id(node)]


def reason(error: Exception) -> str:
    """The first line of an error, as short as a message can bear."""
    if isinstance(error, RecursionError):
        return "nested too deep, or in a circle"
    return (getattr(error, "problem", None) or str(error) or type(error).__name__).splitlines()[0][:200]
