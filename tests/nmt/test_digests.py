"""Digests of texts."""

from nmt.digests import digest64


def test_equal_texts_and_no_others() -> None:
    texts = [f"{number}".encode() for number in range(10_000)]
    found = [digest64(text) for text in texts]
    assert {len(one) for one in found} == {8} and len(set(found)) == len(texts)
    assert found == [digest64(bytes(bytearray(text))) for text in texts]
