"""The drawn figures of the documentation, as SVG: python -m docs.site.figures docs/images

Each is a panel with its own background, in light and dark colors, so that it can be read on any page; at 420
units wide its text can be read on a phone, too. A test compares the files with what is drawn here.
"""

import sys
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

WIDTH = 420
STYLE = """
svg { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; font-size: 14px }
text { fill: #1f2933 } .small { font-size: 12px; fill: #52606d } .on { fill: #ffffff }
.panel { fill: #ffffff; stroke: #cbd2d9 } .line { stroke: #52606d; stroke-width: 1.5; fill: none }
.head { fill: #52606d } .box { fill: #f0f4f8; stroke: #9fb3c8 } .network { fill: #e3f0fb; stroke: #2f6fab }
.count { fill: #fdf1dd; stroke: #b7791f } .dead { fill: none; stroke: #9aa5b1; stroke-dasharray: 3 3 }
.s0 { fill: #1b6ca8 } .s1 { fill: #a8541b } .s2 { fill: #2f7d4f }
@media (prefers-color-scheme: dark) {
text { fill: #e4e7eb } .small { fill: #b8c2cc } .on { fill: #ffffff }
.panel { fill: #1b2229; stroke: #4a5662 } .line { stroke: #b8c2cc } .head { fill: #b8c2cc }
.box { fill: #2a343e; stroke: #627384 } .network { fill: #16324a; stroke: #5fa4dd }
.count { fill: #43330f; stroke: #d9a441 } .dead { stroke: #7b8794 } }
"""


