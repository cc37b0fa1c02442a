"""Make the folders of tests/models whose formats came later, and what they give, in DIR:

    PYTHONPATH=CLONE python -m tests.tools.saved_models DIR    # DIR relative: configurations name it

system: a hybrid system of three networks with a glossary; transformer: a run; recurrent: a language model
that reads running text; translator.safetensors: the saved translator as one file; mapped: the saved
phrase-based system, mapped and quantized. About two minutes.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from nmt.sample_corpus import grammar
from tests.smt_bridge.build.builds import config, write_plan

MODELS = Path(__file__).resolve().parents[1] / "models"
TRANSFORMER = """
data:
  train_source: {0}/train.en
  train_target: {0}/train.fr
  bpe_merges: 0
model: {{type: transformer, embedding: 16, feed_forward: 24, heads: 2, encoder_layers: 1, decoder_layers: 1}}
training: {{max_steps: 800, tensorboard: false, optimizer: adam, learning_rate: 0.003}}
"""
RECURRENT = """
data: {{train_text: {0}/train.fr, bpe_merges: 100}}
lm: {{type: recurrent, cell: lstm, embedding: 12, hidden: 16, carry: true, bptt: 10}}
training: {{max_steps: 200, batch_size: 8, tensorboard: false, optimizer: adam, learning_rate: 0.005}}
"""
TRAINING_FILES = (
    "training.pt",
    "train.tsv",
    "dev.tsv",
    "data",
    "inputs.json",
    ".lock",
    "build",
    "report.html",
)


def run(*line: object) -> None:
    """Run a command of the toolkit."""
    subprocess.run([str(Path(sys.executable).parent / str(line[0])), *map(str, line[1:])], check=True)


def main() -> None:
    out = Path(sys.argv[1])
    work = out / "work"
    work.mkdir(parents=True)
    made = config(work, grammar, 200)
    (work / "glossary.tsv").write_text("the red house\tla maison rouge\n", encoding="utf-8")
    dev = ["--dev-source", made.dev_source, "--dev-target", made.dev_target]
    plan = write_plan(work / "plan.json", "attention", "joint", "cslm")
    glossary = ["--glossary", work / "glossary.tsv"]
    run(
        "smt-build",
        "-s",
        made.source,
        "-t",
        made.target,
        *dev,
        "--plan",
        plan,
        "-o",
        out / "system",
        *glossary,
        "-q",
    )
    for name, content in (("transformer", TRANSFORMER), ("recurrent", RECURRENT)):
        (work / f"{name}.yaml").write_text(f"run: {out}/{name}{content.format(work)}", encoding="utf-8")
        run("nmt-train", work / f"{name}.yaml", "--quiet")
    run("nmt-export", MODELS / "translator", "--format", "safetensors", "-o", out / "translator.safetensors")
    shutil.copytree(MODELS / "phrase-based", work / "phrase-based")
    run(
        "smt-compile",
        work / "phrase-based",
        "-o",
        out / "mapped",
        "--quantize",
        8,
        "--quantize-lm",
        12,
        "-q",
    )
    shutil.rmtree(work)
    for name in TRAINING_FILES:
        for path in out.rglob(name):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    text, tokenized = MODELS / "source.en", MODELS / "tokenized.en"
    run("smt-decode", out / "system", "-q", "-i", text, "-o", out / "system.fr")
    run("smt-decode", out / "mapped", "-q", "-i", tokenized, "-o", out / "mapped.fr")
    run(
        "nmt-translate",
        out / "transformer",
        "-q",
        "--matmul",
        "mkl",
        "-i",
        text,
        "-o",
        out / "transformer.fr",
    )
    lines = MODELS / "translator.fr"
    run("nmt-score", out / "recurrent", "-q", "--matmul", "mkl", "-i", lines, "-o", out / "recurrent.scores")


if __name__ == "__main__":
    main()
