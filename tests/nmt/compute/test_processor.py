"""What the processor is called and can do."""

import torch

from nmt.compute.processor import flags, processor


def test_the_name_holds_for_one_version_of_torch_and_one_line() -> None:
    assert processor().endswith(f", torch {torch.__version__}")
    assert "\t" not in processor() and "\n" not in processor() and processor() == processor()


def test_flags_are_words() -> None:
    assert all(flag == flag.strip() and " " not in flag for flag in flags())
