"""A manual page for each command, made from its parser: `make man` writes them to build/man/man1.

python -m docs.site.man_pages DIR
"""

import configparser
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from argparse_manpage.manpage import Manpage

from nmt import __version__
from nmt.cli.options import Parser

SETUP = Path(__file__).resolve().parents[2] / "setup.cfg"


def parsers() -> Iterator[Parser]:
    """Those of all commands that the package installs."""
    setup = configparser.ConfigParser()
    setup.read(SETUP)
    for entry in setup["options.entry_points"]["console_scripts"].strip().split("\n"):
        module = importlib.import_module(entry.partition(" = ")[2].partition(":")[0])
        yield module.parser()


def page(parser: Parser) -> str:
    """In troff."""
    about = re.split(r"[:;.](?: |$)", parser.description or "")[0]
    made = Manpage(
        parser,
        {
            "project_name": "nmt-smt",
            "version": __version__,
            "date": f"version {__version__}",
            "manual_title": "Neural and statistical machine translation",
            "description": about[:1].lower() + about[1:],
        },
    )
    return re.sub(r"(?m)^(?=\.[a-z]{3,})", r"\\&", str(made))  # an ending such as .tmx is no macro


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for parser in parsers():
        (folder / f"{parser.prog}.1").write_text(page(parser), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
