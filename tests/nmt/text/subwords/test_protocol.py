"""What is remembered of a training text."""

from nmt.text.subwords import TrainingText


def test_words_are_counted_or_sentences_kept() -> None:
    words, sentences = TrainingText(False), TrainingText(True)
    for line in (["a", "bb"], ["a"], []):
        words.add(line)
        sentences.add(line)
    assert words.words == {"a": 2, "bb": 1} and sentences.lines == ["a bb", "a", ""]
    assert words.characters() == {"a": 2, "b": 2} and sentences.characters() == {"a": 2, " ": 1, "b": 2}
    assert (words + words).words == {"a": 4, "bb": 2} and (sentences + sentences).lines == 2 * sentences.lines


def test_a_sample_is_uniform_and_always_the_same() -> None:
    samples = []
    for _ in range(2):
        text = TrainingText(True, most=100)
        for number in range(10000):
            text.add([str(number)])
        samples.append(text.lines)
    assert samples[0] == samples[1] and len(set(samples[0])) == 100
    assert 4000 < sum(map(int, samples[0])) / 100 < 6000  # 5000, with a standard deviation of 290
