from nmt.run import word_numbers


def test_units_belong_to_words() -> None:
    assert word_numbers(["lo@@", "w@@", "er", "case", "x@@"]) == [0, 0, 0, 1, 2] and word_numbers([]) == []
