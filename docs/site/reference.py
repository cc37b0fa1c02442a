"""Generated pages: commands from their parsers, configuration keys from their dataclasses, the Python
interface from its docstrings, the HTTP interface from its OpenAPI description."""

import argparse
import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, get_args, get_origin

import nmt
import smt_bridge
from docs.site.man_pages import parsers
from nmt.config.settings import ALLOWED, HELP
from nmt.runs.checkpoint import SECTION_REGISTRIES, config_class
from nmt.serve import http_api, server
from nmt.serve.config import ServeConfig
from nmt.serve.libretranslate import LibreTranslate
from nmt.serve.monitoring import Lifecycle
from nmt.serve.served import ServedEngines
from nmt.serve.translate_file import TranslateFile
from nmt.training.config import RunConfig

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

COMMON = {"--help", "--version", "--print-completion"}  # options of all commands
OPTIONAL = re.compile(r"\[-(?:[^\[\]]|\[[^\[\]]*\])*\]")  # in a usage
SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")


def pages() -> dict[str, str]:
    """The text of each generated page by its path in the site."""
    commands = {f"commands/{parser.prog}.md": command_page(parser) for parser in parsers()}
    return {
        "options.md": options_page([*commands]),
        **commands,
        "configuration.md": configuration_page(),
        "python.md": python_page(),
        "http.md": http_page(),
    }


def escape(text: str) -> str:
    """Text that Markdown shows as it is."""
    return SPECIAL.sub(r"\\\1", text)


# ---- commands ----------------------------------------------------------------------------------------------


def options_page(names: list[str]) -> str:
    """The page that lists the pages of the commands."""
    entries = "\n".join(name.removesuffix(".md") for name in names)
    return (
        "# Options of each command\n\n[Commands](commands.md) lists the commands by subject. All of them "
        "have `--help`, `--version` and `--print-completion bash|zsh|tcsh`.\n\n"
        f"```{{toctree}}\n:maxdepth: 1\n\n{entries}\n```\n"
    )


def command_page(parser: argparse.ArgumentParser, level: int = 1) -> str:
    """The page of a command, with a section for each of its actions."""
    formatter = parser.formatter_class(prog=parser.prog)
    usage = " ".join(OPTIONAL.sub("", parser.format_usage().removeprefix("usage: ")).split())
    text = [f"{'#' * level} {parser.prog}", escape(parser.description or "")]
    text.append(f"```\n{usage} [options]\n```")
    for action in sorted(parser._actions, key=lambda action: bool(action.option_strings)):
        if isinstance(action, argparse._SubParsersAction):
            text += [command_page(each, level + 1) for each in action.choices.values()]
        elif action.help != argparse.SUPPRESS and not COMMON.intersection(action.option_strings):
            text.append(f"{option_name(action)}\n: {escape(formatter._expand_help(action))}")
    if parser.epilog:
        text.append(escape(parser.epilog))
    return "\n\n".join(text) + "\n"


def option_name(action: argparse.Action) -> str:
    """An option with its value as code, such as `-o, --output FILE`."""
    metavar = action.metavar
    if metavar is None:
        metavar = "|".join(map(str, action.choices)) if action.choices else action.dest.upper()
    value = " ".join(metavar) if isinstance(metavar, tuple) else str(metavar)
    if not action.option_strings:
        return f"`{value}`"
    return f"`{', '.join(action.option_strings)}{'' if action.nargs == 0 else f' {value}'}`"


# ---- configuration -----------------------------------------------------------------------------------------


def configuration_page() -> str:
    """All keys of train.yaml with range, default and help."""
    text = [
        "# Configuration keys",
        "The keys of the file that `nmt-train` reads. `nmt-init` writes one with all of them that matter to "
        "your data. A configuration has either a section `model` or a section `lm`, whose other keys depend "
        "on its `type`.",
        *key_tables(RunConfig, ""),
    ]
    for section, registries in SECTION_REGISTRIES.items():
        for kind in (kind for registry in registries for kind in registry):
            text += key_tables(config_class(section, kind), f"{section}.", f"{section}, type: {kind}")
    return "\n\n".join(text) + "\n"


