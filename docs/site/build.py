"""The documentation as a site that needs no network: `make docs` writes it to build/docs.

python -m docs.site.build FOLDER

The pages are the Markdown files and notebooks of the repository and the generated reference. Notebooks are
executed, and shown with their outputs. A link from one page to another stays a link; a link to any other file
of the repository becomes its name.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from docs.site import reference

SITE = Path(__file__).resolve().parent
ROOT = SITE.parents[1]
# Parts of the site with their pages: files of docs, without .md or .ipynb.
PARTS: dict[str, Sequence[str]] = {
    "Start": ("getting-started", "your-data", "training", "faq"),
    "Tutorials": (
        "tutorials/translator", "tutorials/small-corpus", "tutorials/moses-features", "tutorials/server",
        "tutorials/language-models", "tutorials/cho-2014", "tutorials/from-other-toolkits",
        "tutorials/own-model",
    ),
    "Notebooks": ("notebooks/train-and-look", "notebooks/tables-and-lists"),
    "Guides": (
        "translating", "documents", "other-models", "corpora", "output-layers", "language-models",
        "count-models", "moses", "smt", "search-features", "hybrid", "analysis", "serve", "hosts", "cluster",
    ),
    "Reference": ("commands", "files", "guarantees", "references"),
    "Explanations": ("results", "performance", "scale", "tour", "style"),
}  # fmt: skip
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
IMAGE = re.compile(r"(!\[[^\]]*\])\((?:\.\./)*(?:docs/)?(images/[^()\s]+)\)")
FENCE = re.compile(r"(?ms)^( *)(`{3,}|~{3,}).*?^\1\2$")


def written_pages(root: Path) -> dict[str, str]:
    """The files of the repository that are pages, each with its path in the site."""
    names = [name for part in PARTS.values() for name in part]
    files = [f"{name}.ipynb" if name.startswith("notebooks/") else f"{name}.md" for name in names]
    pages = {f"docs/{file}": file for file in files}
    pages |= {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
    pages |= {"recipes/README.md": "recipes.md"}
    pages |= {"tests/benchmarks/README.md": "benchmarks.md", "tests/benchmarks/tuning.md": "tuning.md"}
    for readme in sorted(root.glob("recipes/*/README.md")):
        pages[f"recipes/{readme.parent.name}/README.md"] = f"recipes/{readme.parent.name}.md"
    return pages


def outside_fences(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the stretches of a page, each with whether it is outside of code blocks."""
    end = 0
    for fence in FENCE.finditer(text):
        yield text[end : fence.start()], True
        yield fence[0], False
        end = fence.end()
    yield text[end:], True


def convert_links(text: str, path: str, pages: Mapping[str, str]) -> str:
    """The text of a page with the links of the site. `path`: of its file in the repository; `pages`: see
    `written_pages`."""

    def convert(link: re.Match[str]) -> str:
        words, target = link[1], link[2]
        if re.match(r"[a-z]+:|#", target):
            return link[0]
        name, _, anchor = target.partition("#")
        file = os.path.normpath(PurePosixPath(path).parent / name)
        page = (
            pages.get(file) or pages.get(f"{file}/README.md") or ("index.md" if file == "README.md" else "")
        )
        if not page:
            return words if words.strip("`") == name or "/" in words else f"{words} (`{file}`)"
        if words.strip("`").startswith(PurePosixPath(name).name):
            words = ""  # its title
        here = PurePosixPath(pages[path]).parent
        return f"[{words}]({os.path.relpath(page, here)}{anchor and f'#{anchor}'})"

    def convert_image(image: re.Match[str]) -> str:
        here = PurePosixPath(pages[path]).parent
        return f"{image[1]}({os.path.relpath(image[2], here)})"

    return "".join(
        IMAGE.sub(convert_image, LINK.sub(convert, part)) if outside else part
        for part, outside in outside_fences(text)
    )


def contents(caption: str, pages: Sequence[str]) -> str:
    """The table of contents of a part."""
    return f"\n```{{toctree}}\n:caption: {caption}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"


def assemble(folder: Path, root: Path = ROOT) -> None:
    """Write the sources of all pages into a folder, which is made afresh."""
    shutil.rmtree(folder, ignore_errors=True)
    pages, generated = written_pages(root), reference.pages()
    for name, text in generated.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    for path, page in pages.items():
        (folder / page).parent.mkdir(parents=True, exist_ok=True)
        text = (root / path).read_text(encoding="utf-8")
        if path.endswith(".md"):
            text = convert_links(text, path, pages)
        (folder / page).write_text(text, encoding="utf-8")
    shutil.copytree(root / "docs" / "images", folder / "images")
    shutil.copy(SITE / "conf.py", folder)
    parts = {name: [*names] for name, names in PARTS.items()}
    parts["Reference"][1:1] = [name.removesuffix(".md") for name in generated if "/" not in name]
    parts["Explanations"] += ["benchmarks", "tuning", "contributing"]
    parts["Reference"] += ["changelog"]
    recipes = [page.removesuffix(".md") for page in pages.values() if page.startswith("recipes")]
    index = (SITE / "index.md").read_text(encoding="utf-8")
    tables = [contents(part, names) for part, names in [*parts.items(), ("Experiments", recipes)]]
    (folder / "index.md").write_text(index + "".join(tables), encoding="utf-8")


def main(target: str, *options: str) -> int:
    """Build the site in a folder; any warning is an error. Returns the exit status. `options`: more of
    Sphinx, such as `-Dnb_execution_mode=off`, which leaves out what notebooks print."""
    sources = Path(target) / "sources"
    assemble(sources)
    line = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", *options]
    commands = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # those that notebooks call
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": commands}
    return subprocess.run([*line, str(sources), target], env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
