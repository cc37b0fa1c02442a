"""The queries of n-grams that a search makes, answered by our mapped models and by KenLM in C++.

    .venv/bin/python -m tests.benchmarks.peers.kenlm_queries MODEL_DIR|INI TEXT [--kenlm SOURCES] [--rounds N]

A search with stacks of 100 hypotheses translates the first 100 lines of TEXT, and each query (state, word) is
recorded. The stream is replayed by `step` of the search, which remembers the latest results, and, once more,
without that memory; by KenLM's hash table (probing), its trie, and its trie in 8 bits. The sums of log p must
agree to float32.

SOURCES: the folder of KenLM's sources, such as `pip download kenlm==0.3.0 --no-binary :all:` unpacked; with a
compiler they are built into build/peers. Without them, KenLM is skipped. The model has one language model, an
ARPA file.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from nmt.compute.compiled import njit, njit_forced_inline
from nmt.io import files, mapped
from nmt.ngram import count_models, trie_build, trie_queries
from nmt.ngram.trie import CHILDREN, COUNT, FIRST, WORD, TrieModel, load_trie, stamp_path
from smt_bridge.decoder import automaton, search, system
from smt_bridge.decoder import model as search_model
from smt_bridge.decoder.automaton import Automaton, build_automaton
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.feature_lines import LANGUAGE_MODELS
from smt_bridge.moses import ini as moses_ini
from . import ENVIRONMENTS

LINES, STACK = 100, 100
MEMO = automaton.MEMO
ROOM = 20_000_000  # queries that can be recorded
RECORDED = "recorded.npy"
Ints = NDArray[np.int64]
KINDS = {"probing": "hash table", "trie": "trie", "quantized": "trie, 8 bits"}
usual_step = automaton.step


class Stream(NamedTuple):
    """The queries of a search, in their order: the number of each state and word."""

    states: Ints  # (Q,)
    words: Ints  # (Q,)


@njit_forced_inline
def recording_step(lm: Automaton, state: int | np.int64, word: int) -> tuple[float, np.int64]:
    """`step`, which also records the query in the rows of the memory of results that it does not use."""
    count = lm.memo[MEMO, 0]
    lm.memo[MEMO + 1 + count, 0], lm.memo[MEMO + 1 + count, 1] = state, word
    lm.memo[MEMO, 0] = count + 1
    return usual_step(lm, state, word)


def record_apart(model: str, text: str, folder: Path) -> Stream:
    """Record the queries in a process of its own, whose compiled code, which is not that of the usual search,
    is kept in `folder`."""
    command = [sys.executable, "-m", f"{__package__}.kenlm_queries", model, text, "--record", str(folder)]
    subprocess.run(command, env=os.environ | {"NUMBA_CACHE_DIR": str(folder / "compiled")}, check=True)
    return Stream(*np.load(folder / RECORDED))


def record(model: str, text: str) -> Stream:
    """Translate the text and return the queries, those of the options' own scores among them."""
    made: list[Automaton] = []

    def build(model: TrieModel) -> Automaton:
        made.append(build_automaton(model)._replace(memo=np.zeros((MEMO + 1 + ROOM, 3), np.int64)))
        return made[-1]

    with (
        patch.object(search_model, "build_automaton", build),
        patch.object(automaton, "step", recording_step),  # before the search is compiled
        patch.object(search, "step", recording_step),
    ):
        decoder = Decoder(system.load(model), DecoderConfig(stack=STACK))
        for line in islice(files.read_lines(text), LINES):
            decoder.translate_line(line)
    (lm,) = made
    rows = lm.memo[MEMO + 1 : MEMO + 1 + int(lm.memo[MEMO, 0])]
    return Stream(rows[:, 0].copy(), rows[:, 1].copy())


# ---- our models --------------------------------------------------------------------------------------------


@njit
def replay(lm: Automaton, states: Ints, words: Ints) -> float:
    """The sum of natural log p, through the memory of results."""
    total = 0.0
    for i in range(len(states)):
        total += usual_step(lm, states[i], words[i])[0]
    return total


@njit
def replay_all(lm: Automaton, states: Ints, words: Ints) -> float:
    """The sum of natural log p, each query looked up in the trie."""
    total = 0.0
    for i in range(len(states)):
        total += trie_queries.follow(lm, states[i], words[i], None)[1]  # type: ignore[arg-type]
    return total


def clocked(function: Callable[[Automaton, Ints, Ints], float], lm: Automaton, stream: Stream) -> list[float]:
    """CPU seconds and result of a call."""
    start = time.process_time()
    total = function(lm, *stream)
    return [time.process_time() - start, total]


