"""The shape of the code: no hidden imports, no reaching into another module's private names, short files and
functions, few `Any`, tests for each package, sources that can be looked up."""

import ast
import gc
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OURS = ("nmt", "smt_bridge")
FOLDERS = (*OURS, "recipes", "tests")
# Libraries that take a moment to load, or that may be missing: a function may import them when it needs them.
HEAVY = frozenset(
    "MeCab ctranslate2 dask dask_jobqueue distributed ipadic isal kenlm lxml matplotlib numba numpy "
    "omegaconf prometheus_client pythainlp rjieba sacrebleu sacremoses safetensors selenium sentencepiece "
    "shtab sklearn starlette subword_nmt tensorboard thot torch tqdm uvicorn".split()
)
# Public API whose name begins with an underscore.
PUBLIC = {
    "_exit",
    "_version",
    "_ArgumentGroup",
    "_SubParsersAction",
    "_actions",
    "_replace",
    "_asdict",
    "_fields",
    "_repr_html_",  # of notebooks
    "_int_mm",  # torch has no other product of int8 matrices
    # Torch documents these, and has no other operations on lists of tensors.
    *(
        f"_foreach_{name}"
        for name in ("add", "addcmul_", "copy_", "div_", "lerp_", "mul_", "norm", "sqrt_", "sub_")
    ),
}
# The first author, other authors and the year of "Cho et al. 2014" or "Ba, Kiros and Hinton (2016"
NAME = r"(?:van (?:der )?)?[A-Z][\w-]+"
CITATION = re.compile(rf"({NAME})((?:, {NAME})*,? (?:and|&) {NAME}| et al\.)?,? \(?((?:19|20)\d\d[ab]?)\b")
NOT_AUTHORS = frozenset(
    "January February March April May June July August September October November December Of The".split()
)
# A number of an equation, a table and so on, or a work that is not named
NUMBERED = re.compile(
    r"(?:\beqs?\.?|\b(?:equation|section|figure|table|chapter|algorithm)s?|\bfigs?\.|§) "
    r"\d+(?:\.\d+)*\b(?!,\d|%)"
    r"|\b(?:the|sub-word) thesis\b|\bspec\. ?\d|(?:\(|\b(?:by|of|in|from) )000\b",
    re.IGNORECASE,
)
STANDARDS = re.compile(r"HTML standard|RFC \d+|UAX ?#\d+")  # works that are known by name
# What the core must not name: the systems of nmt/papers, and the protocols that once stood for them.
OF_A_PAPER = re.compile(
    r"(?i:discourse|multi-?scale|\bmrf|markov|vcrnn|vcgru|variable.computation|learned.tree)"
    r"|\bDictionary\b|\bPaced\b|\bEvolves\b"
)
LONGEST_FILE, LONGEST_FUNCTION, MOST_ANY = 600, 60, 59


@pytest.fixture(scope="module", autouse=True)
def uncollected() -> Iterator[None]:
    """The trees of all sources stay in memory, and the garbage collector would walk them again and again."""
    gc.disable()
    yield
    gc.enable()


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).glob("**/*.py"))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree_of(path)))


