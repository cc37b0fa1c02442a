"""The text pipeline of one language."""

from collections import Counter
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError
from nmt.runs.run import LineLengths
from nmt.text import truecase
from nmt.text.pipeline import SideConfig, TextPipeline, check_tag, subword_kind, without_tag
from nmt.text.subwords import LearnSettings, TrainingText, bpe
from nmt.text.subwords.sentencepiece import Unigram
from nmt.text.tokenize import Tokenizer
from nmt.text.vocab import UNK, Vocab
from tests.spaceless import japanese

# ---- test pipeline -----------------------------------------------------------------------------------------

FRENCH = "L'homme n'a pas « vu » les enfants, aujourd'hui."


def test_a_saved_pipeline_is_the_same(tmp_path: Path) -> None:
    config = SideConfig(language="fr", case="truecase")
    tokenizer = Tokenizer("fr", case="truecase")
    tokenizer.truecaser = truecase.Truecaser([{"les": 3, "Les": 1}])
    pipeline = TextPipeline(tokenizer, bpe.BPE(bpe.learn(Counter(["les", "les", "lesté"]), 2)))
    pipeline.save(tmp_path, "source")
    again = TextPipeline.load(tmp_path, "source", config)
    assert (
        again.units("Les lestés.") == pipeline.units("Les lestés.") == ["les", *pipeline.cut(["lestés"]), "."]
    )
    assert again.text(again.units("Les lestés.")) == "Les lestés."


def test_tokenized_skips_all_but_subwords() -> None:
    pipeline = TextPipeline(Tokenizer("en"), bpe.BPE(["#version: 0.2", "a b</w>"]))
    tokenized = pipeline.for_text(tokenized=True)
    assert tokenized.units("Ab ab x'y") == ["A@@", "b", "ab", "x@@", "'@@", "y"]
    assert tokenized.text(["a@@", "b", "."]) == "ab ." and pipeline.text(["a@@", "b", "."]) == "ab."
    assert tokenized.for_text(tokenized=False).units("Ab, ab") == pipeline.units("Ab, ab")


def test_unit_counts_are_those_of_the_text() -> None:
    pipeline = TextPipeline(Tokenizer("en"), bpe.BPE(["#version: 0.2", "a b</w>"]))
    words = ["ab", "b", "cab", "ab"]
    assert pipeline.unit_counts(Counter(words)) == Counter(pipeline.cut(words))


def test_escapes_of_moses_are_undone_and_put_back() -> None:
    pipeline = TextPipeline.of(SideConfig(tokenize=False, normalize=False, case="keep", escaped=True))
    line = "l&apos; homme &quot; &amp; &#124; a"
    assert (
        pipeline.words(line) == ["l'", "homme", '"', "&", "|", "a"]
        and pipeline.text(pipeline.units(line)) == line
    )
    assert pipeline.for_text(tokenized=True).text(pipeline.units(line)) == line
    assert (
        TextPipeline.of(SideConfig(tokenize=False, normalize=False, case="keep")).words(line)[0] == "l&apos;"
    )


