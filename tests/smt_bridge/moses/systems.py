"""A small moses.ini, with the files that it names."""

from pathlib import Path

INI = """# made by hand

[input-factors]
0
[feature]
UnknownWordPenalty
WordPenalty
PhraseDictionaryMemory name=TM0  num-features=2 path=t input-factor=0 output-factor=0
LexicalReordering name=LR0 num-features=6 type=x path=r
KENLM name=LM0 factor=0 path=lm order=5

[weight]
UnknownWordPenalty0= 1
WordPenalty0= -1
TM0= 0.2  0.3
LR0= 0.1 0.1 0.1 0.1 0.1 0.1
LM0= 0.5
[v]
0
"""
TABLE = "a ||| b ||| 0.5 0.25 ||| 0-0\n"
REORDERING = "a ||| b ||| 0.1 0.2 0.7 0.1 0.2 0.7\n"


def write_system(folder: Path) -> Path:
    for name, text in (("moses.ini", INI), ("t", TABLE), ("r", REORDERING), ("lm", "x")):
        (folder / name).write_text(text)
    return folder
