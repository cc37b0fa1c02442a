"""BPE dropout: cuts that change, text that does not."""

import io
import itertools
import math
import random
from collections import Counter
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.text import spelling, subwords
from nmt.text.scripts import byte_letter
from nmt.text.spelling import BOUNDARY, mark_boundaries
from nmt.text.subwords import LearnSettings, Subwords, TrainingText, bpe
from nmt.text.subwords.bpe import BPE
from nmt.text.subwords.sentencepiece import (
    Pieces,
    SentencePieceBPE,
    Unigram,
    UnigramSampler,
    default_size,
    is_model,
    kind_of_model,
)
from nmt.text.vocab import UNK, Vocab
from tests.spaceless import japanese

# ---- test bpe ----------------------------------------------------------------------------------------------


def test_dropped_merges_of_bpe_keep_the_text_and_follow_their_key() -> None:
    """All cuts join to the same words; the same key cuts alike, others differ; rate 0 is the plain cut; what
    was dropped is not remembered."""
    counts = Counter({"lower": 9, "lowest": 7, "newer": 5, "wide": 3})
    lines = bpe.learn(counts, 12)
    plain = bpe.BPE(lines)
    words = ["lower", "newer", "lowest", "wide"]
    units = Counter(plain.apply(words) + bpe.all_units(plain.codes, "".join(counts)))
    vocab = Vocab(units, 999)
    ids = vocab.encode(plain.apply(words))
    dropped = bpe.MergeDropout(lines, 0.5, vocab)
    cuts = [dropped(ids, f"1 2 {row}") for row in range(30)]
    assert all(BPE.undo(vocab.decode(cut)) == words and UNK not in cut for cut in cuts)
    assert len({tuple(cut) for cut in cuts}) > 10 and dropped(ids, "1 2 7") == cuts[7]
    assert bpe.MergeDropout(lines, 0.0, vocab)(ids, "x") == ids
    assert plain.apply(words) == vocab.decode(ids)
    assert dropped([*ids, UNK], "1") == [*ids, UNK]
    state = random.getstate()
    dropped(ids, "y")
    assert random.getstate() == state


ODD = [
    "\r",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x85",
    "\xa0",
    "\u2028",
    "\u2029",
    "\u3000",
    "\ufeff",
]  # str.split() or splitlines() part words here


@pytest.mark.parametrize("odd", ODD, ids=ascii)
def test_only_blanks_and_tabs_part_words(odd: str, tmp_path: Path) -> None:
    """A word with such a character in it, at its begin, at its end or alone is a word; codes that were
    learned with it survive their file."""
    words = [odd, f"a{odd}", f"{odd}a", f"a{odd}b", f"{odd}{odd}", f"ab{odd}ab{odd}", "ab", "abab"]
    counts = Counter(dict.fromkeys(words, 5))
    lines = bpe.learn(counts, 20)
    plain = bpe.BPE(lines)
    files.write_text(tmp_path / "codes", lines)
    units = plain.apply(words)
    assert BPE.undo(units) == words and bpe.load_codes(tmp_path / "codes").apply(words) == units
    assert plain.apply(["abab"]) == ["abab"]
    vocab = Vocab(Counter(units + bpe.all_units(plain.codes, "".join(counts))), 999)
    vocab.save(tmp_path / "vocab")
    assert Vocab.load(tmp_path / "vocab") == vocab
    dropped = bpe.MergeDropout(lines, 0.5, vocab)
    for key in "12345":
        assert BPE.undo(vocab.decode(dropped(vocab.encode(units), key))) == words


def test_words_of_one_character_have_no_merges() -> None:
    for counts in (Counter("abc"), Counter(), Counter({"a\rb": 3})):
        lines = bpe.learn(counts, 5)
        assert lines == ["#version: 0.2"] and bpe.BPE(lines).apply(["abc"]) == ["a@@", "b@@", "c"]


def test_cuts_are_those_of_subword_nmt() -> None:
    """On text without odd characters, in both versions of the format."""
    from subword_nmt.apply_bpe import BPE

    rng = random.Random(3)
    counts = Counter("".join(rng.choices("abcd", k=rng.randint(1, 8))) for _ in range(300))
    for version in ("0.1", "0.2"):
        lines = [f"#version: {version}", *bpe.learn(counts, 40)[1:]]
        theirs = BPE(io.StringIO("\n".join(lines) + "\n"))
        assert bpe.BPE(lines).apply(list(counts)) == theirs.segment_tokens(list(counts))