class Drawing:
    """The elements of a figure, in the order in which they are painted."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "middle") -> None:
        """Words on one line; `y` is their middle. `anchor`: start, middle or end of the words at `x`."""
        look = f' class="{kind}"' if kind else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y + 5:g}" text-anchor="{anchor}"{look}>{escape(words)}</text>'
        )

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        words: str = "",
        kind: str = "box",
        on: str = "",
    ) -> None:
        """A box with words in the middle, lines separated by line breaks. `on`: the class of the words."""
        self.parts.append(
            f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4"/>'
        )
        lines = words.split("\n") if words else []
        for number, line in enumerate(lines):
            middle = y + height / 2 + 17 * (number - (len(lines) - 1) / 2)
            self.text(x + width / 2, middle, line, on or ("small" if number else ""))

    def line(self, *points: tuple[float, float]) -> None:
        """A line through all points."""
        path = " L".join(f"{x:g} {y:g}" for x, y in points)
        self.parts.append(f'<path class="line" d="M{path}"/>')

    def arrow(self, *points: tuple[float, float]) -> None:
        """A line that ends in an arrow, horizontal or vertical at its end."""
        (x0, y0), (x, y) = points[-2:]
        dx, dy = (x > x0) - (x < x0), (y > y0) - (y < y0)
        self.line(*points[:-1], (x - 6 * dx, y - 6 * dy))
        left, right = (x - 7 * dx + 4 * dy, y - 7 * dy + 4 * dx), (x - 7 * dx - 4 * dy, y - 7 * dy - 4 * dx)
        corners = " ".join(f"{a:g},{b:g}" for a, b in ((x, y), left, right))
        self.parts.append(f'<polygon class="head" points="{corners}"/>')

    def svg(self, title: str, height: float) -> str:
        """The whole file. `title`: what a screen reader says."""
        size = f'width="{WIDTH * 4 // 3}" viewBox="0 0 {WIDTH} {height:g}"'
        panel = f'<rect class="panel" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:g}" rx="8"/>'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
        return "\n".join(
            [
                head,
                f"<title>{escape(title)}</title>",
                f"<style>{STYLE}</style>",
                panel,
                *self.parts,
                "</svg>\n",
            ]
        )


# ---- the figures -------------------------------------------------------------------------------------------


def life() -> str:
    """From a line of text to its translation, with the module of each step."""
    drawing = Drawing()
    steps = (
        ("A boy does not follow the man.", "raw text", "box"),
        ("a boy does not follow the man .", "words: text/pipeline.py", "box"),
        ("a boy does not fol@@ low the man .", "units: text/subwords", "box"),
        ("5 31 12 40 207 88 4 17 3", "ids: text/vocab.py", "box"),
        ("one vector for each unit", "encoder: models", "network"),
        ("un garçon ne · un gars ne · le garçon ne", "beam: search/beam.py", "network"),
        ("Un garçon ne suit pas l'homme.", "raw text: text/pipeline.py", "box"),
    )
    y = 14.0
    for number, (words, where, kind) in enumerate(steps):
        drawing.box(14, y, 392, 44, f"{words}\n{where}", kind)
        if number < len(steps) - 1:
            drawing.arrow((210, y + 44), (210, y + 62))
        y += 62
    return drawing.svg("The life of a sentence: raw text, words, units, ids, network, beam, raw text", y - 4)


def batches() -> str:
    """Three sentences as a padded batch, and packed step by step."""
    drawing = Drawing()
    sentences = ("the nurses hear her .", "a boy runs .", "she sleeps")
    rows = [sentence.split() for sentence in sentences]
    width = 74
    drawing.text(14, 20, "padded: 15 places for 11 words", anchor="start")
    for number, row in enumerate(rows):
        for step in range(5):
            x, y = 24 + step * (width + 1), 36 + number * 30
            if step < len(row):
                drawing.box(x, y, width, 27, row[step], f"s{number}", "on")
            else:
                drawing.box(x, y, width, 27, "", "dead")
    drawing.text(14, 152, "packed: step by step, longest first", anchor="start")
    for step in range(5):
        live = [number for number, row in enumerate(rows) if step < len(row)]
        for place, number in enumerate(live):
            y = 184 + place * 30
            drawing.box(24 + step * (width + 1), y, width, 27, rows[number][step], f"s{number}", "on")
        middle = 24 + step * (width + 1) + width / 2
        drawing.text(middle, 172, f"step {step + 1}", "small")
        drawing.text(middle, 284, f"{len(live)} row{'s' * (len(live) > 1)}", "small")
    drawing.text(14, 308, "A step computes the sentences that have not ended.", "small", "start")
    return drawing.svg("Packed batches: each step computes only the sentences that have not ended", 324)


def tries() -> str:
    """The targets of one source phrase as a trie, whose shared beginnings are read once."""
    drawing = Drawing()
    drawing.text(14, 20, "targets of “the black girl”", anchor="start")
    for number, target in enumerate(("la fille", "la fille noire", "la petite fille noire")):
        drawing.text(24, 46 + 22 * number, target, "small", "start")
    drawing.text(406, 46, "9 words", "small", "end")
    drawing.text(406, 68, "one by one: 9 steps", "small", "end")
    drawing.text(406, 90, "as a trie: 6 steps", "small", "end")
    nodes = {
        "": (14, 150, 40, "⟨s⟩"), "la": (76, 150, 40, "la"), "f": (142, 120, 66, "fille"),
        "n": (234, 120, 66, "noire"), "p": (142, 180, 66, "petite"), "pf": (234, 180, 66, "fille"),
        "pn": (326, 180, 66, "noire"),
    }  # fmt: skip
    for start, end in (("", "la"), ("la", "f"), ("f", "n"), ("la", "p"), ("p", "pf"), ("pf", "pn")):
        x, y, width, _ = nodes[start]
        other, height = nodes[end][:2]
        middle = (x + width + other) / 2
        drawing.arrow((x + width, y + 14), (middle, y + 14), (middle, height + 14), (other, height + 14))
    for name, (x, y, width, word) in nodes.items():
        drawing.box(x, y, width, 28, word, "network" if name in ("f", "n", "pn") else "box")
    drawing.text(14, 230, "blue: a target ends here. The nodes of a depth,", "small", "start")
    drawing.text(14, 248, "of all sources, are one batch of the network.", "small", "start")
    return drawing.svg("Tries of prefixes: targets that begin alike share the steps of the network", 264)


def search() -> str:
    """How a stack of the phrase-based search lets networks score few candidates, all in one batch."""
    drawing = Drawing()
    steps = (
        ("stack: hypotheses that cover n words", "best translations so far", "box"),
        ("× translation options = candidates", "phrase pairs of words not yet covered", "box"),
        ("tables, count model, reordering", "all candidates: thousands, compiled code", "count"),
        ("the best, by expected total", "networks not yet asked are estimated", "box"),
        ("CSLM, joint model, attention", "hundreds, one batch a network and stack", "network"),
        ("recombine what no model can tell apart", "then keep the best: the next stacks", "box"),
    )
    y = 14.0
    for number, (first, second, kind) in enumerate(steps):
        drawing.box(14, y, 362, 44, f"{first}\n{second}", kind)
        if number < len(steps) - 1:
            drawing.arrow((195, y + 44), (195, y + 62))
        y += 62
    drawing.arrow((376, y - 40), (398, y - 40), (398, 36), (376, 36))
    return drawing.svg(
        "The phrase-based search with networks inside: cheap scores first, then networks", y - 4
    )


def hybrid() -> str:
    """What smt-build makes of raw text: counts and networks, whose weights are tuned together."""
    drawing = Drawing()
    drawing.box(
        14, 14, 392, 44, "your text, a sentence a line\ncleaned, tokenized, truecased, aligned", "box"
    )
    drawing.arrow((110, 58), (110, 82))
    drawing.arrow((310, 58), (310, 82))
    drawing.box(14, 82, 192, 122, "", "count")
    drawing.box(214, 82, 192, 122, "", "network")
    halves: Sequence[tuple[float, Sequence[str]]] = (
        (110, ("counts", "phrase table", "reordering", "n-gram model", "operation sequences")),
        (310, ("networks", "attention", "joint model", "CSLM", "")),
    )
    for x, words in halves:
        for number, word in enumerate(words):
            drawing.text(x, 98 + 23 * number, word, "small" if number else "")
    drawing.arrow((110, 204), (110, 228))
    drawing.arrow((310, 204), (310, 228))
    drawing.box(
        14, 228, 392, 44, "one search: Σ weight × score\nweights tuned on your development set", "box"
    )
    drawing.arrow((210, 272), (210, 296))
    drawing.box(14, 296, 392, 44, "one folder\nsmt-decode, nmt-serve: raw text to raw text", "box")
    return drawing.svg("A hybrid system: counts and networks score one search, whose weights are tuned", 354)


FIGURES: dict[str, Callable[[], str]] = {
    "life-of-a-sentence": life,
    "packed-batches": batches,
    "prefix-tries": tries,
    "networks-in-the-search": search,
    "hybrid": hybrid,
}


def main(folder: str) -> int:
    """Write all figures into a folder. Returns the exit status."""
    for name, draw in FIGURES.items():
        (Path(folder) / f"{name}.svg").write_text(draw(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
