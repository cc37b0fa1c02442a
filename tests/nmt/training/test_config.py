"""The settings of a training."""

from dataclasses import replace
from pathlib import Path

import pytest

from nmt.cli import train
from nmt.data.corpus import CorpusConfig, DataConfig
from nmt.errors import ConfigError
from nmt.lm.cslm import CSLMConfig
from nmt.text.pipeline import SideConfig
from nmt.training import config_file
from nmt.training.config import FREE_KEYS, RunConfig, check_languages, describe_languages, get_value
from nmt.training.config_file import from_mapping, load

# ---- run config --------------------------------------------------------------------------------------------
# Keys of a configuration that may differ when a run is resumed: they are there, and reach their value.


@pytest.mark.parametrize("key", sorted(FREE_KEYS))
def test_free_keys_are_keys(key: str) -> None:
    get_value(RunConfig(), key)


def test_a_dotted_key() -> None:
    config = RunConfig(seed=7)
    config.data.source.language = "de"
    assert get_value(config, "seed") == 7 and get_value(config, "data.source.language") == "de"
    assert get_value(config, "training") is config.training
    with pytest.raises(AttributeError):
        get_value(config, "data.sauce")


# ---- combinations ------------------------------------------------------------------------------------------
# Settings of different sections that exclude each other are refused, with the place of the key.


