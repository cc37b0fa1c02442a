"""Every command that the pages of docs/ show runs as it is printed, in the order of the page, in a
folder that holds only what the page takes for granted: small files of these names. The examples in the
docstrings of the Python API are true: each is run in a folder of small runs and tables."""

import doctest
import gzip
import importlib
import re
import shlex
import shutil
import textwrap
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from nmt.cli import serve
from nmt.io import files
from nmt.text.pipeline import SideConfig
from smt_bridge.hybrid.folder import HybridConfig, write_system
from tests.conftest import Command, write_corpus
from tests.nmt.formats.test_parallel_text import trados_tmx, wmt_sgml, xliff_12
from tests.nmt.runs import foreign_models

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT / "tests" / "models"
PAGES = (
    "docs/getting-started.md",
    "docs/your-data.md",
    "docs/training.md",
    "docs/translating.md",
    "docs/documents.md",
    "docs/smt.md",
    "docs/search-features.md",
    "docs/hybrid.md",
    "docs/moses.md",
    "docs/analysis.md",
    "docs/language-models.md",
    "docs/count-models.md",
    "docs/corpora.md",
    "docs/files.md",
    "docs/other-models.md",
    "docs/serve.md",
    "docs/faq.md",
)
RINGS = {"docs/smt.md": pytest.mark.slow, "docs/search-features.md": pytest.mark.slow}  # they train
SYSTEM = "system"  # a phrase-based one that no page names
COMMAND = re.compile(r"    ((?:nmt|smt)-.*)")
FENCE = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# What needs an installation of Moses, or results that only one gives.
NEEDS_MOSES = ("smt-moses", "smt-tune-nbest --features")
NEEDS_HOSTS = "--cluster"  # tests/nmt/work start clusters
YAML = """run: {run}
data: {{train_source: corpus/train.en, train_target: corpus/train.fr, dev_source: dev.en, dev_target: dev.fr}}
model: {{embedding: 8, hidden: 12, maxout: 8, encoder_layers: 1}}
training: {{max_steps: 2, validate_every: 1, dev_beam: 0, metric: cost, schedule: constant, warmup: 0}}
"""
LM_YAML = """run: runs/cslm
data: {train_text: corpus.fr, dev_text: dev.fr, target: {language: fr}}
lm: {type: cslm, embedding: 8, layers: [12], order: 3}
training: {max_steps: 2, validate_every: 0}
"""
JOINT_YAML = """run: runs/joint
data:
  {train_source: train.en, train_target: train.fr, alignment: train.align,
   dev_source: dev.en, dev_target: dev.fr, dev_alignment: dev.align,
   source: {tokenize: false, normalize: false, escaped: true},
   target: {tokenize: false, normalize: false, escaped: true}}
model: {type: joint, embedding: 8, layers: [12]}
training: {max_steps: 2, validate_every: 0}
"""
CORPORA_YAML = """run: runs/corpora
data:
  temperature: 2
  corpora:
    - {source: train.en, target: train.fr}
    - {source: raw.en, target: raw.fr, weight: 3, tag: <med>, filters: {drop_duplicates: true}}
  dev_source: dev.en
  dev_target: dev.fr
model: {embedding: 8, hidden: 12, maxout: 8}
training: {max_steps: 2, validate_every: 1, dev_beam: 0, metric: cost}
"""
PHRASES_YAML = """run: runs/phrases
data:
  phrase_table: model/phrase-table.gz
  source: {tokenize: false, normalize: false, case: keep, vocab_file: en.vocab}
  target: {tokenize: false, normalize: false, case: keep, vocab_file: fr.vocab}
model: {embedding: 8, hidden: 12, maxout: 8}
training: {max_steps: 2, validate_every: 0, metric: cost, patience: 0, dev_beam: 0}
"""


def commands(page: str) -> list[str]:
    """Those of a page's blocks, which are indented or fenced, each as one line."""
    text = (ROOT / page).read_text(encoding="utf-8")
    text = FENCE.sub(lambda block: textwrap.indent(block[1], "    "), text)
    text = re.sub(r" *\\\n +", " ", text)
    found = [match[1] for line in text.split("\n") if (match := COMMAND.fullmatch(line))]
    return [line for line in found if not line.startswith(NEEDS_MOSES) and not lacks_other(line)]


