"""Convert raw source text to the words that the parts of a hybrid system read, or the target words that they
write to raw text, line by line from stdin to stdout.

    python recipes/low_resource/words.py source|target SYSTEM
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.cli import options
from nmt.io import files
from smt_bridge.hybrid import folder


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser("words.py", "Convert raw text to the words of a hybrid system, or words to text.")
    parser.add_argument("side", choices=("source", "target"))
    parser.add_argument("system")
    args = parser.parse_args(argv)
    system = folder.read(Path(args.system))
    with files.Writing("-") as out:
        for line in files.read_lines("-"):
            if args.side == "source":
                text = " ".join(system.source.words(line))
            else:
                text = system.target.text(files.split_words(line))
            out.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(options.run(command, None))
