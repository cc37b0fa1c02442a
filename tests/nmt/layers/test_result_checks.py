"""The mistakes of a user who writes a model or a feature: each is one line that names the file, its line, the
class and the method. The model is that of the tutorial, the features those of CONTRIBUTING.md."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from nmt import plugins
from nmt.cli import score, train, translate
from nmt.lm import LANGUAGE_MODELS
from nmt.models.registry import MODELS
from smt_bridge.cli import decode, rescore, score_table
from smt_bridge.decoder.features.registry import SEARCH_FEATURES
from smt_bridge.features.registry import FEATURES
from tests.conftest import refusal, write_corpus

ROOT = Path(__file__).resolve().parents[3]
YAML = """run: {folder}/run
threads: 1
matmul: mkl
data: {{train_source: {folder}/train.en, train_target: {folder}/train.fr}}
model: {{type: bag, width: 8}}
training: {{max_steps: 2, dev_beam: 0, validate_every: 0, metric: cost, tensorboard: false}}
"""
Main = Callable[[Sequence[str] | None], int]
# How a plugin is tried: the plugin, the command and its arguments.
COMMANDS: dict[str, tuple[str, Main, str]] = {
    "train": ("bag", train.main, "{folder}/bag.yaml -q"),
    "translate": ("bag", translate.main, "{folder}/run -i {folder}/dev.en -q -o {folder}/out"),
    "score": ("bag", score.main, "{folder}/run --source {folder}/dev.en --target {folder}/dev.fr -q"),
    "table": ("colors", score_table.main, "{folder}/table.gz -q -f listed={folder}/words -o {folder}/out"),
    "lists": (
        "colors",
        rescore.main,
        "{folder}/list -q --source {folder}/text -f listed={folder}/words -o {folder}/out",
    ),
    "decode": ("repeats", decode.main, "{folder}/model/mine.ini -q -i {folder}/text -o {folder}/out"),
    "lm": ("bigram", train.main, "{folder}/toy.yaml -q"),
}
LOSS = "return self.output.cross_entropy(self.unroll(batch), batch.target.ids, smoothing)"
SCORES = "return self.output.target_log_probs(self.unroll(batch), batch.target.ids)"
WORDS = "for words in pairs.targets], np"
STEP = "return self.output.log_probs(torch.tanh(state + self.target(previous))), state"


def source_of(name: str) -> str:
    """The module `name` as its page prints it."""
    if name == "bag":
        text = (ROOT / "docs" / "tutorials" / "own-model.md").read_text(encoding="utf-8")
        heredoc = re.search(r"(?ms)^cat > bag\.py <<'EOF'\n(.*?)^EOF$", text)
        assert heredoc
        return heredoc[1]
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = re.search(rf"(?ms)^```python\n(# {name}\.py\n.*?)^```$", text)
    assert block
    return block[1]


class Tried:
    """A folder with a corpus and small models, in which a plugin is tried as a user would."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch

    def write(self, name: str, *changes: str) -> None:
        """Write the plugin `name` as its page prints it, with a text replaced by another."""
        text = source_of(name)
        if changes:
            before, after = changes
            assert text.count(before) == 1, before
            text = text.replace(before, after)
        (self.folder / f"{name}.py").write_text(text, encoding="utf-8")
        sys.modules.pop(name, None)
        self.monkeypatch.setenv(plugins.VARIABLE, name)

    def line(self, command: str) -> tuple[Main, list[str]]:
        _, main, words = COMMANDS[command]
        return main, words.format(folder=self.folder).split()

    def run(self, command: str) -> None:
        main, words = self.line(command)
        assert main(words) == 0

    def refusal(self, command: str, capsys: pytest.CaptureFixture[str]) -> str:
        main, words = self.line(command)
        return refusal(main, capsys, *words)


@pytest.fixture
def tried(examples: Path, monkeypatch: pytest.MonkeyPatch, grammar: ModuleType) -> Iterator[Tried]:
    write_corpus(examples, grammar, 40, seed=3)
    (examples / "bag.yaml").write_text(YAML.format(folder=examples))
    data = f"data: {{train_text: {examples}/train.fr, target: {{language: fr}}}}"
    lm = f"lm: {{type: toy, embedding: 4}}\n{data}\n"
    rest = YAML.format(folder=examples).split("\n")
    (examples / "toy.yaml").write_text("\n".join([*rest[:3], lm + rest[5]]))
    (examples / "words").write_text("rouge\n")
    (examples / "text").write_text("the nurses hear her , her nurses .\n")
    (examples / "list").write_text("0 ||| une fille noire ||| LM0= -2 ||| -2\n")
    ini = (examples / "model" / "moses.ini").read_text()
    ini = ini.replace("[feature]\n", "[feature]\nRepeats name=Repeats0 least=3\n")
    (examples / "model" / "mine.ini").write_text(ini.replace("[weight]\n", "[weight]\nRepeats0= -1\n"))
    monkeypatch.syspath_prepend(examples)
    monkeypatch.chdir(examples)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # files of one size change within a second
    yield Tried(examples, monkeypatch)
    MODELS.pop("bag", None)
    SEARCH_FEATURES.pop("Repeats", None)
    for registry, name in ((LANGUAGE_MODELS, "toy"), (FEATURES, "listed")):
        registry.data.pop(name, None)


