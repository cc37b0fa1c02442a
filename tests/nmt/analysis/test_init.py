"""The public names of nmt.analysis."""

import subprocess
import sys

import nmt.analysis


def test_every_public_name_is_there() -> None:
    for name in nmt.analysis.__all__:
        assert getattr(nmt.analysis, name).__name__ == name
    assert set(nmt.analysis.__all__) == set(nmt.analysis.HOMES) <= set(dir(nmt.analysis))


def test_importing_it_is_cheap() -> None:
    code = "import sys, nmt.analysis; sys.exit('numpy' in sys.modules or 'sacrebleu' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
