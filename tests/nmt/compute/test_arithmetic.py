"""How torch computes, from process to process."""

from nmt.compute import arithmetic, matmul
from nmt.compute.arithmetic import Arithmetic


def test_what_is_used_is_in_use() -> None:
    before = arithmetic.in_use()
    try:
        for wanted in (Arithmetic(2, "mkl"), Arithmetic(1, "onednn")):
            wanted.use()
            assert arithmetic.in_use() == wanted and matmul.in_use() == wanted.back_end
    finally:
        before.use()