def targets(node: ast.AST) -> list[str]:
    """The modules that an import names, as far as their names tell."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def outside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            yield from outside_functions(node)


@cache
def is_heavy(module: str) -> bool:
    """Does importing it load a heavy library?"""
    if module.split(".")[0] not in OURS:
        return module.split(".")[0] in HEAVY
    place = ROOT.joinpath(*module.split("."))
    if not place.is_dir() and not place.with_suffix(".py").exists():
        return is_heavy(module.rpartition(".")[0])  # a name of a module
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return any(is_heavy(name) for node in outside_functions(tree_of(path)) for name in targets(node))


def hidden_imports(path: Path) -> Iterator[str]:
    """Commands and analyses import heavy modules of ours once the options are read, so that --help and errors
    are quick."""
    late = bool({"analysis", "cli", "papers"} & {*path.parts}) or path.name == "__init__.py"
    nodes = nodes_of(path)
    indented = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) and node.col_offset]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in indented:
        if any(function.lineno < node.lineno <= (function.end_lineno or 0) for function in functions):
            for name in targets(node):
                if not is_heavy(name) or (name.split(".")[0] in OURS and not late):
                    yield f"{path}:{node.lineno}: {name} is imported inside a function"


def private_names(path: Path) -> Iterator[str]:
    nodes = nodes_of(path)
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    own |= {node.id for node in nodes if isinstance(node, ast.Name)}
    own |= {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("self", "cls")
    }
    for node in nodes:
        if isinstance(node, ast.Attribute):
            names, row = [node.attr], node.lineno
        elif isinstance(node, ast.ImportFrom):
            names, row = [alias.name for alias in node.names], node.lineno
        else:
            continue
        for name in names:
            if name.startswith("_") and not name.startswith("__") and name not in own | PUBLIC:
                yield f"{path}:{row}: {name} is private to another module"


def long_files(path: Path) -> Iterator[str]:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    if lines >= LONGEST_FILE:
        yield f"{path}: {lines} lines"


def long_functions(path: Path) -> Iterator[str]:
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef) and node.end_lineno:
            lines = node.end_lineno - node.lineno + 1
            if lines > LONGEST_FUNCTION:
                yield f"{path}:{node.lineno}: {node.name} has {lines} lines"


def any_places(path: Path) -> Iterator[str]:
    for node in nodes_of(path):
        if isinstance(node, ast.Name) and node.id == "Any":
            yield f"{path}:{node.lineno}: Any"


RULES: list[Callable[[Path], Iterator[str]]] = [hidden_imports, private_names, long_files, long_functions]


@pytest.mark.parametrize("rule", RULES)
def test_shape(rule: Callable[[Path], Iterator[str]]) -> None:
    found = [row for path in sources(*FOLDERS) for row in rule(path)]
    assert not found, "\n".join(found)


def test_each_package_has_its_tests() -> None:
    """nmt/text/ -> tests/nmt/text/test_*.py"""
    packages = {path.parent.relative_to(ROOT) for path in sources(*OURS)}
    untested = [str(one) for one in sorted(packages) if not list((ROOT / "tests" / one).glob("test_*.py"))]
    assert not untested, ", ".join(untested)


def test_the_core_names_no_system_of_a_single_paper() -> None:
    """nmt/papers registers its parts by name; elsewhere only nmt/plugins.py imports it."""
    core = [path for path in sources(*OURS) if (ROOT / "nmt" / "papers") not in path.parents]
    lines = [
        (f"{path.relative_to(ROOT)}:{number}: {line.strip()}", line)
        for path in core
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    ]
    named = [shown for shown, line in lines if OF_A_PAPER.search(line)]
    assert not named, "\n".join(named)
    an_import = re.compile(r"\s*(from|import) nmt(\.papers\b| import papers)")
    imports = [shown for shown, line in lines if an_import.match(line)]
    assert len(imports) == 1 and imports[0].startswith("nmt/plugins.py"), "\n".join(imports)


def test_any_is_rare() -> None:
    """It stands where a library gives it."""
    found = [row for path in sources(*FOLDERS) for row in any_places(path)]
    assert len(found) <= MOST_ANY, "\n".join(found)


def test_what_breaks_a_rule_is_found(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    long = "\n".join(f"    x{n} = {n}" for n in range(LONGEST_FILE))
    path.write_text(
        f"from typing import Any\n\n\ndef f(a: Any) -> None:\n    import json\n    a._x()\n{long}\n"
    )
    for rule in [*RULES, any_places]:
        assert len(list(rule(path))) == 1, rule.__name__
    path = tmp_path / "good.py"
    path.write_text(
        "class A:\n    def f(self) -> None:\n        import torch\n\n        self._x = torch.ones(1)\n"
    )
    assert not [row for rule in [*RULES, any_places] for row in rule(path)]


def joined_lines(text: str) -> str:
    """Comments and strings that continue on the next line as one line each."""
    paragraphs = re.split(r"\n\s*#?\n", re.sub(r"\"\n\s*f?\"", "", text))
    return "\n".join(re.sub(r"\n\s*#? ?(?=\S)", " ", lines) for lines in paragraphs)


def citations(text: str) -> set[str]:
    """Cited works as docs/references.md names them: `Och 2003`, `Och and Ney 2003`, `Ba et al. 2016`."""
    works = set()
    for first, others, year in CITATION.findall(joined_lines(text)):
        if first not in NOT_AUTHORS:
            more = " et al." if "," in others.rstrip(",") or "al." in others else others.replace("&", "and")
            works.add(f"{first}{more} {year}")
    return works


def numbers_without_work(text: str) -> Iterator[str]:
    """Numbers of equations, tables, sections and the like whose sentence names no author and year."""
    for sentence in re.split(r"\n|\"\"\"|[.!?;][\"\s]+(?=[A-Z])", joined_lines(text)):
        if not CITATION.search(sentence) and not STANDARDS.search(sentence):
            yield from (match.group() for match in NUMBERED.finditer(sentence))


def test_citations_are_listed() -> None:
    listed = set(
        re.findall(r"^- \*\*(.+?)\*\*:", (ROOT / "docs/references.md").read_text(encoding="utf-8"), re.M)
    )
    listed |= {work.rstrip("ab") for work in listed}
    missing = [
        f"{path.relative_to(ROOT)}: {work}"
        for path in sources(*OURS)
        for work in sorted(citations(path.read_text(encoding="utf-8")) - listed)
    ]
    assert not missing, "\n".join(missing)


def test_numbers_have_a_work() -> None:
    """`Cho et al. 2014, eq. 8`, not `eq. 8`: a reader must be able to look it up."""
    bare = [
        f"{path.relative_to(ROOT)}: {number}"
        for path in sources(*OURS)
        for number in numbers_without_work(path.read_text(encoding="utf-8"))
    ]
    assert not bare, "\n".join(bare)


@pytest.mark.parametrize(
    ("text", "works", "bare"),
    [
        ("as in Cho et al. 2014, eqs. 4.5-4.8", {"Cho et al. 2014"}, []),
        ("(Ba, Kiros and\n    # Hinton 2016, eq. 20)", {"Ba et al. 2016"}, []),
        ("t-SNE (van der Maaten 2013); Elman (1990)", {"van der Maaten 2013", "Elman 1990"}, []),
        ("Kudo & Richardson 2018", {"Kudo and Richardson 2018"}, []),
        ("the cell (section 6.2.2). Cho et al. 2014 use it", {"Cho et al. 2014"}, ["section 6.2.2"]),
        ("by 000, as in Table 4.2", set(), ["by 000", "Table 4.2"]),
        ("a text of 29,000 pairs, a table of 2.5 MB, of 100,000 words", set(), []),
        ("the HTML standard (section 13.2.5)", set(), []),
    ],
)
def test_citations_are_read(text: str, works: set[str], bare: list[str]) -> None:
    assert citations(text) == works
    assert list(numbers_without_work(text)) == bare