def lacks_other(line: str) -> bool:
    """Is there no cluster, no library, or no program?"""
    return (
        NEEDS_HOSTS in line
        or ("--segment word" in line and not (find_spec("MeCab") and find_spec("ipadic")))
        or ("--method eflomal" in line and not shutil.which("eflomal-align"))
        or ("--comet-model" in line and not shutil.which("comet-score"))
    )


def run(line: str, folder: Path, command: Command) -> None:
    """As a shell does: < and > are files, | hands the output on, $(cat FILE) is what a file holds."""
    text = ""
    line = re.sub(r"\$\(cat (\S+)\)", lambda match: (folder / match[1]).read_text().strip(), line)
    for stage in re.sub(r"\s+#.*", "", line).replace("$PWD", str(folder)).split(" | "):
        words = shlex.split(stage)
        if words[0] == "nmt-serve":  # runs until it is stopped: tests/nmt/serve/test_processes.py
            serve.parser().parse_args(words[1:])
            return
        ends = {mark: words[words.index(mark) + 1] for mark in "<>" if mark in words}
        if "<" in ends:
            text = (folder / ends["<"]).read_text()
        given = [word for word in words if word not in (*ends, *ends.values())]
        done = command(*given, input=text, cwd=folder)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        text = done.stdout
        if ">" in ends:
            (folder / ends[">"]).write_text(text)


def prepare(line: str, folder: Path, command: Command) -> None:
    """What a command reads, and none of the commands above it made: n-best lists and alignments of other
    tools."""
    name, first, *others = line.split()
    if name == "smt-rescore" and not (folder / first).exists():
        text = others[others.index("--source" if "--source" in others else "-s") + 1]
        run(f"smt-decode {SYSTEM} -i {text} -o out -q --n-best 3 --n-best-list {first}", folder, command)
    if "nmt-truecase apply" in line and not (folder / "truecase.en").exists():
        run("nmt-truecase train -i train.en -o truecase.en", folder, command)
    if "--forward a.txt" in line:
        made = "--forward-output a.txt --reverse-output b.txt -o aligned.gz -q"
        run(f"smt-align -s train.en -t train.fr {made}", folder, command)
    if first == "compare":  # weights of so few sentences may pick the same translations
        shutil.copy(folder / "moses.fr", folder / "control.fr")
    if name == "nmt-train" and (config := folder / first / "config.yaml").exists():  # small, one epoch
        text = re.sub("(hidden|embedding|attention|maxout): .*", r"\1: 8", config.read_text())
        config.write_text(re.sub("max_epochs: .*", "max_epochs: 1", text))
    if name == "nmt-interpolate":
        for other in (word for word in line.split() if word.startswith("runs/lstm")):
            if not (folder / other).exists():
                shutil.copytree(folder / "runs" / "cslm", folder / other)
    if name in ("nmt-translate", "nmt-export") and not (folder / first).exists():
        shutil.copytree(MODELS / "translator", folder / first)