def test_messages_have_the_line_of_the_key(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "run: r\nlm: {type: cslm, output: learned-tree}\ntraining: {ema: 0.99}\n"
    )
    with pytest.raises(
        ConfigError, match=r"c\.yaml:3: training\.ema: cannot be combined with lm\.output: learned-tree"
    ):
        load(str(tmp_path / "c.yaml"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"training": {"label_smoothing": 0.1}, "model": {"output": "nce"}},
            r"training\.label_smoothing: cannot be combined with model\.output: nce",
        ),
        ({"model": {"output": "classes", "tied": "target"}}, r"model\.tied: cannot be .*\.output: classes"),
        ({"model": {"output_class_count": 5}}, r"model\.output_class_count: not used with output: softmax"),
        (
            {"training": {"guided_alignment": 0.1}, "model": {"type": "rnn"}},
            r"training\.guided_alignment: rnn has no attention over the source here; set model\.attention",
        ),
        ({"training": {"guided_alignment": 0.1}, "model": {"type": "joint"}}, "joint has no attention"),
        (
            {"training": {"guided_alignment": 0.1}, "lm": {"type": "cslm"}},
            "a language model has no attention",
        ),
        (
            {"data": {"source_vectors": "v"}, "model": {"source_words": "characters"}},
            r"data\.source_vectors: rnn has no table of source word vectors",
        ),
        (
            {"data": {"target_vectors": "v"}, "lm": {"type": "characters"}},
            "characters has no table of target",
        ),
        (
            {"data": {"source_vectors": "v"}, "lm": {"type": "cslm"}},
            "cslm has no table of source word vectors",
        ),
        (
            {
                "data": {"source_vectors": "v", "target_vectors": "v"},
                "model": {"type": "transformer", "tied": "all"},
            },
            r"data\.source_vectors: model\.tied: all has one table",
        ),
        (
            {"data": {"target_vectors": "v"}, "training": {"freeze_vectors": "both"}},
            r"training\.freeze_vectors: both needs data\.source_vectors",
        ),
    ],
    ids=str,
)
def test_refused_settings(content: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_mapping({"run": "r", **content})


def test_what_goes_together_is_accepted() -> None:
    guided = {"guided_alignment": 0.1, "ema": 0.9}
    from_mapping({"run": "r", "training": guided, "model": {"type": "transformer"}})
    from_mapping({"run": "r", "training": guided, "model": {"attention": 5}, "data": {"source_vectors": "v"}})


# ---- side languages ----------------------------------------------------------------------------------------
# No text is read by the rules of another language than its own.


def found(**data: object) -> tuple[str, str]:
    """What becomes of the languages of two sides."""
    config = RunConfig(run="r", data=DataConfig(**data))  # type: ignore[arg-type]
    config_file.check_config(config)
    check_languages(config)
    return config.data.source.language, config.data.target.language


def tokenized() -> SideConfig:
    return SideConfig(normalize=False, tokenize=False)


def test_the_files_say_the_languages() -> None:
    assert found(train_source="a/train.de", train_target="train.tok.cs.gz") == ("de", "cs")
    assert found(train_source="src", train_target="tgt", dev_source="d.ja", dev_target="d.en") == ("ja", "en")
    assert found(phrase_table="table.gz", dev_source="d.de", dev_target="d.en") == ("de", "en")


def test_the_configuration_wins() -> None:
    sides = {"source": SideConfig("de"), "target": SideConfig("en")}
    assert found(train_source="train.en", train_target="ref", **sides) == ("de", "en")


@pytest.mark.parametrize("source", ["train", "train.src", "train.zz"])
def test_a_language_that_nobody_says_is_asked_for(source: str) -> None:
    with pytest.raises(ConfigError, match=rf"^data\.source\.language: missing, and {source} does not end in"):
        found(train_source=source, train_target="train.fr", dev_source=f"dev/{source}")
    with pytest.raises(ConfigError, match=f"missing, and {source}, dev do not end in the code"):
        found(train_source=source, train_target="train.fr", dev_source="dev")
    with pytest.raises(ConfigError, match=r"^data\.target\.language: missing, and table\.gz"):
        found(phrase_table="table.gz", source=tokenized())
    with pytest.raises(ConfigError, match=r"^data\.target\.language: 'zz' is unknown"):
        found(train_source="train.en", train_target="t", target=SideConfig("zz"))


def test_corpora_of_a_list_say_it_unless_they_differ() -> None:
    def corpora(*pairs: str) -> list[CorpusConfig]:
        return [CorpusConfig(source=f"a.{pair[:2]}", target=f"b.{pair[2:]}") for pair in pairs]

    assert found(corpora=corpora("enfr", "enfr")) == ("en", "fr")
    assert found(corpora=corpora("enfr", "ende"), target=SideConfig("de")) == ("en", "de")
    assert found(corpora=corpora("enfr", "ende"), target=SideConfig(subword="unigram")) == ("en", "")
    with pytest.raises(
        ConfigError, match=r"^data\.target\.language: missing, and .* languages, de, fr; set it"
    ):
        found(corpora=corpora("enfr", "ende"))


def test_tokenized_text_needs_none() -> None:
    sides = {"source": tokenized(), "target": tokenized()}
    assert found(train_source="train", train_target="train.fr", **sides) == ("", "fr")


def test_a_language_model_has_one_language() -> None:
    config = RunConfig(run="r", data=DataConfig(train_text="text.fr"), lm=CSLMConfig(type="cslm"))
    config_file.check_config(config)
    check_languages(config)
    assert (config.data.source.language, config.data.target.language) == ("", "fr")
    assert describe_languages(config) == "fr"


@pytest.mark.ci
def test_the_language_is_refused_before_a_run_is_made_and_stored_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("train.de", "train.txt"):
        (tmp_path / name).write_text("a b\nb a\n" * 5)
    text = "run: run\ndata: {train_source: train.de, train_target: train.txt}\ntraining: {max_steps: 1}\n"
    (tmp_path / "c.yaml").write_text(text + "model: {embedding: 2, hidden: 2, maxout: 2}\n")
    assert train.main(["c.yaml"]) == 2
    message = capsys.readouterr().err
    assert "data.target.language: missing" in message and message.count("\n") == 1
    assert not (tmp_path / "run").exists()
    for _ in range(2):  # the second time it is resumed
        assert train.main(["c.yaml", "data.target.language=en"]) == 0
    assert capsys.readouterr().err.count("languages: de -> en") == 1
    stored = config_file.read_run_config(tmp_path / "run").data
    assert (stored.source.language, stored.target.language, stored.source.case) == ("de", "en", "keep")


def test_scripts_without_spaces_have_no_case_to_learn() -> None:
    """The preset small asks for truecase, which SentencePiece, the default for Japanese, refuses."""
    side = SideConfig(case="truecase")
    data = DataConfig(train_source="train.en", train_target="train.ja", source=side, target=replace(side))
    config = RunConfig(run="r", data=data)
    config_file.check_config(config)
    assert (config.data.source.case, config.data.target.case) == ("truecase", "keep")
    config.data.target = SideConfig("ja", case="truecase", segment="none")  # as version 0.5 stored it
    config_file.check_config(config)
    assert config.data.target.case == "truecase"


def test_a_segmentation_that_a_side_cannot_have_is_named_by_its_key() -> None:
    for side, message in (
        (SideConfig("en", segment="word"), "needs a dictionary"),
        (SideConfig("ja", segment="character", tokenize=False), "set tokenize: true"),
        (SideConfig("ja", segment="character", subword="unigram"), "is a part of tokenization"),
    ):
        with pytest.raises(ConfigError, match=rf"^data\.source\.segment: .*{message}"):
            found(train_source="s", train_target="t.fr", source=side)