@pytest.mark.parametrize("line", ["#version: 0.3", "#version: ²", "#version:", "a", "a b c", ""])
def test_lines_that_are_no_codes_are_named(line: str) -> None:
    with pytest.raises(DataError, match="codes:1: "):
        bpe.BPE([line, "a b"], "codes")


def test_no_server_remembers_all_words_it_has_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.text.moses.CACHED_WORDS", 3)
    codes = BPE(["#version: 0.2", "w 1"])
    for number in range(10):
        assert codes.apply([f"w{number}"]) == codes.split(f"w{number}")
        assert len(codes.cache) <= 3


def test_bpe_there_and_back() -> None:
    counts = Counter({"low": 5, "lower": 2, "newest": 6, "widest": 3})
    codes = bpe.BPE(bpe.learn(counts, 4))
    units = codes.apply(["lowest", "newest"])
    assert len(units) > 2 and BPE.undo(units) == ["lowest", "newest"]
    assert BPE.undo(["a@@", "b", "c", "d@@"]) == ["ab", "c", "d"]


def test_first_merges_are_the_most_frequent_pairs() -> None:
    """`e s` and `s t` stand in newest (6) and widest (3): 9 times; of equals the larger pair comes first. The
    last letter holds the end."""
    counts = Counter({"low": 5, "lower": 2, "newest": 6, "widest": 3})
    assert bpe.learn(counts, 2)[1:] == ["s t</w>", "e st</w>"]


def test_bad_codes_are_named(tmp_path: Path) -> None:
    (tmp_path / "codes").write_text("#version: 0.2\na b\na b c\n")
    with pytest.raises(DataError, match="codes:3: 'a b c' is not two symbols"):
        bpe.load_codes(tmp_path / "codes")


def test_units_of_bpe_belong_to_words() -> None:
    numbers = bpe.BPE(["#version: 0.2"]).word_numbers
    assert numbers(["lo@@", "w@@", "er", "case", "x@@"]) == [0, 0, 0, 1, 2] and numbers([]) == []


# ---- test sentencepiece ------------------------------------------------------------------------------------
# What all SentencePiece models have in common: text comes back, the same text gives the same model.

# ---- test pieces -------------------------------------------------------------------------------------------
# What all SentencePiece models have in common: text comes back, the same text gives the same model.

KINDS = [Unigram, SentencePieceBPE]
PLAIN = LearnSettings(merges=0, pieces=0, byte_fallback=True, unicode="identity")


def text(lines: list[str]) -> TrainingText:
    found = TrainingText(sentences=True)
    for line in lines:
        found.add(line.split(" "))
    return found


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return [target for _, target in japanese(400)]


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.kind)
def model(request: pytest.FixtureRequest, lines: list[str]) -> Pieces:
    kind: type[Pieces] = request.param
    return kind.learn(text(lines), PLAIN)


def test_text_comes_back(model: Pieces, lines: list[str]) -> None:
    """Characters that the model never saw are bytes; full-width letters stay full-width; all units have an
    id."""
    inventory = set(model.inventory((), sampled=False))
    odd = ["Ａ ABC é 𠮷 \u3000", "a\rb \x85 \u2028c \xa0 <s> <unk>", "", "犬  は\t猫"]
    for line in [*lines, *odd]:
        words = line.replace("\t", " ").split(" ")
        units = model.apply([word for word in words if word])
        assert model.undo(units) == [word for word in words if word] and set(units) <= inventory
    assert max(len(model.apply([line])) for line in lines) < 20
    assert not model.processor.encode("") and model.apply([]) == []


def test_the_same_text_gives_the_same_model(model: Pieces, lines: list[str], tmp_path: Path) -> None:
    again = type(model).learn(text(lines), PLAIN)
    assert again.model == model.model
    model.save(tmp_path / "m.spm")
    assert (tmp_path / "m.spm").read_bytes() == model.model and is_model(model.model)
    assert kind_of_model(model.model) == model.kind