def key_tables(kind: "type[DataclassInstance]", prefix: str, title: str = "") -> list[str]:
    """Heading and table of the keys of a dataclass, and of the dataclasses in it. `prefix`: of its keys."""
    rows, below = [], list[str]()
    for item in fields(kind):
        inner = item.type if isinstance(item.type, type) else None
        if inner is not None and is_dataclass(inner):
            below += key_tables(inner, f"{prefix}{item.name}.", f"{title}: {item.name}" if title else "")
        elif prefix or item.name not in SECTION_REGISTRIES:
            for part in get_args(item.type) if get_origin(item.type) is list else ():
                if is_dataclass(part) and isinstance(part, type):
                    below += key_tables(part, f"{prefix}{item.name}[].")
            rows.append(f"| `{prefix}{item.name}` | {default_of(item)} | {escape(about(item))} |")
    if not rows:
        return below
    heading = f"## {title or prefix.rstrip('.') or 'top level'}"
    return ["\n".join([heading, "", "| key | default | meaning |", "|---|---|---|", *rows]), *below]


def default_of(item: "Field[Any]") -> str:
    """The default of a key as code; empty if it has none."""
    value = item.default_factory() if item.default_factory is not MISSING else item.default
    return "" if value is MISSING or value is None or value in ("", []) else f"`{value}`"


def about(item: "Field[Any]") -> str:
    """What a key means, and which values it may have."""
    allowed, text = item.metadata.get(ALLOWED), str(item.metadata.get(HELP, ""))
    values = " | ".join(map(str, allowed)) if isinstance(allowed, tuple | Mapping) else str(allowed or "")
    return f"{text} ({values})" if text and values else text or values


# ---- interfaces --------------------------------------------------------------------------------------------


def python_page() -> str:
    """The public names of both packages, for autodoc."""
    text = ["# Python", "Docstrings of the public names. `import nmt` before torch."]
    for package in (nmt, smt_bridge):
        text.append(f"## {package.__name__}")
        for name in package.__all__:
            if not name.startswith("__"):
                value = getattr(package, name)
                kind = "class" if isinstance(value, type) else "function"
                directive = f".. auto{kind}:: {value.__module__}.{value.__qualname__}"
                if kind == "class":
                    directive += f"\n   :members: {', '.join(public_members(value))}"
                text.append(f"```{{eval-rst}}\n{directive}\n```")
    return "\n\n".join(text) + "\n"


def public_members(kind: type) -> list[str]:
    """The public methods and properties of a class but for those that its engines define."""
    return [
        name
        for name, value in vars(kind).items()
        if not name.startswith("_") and value.__doc__ and not getattr(value, "__isabstractmethod__", False)
    ]


def http_page() -> str:
    """Paths, requests and answers of the server."""
    texts = LibreTranslate(ServedEngines([]), ServeConfig(), None, Lifecycle())
    endpoints = server.described_endpoints(TranslateFile(texts))
    text = [
        "# HTTP interface",
        "What a server of `nmt-serve` answers; its own description is at `/api/openapi.json`. "
        "[Translation server](serve.md) explains it.",
    ]
    described: Any = http_api.describe(endpoints)
    for path, item in described["paths"].items():
        for method, operation in item.items():
            text.append(f"## {method.upper()} {path}\n\n{operation['summary']}.")
            if "requestBody" in operation:
                content = operation["requestBody"]["content"]
                kinds = ", ".join(f"`{kind}`" for kind in content)
                text.append(f"Request, as {kinds}:\n\n" + json_block(next(iter(content.values()))["schema"]))
            answer = operation["responses"]["200"]["content"]
            text.append("Answer:\n\n" + json_block(next(iter(answer.values()))["schema"]))
    statuses = [f"| {status} | {escape(meaning)} |" for status, meaning in http_api.ERRORS.items()]
    text.append("## Errors\n\n" + "\n".join(["| status | meaning |", "|---|---|", *statuses]))
    return "\n\n".join(text) + "\n"


def json_block(schema: object) -> str:
    """A schema as a block of JSON."""
    return f"```json\n{json.dumps(schema, indent=1)}\n```"
