"""The options of nmt-serve."""

import subprocess
import sys

import pytest

from nmt.cli import serve
from tests.nmt.serve.engines import TRANSLATOR


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "the following arguments are required: NAME=PATH"),
        (["path"], "'path': expected NAME=PATH"),
        (["a=x", "b=y", "a=z"], "a: two engines"),
        (
            ["a=x", "--host", "0.0.0.0", "--port", "0"],
            "--host 0.0.0.0: other machines can reach this address",
        ),
        (["a=x", "--token", "/nowhere"], "/nowhere: "),
        (["a=/nowhere", "--port", "0"], "/nowhere: does not exist; expected a run directory"),
        (["a=x", "--port", "70000"], "70000 is out of range, expected 0 to 65535"),
    ],
)
def test_what_is_refused(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        assert serve.main([*options, "--matmul", "mkl"]) == 2
    except SystemExit as error:
        assert error.code == 2
    printed = capsys.readouterr().err
    assert message in printed and printed.count("\n") == 1


def test_the_first_run_directory_decides_on_matrix_products() -> None:
    runs = str(TRANSLATOR)
    assert serve.first_run([("a", "/nowhere"), ("b", f"{runs},{runs}")]) == runs
    assert serve.first_run([("a", "/nowhere")]) is None


@pytest.mark.ci
def test_without_its_libraries_it_says_how_to_install_them() -> None:
    code = (
        "import sys; sys.modules['starlette'] = None; from nmt.cli.serve import main; sys.exit(main(['a=x']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "pip install 'nmt-smt[serve]'" in done.stderr
    assert done.stderr.count("\n") == 1
