"""nmt-init: what it prints, what it writes, what it refuses."""

import gzip
from pathlib import Path

import pytest

from nmt.cli import export, init, train, translate
from nmt.models.transformer import TransformerConfig
from nmt.training import config_file
from nmt.training.cost import Cost

EN = [f"The man number {number} sleeps in the house of a dog." for number in range(60)]
FR = [f"L'homme numéro {number} dort dans la maison d'un chien." for number in range(60)]


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, lines in (("train.en", EN), ("train.fr", FR), ("dev.en", EN[:9]), ("dev.fr", FR[:9])):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    return tmp_path


TRAIN = ["-s", "train.en", "-t", "train.fr", "-q"]
DEV = ["--dev-source", "dev.en", "--dev-target", "dev.fr"]


def test_a_development_set_is_held_out(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert init.main(["new", *TRAIN, "--no-measure"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(
        "train.en: 60 lines; Latin script, probably en; 11.0 words a line (half up to 11,"
    )
    assert "\n3 pairs are held out as a development set; the others are the training text\n" in printed
    assert printed.endswith("\nwrote new/config.yaml\nnext: nmt-train new, then nmt-translate new\n")
    assert sorted(path.name for path in Path("new").iterdir()) == [
        "config.yaml", "dev.en", "dev.fr", "train.en", "train.fr",
    ]  # fmt: skip
    assert len(Path("new/dev.fr").read_text().splitlines()) == 3
    assert train.main(["new/config.yaml", "--print-config", "-q"]) == 0
    assert "train_source: new/train.en\n" in capsys.readouterr().out


def test_a_given_development_set(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing but the configuration is written; pairs that the training text has are named."""
    assert init.main(["above/new", *TRAIN, *DEV, "--no-measure"]) == 0
    assert "  pairs that are also in the training text: 9; validation scores" in capsys.readouterr().out
    assert [path.name for path in Path("above/new").iterdir()] == ["config.yaml"]
    text = Path("above/new/config.yaml").read_text()
    assert "\nrun: above/new/en-fr\n" in text and "\n  dev_target: dev.fr\n" in text


def test_the_working_folder_stays_the_same_folder(texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a run without known languages is named after it."""
    (texts / "new").mkdir()
    monkeypatch.chdir(texts / "new")
    for side, word in (("source", "zqx"), ("target", "wvk")):
        (texts / side).write_text("".join(f"{word} {chr(97 + n % 26) * (n + 1)}\n" for n in range(50)))
    given = ["-s", "../source", "-t", "../target", "-q", "--no-measure"]
    assert init.main([".", *given]) == 0
    assert "\nrun: ./new\n" in Path("config.yaml").read_text() and Path("dev.target").exists()
    assert sorted(path.name for path in texts.iterdir() if path.name.startswith("new")) == ["new"]


def test_languages_and_packed_files(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names that say no language: what the words look like; an option decides over both."""
    for name, lines in (("source.gz", EN), ("target", FR)):
        text = ("\n".join(lines) + "\n").encode()
        Path(name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    given = ["-s", "source.gz", "-t", "target", "-q", "--no-measure"]
    assert init.main(["one", *given]) == 0 and init.main(["two", *given, "--target-language", "ca"]) == 0
    assert "    language: en\n" in Path("one/config.yaml").read_text()
    assert "    language: ca  # the text: Latin script, probably fr\n" in Path("two/config.yaml").read_text()
    assert gzip.decompress(Path("one/train.en.gz").read_bytes()).count(b"\n") == 57
    assert Path("two/dev.ca").exists()
    assert "\nrun: two/en-ca\n" in Path("two/config.yaml").read_text()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["full", *TRAIN], "full: exists"),
        (["full", "--sample-corpus"], "full: exists"),
        (["new", *TRAIN, "--sample-corpus"], "--source: cannot be combined with --sample-corpus"),
        (["new", "--minutes", "3", "--sample-corpus"], "--minutes: cannot be combined with --sample-corpus"),
        (["train.en/new", "--sample-corpus"], "train.en/new: cannot write: Not a directory"),
        (["train.en/new", *TRAIN], "train.en/new: cannot write: Not a directory"),
        (["new", *TRAIN, "--dev-source", "dev.en"], "--dev-source, --dev-target: give both or neither"),
        (["new", *TRAIN, "--source-language", "xx"], "--source-language: 'xx' is unknown"),
        (["new", *TRAIN, "--preset", "tiny"], "--preset tiny: unknown, expected one of large"),
        (["new", *TRAIN, "--fast", "--preset", "small"], "--fast: is the preset transformer-small; leave"),
        (["new", "-s", "-", "-t", "train.fr"], "<stdin>: expected a file; it is read more than once"),
        (["new", "-s", "none", "-t", "train.fr"], "none: cannot read: No such file"),
        (["new", "-s", "dev.en", "-t", "train.fr"], "dev.en, train.fr: 1 of the findings above would stop"),
        (["new", "-s", "bad.en", "-t", "train.fr"], "bad.en, train.fr: 2 of the findings above would stop"),
        (["new", "-s", "dev.en", "-t", "dev.fr"], "9 pairs without faults and repetitions, too few"),
    ],
)
def test_refusals(argv: list[str], message: str, texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("full").mkdir()
    Path("full/file").touch()
    Path("bad.en").write_bytes(b"caf\xe9\n")
    before = sorted(texts.rglob("*"))
    assert init.main([*argv, "--no-measure"]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1
    assert sorted(texts.rglob("*")) == before
    if "bad.en" in argv:
        assert "ERROR: lines that cannot be read: 1\n      bad.en:1: byte 0xe9 at column 4" in captured.out


@pytest.mark.ci
def test_what_training_costs_and_that_it_begins(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole way, as its last line says, with the limits of a test."""
    assert init.main(["new", *TRAIN]) == 0
    printed = capsys.readouterr().out
    assert " seconds per thousand target words or subwords, measured over " in printed
    assert "\nplanned: 16 epochs, 16 updates and 16 validations of about " in printed
    limits = ["training.max_steps=1", "training.dev_beam=0", "training.metric=cost", "model.hidden=8"]
    assert train.main(["new", *limits, "-q"]) == 0
    assert Path("new/en-fr/step-1.pt").exists()
    capsys.readouterr()
    text = Path("text")
    text.write_text("The man sleeps.\n")
    assert translate.main(["new", "-q", "-i", "text", "-o", "out", "--max-length", "3"]) == 0
    assert len(Path("out").read_text().splitlines()) == 1
    assert translate.main(["new", "-q", "-i", "text", "--checkpoint", "99"]) == 2
    assert "new/en-fr: has no checkpoint of update 99; it has those of 1 " in capsys.readouterr().err


def test_a_run_that_is_not_trained_yet(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert init.main(["new", *TRAIN, "--no-measure"]) == 0
    assert translate.main(["new", "-q", "-i", "train.en"]) == 2
    assert "no run yet; train it: nmt-train new\n" in capsys.readouterr().err


def test_fast(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A Transformer, which nmt-export takes, and the command that follows the training."""
    assert init.main(["new", *TRAIN, *DEV, "--fast", "--no-measure"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("fast: then nmt-export new --format ctranslate2 --quantization int8 --output ")
    config = config_file.load("new/config.yaml")
    assert (
        isinstance(config.model, TransformerConfig)
        and config.model == config_file.from_mapping({"run": "x"}, "transformer-small").model
    )
    export.parser().parse_args(last.split(": then nmt-export ")[1].split(",")[0].split())


def test_minutes(texts: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer epochs than the preset has, and a warm-up that fits into them."""
    monkeypatch.setattr("nmt.training.cost.measure", lambda config, *others: Cost(
        device="cpu", parameters=7, updates=5, units=1000, seconds=10.0, validation_seconds=20.0,
        epoch_updates=10.0, epoch_units=4000.0, validate_every=config.training.validate_every,
        epochs=config.training.max_epochs, minutes=config.training.max_minutes,
    ))  # fmt: skip
    for preset in ("small", "transformer-small"):
        assert init.main([preset, *TRAIN, "--minutes", "8", "--preset", preset]) == 0
        # 460 seconds without the last validation, 40 an epoch and 20 its validation
        assert "planned: 7.67 of " in capsys.readouterr().out
        config = config_file.load(f"{preset}/config.yaml").training
        assert (config.max_minutes, config.schedule) == (8, "linear")
        assert config.warmup == (15 if preset == "transformer-small" else 0), "a fifth of 77 updates"
    assert init.main(["short", *TRAIN, "--minutes", "0.5"]) == 0
    assert "not enough time for one epoch" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        init.main(["never", *TRAIN, "--minutes", "0"])
    assert not Path("never").exists()
