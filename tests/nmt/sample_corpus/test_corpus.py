"""The sample corpus has the properties that its grammar promises."""

import gzip
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from nmt.formats.pharaoh import parse, parse_gold
from nmt.sample_corpus import corpus as sample
from nmt.text.tokenize import Tokenizer
from tests.conftest import Command

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    sample.write_sample_corpus(folder)
    return folder


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


@pytest.mark.ci
def test_sizes_and_no_test_source_in_training(corpus: Path) -> None:
    parts = {name: lines(corpus / f"{name}.en") for name in ("train", "dev", "test")}
    assert {name: len(part) for name, part in parts.items()} == {"train": 20000, "dev": 500, "test": 2000}
    assert all(len(lines(corpus / f"{name}.fr")) == len(part) for name, part in parts.items())
    train = {line.lower() for line in parts["train"]}
    assert not train & {line.lower() for line in parts["test"] + parts["dev"]}
    lengths = [len(line.replace(".", " .").split()) for line in parts["train"]]
    assert min(lengths) >= 3 and 38 <= max(lengths) <= 41


@pytest.mark.ci
def test_same_seed_same_corpus(corpus: Path, tmp_path: Path, command: Command) -> None:
    """By the command, too."""
    again = tmp_path / "again"
    done = command("nmt-init", again, "--sample-corpus")
    assert done.stdout.startswith(f"wrote {again}: train 20,000, dev 500, test 2,000 sentence pairs\n")
    for path in corpus.iterdir():
        assert path.read_bytes() == (again / path.name).read_bytes()
    for name, size in {"train": 20000, "dev": 500, "test": 2000}.items():
        points, gold = (lines(again / f"{name}.align"), lines(again / f"{name}.gold"))
        assert len(points) == size and points == [line.replace("?", "-") for line in gold]


def test_the_grammars_alignment(grammar: ModuleType) -> None:
    """Points count the tokenizer's words, and words that are equal in both languages, such as names, are
    linked."""
    writer = grammar.Writer(5)
    tokenizers = Tokenizer("en", case="keep"), Tokenizer("fr", case="keep")
    for _ in range(200):
        pair = writer.sentence(12)
        source, target = (
            tokenizer.words(grammar.text(side))
            for tokenizer, side in zip(tokenizers, (pair.source, pair.target), strict=True)
        )
        gold = parse_gold(sample.points(pair, "?"), "")
        assert parse(sample.points(pair, "-"), "") == gold.possible
        assert all(i < len(source) and j < len(target) for i, j in gold.possible)
        assert {target[j] for i, j in gold.sure if source[i] == "."} == {"."}
        linked = {j for _, j in gold.possible}
        assert len(linked) > 0.8 * len(target)
        for i, word in enumerate(source[1:], 1):
            if word[0].isupper() and word != "I":
                assert [target[j] for k, j in gold.sure if k == i] == [word]
    both = grammar.Pair([("do", 1), ("not", 1), ("go", 2)], [("ne", 1), ("va", 2), ("pas", 1)])
    assert sample.points(both, "?") == "0?0 0?2 1?0 1?2 2-1"


def test_the_tokenizer_finds_the_grammars_words(grammar: ModuleType) -> None:
    writer = grammar.Writer(11)
    sides = ("source", Tokenizer("en", case="keep")), ("target", Tokenizer("fr", case="keep"))
    for _ in range(200):
        pair = writer.sentence(8)
        for side, tokenizer in sides:
            tokens = [word for word, _ in getattr(pair, side)]
            found = tokenizer.words(grammar.text(getattr(pair, side)))
            assert [word.lower() for word in found] == [
                part.lower() for word in tokens for part in split(word)
            ]
            assert tokenizer.text(found) == grammar.text(getattr(pair, side))


def split(word: str) -> list[str]:
    """aujourd'hui is two tokens for Moses."""
    head, apostrophe, tail = word.partition("'")
    return [head + apostrophe, tail] if apostrophe and tail else [word]


@pytest.mark.parametrize(
    ("english", "french"),
    [
        ("the bank of the river", "la rive du fleuve"),
        ("kicked the bucket", "cassé"),
        ("plays the piano", "du piano"),
        ("plays chess", "aux échecs"),
    ],
)
@pytest.mark.ci
def test_context_decides(corpus: Path, english: str, french: str) -> None:
    rows = [
        (a, b)
        for a, b in zip(lines(corpus / "train.en"), lines(corpus / "train.fr"), strict=True)
        if english in a
    ]
    assert len(rows) >= 20
    assert sum(french in b.replace("de la rive", "la rive") for _, b in rows) >= 0.95 * len(rows)


@pytest.mark.ci
def test_names_are_rare(corpus: Path, grammar: ModuleType) -> None:
    names = set(grammar.Writer(7).names)
    counts = Counter(
        word for line in lines(corpus / "train.en") for word in line.rstrip(".").split() if word in names
    )
    assert sum(count == 1 for count in counts.values()) > 20 and max(counts.values()) > 500


@pytest.mark.ci
def test_phrase_table_is_sorted_as_moses_wants_it(corpus: Path) -> None:
    table = gzip.decompress((corpus / "phrase-table.gz").read_bytes()).split(b"\n")[:-1]
    assert table == sorted(table) and len(table) > 1000 and any(b"&apos;" in line for line in table)
