"""The embedded decoder: load time, sentences a second, n-best lists, a CSLM in the search; ratios against the
plain twin.

python tests/benchmarks/decoder.py MODEL_DIR|moses.ini TEXT [CSLM_RUN]        one thread; stop everything else
on the machine
"""

import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from nmt import files
from smt_bridge.decoder import system
from smt_bridge.decoder.cache import Cache
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder

LINES = 300


def rate(made: Decoder, lines: list[str]) -> float:
    made.translate_line(lines[0])  # compiled, or loaded from __pycache__, before the clock starts
    begin = time.perf_counter()
    for line in lines:
        made.translate_line(line)
    return len(lines) / (time.perf_counter() - begin)


def main(model: str, text: str, run: str = "") -> None:
    torch.set_num_threads(1)
    lines = [line for line in islice(files.read_lines(text), LINES) if line]
    with tempfile.TemporaryDirectory() as scratch:  # links, so that other inis can stand beside the tables
        ini = Path(system.ini_of(model)).resolve()
        for path in ini.parent.iterdir():
            (Path(scratch) / path.name).symlink_to(path)
        ini = Path(scratch) / ini.name
        cache = Cache(f"{scratch}/cache")
        for name in ("from text", "from the cache"):
            begin = time.perf_counter()
            system.load(str(ini), cache)
            print(f"load {name}\t{time.perf_counter() - begin:.1f} s")
        loaded = system.load(str(ini), cache)
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
            with_cslm(str(ini), run, lines, hundred)


def with_cslm(ini: str, run: str, lines: list[str], hundred: float) -> None:
    for normalized in ("true", "false"):
        text = Path(ini).read_text(encoding="utf-8")
        line = f"CSLM name=CSLM0 factor=0 path={Path(run).resolve()} normalized={normalized}"
        place = Path(ini).with_name(f"cslm-{normalized}.ini")
        place.write_text(
            text.replace("[feature]\n", f"[feature]\n{line}\n").replace(
                "[weight]\n", "[weight]\nCSLM0= 0.06\n"
            ),
            encoding="utf-8",
        )
        loaded: Any = system.load(str(place))
        for beam in (200, 500, 0) if normalized == "true" else (500,):
            some = lines if normalized == "true" and beam else lines[:20]
            found = rate(Decoder(loaded, DecoderConfig(stack=100, neural_beam=beam)), some)
            kind = "log Z taken as 0" if normalized == "true" else "with log Z"
            print(
                f"stack 100, CSLM in the search, {kind}, beam {beam or 'unlimited'}\t{found:.1f} "
                f"sentences/s, {hundred / found:.2f} times the time without"
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
