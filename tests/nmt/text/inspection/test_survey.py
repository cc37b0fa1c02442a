"""The survey that nmt-init and smt-build print."""

from pathlib import Path

from nmt.text.inspection.pairs import PairReport, inspect
from nmt.text.inspection.survey import mistakes, sections

EN = "".join(f"The man sees the {word}.\n" for word in ("house", "dog", "car", "street", "child", "tree"))
FR = "".join(
    f"L'homme voit {word}.\n" for word in ("la maison", "le chien", "la rue", "un enfant", "tout", "rien")
)


def texts(folder: Path, name: str, source: str, target: str) -> PairReport:
    for ending, text in (("en", source), ("fr", target)):
        (folder / f"{name}.{ending}").write_text(text, encoding="utf-8")
    return inspect(str(folder / f"{name}.en"), str(folder / f"{name}.fr"))


def lines(train: PairReport, dev: PairReport | None, raw: bool = False) -> list[str]:
    return [line for section in sections(train, dev, ("en", "fr"), raw) for line in section.lines()]


def test_sound_texts_have_a_title_each_and_no_findings(tmp_path: Path) -> None:
    train = texts(tmp_path, "train", EN, FR)
    dev = texts(tmp_path, "dev", "The man sleeps.\n", "L'homme dort.\n")
    assert [line.split(":")[0].split(";")[0] for line in lines(train, dev)] == [
        f"{tmp_path}/train.en", f"{tmp_path}/train.fr", "6 pairs",
        f"{tmp_path}/dev.en", f"{tmp_path}/dev.fr", "1 pairs",
    ]  # fmt: skip
    assert len(lines(train, None)) == 3 and not mistakes(sections(train, dev))


def test_a_development_set_inside_the_training_text(tmp_path: Path) -> None:
    train = texts(tmp_path, "train", EN, FR)
    dev = texts(tmp_path, "dev", *("".join(text.splitlines(True)[:3]) for text in (EN, FR)))
    assert any("pairs that are in the training text, too: 3" in line for line in lines(train, dev))


def test_one_text_on_both_sides(tmp_path: Path) -> None:
    found = "\n".join(lines(texts(tmp_path, "train", EN, EN), None))
    assert "sides are equal: 6; 100% of" in found and "it should be fr" in found


def test_exchanged_sides_of_the_development_set(tmp_path: Path) -> None:
    """Where its words are told, even if the names of the files look right, and no language is recognized."""
    train = texts(tmp_path, "train", EN, FR)
    dev = texts(tmp_path, "dev", "L'homme voit le chien.\n", "The man sees the dog.\n")
    assert any("development set exchanged?" in line for line in lines(train, dev))
    assert not any("exchanged?" in line for line in lines(train, texts(tmp_path, "good", EN, FR)))


def test_a_development_set_of_another_language(tmp_path: Path) -> None:
    other = "Der Hund schläft heute in einem großen Haus am Ende einer langen Straße.\n" * 2
    train = texts(tmp_path, "train", EN, FR)
    found = [
        line for line in lines(train, texts(tmp_path, "dev", other, FR)) if "in the same language?" in line
    ]
    assert len(found) == 1 and f"words of {tmp_path}/dev.en are in {tmp_path}/train.en" in found[0]


def test_tokenized_text_matters_to_whoever_reads_raw_text(tmp_path: Path) -> None:
    train = texts(tmp_path, "train", EN.replace(".", " ."), FR)
    assert "nmt-tokenize --detokenize" in "".join(lines(train, None, raw=True))
    assert "tokenized already" in "".join(lines(train, None)) and "detokenize" not in "".join(
        lines(train, None)
    )


def test_what_stops_a_training_is_counted(tmp_path: Path) -> None:
    assert mistakes(sections(texts(tmp_path, "train", "\n", "\n"), None)) == 1
