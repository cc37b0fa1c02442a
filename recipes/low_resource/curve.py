"""Write learning curves over the size of the corpus, OUT/curve.tsv, OUT/curve.png and OUT/curve.svg, from the
translations OUT/SIZE.seed-N.SYSTEM.

    python recipes/low_resource/curve.py OUT REFERENCE NAME

BLEU of each system is the mean of its seeds. The hybrid is compared with the better of its parts, by paired
bootstrap seed by seed.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from nmt.analysis import plots
from nmt.analysis.actions import ResultTable
from nmt.analysis.statistics import paired_bootstrap
from nmt.cli import options
from nmt.errors import DataError
from nmt.io import files
from nmt.metrics import corpus_bleu

SYSTEMS = ("phrase-based", "neural", "hybrid")
PARTS = SYSTEMS[:2]
OUTPUT = re.compile(rf"(\d+)\.seed-(\d+)\.({'|'.join(SYSTEMS)})")
Scores = dict[int, dict[str, dict[int, float]]]  # size -> system -> seed -> BLEU


def main(out: Path, reference: str, name: str) -> None:
    """Write and print the table, and draw the curves. `out`: folder of the translations, to which they are
    written; `reference`: file of the reference; `name`: of the corpus, for the axis. DataError if
    translations are missing, or a text cannot be read."""
    references = [list(files.read_lines(reference))]
    lines = {
        (int(match[1]), match[3], int(match[2])): list(files.read_lines(path))
        for path in sorted(out.iterdir())
        if (match := OUTPUT.fullmatch(path.name))
    }
    if not lines:
        raise DataError(f"{out}: no translations SIZE.seed-N.SYSTEM, as run.sh writes them")
    scores: Scores = defaultdict(lambda: defaultdict(dict))
    for (size, system, seed), texts in lines.items():
        scores[size][system][seed] = corpus_bleu(texts, references).score
    rows, signature = [], ""
    for size in sorted(scores):
        if not scores[size]["hybrid"] or len(scores[size]) < 2:
            raise DataError(f"{out}: size {size} needs translations of the hybrid and of one of its parts")
        part, gain = compare(scores[size])
        p_values = []
        for seed in sorted(scores[size]["hybrid"]):
            if (size, part, seed) not in lines:
                raise DataError(f"{out}/{size}.seed-{seed}.{part}: missing, to be compared with the hybrid")
            p, signature = p_value(lines[size, part, seed], lines[size, "hybrid", seed], references)
            p_values.append(p)
        means = [fmean(values) if (values := scores[size][system].values()) else None for system in SYSTEMS]
        rows.append([size, len(scores[size]["hybrid"]), *means, part, gain, " ".join(p_values)])
    columns = {"pairs": "", "seeds": "", **dict.fromkeys(SYSTEMS, ".2f")}
    columns |= {"better part": "", "gain": "+.2f", "p": ""}
    table = [
        *ResultTable(columns, rows).lines(),
        f"# BLEU on {reference}, mean of the seeds; p: hybrid against the better part, seed by seed",
        f"# {signature}",
    ]
    files.write_text(out / "curve.tsv", table)
    print("\n".join(table))
    draw(scores, name, out)


def compare(scores: Mapping[str, Mapping[int, float]]) -> tuple[str, float]:
    """The name of the part with the higher mean BLEU, and the hybrid's gain over it. `scores`: system -> seed
    -> BLEU, of the hybrid and of one part or both."""
    part = max((name for name in PARTS if scores.get(name)), key=lambda name: fmean(scores[name].values()))
    return part, fmean(scores["hybrid"].values()) - fmean(scores[part].values())


def p_value(part: list[str], hybrid: list[str], references: list[list[str]]) -> tuple[str, str]:
    """p of the difference in BLEU of two outputs, as text, - if they are identical; and BLEU's signature."""
    if part == hybrid:
        return "-", corpus_bleu(hybrid, references).signature
    results, signatures = paired_bootstrap(["part", "hybrid"], [part, hybrid], references)
    return f"{results[1].p:.3f}", signatures[0]


def draw(scores: Scores, name: str, out: Path) -> None:
    """Draw a curve of the mean BLEU of each system, with bars from its lowest to its highest seed, and write
    it as PNG and SVG. `name`: of the corpus, for the axis."""
    figure, axes = plots.pyplot().subplots(figsize=(6.5, 3.8), layout="constrained")
    for color, system in zip(plots.CYCLE, SYSTEMS, strict=False):
        seeds = {size: each[system] for size, each in sorted(scores.items()) if each[system]}
        axes.errorbar(
            list(seeds),
            [fmean(by_seed.values()) for by_seed in seeds.values()],
            yerr=[
                [fmean(by_seed.values()) - min(by_seed.values()) for by_seed in seeds.values()],
                [max(by_seed.values()) - fmean(by_seed.values()) for by_seed in seeds.values()],
            ],
            color=color,
            marker="o",
            markersize=4,
            capsize=3,
            label=system,
        )
    axes.set_xscale("log")
    axes.set_xticks(sorted(scores), [f"{size:,}" for size in sorted(scores)])
    axes.minorticks_off()
    axes.set_xlabel(f"sentence pairs ({plots.label_text(name)})")
    axes.set_ylabel("BLEU on test (bars: all seeds)")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)
    plots.remove_frame(axes)
    plots.save_figure(figure, [out / "curve.png", out / "curve.svg"])


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser("curve.py", "Write learning curves over the size of the corpus.")
    for name in ("out", "reference", "name"):
        parser.add_argument(name)
    args = parser.parse_args(argv)
    main(Path(args.out), args.reference, args.name)


if __name__ == "__main__":
    sys.exit(options.run(command, None))
