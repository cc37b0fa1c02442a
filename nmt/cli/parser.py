"""The parser of every command: errors in one line that name a typo, former names of options, completion of
the shell."""

import argparse
import difflib
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from nmt import __version__
from nmt.cli import streams
from nmt.cli.arguments import Input, Output, check_separate, files_of, names_file
from nmt.compute.threads import TOO_MANY, bounded
from nmt.errors import one_line

CHOICE = re.compile(r"invalid choice: '?(.*?)'? \(choose from (.*)\)")
OPTION = re.compile(r"--\w[\w-]*")


class Help(argparse.ArgumentDefaultsHelpFormatter):
    """Defaults are shown where there are any."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        default = action.default
        if action.required or default is None or default is False or default in ("", [], ()):
            return action.help
        if isinstance(default, list | tuple):
            return f"{action.help} (default: {' '.join(map(str, default))})"
        return action.help if "default:" in str(action.help) else super()._get_help_string(action)


class PrintCompletion(argparse.Action):
    """--print-completion SHELL: the script that completes a command's options, and names of files."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> NoReturn:
        import shtab

        for action in actions_of(parser):
            if names_file(action):
                action.complete = shtab.FILE  # type: ignore[attr-defined]  # what shtab looks for
        print(shtab.complete(parser, shell=str(values)))
        parser.exit()


class Parser(argparse.ArgumentParser):
    """Errors are one line; `--beam_size` is `--beam-size`; no output is an input, or another output."""

    completes = True

    def __init__(self, command: str, description: str, epilog: str | None = None) -> None:
        super().__init__(prog=command, description=description, epilog=epilog, formatter_class=Help)
        # (option, file): outputs whose names the command derives from others
        self.derived: Callable[[argparse.Namespace], list[tuple[str, str]]] = lambda found: []
        self.renamed: dict[str, str] = {}  # old option -> new one; the old one is accepted for one version
        self.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
        if self.completes:
            self.add_argument(
                "--print-completion",
                action=PrintCompletion,
                choices=("bash", "zsh", "tcsh"),
                default=argparse.SUPPRESS,
                help="print the completion script for a shell and exit",
            )

    def error(self, message: str) -> NoReturn:
        if found := CHOICE.search(message):
            message += did_you_mean(found[1], re.findall(r"[^\s',]+", found[2]))
        self.exit(2, f"{self.prog}: {one_line(message)}; see {self.prog} --help\n")

    def parse_known_args(  # type: ignore[override]  # parse_args calls it too
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        given = list(sys.argv[1:] if args is None else args)
        end = given.index("--") if "--" in given else len(given)
        own = min(end, self.begin_of_action(given))
        words = [self.current(dashes(word)) for word in given[:own]] + given[own:]
        self.check_names(words[:own])
        found, rest = super().parse_known_args(words, namespace)
        names = {
            action.dest: action.option_strings[0]
            if action.option_strings
            else str(action.metavar or action.dest)
            for action in self._actions
        }
        for name in ("threads", "workers"):
            if (asked := getattr(found, name, None)) and (most := bounded(asked)) < asked:
                streams.say(f"{self.prog}: {names[name]} {TOO_MANY.format(asked, most)}")
                setattr(found, name, most)
        check_separate(files_of(found, names, Input), files_of(found, names, Output) + self.derived(found))
        return found, rest

    def current(self, word: str) -> str:
        """An option by its present name; one line says that it was renamed."""
        name, equals, value = word.partition("=")
        if name not in self.renamed and not word.startswith("--") and word[:2] in self.renamed:
            name, equals, value = word[:2], "=", word[2:]  # -b5
        if name not in self.renamed:
            return word
        streams.say(f"{self.prog}: {name} is now {self.renamed[name]}; the next version drops the old name")
        return self.renamed[name] + equals + value

    def begin_of_action(self, words: Sequence[str]) -> int:
        """The place of the action's name, from where words are its parser's; past the end without actions."""
        if not any(isinstance(action, argparse._SubParsersAction) for action in self._actions):
            return len(words)
        return next((place for place, word in enumerate(words) if not word.startswith("-")), len(words))

    def check_names(self, words: Iterable[str]) -> None:
        """Refuse the first option that does not exist, before argparse asks for what is missing."""
        known = [name for action in self._actions for name in action.option_strings]
        for word in words:
            name = word.partition("=")[0]
            if OPTION.fullmatch(name) and not any(option.startswith(name) for option in known):
                self.error(f"unrecognized arguments: {word}{did_you_mean(name, known)}")


class Action(Parser):
    """The parser of a sub-command; argparse makes it and passes its full name."""

    completes = False  # the command's script has its actions

    def __init__(self, prog: str, description: str = "") -> None:
        super().__init__(prog, description)


def dashes(word: str) -> str:
    if not word.startswith("--"):
        return word
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """How a message about an unknown word goes on; empty where nothing is close to it."""
    close = difflib.get_close_matches(word, known, 1, 0.7)
    return f"; did you mean {close[0]}?" if close else ""


def actions_of(parser: argparse.ArgumentParser) -> Iterable[argparse.Action]:
    """Its options and arguments, and those of its sub-commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for child in dict.fromkeys(action.choices.values()):
                yield from actions_of(child)
