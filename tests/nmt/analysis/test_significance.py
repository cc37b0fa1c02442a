import subprocess
from collections.abc import Callable
from pathlib import Path

from nmt.metrics import corpus_bleu

Command = Callable[..., subprocess.CompletedProcess[str]]


def test_a_better_system_is_seen_and_noise_is_not(
    command: Command, refused: Callable[..., str], tmp_path: Path
) -> None:
    reference = [f"a{n % 7} b{n % 5} c d e{n % 3} f" for n in range(100)]
    base = [line if n % 2 else "z " + line[3:] for n, line in enumerate(reference)]
    better = [line if n % 4 else "z " + line[3:] for n, line in enumerate(reference)]
    other = [line if n % 2 == 0 else "z " + line[3:] for n, line in enumerate(reference)]
    for name, lines in (("r", reference), ("base", base), ("better", better), ("other", other)):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines))
    done = command(
        "nmt-analyze",
        "compare",
        "-r",
        "r",
        "--baseline",
        "base",
        "--hypothesis",
        "better",
        "other",
        "--bleu-tokenize",
        "none",
        "--samples",
        300,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    rows = {row.split("\t")[0]: row.split("\t")[1:] for row in done.stdout.split("\n")[1:-1]}
    assert (
        float(rows["base"][0]) == round(corpus_bleu(base, [reference], "none").score, 2)
        and rows["base"][3] == ""
    )
    assert float(rows["better"][3]) < 0.01 < 0.1 < float(rows["other"][3])
    assert "bs:300" in done.stderr
    assert "the same output as base" in refused(
        command(
            "nmt-analyze", "compare", "-r", "r", "--baseline", "base", "--hypothesis", "base", cwd=tmp_path
        )
    )
    (tmp_path / "r").write_text("a\n")
    assert "r: 1 lines" in refused(
        command(
            "nmt-analyze", "compare", "-r", "r", "--baseline", "base", "--hypothesis", "better", cwd=tmp_path
        )
    )
