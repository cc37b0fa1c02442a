"""The embedded decoder: load time, sentences a second, n-best lists, a CSLM or an encoder-decoder in
the search; ratios against the plain twin.

python tests/benchmarks/decoder.py MODEL_DIR|moses.ini TEXT [CSLM_RUN]        one thread; stop everything else
on the machine
python tests/benchmarks/decoder.py --translator RUN MODEL_DIR|moses.ini TEXT  an encoder-decoder in the search
python tests/benchmarks/decoder.py --cube MODEL_DIR|moses.ini TEXT            stack search and cube pruning
"""

import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from nmt.io import files
from smt_bridge.decoder import system
from smt_bridge.decoder.cache import Cache
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.table import quantize

LINES = 300
ARGUMENTS = (
    "neural-beam=50",
    "neural-beam=50 neural-recombine=false",
    "neural-beam=50 restricted=true",
    "neural-beam=100",
    "neural-beam=200",
)  # of the line of an encoder-decoder


def rate(made: Decoder, lines: list[str], clock: Callable[[], float] = time.perf_counter) -> float:
    made.translate_line(lines[0])  # compiled, or loaded from __pycache__, before the clock starts
    begin = clock()
    for line in lines:
        made.translate_line(line)
    return len(lines) / (clock() - begin)


def linked(model: str, scratch: str) -> Path:
    """The ini of a model in a folder of links, so that other inis can stand beside the tables."""
    ini = Path(system.ini_path(model)).resolve()
    for path in ini.parent.iterdir():
        (Path(scratch) / path.name).symlink_to(path)
    return Path(scratch) / ini.name


def with_feature(ini: Path, line: str, weight: float) -> system.PhraseBasedSystem:
    """A system with one more feature, `Kind name=NAME ...`."""
    text = ini.read_text(encoding="utf-8").replace("[feature]\n", f"[feature]\n{line}\n")
    name = line.partition("name=")[2].split()[0]
    place = ini.with_name("more.ini")
    place.write_text(text.replace("[weight]\n", f"[weight]\n{name}= {weight}\n"), encoding="utf-8")
    return system.load(str(place))


def main(model: str, text: str, run: str = "") -> None:
    torch.set_num_threads(1)
    lines = [line for line in islice(files.read_lines(text), LINES) if line]
    with tempfile.TemporaryDirectory() as scratch:
        ini = linked(model, scratch)
        cache = Cache(f"{scratch}/cache")
        for name in ("from text", "from the cache, verified", "from the cache, mapped"):
            begin = time.process_time()
            system.load(str(ini), cache)
            print(f"load {name}\t{time.process_time() - begin:.3f} CPU s")
        loaded = system.load(str(ini), cache)
        for bits in (0, 8, 16):
            table = quantize(loaded.table, bits) if bits else loaded.table
            size = sum(value.nbytes for value in vars(table).values() if isinstance(value, np.ndarray))
            print(
                f"table, {f'{bits} bits a score' if bits else 'exact'}\t{size / table.rows:.1f} bytes a row"
            )
        begin = time.perf_counter()
        Decoder(loaded, DecoderConfig(stack=5)).translate_line(lines[0])
        print(
            "decoder and compiled core (from __pycache__ if this is no first "
            f"run)\t{time.perf_counter() - begin:.1f} s"
        )
        for stack in (20, 100, 200):
            print(
                f"stack {stack}\t{rate(Decoder(loaded, DecoderConfig(stack=stack)), lines):.1f} sentences/s"
            )
        hundred = rate(Decoder(loaded, DecoderConfig(stack=100)), lines)
        print(
            "stack 100, 100-best "
            "distinct\t"
            f"{rate(Decoder(loaded, DecoderConfig(stack=100, nbest=100, distinct=True)), lines):.1f} "
            "sentences/s"
        )
        plain = Decoder(loaded, DecoderConfig(stack=20))
        plain.compiled = None
        slow, fast = rate(plain, lines[:10]), rate(Decoder(loaded, DecoderConfig(stack=20)), lines[:10])
        print(f"plain twin, stack 20\t{slow:.2f} sentences/s, compiled {fast / slow:.0f} times as fast")
        if run:
            with_cslm(ini, run, lines, hundred)


def with_cslm(ini: Path, run: str, lines: list[str], hundred: float) -> None:
    for normalized in ("true", "false"):
        line = f"CSLM name=CSLM0 factor=0 path={Path(run).resolve()} normalized={normalized}"
        loaded = with_feature(ini, line, 0.06)
        for beam in (200, 500, 0) if normalized == "true" else (500,):
            some = lines if normalized == "true" and beam else lines[:20]
            found = rate(Decoder(loaded, DecoderConfig(stack=100, neural_beam=beam)), some)
            kind = "log Z taken as 0" if normalized == "true" else "with log Z"
            print(
                f"stack 100, CSLM in the search, {kind}, beam {beam or 'unlimited'}\t{found:.1f} "
                f"sentences/s, {hundred / found:.2f} times the time without"
            )


def with_translator(run: str, model: str, text: str) -> None:
    """In CPU seconds. Weights hardly change the time: a run of one update will do."""
    torch.set_num_threads(1)
    lines = [line for line in islice(files.read_lines(text), LINES) if line]
    with tempfile.TemporaryDirectory() as scratch:
        ini = linked(model, scratch)
        alone = rate(Decoder(system.load(str(ini)), DecoderConfig(stack=100)), lines, time.process_time)
        print(f"stack 100\t{alone:.1f} sentences/s")
        for arguments in ARGUMENTS:
            line = f"NeuralTranslation name=NMT0 path={Path(run).resolve()} {arguments}"
            made = Decoder(with_feature(ini, line, 0.1), DecoderConfig(stack=100))
            found = rate(made, lines[:100], time.process_time)
            print(f"stack 100, {arguments}\t{found:.2f} sentences/s, {alone / found:.1f} times the time")


def with_cubes(model: str, text: str) -> None:
    """Sentences per CPU second and mean total score of stack search and cube pruning, of 200 lines."""
    loaded = system.load(model)
    lines = [line for line in islice(files.read_lines(text), 200) if line]
    searches = [(f"stack {stack}", DecoderConfig(stack=stack)) for stack in (20, 50, 100, 200)]
    for pops in (50, 100, 200, 500, 1000):
        searches.append((f"cube, {pops} pops", DecoderConfig(search="cube", pop_limit=pops, stack=200)))
    for name, config in searches:
        decoder = Decoder(loaded, config)
        speed = max(rate(decoder, lines, time.process_time) for _ in range(2))
        total = sum(decoder.translate_line(line).derivations[0].total for line in lines)
        print(f"{name}\t{speed:.1f} sentences a CPU second\tmean total {total / len(lines):.4f}")


if __name__ == "__main__":
    if sys.argv[1] == "--cube":
        with_cubes(*sys.argv[2:])
    elif sys.argv[1] == "--translator":
        with_translator(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