def test_languages_without_blanks_have_sentencepiece(tmp_path: Path) -> None:
    """Unless a file or a setting says otherwise; what it reads is neither tokenized nor normalized."""
    bpe.BPE(["#version: 0.2", "a b</w>"]).save(tmp_path / "codes")
    learned = TrainingText(sentences=True)
    for source, target in japanese(50):
        learned.add([source, target])
    unigram = Unigram.learn(learned, LearnSettings(0, 0, True, "identity"))
    unigram.save(tmp_path / "spm")
    codes, model = str(tmp_path / "codes"), str(tmp_path / "spm")
    kinds = {
        "ja": "unigram",
        "zh": "unigram",
        "th": "unigram",
        "zh-TW": "unigram",
        "en": "none",
        "ko": "none",
    }
    assert {language: subword_kind(SideConfig(language)) for language in kinds} == kinds
    assert [subword_kind(SideConfig(language), merges=9) for language in ("en", "ja")] == ["bpe", "unigram"]
    for config, merges, kind in (
        (SideConfig("ja", codes=codes), 0, "bpe"),
        (SideConfig("ja", subword="bpe"), 9, "bpe"),
        (SideConfig("en", codes=model), 0, "unigram"),
        (SideConfig("en", subword="unigram"), 0, "unigram"),
        (SideConfig("ja", characters=True), 0, "none"),
        (SideConfig("ja", subword="none"), 0, "none"),
    ):
        assert subword_kind(config, merges) == kind, config
    line = "「ＡＢＣ」は 犬--が..好き’です"
    for pipeline in (
        TextPipeline.of(SideConfig("en", case="keep", codes=model)),
        TextPipeline.of(SideConfig("ja", case="keep", codes=model)),
    ):
        assert pipeline.text(pipeline.units(line)) == line == " ".join(pipeline.words(line))
        pipeline.save(tmp_path, "source")
        again = TextPipeline.load(tmp_path, "source", SideConfig("ja", case="keep"))
        assert again.units(line) == pipeline.units(line) and again.text(again.units(line)) == line
    lower = TextPipeline.of(SideConfig("ja", case="lower", codes=model))
    assert lower.text(lower.units("犬はDog")) == "犬はdog"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            SideConfig("en", subword="unigram", case="truecase"),
            "case: truecase needs words, and SentencePiece reads raw text",
        ),
        (SideConfig("en", subword="bpe"), "subword: bpe needs data.bpe_merges, or a file of codes"),
        (SideConfig("en", subword="unigram", characters=True), "exclude each other"),
    ],
)
def test_contradictions_are_told(config: SideConfig, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TextPipeline.of(config)


def test_codes_of_another_kind_are_told(tmp_path: Path) -> None:
    bpe.BPE(["#version: 0.2", "a b</w>"]).save(tmp_path / "codes")
    for subword in ("unigram", "none"):
        with pytest.raises(ConfigError, match=f"codes: holds bpe units, but subword is '{subword}'"):
            TextPipeline.of(SideConfig("en", codes=str(tmp_path / "codes"), subword=subword))


def test_who_asks_for_a_segmentation_gets_words() -> None:
    """Else SentencePiece reads the raw text of these languages."""
    assert subword_kind(SideConfig("ja")) == subword_kind(SideConfig("ja"), 100) == "unigram"
    segmented = SideConfig("ja", segment="character")
    assert (subword_kind(segmented), subword_kind(segmented, 100)) == ("none", "bpe")
    pipeline = TextPipeline.of(segmented)
    assert pipeline.units("私はSony製") == ["私", "は", "Sony", "製"]
    assert pipeline.text(pipeline.units("私はSony製")) == "私はSony製"


def test_a_run_without_subwords_stays_so(tmp_path: Path) -> None:
    """Whole words of a language without blanks, as version 0.5 trained: what the run holds counts."""
    pipeline = TextPipeline.load(tmp_path, "target", SideConfig("ja", case="keep"))
    assert pipeline.subwords is None and pipeline.units("犬が、好き。") == Tokenizer("ja", case="keep").words(
        "犬が、好き。"
    )


# ---- test tags ---------------------------------------------------------------------------------------------
# Tags: whole in every pipeline, known to vocabularies, refused where a run does not know them.

TAGS = ("<bt>", "<2fr>")


def tagged_pipelines() -> dict[str, TextPipeline]:
    """Whole words, BPE and SentencePiece."""
    learned = TrainingText(sentences=True)
    for _ in range(50):
        learned.add(["the cats see", "a dog"])
    pieces = Unigram.learn(learned, LearnSettings(0, 30, True, "identity"))
    codes = bpe.BPE(["#version: 0.2", "t h", "< b"])
    found = {
        "words": TextPipeline.with_subwords(SideConfig("en", case="lower"), None, False),
        "bpe": TextPipeline.with_subwords(SideConfig("en"), codes, False),
        "unigram": TextPipeline.with_subwords(SideConfig("en"), pieces, True),
    }
    for one in found.values():
        one.tags = TAGS
    return found


@pytest.mark.parametrize("kind", ["words", "bpe", "unigram"])
def test_a_tag_is_a_unit_of_its_own_in_front_of_the_same_line(kind: str) -> None:
    one = tagged_pipelines()[kind]
    for line in ("the cats see", "the dog, <i>and</i> a cat", "x <bt> y"):
        for reader in (one, one.for_text(tokenized=True)):
            plain = reader.units(line)
            for given in (f"<2fr> {line}", f" <2fr>\t{line}", f"<2fr>{line}"):
                assert reader.units(given) == ["<2fr>", *plain]
            numbers = one.word_numbers(["<2fr>", *plain])
            assert numbers[0] == 0 and numbers[1:] == [number + 1 for number in one.word_numbers(plain)]
            assert one.join(["<2fr>", *plain]) == ["<2fr>", *one.join(plain)]
    assert one.units("<de> a")[0] != "<de>"


@pytest.mark.parametrize("kind", ["words", "bpe", "unigram"])
def test_a_tag_alone_is_an_empty_line(kind: str) -> None:
    for line in ("", "<bt>", " <bt> ", "\t"):
        assert tagged_pipelines()[kind].units(line) == []


def test_without_tags_nothing_changes() -> None:
    one = tagged_pipelines()["words"]
    one.tags = ()
    assert one.split_tag("<bt> a") == ("", "<bt> a") and one.units("<bt> a") == ["<", "bt", ">", "a"]


def test_vocabularies_never_drop_them(tmp_path: Path) -> None:
    plain = Vocab(Counter(a=5, b=4, c=3), 2)
    vocab = plain.with_tags(TAGS)
    assert vocab.words == ["<s>", "</s>", "<unk>", "<bt>", "<2fr>", "a", "b"] and vocab.word_count == 2
    assert vocab.encode(["<2fr>", "a", "c"]) == [4, 5, UNK] and vocab.decode([4, 5]) == ["<2fr>", "a"]
    assert vocab.coverage() == plain.coverage() and plain.with_tags(()) is plain
    assert Vocab({"<bt>": 9, "a": 1}, 2).with_tags(TAGS).words[3:] == ["<bt>", "<2fr>", "a"]  # from a file
    vocab.save(tmp_path / "tagged")
    plain.save(tmp_path / "plain")
    assert (tmp_path / "tagged").read_text() == (tmp_path / "plain").read_text()
    assert Vocab.load(tmp_path / "tagged").with_tags(TAGS) == vocab


def test_the_parts_of_a_long_line_have_its_tag() -> None:
    one = TextPipeline.of(SideConfig(tokenize=False, normalize=False))
    one.tags = TAGS
    lengths = LineLengths([one.for_text(tokenized=True)], 5)
    assert lengths.parts("<bt> a b . c d", lengths.limit(3)) == ["<bt> a b .", "<bt> c d"]
    assert lengths.parts("<bt> a", lengths.limit(3)) == ["<bt> a"]


def test_a_tag_that_the_run_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("a\n<bt> b\n")
    source = tagged_pipelines()["words"]
    with pytest.raises(
        ConfigError, match=r"^--tag <x>: run@5 was not trained with it; its tags: <bt>, <2fr>$"
    ):
        check_tag("<x>", [("run@5", source)], str(path))
    with pytest.raises(DataError, match=r"text:2: begins with <bt>"):
        check_tag("<2fr>", [("run@5", source)], str(path))
    source.tags = ()
    with pytest.raises(ConfigError, match="its tags: none"):
        check_tag("<bt>", [("run@5", source)], str(path))


def test_alignments_count_the_words_of_the_line() -> None:
    assert list(without_tag([(0, 0), (1, 0), (3, 2)])) == [(0, 0), (2, 2)]