def test_learning_is_quiet(lines: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    Unigram.learn(text(lines), PLAIN)
    assert capfd.readouterr() == ("", "")


def test_units_belong_to_words(model: Pieces) -> None:
    words = ["犬は", "q\x85", "猫", "大きい犬は小さな猫を見る。"]
    units = model.apply(words)
    numbers = model.word_numbers(units)
    found = ["".join(unit for unit, at in zip(units, numbers, strict=True) if at == n) for n in range(4)]
    assert [Pieces.undo([*model.apply([word])]) for word in words] == [[word] for word in words]
    assert numbers == sorted(numbers) and set(numbers) == {0, 1, 2, 3}
    assert found[0].replace("▁", "") == words[0] and found[3].replace("▁", "") == words[3]
    assert model.word_numbers([]) == [] and model.word_numbers(["▁", "<0x0A>"]) == [0, 0]


def test_bytes_never_end_a_line() -> None:
    assert Pieces.undo(["▁a", "<0x0A>", "b", "<0x00>", "<0xE7>", "<0x8A>", "<0xAC>", "<0xE7>"]) == [
        "a",
        "b",
        "犬\ufffd",
    ]


def test_without_byte_fallback_a_rare_character_is_no_unit(lines: list[str]) -> None:
    model = Unigram.learn(text(lines), LearnSettings(0, 0, byte_fallback=False, unicode="identity"))
    assert "é" in model.apply(["犬é"]) and "é" not in model.inventory((), sampled=False)


def test_normalization_is_a_choice(lines: list[str]) -> None:
    """Full-width letters are lost with all but the default."""
    nfkc = Unigram.learn(text(lines), LearnSettings(0, 0, byte_fallback=True, unicode="nfkc"))
    assert Pieces.undo(nfkc.apply(["犬ＡＢＣ！"])) == ["犬ABC!"]


def test_the_number_of_pieces() -> None:
    """As many as asked for, with all bytes; by default few for little text; fewer than characters is told."""
    lines = [target for _, target in japanese(400)]
    size = len(Unigram.learn(text(lines), LearnSettings(0, 120, True, "identity")).pieces())
    assert size == 120 and default_size(text(lines)) < 300
    assert default_size(text(lines * 300)) > 2000
    with pytest.raises(ConfigError, match=r"^pieces: 5 is too small: the text has \d+ frequent characters"):
        Unigram.learn(text(lines), LearnSettings(0, 5, True, "identity"))


@pytest.mark.parametrize("kind", KINDS)
def test_little_text(kind: type[Pieces]) -> None:
    for few in (["a"], ["a b"], ["犬"] * 5):
        model = kind.learn(text(few), PLAIN)
        assert Pieces.undo(model.apply(["犬", "b"])) == ["犬", "b"]
    for none in ([], ["", ""]):
        with pytest.raises(DataError, match="no words"):
            kind.learn(text(none), PLAIN)


def test_damaged_models_are_named(model: Pieces) -> None:
    for damaged in (model.model[:200], b"", b"\n\0abc"):
        with pytest.raises(DataError, match=r"m\.spm: .*SentencePiece model"):
            type(model)(damaged, "m.spm")


# ---- test unigram ------------------------------------------------------------------------------------------
# Cuts are drawn from p(cut) ** alpha.


def cuts(word: str) -> list[list[str]]:
    """Every way to cut a word."""
    found = []
    for ends in itertools.product([False, True], repeat=len(word) - 1):
        places = [0, *(at for at, end in enumerate(ends, 1) if end), len(word)]
        found.append([word[a:b] for a, b in itertools.pairwise(places)])
    return found


@pytest.mark.ci
def test_cuts_have_their_probability() -> None:
    """20,000 draws against the sum over all cuts, by hand."""
    scores = {"a": -2.0, "b": -2.5, "ab": -3.0, "ba": -3.5, "aba": -5.0}
    vocab = Vocab(dict.fromkeys(scores, 1), 9)
    for alpha in (0.0, 0.5, 1.0):
        weights = {
            tuple(cut): math.exp(alpha * sum(scores[piece] for piece in cut))
            for cut in cuts("abab")
            if all(piece in scores for piece in cut)
        }
        total, draw = sum(weights.values()), random.Random(1)
        resegment = UnigramSampler(scores, alpha, vocab)
        found = Counter(tuple(resegment.split("abab", draw)) for _ in range(20000))
        assert set(found) == set(weights)
        for cut, weight in weights.items():  # 5 standard deviations are 0.018 at most
            assert abs(found[cut] / 20000 - weight / total) < 0.018


def test_draws_keep_the_text_and_follow_their_key() -> None:
    """The same key cuts alike, whatever was cut before; others differ; a high alpha is the best cut; unknown
    units and bytes stay."""
    lines = [target for _, target in japanese(400)]
    model = Unigram.learn(text(lines), LearnSettings(0, 250, True, "identity"))
    vocab = Vocab(dict.fromkeys(model.inventory((), True), 1), 9999)
    sample = model.sampler(0.05, vocab)
    ids = vocab.encode(model.apply([lines[0] + "é", lines[1]]))
    drawn = [sample(ids, f"1 2 {row}") for row in range(30)]
    assert all(model.undo(vocab.decode(one)) == [lines[0] + "é", lines[1]] for one in drawn)
    assert len({tuple(one) for one in drawn}) > 20
    assert model.sampler(0.05, vocab)(ids, "1 2 7") == drawn[7] == sample(ids, "1 2 7")
    assert model.sampler(50.0, vocab)(ids, "x") == ids
    assert sample([UNK, UNK], "x") == [UNK, UNK] and sample([], "x") == []


# ---- test sentencepiece bpe --------------------------------------------------------------------------------
# BPE dropout on SentencePiece's merges.


def test_dropped_merges_keep_the_text_and_follow_their_key() -> None:
    """Rate 0 is the library's own cut, of blank-separated text too; a rate near 1 leaves characters."""
    lines = [line for pair in japanese(400) for line in pair]
    model = SentencePieceBPE.learn(text(lines), LearnSettings(0, 200, True, "identity"))
    vocab = Vocab(dict.fromkeys(model.inventory((), True), 1), 9999)
    whole, none = model.sampler(0.0, vocab), model.sampler(1.0, vocab)
    for line in lines:
        ids = vocab.encode(model.apply(line.split(" ")))
        assert whole(ids, line) == ids
        assert vocab.decode(none(ids, line)) == list("".join(vocab.decode(ids)))
    sample = model.sampler(0.3, vocab)
    ids = vocab.encode(model.apply(["犬é" + lines[1], *lines[0].split(" ")]))
    drawn = [sample(ids, f"1 {row}") for row in range(30)]
    assert all(model.undo(vocab.decode(one)) == model.undo(vocab.decode(ids)) for one in drawn)
    assert len({tuple(one) for one in drawn}) > 20 and sample(ids, "1 7") == drawn[7]
    assert sample([UNK], "x") == [UNK]


def test_without_dropout_the_cut_is_the_library_s() -> None:
    """Of random letters, where it matters which of several pairs is merged first."""
    draw = random.Random(5)
    lines = ["".join(draw.choices("aab ", k=draw.randint(1, 60))).strip() or "a" for _ in range(400)]
    model = SentencePieceBPE.learn(text(lines), LearnSettings(0, 60, True, "identity"))
    vocab = Vocab(dict.fromkeys(model.inventory((), True), 1), 9999)
    whole = model.sampler(0.0, vocab)
    for line in lines:
        ids = vocab.encode(model.apply(line.split()))
        assert whole(ids, line) == ids


# ---- test init ---------------------------------------------------------------------------------------------
# Files of subwords are known by their content.


def test_a_file_says_what_it_is(tmp_path: Path) -> None:
    lines = [target for _, target in japanese(100)]
    models = [
        kind.learn(text(lines), LearnSettings(0, 0, True, "nfkc")) for kind in (Unigram, SentencePieceBPE)
    ]
    every: list[Subwords] = [bpe.BPE(["#version: 0.2", "a b"]), *models]
    for made in every:
        made.save(tmp_path / "file")
        found = subwords.load(tmp_path / "file")
        assert type(found) is type(made) and subwords.file_kind(tmp_path / "file") == made.kind
        assert found.apply([lines[0]]) == made.apply([lines[0]])


def test_a_model_of_another_type_is_named(tmp_path: Path) -> None:
    """A model that the library made of whole words is none of ours."""
    from sentencepiece import SentencePieceTrainer

    SentencePieceTrainer.train(
        sentence_iterator=iter(["a b", "b c"] * 9), model_prefix=str(tmp_path / "m"), model_type="word",
        vocab_size=9, hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    with pytest.raises(DataError, match=r"m\.model: is a SentencePiece model of word units"):
        subwords.load(tmp_path / "m.model")


def test_a_vocabulary_is_no_file_of_codes(tmp_path: Path) -> None:
    """As `subword-nmt learn-joint-bpe-and-vocab --write-vocabulary` writes it: each line is two symbols."""
    (tmp_path / "vocab").write_text("the 31\ner@@ 12\ncat 12\n")
    with pytest.raises(DataError, match="vocab: is a vocabulary of subword-nmt"):
        subwords.load(tmp_path / "vocab")
    (tmp_path / "codes").write_text("1 2\n3 4\n")
    assert subwords.load(tmp_path / "codes").apply(["12"]) == ["12"]


def test_text_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("\nan empty line, then words\n")
    with pytest.raises(DataError, match="text:1: "):
        subwords.load(tmp_path / "text")


# ---- test protocol -----------------------------------------------------------------------------------------
# What is remembered of a training text.


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


# ---- test spelling -----------------------------------------------------------------------------------------
# What units add to a text, and where words begin and end.


@pytest.mark.parametrize(
    ("text", "raw", "expected"),
    [
        ("lo", False, "lo"),
        ("low er ", False, "low|er|"),
        (" l'eau.", False, "|l'eau."),
        (" l'eau.", True, "|l|'|eau|.|"),
        ("  a  b ", True, "|a|b|"),
        ("熱泵 ok", True, "|熱|泵|ok"),
        ("e\u0301te\u0301", True, "e\u0301te\u0301"),
        (byte_letter(0xC3) + byte_letter(0xA9) + "a", True, byte_letter(0xC3) + byte_letter(0xA9) + "a"),
        ("", True, ""),
    ],
)
def test_boundaries(text: str, raw: bool, expected: str) -> None:
    assert mark_boundaries(text, raw).replace(BOUNDARY, "|") == expected


def test_parts_make_the_whole() -> None:
    """Joined parts have the boundaries of the whole, but for those that several parts give."""
    for text in ("It's a (small) 3.5 熱泵 dog.", "l'eau  x"):
        for cut in range(len(text) + 1):
            parts = mark_boundaries(text[:cut], True) + mark_boundaries(text[cut:], True)
            assert spelling.BLANKS.sub(BOUNDARY, parts) == mark_boundaries(text, True)


def test_words_of_two_units() -> None:
    """Where words go on, as the kinds of units themselves number them."""
    units = ["<s>", "</s>", "<unk>", "lo@@", "wer", "case"]
    joints = spelling.make_spelling([BPE.spell(unit) for unit in units], raw=False).joints
    for one in (3, 4, 5):
        for other in (3, 4, 5):
            same = BPE([]).word_numbers([units[one], units[other]]) == [0, 0]
            assert joints.inside([one, other], 1) == same
    pieces = ["<s>", "</s>", "<unk>", "▁lo", "wer", "▁", ".", "<0xC3>"]
    joints = spelling.make_spelling([Unigram.spell(piece) for piece in pieces], raw=True).joints
    inside = {(one, other) for one in range(3, 8) for other in range(3, 8) if joints.inside([one, other], 1)}
    assert inside == {(3, 4), (4, 4), (3, 7), (4, 7), (7, 7), (7, 4)}
    assert not joints.inside([3, 4], 0) and not joints.inside([3, 4], 2) and not joints.inside([3, 2], 1)


def test_columns_are_the_texts() -> None:
    texts = ["", "", "", "ab ", "c", "def  "]
    made = spelling.make_spelling(texts, raw=False)
    rows: dict[int, str] = dict.fromkeys(range(len(texts)), "")
    for codes in made.columns.codes:
        for unit, code in zip(made.columns.order.tolist(), codes.tolist(), strict=False):
            rows[unit] += chr(code)
    assert list(rows.values()) == made.texts
