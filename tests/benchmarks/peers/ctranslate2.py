"""An exported Transformer beside CTranslate2 by itself, which gets ready subwords: whole commands from raw to
raw text, and one line from a cold shell. With references: BLEU and chrF of the run and of its exports.

    .venv/bin/python -m tests.benchmarks.peers.ctranslate2 RUN_DIR --input test.en [--reference test.fr]
"""

import argparse
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from sacrebleu import BLEU, CHRF

from nmt.io import files
from nmt.runs.run import Run
from . import compare, environment, ours

ONE = "A man in a blue shirt is standing on a ladder."
BEAM = 5
PEER = f"""
import sys
import ctranslate2
model, tokens, output = sys.argv[1:]
lines = [line.split() for line in open(tokens, encoding="utf-8")]
engine = ctranslate2.Translator(model, compute_type="int8", inter_threads=1, intra_threads=1)
results = engine.translate_batch(lines, beam_size={BEAM}, max_batch_size=16)
with open(output, "w", encoding="utf-8") as out:
    out.writelines(" ".join(result.hypotheses[0]) + "\\n" for result in results)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--input", type=Path, required=True)
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        run = str(args.run.resolve())
        for quantization in ("float32", "int8"):
            export = [sys.executable, "-m", "nmt.cli.export", run, "-q", "--quantization", quantization]
            subprocess.run([*export, "-o", str(folder / quantization)], check=True)
        (folder / "one.raw").write_text(f"{ONE}\n", encoding="utf-8")
        (folder / "all.raw").write_bytes(args.input.read_bytes())
        speed(folder, run, args.rounds)
        if args.reference:
            quality(folder, run, args.reference)


def speed(folder: Path, run: str, rounds: int) -> None:
    """Print what each way to translate costs."""
    python = environment("ctranslate2", f"ctranslate2=={version('ctranslate2')}")
    (folder / "peer.py").write_text(PEER, encoding="utf-8")
    exported = Run.load(folder / "int8")
    source = exported.members[0].source
    for name in ("one", "all"):
        units = [" ".join(source.units(line)) for line in files.read_lines(folder / f"{name}.raw")]
        files.write_text(folder / f"{name}.units", units)
    peer = {name: [str(python), "peer.py", "int8", f"{name}.units", "out"] for name in ("one", "all")}
    translate = f"nmt-translate -q --threads 1 --beam-size {BEAM} --output out"
    language = exported.members[0].languages[0]
    compare(
        f"{number_of_lines(folder)} lines, beam {BEAM}, int8",
        {
            "CTranslate2, ready subwords": peer["all"],
            "nmt-translate, exported, raw text": ours(f"{translate} --input all.raw int8"),
            "nmt-translate, float32": ours(f"{translate} --input all.raw float32"),
            "nmt-translate, torch": ours(f"{translate} --input all.raw {run}"),
        },
        folder,
        rounds,
    )
    compare(
        "one line",
        {
            "CTranslate2, ready subwords": peer["one"],
            "nmt-tokenize alone": ours(f"nmt-tokenize -q -l {language} --input one.raw --output out"),
            "nmt-translate, exported, raw text": ours(f"{translate} --input one.raw int8"),
        },
        folder,
        rounds,
    )


def number_of_lines(folder: Path) -> str:
    """The number of lines of the text."""
    return f"{files.number_of_lines(folder / 'all.raw'):,}"


def quality(folder: Path, run: str, reference: Path) -> None:
    """Print BLEU and chrF of the run and of its exports, and how many translations are those of the run."""
    lines, references = list(files.read_lines(folder / "all.raw")), [list(files.read_lines(reference))]
    outputs = {
        name: Run.load(path).translate(lines, beam_size=BEAM)
        for name, path in (("torch", run), ("float32", folder / "float32"), ("int8", folder / "int8"))
    }
    for name, output in outputs.items():
        same = sum(a == b for a, b in zip(output, outputs["torch"], strict=True))
        bleu, chrf = BLEU().corpus_score(output, references), CHRF().corpus_score(output, references)
        print(f"{name:<8} BLEU {bleu.score:.2f}, chrF {chrf.score:.2f}, {same:,} of {len(lines):,} as torch")


if __name__ == "__main__":
    main()