def state_words(model: TrieModel, states: Ints) -> list[list[int]]:
    """The words of states, oldest first."""
    trie = model.trie
    starts = [trie.field(n, CHILDREN, np.arange(trie.layout[n, COUNT] + 1)) for n in range(trie.order - 1)]
    words: list[list[int]] = []
    for state in states.tolist():
        words.append([])
        n = int(np.searchsorted(trie.layout[:, FIRST], state, "right")) - 1
        row = state - int(trie.layout[n, FIRST]) if state else -1
        while n > 0 and row >= 0:
            words[-1].append(int(trie.field(n, WORD, np.array([row]))[0]))
            n, row = n - 1, int(np.searchsorted(starts[n - 1], row, "right")) - 1
        words[-1] += [row] if row >= 0 else []
        words[-1].reverse()
    return words


# ---- KenLM -------------------------------------------------------------------------------------------------


def build_driver(sources: Path) -> Path | None:
    """Compile kenlm_queries.cc with KenLM; None, with a message, if that is not possible."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if not compiler or not (sources / "lm/model.hh").is_file():
        print("KenLM: no compiler, or no sources; skipped (--kenlm, see --help)")
        return None
    driver = ENVIRONMENTS / "kenlm-queries/driver"
    source = Path(__file__).with_suffix(".cc")
    if not driver.exists() or driver.stat().st_mtime < source.stat().st_mtime:
        driver.parent.mkdir(parents=True, exist_ok=True)
        parts = [
            path
            for name in ("lm", "util", "util/double-conversion")
            for path in sorted((sources / name).glob("*.cc"))
            if not path.stem.endswith(("test", "main"))
        ]
        options = ["-O3", "-DNDEBUG", "-DKENLM_MAX_ORDER=6", f"-I{sources}", "-lrt", "-w"]
        subprocess.run([compiler, "-o", driver, source, *parts, *options], check=True)
    return driver


def write_queries(folder: Path, model: TrieModel, stream: Stream) -> None:
    """Write the files that kenlm_queries.cc reads."""
    distinct, numbers = np.unique(stream.states, return_inverse=True)
    files.write_text(folder / "words", model.pool.words())
    contexts = [number for words in state_words(model, distinct) for number in (len(words), *words)]
    np.array(contexts, np.uint32).tofile(folder / "states")
    np.stack([numbers, stream.words], 1).astype(np.uint32).tofile(folder / "queries")


# ---- comparison --------------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--kenlm", type=Path, default=Path("kenlm-0.3.0"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--record", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.record:
        np.save(args.record / RECORDED, np.stack(record(args.model, args.text)))
        return
    ini = moses_ini.read(system.ini_path(args.model))
    (arpa,) = (system.feature_path(ini, line) for line in ini.features if line.kind in LANGUAGE_MODELS)
    with tempfile.TemporaryDirectory() as name:
        folder, models = Path(name), {}
        stream = record_apart(args.model, args.text, folder)
        distinct = np.unique(np.stack(stream), axis=1).shape[1]
        print(
            f"{len(stream.states):,} queries, {distinct:,} different ones, of "
            f"{len(np.unique(stream.states)):,} states"
        )
        for bits in (0, 8):
            (folder / f"{bits}").mkdir()
            compiled = trie_build.compile_model(count_models.read_arpa(arpa), bits)
            mapped.write_record(folder / f"{bits}", compiled, [arpa])
            models[bits] = load_trie(folder / f"{bits}")
        write_queries(folder, models[0], stream)
        with open(folder / "arpa", "wb") as text:
            text.writelines(files.read_blocks(arpa))
        driver = build_driver(args.kenlm.resolve())
        runs: dict[str, list[list[float]]] = {}
        automata = {bits: build_automaton(model) for bits, model in models.items()}
        for count in range(args.rounds + 1):  # the first compiles
            for bits, lm in automata.items():
                for function, what in ((replay, "as in the search"), (replay_all, "each in the trie")):
                    result = clocked(function, lm, stream)
                    if count:
                        runs.setdefault(f"ours, {bits or 'exact'}, {what}", []).append(result)
            for kind in KINDS if driver and count else ():
                command = [str(driver), kind, str(folder / "arpa"), name, "1"]
                printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                runs.setdefault(f"KenLM, {KINDS[kind]}", []).append(list(map(float, printed.split())))
        for bits in models:
            stamp_path(folder / f"{bits}").unlink(missing_ok=True)
    report(runs, len(stream.states))


def report(runs: dict[str, list[list[float]]], queries: int) -> None:
    """Print the best time of each program, and the sum of log p."""
    for name, rounds in runs.items():
        best, total = min(rounds)
        print(f"{name:<36} {best / queries * 1e9:7.1f} ns a query   sum of log p {total:.1f}")
    exact = [rounds[0][1] for name, rounds in runs.items() if "8" not in name]
    if max(exact) - min(exact) > 1e-5 * abs(exact[0]):
        sys.exit("the sums differ by more than float32 does")


if __name__ == "__main__":
    main()