MISTAKES = [
    ("train", "(TranslationModel[torch.Tensor])", "(nn.Module)",
     r"bag\.yaml:5: NMT_PLUGINS: \S+bag\.py:\d+: model.type 'bag': class Bag: expected a subcl"),
    ("train", "def step(", "def stepp(", r"model.type 'bag': class Bag: has no method step; see Transl"),
    ("train", "@dataclass", "", r"class Bag: its Config, BagConfig, lacks @dataclass"),
    ("train", "(ModelConfig)", "", r"class Bag: its Config should be a dataclass derived from ModelC"),
    ("train", 'MODELS["bag"] = Bag', 'MODELS["bag"] = print', r"model.type 'bag' is registered as builtin"),
    ("train", ", fill=True, spelling=None", ", fill=True", r"bag\.py:\d+: Bag\.__init__: TypeError: "),
    ("train", LOSS, SCORES, r"bag\.py:40: Bag\.loss: returned a tensor of shape \(\d+,\), expected .* \(\)"),
    ("train", LOSS, LOSS[7:], r"bag\.py:40: Bag\.loss: returned None, expected a tensor of shape \(\)"),
    ("train", LOSS, f"{LOSS}.detach()", r"Bag\.loss: returned a tensor without gradient"),
    ("train", "self, batch, smoothing=0.0", "self, batch", r"bag\.py:\d+: Bag\.loss: TypeError: "),
    ("train", "batch.target.ids, smoothing", "batch.words", r"bag\.py:41: Bag\.loss: AttributeError: "),
    ("translate", STEP, STEP.replace(", state", ""), r"bag\.py:49: Bag\.step: returned a tensor .* a pair"),
    ("translate", STEP, "return state, state",
     r"Bag\.step: returned a tensor of shape \(20, 8\), expected a tensor of shape \(20, \d+\)"),
    ("translate", "source.ids))])", "source.ids))])[1:]", r"returned .* \(19, \d+\), expected .* \(20,"),
    ("translate", STEP, "return self.output.log_probs(state).exp() + 1, state", "returned logarithms ab"),
    ("score", SCORES, f"{SCORES}[1:]", r"bag\.py:43: Bag\.token_log_probs: returned .*, expected .* of each"),
    ("score", SCORES, f"{SCORES}.tolist()", r"Bag\.token_log_probs: returned an object of type list"),
    ("score", SCORES, f"{SCORES} + 50", r"Bag\.token_log_probs: returned logarithms above 0"),
    ("table", "def load(", "def lod(", r"colors\.py:13: feature 'listed': class Listed has no load"),
    ("table", 'column = "', 'colum = "', r"colors\.py:13: feature 'listed': .* has no column"),
    ("table", "return cls(", "cls(", r"--feature listed:Listed0=\S+: its load returned .* of type NoneType"),
    ("table", "def score(", "def scores(", r"colors\.py:22: Listed\.load: TypeError: .* score"),
    ("table", WORDS, WORDS.replace("targets", "target"), r"colors\.py:28: Listed\.score: AttributeError: "),
    ("lists", WORDS, WORDS.replace("targets", "targets[1:]"), r"listed:Listed0=\S+: gives an array of shape"),
    ("decode", "return cls(", "cls(", r"mine\.ini:\d+: .*its load returned NoneType, expected a Se"),
    ("decode", '["Repeats"] = Repeats', '["Repeats"] = 3', r"the class of Repeats derives neither"),
    ("lm", "def read(", "def red(", r"bigram\.py:23: Bigram\.read: NotImplementedError: it has to b"),
    ("lm", "return self.features(batch.previous)", "return self.features(batch.previous)[1:]",
     r"bigram\.py:\d+: Bigram\.read: returned a tensor of shape .*, expected .* \(\d+, K\)"),
    ("lm", "    def start(", "    def loss(self, *a):\n        return self.read(a[0]).sum(1)\n    def start(",
     r"Bigram\.loss: returned a tensor of shape \(\d+,\), expected a tensor of shape \(\)"),
    ("lm", ", fill: bool = True", ", fills: bool = True", r"Bigram\.__init__: NameError: name 'fill"),
    ("lm", "(LMConfig)", "", r"toy\.yaml:\d+: NMT_PLUGINS: \S+ lm.type 'toy': class Bigram: its Con"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "before", "after", "message"), MISTAKES)
@pytest.mark.ci
def test_a_mistake(
    command: str, before: str, after: str, message: str, tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = COMMANDS[command][0]
    if command in ("translate", "score"):  # what was trained before
        tried.write(plugin)
        tried.run("train")
    tried.write(plugin, before, after)
    assert re.search(message, tried.refusal(command, capsys))


@pytest.mark.ci
def test_workers_report_it_in_the_same_way(tried: Tried, capsys: pytest.CaptureFixture[str]) -> None:
    tried.monkeypatch.setenv("PYTHONPATH", f"{tried.folder}:{ROOT}")
    tried.write("colors", WORDS, WORDS.replace("targets", "target"))
    main, words = tried.line("table")
    line = refusal(main, capsys, *words, "--workers", "2")
    assert re.search(r"NMT_PLUGINS: \S+colors\.py:28: Listed\.score: AttributeError: ", line)
