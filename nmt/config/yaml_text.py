"""Safe parsing of untrusted YAML: limits nesting, and aliases that expand to more than memory holds."""

from collections.abc import Sequence

import yaml
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

UNFIT = KeyError, AttributeError  # PyYAML's errors for `!!bool maybe` and `!!timestamp soon`
MOST_NODES = 100_000  # maximum number of values; those of an alias count each time


class NotYaml(ValueError):
    """The text is not YAML. `line`: from 1; 0 if unknown."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str) -> "DictConfig | ListConfig":
    """Parse a text into an OmegaConf configuration; an empty text gives an empty one. NotYaml for invalid or
    too large YAML; its message is one line."""
    try:
        if (size := nodes(yaml.compose(text, yaml.SafeLoader), {})) > MOST_NODES:
            raise NotYaml(f"{size:,} values, aliases followed, expected at most {MOST_NODES:,}")
        return OmegaConf.create(text) if text.strip() else OmegaConf.create({})
    except NotYaml:
        raise
    except AssertionError as error:  # how OmegaConf refuses a number or a truth value
        raise NotYaml("a single value, expected keys and values", 1) from error
    except (YAMLError, OmegaConfBaseException, ValueError, RecursionError, *UNFIT) as error:
        # ValueError: a number of 5,000 digits
        mark = getattr(error, "problem_mark", None)
        raise NotYaml(reason(error), mark.line + 1 if mark else 0) from error


def nodes(node: object, counts: dict[int, int]) -> int:
    """Number of values in a tree of YAML nodes, counting those of an alias each time. `counts`: the results
    by id() of the node, to which new ones are added."""
    if not isinstance(node, yaml.CollectionNode):
        return 1
    if id(node) not in counts:
        parts = [part for item in node.value for part in (item if isinstance(item, tuple) else (item,))]
        counts[id(node)] = 1 + sum(nodes(part, counts) for part in parts)
    return counts[id(node)]


def find_line(text: str, keys: Sequence[str]) -> int:
    """Find the line, from 1, of the key or list item at the end of a path of keys and list indices in a valid
    YAML text. If a part of the path is missing, the line of the last part present; 0 if there is none."""
    node, line = yaml.compose(text, yaml.SafeLoader), 0
    for key in keys:
        items: list[tuple[yaml.Node, yaml.Node]] = []  # the node whose line counts, and its value
        if isinstance(node, yaml.SequenceNode) and key.isdecimal():
            items = [(item, item) for item in node.value[int(key) :]]
        elif isinstance(node, yaml.MappingNode):
            items = [(name, value) for name, value in node.value if name.value == key]
        if not items:
            break
        line, node = items[0][0].start_mark.line + 1, items[0][1]
    return line


def reason(error: Exception) -> str:
    """The first line of an error, shortened for a message."""
    if isinstance(error, RecursionError):
        return "nested too deeply, or refers to itself"
    if type(error) in UNFIT:  # OmegaConf derives its own from them
        return "a value that does not fit its tag"
    return (getattr(error, "problem", None) or str(error) or type(error).__name__).splitlines()[0][:200]