@pytest.fixture
def inputs(tmp_path: Path, grammar: ModuleType) -> Path:
    """Texts, configurations, two runs, a phrase-based system and n-best lists under the names of the docs."""
    write_corpus(tmp_path, grammar, 1000, seed=3)
    shutil.copy(tmp_path / "train.fr", tmp_path / "corpus.fr")  # enough for the discounts of 5-grams
    write_corpus(tmp_path, grammar, 200, seed=3)
    (tmp_path / "raw.ja").write_text("猫が魚を食べる。\n")
    for side in ("en", "fr"):
        for name in ("raw", "corpus/train", "corpus/train.tok", "big"):
            place = tmp_path / f"{name}.{side}"
            place.parent.mkdir(exist_ok=True)
            shutil.copy(tmp_path / f"train.{side}", place)
        for name in ("test", "news", "ref", "moses", "text", "domain", "dev.tok", "test.tok"):
            shutil.copy(tmp_path / f"dev.{side}", tmp_path / f"{name}.{side}")
    pairs = [
        (source, target) for source, target in files.parallel(tmp_path / "train.en", tmp_path / "train.fr")
    ]
    trados_tmx(tmp_path, pairs)[0].rename(tmp_path / "memory.tmx")
    xliff_12(tmp_path, pairs)[0].rename(tmp_path / "project.xlf")
    samples = {"pandoc-1.docx": "report.docx", "page-1.html": "page.html", "pandoc-1.txt": "notes.txt"}
    for sample, name in samples.items():
        shutil.copy(ROOT / "tests" / "nmt" / "documents" / "samples" / sample, tmp_path / name)
    for path, name in zip(
        wmt_sgml(tmp_path, pairs[:50]), ("news-src.en.sgm", "news-ref.fr.sgm"), strict=True
    ):
        path.rename(tmp_path / name)
    files.write_text(
        tmp_path / "crawl.tsv", (f"a.org\tb.org\t{source}\t{target}\t0.5" for source, target in pairs)
    )
    (tmp_path / "raw.ja").write_text("私はSony製のテレビを買った。\n", encoding="utf-8")
    shutil.copy(tmp_path / "train.en", tmp_path / "text")
    for name, run in (("train", "first"), ("mine", "mine")):
        (tmp_path / f"{name}.yaml").write_text(YAML.format(run=f"runs/{run}"))
    (tmp_path / "terms.tsv").write_text(
        "# source TAB target\nthe nurses\tles infirmières\n", encoding="utf-8"
    )
    (tmp_path / "avoid.txt").write_text("rouge\n")
    lines = (tmp_path / "news.en").read_text().count("\n")
    (tmp_path / "required.tsv").write_text("la femme\n" + "\n" * (lines - 1))
    (tmp_path / "cslm.yaml").write_text(LM_YAML)
    (tmp_path / "corpora.yaml").write_text(CORPORA_YAML)
    (tmp_path / "joint.yaml").write_text(JOINT_YAML)
    (tmp_path / "phrases.yaml").write_text(PHRASES_YAML)
    for name in ("phrases", "phrases.inverse", "attention"):
        shutil.copytree(MODELS / "translator", tmp_path / "runs" / name)
    shutil.copytree(MODELS / "phrase-based", tmp_path / SYSTEM)
    for name in ("phrase-table.gz", "moses.ini", "lm.arpa.gz"):
        shutil.copy(MODELS / "phrase-based" / name, tmp_path)
    (tmp_path / "lm.arpa").write_bytes(gzip.decompress((tmp_path / "lm.arpa.gz").read_bytes()))
    for side, name in (("en", "source"), ("fr", "target")):
        shutil.copy(MODELS / "translator" / f"{name}.vocab", tmp_path / f"{side}.vocab")
    return tmp_path


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=RINGS.get(page, pytest.mark.ci)) for page in PAGES]
)
def test_the_commands_of_a_page_run_in_their_order(
    page: str, inputs: Path, command: Command, grammar: ModuleType
) -> None:
    if page in ("docs/moses.md", "docs/faq.md"):  # they begin with a model
        shutil.copytree(inputs / SYSTEM, inputs / "model")
    if page == "docs/moses.md":  # it trains the run
        shutil.copytree(inputs / SYSTEM, inputs / "tuned")
        shutil.rmtree(inputs / "runs" / "phrases")
    if page == "docs/hybrid.md":  # it builds the system
        shutil.rmtree(inputs / SYSTEM)
    if page == "docs/other-models.md":
        write_foreign_models(inputs, grammar)
    for line in commands(page):
        prepare(line, inputs, command)
        few = " training.max_steps=2 training.validate_every=1" if "init_from=" in line else ""
        run(line + few, inputs, command)


def write_foreign_models(folder: Path, grammar: ModuleType) -> None:
    """Models of other toolkits, with random weights, under the names of the docs."""
    tag = ">>fra<<"
    of_one_pair, of_several = folder / "one", folder / "several"
    foreign_models.marian(of_one_pair, grammar)
    (of_one_pair / "transformers").rename(folder / "opus-mt-en-fr")
    foreign_models.marian(of_several, grammar, (tag,)).folder.rename(folder / "opus-mt-en-roa-ct2")
    languages = ("eng_Latn", "fra_Latn")
    found = foreign_models.many_languages(folder / "many", grammar, languages)
    found.folder.rename(folder / "nllb-200-distilled-600M-ct2")


def test_no_page_with_commands_is_forgotten() -> None:
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")}
    assert {page for page in pages if commands(page)} == set(PAGES)


# Modules of the public API; each has at least one example. The fixture `examples` says what they work on.
MODULES = (
    "nmt.runs.constraints nmt.runs.language_model nmt.runs.run nmt.text.sentences nmt.training.train "
    "smt_bridge.decoder.decoder smt_bridge.hybrid.decoder smt_bridge.hybrid.side"
).split()


@pytest.mark.ci
@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module(name: str, examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    english, french = (SideConfig(language=language) for language in ("en", "fr"))
    write_system(shutil.copytree(examples / "model", examples / "system"), HybridConfig(english, french))
    monkeypatch.chdir(examples)
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.attempted and not found.failed
