"""The decoder's cache: damaged entries are created again, unfinished ones are never read, and old ones are
removed when it is full."""

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from numpy.typing import NDArray

from nmt.errors import ConfigError, UserError
from nmt.io import files, manifest, mapped
from nmt.io.locks import locked
from nmt.io.mapped import MappedRecord, as_array, field_names
from nmt.ngram.trie import TrieModel
from smt_bridge.cli import cache as command
from smt_bridge.decoder import cache, system
from smt_bridge.decoder.cache import Cache, CacheEntry
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.model import AnyWordLM, AutomatonLM
from smt_bridge.decoder.table import PhraseTable
from tests.smt_bridge.decoder.models import sentence, write_model

# ---- test cache --------------------------------------------------------------------------------------------


NOBODY = 65534


def fields(content: MappedRecord) -> dict[str, "NDArray[np.generic] | int"]:
    values = {name: getattr(content, name) for name in field_names(type(content))}
    return {name: value if isinstance(value, int) else as_array(value) for name, value in values.items()}


def same(one: MappedRecord, other: MappedRecord) -> bool:
    """Whether two records have equal values of the same types, all of them read-only."""
    mine, theirs = fields(one), fields(other)
    return list(mine) == list(theirs) and all(
        np.array_equal(mine[name], theirs[name], equal_nan=np.asarray(mine[name]).dtype.kind == "f")
        and np.asarray(mine[name]).dtype == np.asarray(theirs[name]).dtype
        for name in mine
    )


def content_of(entry: CacheEntry) -> dict[str, bytes]:
    """The files of an entry, without the stamp of its verification."""
    return {path.name: path.read_bytes() for path in entry.path.iterdir() if path != entry.stamp}


def model_of(lm: AnyWordLM) -> TrieModel:
    assert isinstance(lm, AutomatonLM)
    return lm.model


def test_what_was_kept_is_what_was_made(tmp_path: Path) -> None:
    folder, store = write_model(tmp_path / "model", 1, lms=2), Cache(tmp_path / "cache")
    made, kept = (system.load(str(folder), store) for _ in range(2))
    assert len(store.entries()) == 3
    assert same(made.table, kept.table) and all(
        same(model_of(one), model_of(other)) for one, other in zip(made.lms, kept.lms, strict=True)
    )
    assert list(made.table.words) == list(kept.table.words)
    assert not made.table.scores.flags.writeable and not kept.table.scores.flags.writeable
    os.utime(folder / "lm1", ns=(1, 1))  # changed: it is read again
    system.load(str(folder), store)
    assert len(store.entries()) == 4


def test_checksums_are_verified_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first process that opens an entry verifies it. It is verified again after a file was written to,
    and if the verification cannot be recorded."""
    folder, store = write_model(tmp_path / "model", 1, lms=0), Cache(tmp_path / "cache")
    verified = list[str]()
    whole = manifest.verify

    def verify(folder: str | Path, names: Iterable[str]) -> None:
        verified.append(str(folder))
        whole(folder, names)

    monkeypatch.setattr(manifest, "verify", verify)
    for expected in (0, 1, 1, 1):
        system.load(str(folder), store)
        assert len(verified) == expected
    (entry,) = store.entries()
    os.utime(entry.path / "starts.npy", ns=(1, 1))
    for expected in (2, 2):
        system.load(str(folder), store)
        assert len(verified) == expected
    entry.stamp.unlink()
    entry.stamp.mkdir()
    for expected in (3, 4):
        system.load(str(folder), store)
        assert len(verified) == expected


@pytest.mark.parametrize("kind", ["flip", "cut"])
@pytest.mark.ci
def test_damage_anywhere_is_seen(kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With a flipped byte or a missing end of any file, translations stay the same after one warning, and the
    entry is repaired."""
    folder, store = write_model(tmp_path / "model", 2), Cache(tmp_path / "cache")
    lines = [sentence(number, 5) for number in range(3)]

    def outputs() -> list[tuple[list[str], float]]:
        made = Decoder(system.load(str(folder), store), DecoderConfig(stack=5))
        return [(found.text, found.derivations[0].total) for found in map(made.translate_line, lines)]

    expected = outputs()
    for entry in store.entries():
        outputs()  # verified, and recorded
        whole = content_of(entry)
        for name, content in whole.items():
            place = len(content) * 2 // 3
            flipped = content[:place] + bytes([content[place] ^ 0x40]) + content[place + 1 :]
            (entry.path / name).write_bytes(content[:place] if kind == "cut" else flipped)
            caplog.clear()
            with caplog.at_level(logging.WARNING, logger="smt_bridge"):
                assert outputs() == expected
            (record,) = caplog.records
            assert "damaged; created again from" in record.getMessage(), name
            assert content_of(entry) == whole
        (entry.path / "contents.json").unlink()
        assert outputs() == expected and content_of(entry) == whole


def wrong(made: PhraseTable | TrieModel, name: str, value: object) -> PhraseTable | TrieModel:
    """A copy with one array replaced."""
    return type(made)(**{part: getattr(made, part) for part in field_names(type(made))} | {name: value})


@pytest.mark.parametrize(
    "name",
    [
        "word_text", "word_cut", "source_word", "source_children", "source_levels", "starts", "target_word",
        "target_parent", "target_levels", "target", "scores", "reordering", "alignment", "alignment_text",
        "alignment_cut", "score_values", "reordering_values",
    ],
)  # fmt: skip
def test_no_index_leaves_a_table(name: str, tmp_path: Path) -> None:
    """Indices out of bounds are found even if the checksum is right."""
    table = system.load(str(write_model(tmp_path, 1)), use_cache=False).table
    assert table.is_sound()
    value = getattr(table, name)
    if value.ndim == 1:
        for other in {"word_text": (0xFF,), "alignment_text": (ord("x"),), "target": (0, -1, 10**6)}.get(
            name, (np.iinfo(value.dtype).max, 10**6 % np.iinfo(value.dtype).max)
        ):
            broken = value.copy()
            broken[len(value) // 2] = other
            assert not wrong(table, name, broken).is_sound()
    assert not wrong(table, name, value[:-1]).is_sound()


@pytest.mark.parametrize("name", ["hashes", "starts", "text", "records", "books", "layout", "most"])
def test_no_index_leaves_a_language_model(name: str, tmp_path: Path) -> None:
    (lm,) = system.load(str(write_model(tmp_path, 1)), use_cache=False).lms
    model = model_of(lm)
    assert model.is_sound()
    assert not model._replace(**{name: getattr(model, name)[:-1]}).is_sound()
    assert not model._replace(begin=10**6).is_sound()


def test_wrong_indices_are_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry with a right checksum and wrong indices, as another version might write, is damaged."""
    folder, store = write_model(tmp_path / "model", 1, reordering=False, lms=0), Cache(tmp_path / "cache")
    system.load(str(folder), store)
    (entry,) = store.entries()
    opened = mapped.load(entry.path)
    target = opened.arrays["target"].copy()
    target[0] = 10**6
    (made := tmp_path / "made").mkdir()
    mapped.write(made, opened.kind, opened.arrays | {"target": target}, opened.numbers, opened.sources)
    entry.remove()
    key = entry.path.name.split(".")[0]
    place = made.rename(entry.path.with_name(f"{key}.{manifest.digest(made / manifest.FILE)}"))
    assert system.load(str(folder), store).table.is_sound()
    assert not place.exists() and len(store.entries()) == 1


def test_one_writer_at_a_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A process that finds another one writing works without the cache; unfinished entries of a killed
    process are removed by the next writer."""
    folder, store = write_model(tmp_path / "model", 1), Cache(tmp_path / "cache")
    with locked(store.folder, "another"), caplog.at_level(logging.INFO, logger="smt_bridge"):
        assert system.load(str(folder), store).table.is_sound()
        assert (
            not store.entries()
            and "not kept in the cache" in caplog.text
            and "in use by another" in caplog.text
        )
        with pytest.raises(UserError, match="in use by another"):
            store.clear()
    store.folder.mkdir(exist_ok=True)
    (store.folder / "0123.part").mkdir()
    (store.folder / "0123.part" / "starts.npy").write_bytes(b"half")
    system.load(str(folder), store)
    assert len(store.entries()) == 2 and not list(store.folder.glob("*.part"))


def test_two_versions_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each version has entries of its own, and neither reads or removes those of the other."""
    folder, store = write_model(tmp_path / "model", 1), Cache(tmp_path / "cache")
    made = system.load(str(folder), store)
    mine = {entry.path: content_of(entry) for entry in store.entries()}
    with monkeypatch.context() as other:
        other.setattr(cache, "FORMAT", cache.FORMAT + 1)
        for _ in range(2):
            assert same(system.load(str(folder), store).table, made.table)
            assert len(store.entries()) == 2 * len(mine)
    monkeypatch.setattr(TrieModel, "make", None, raising=False)
    assert same(system.load(str(folder), store).table, made.table)
    kept = {entry.path: content_of(entry) for entry in store.entries()}
    assert kept.items() >= mine.items() and len(kept) == 2 * len(mine)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user for a while")
@pytest.mark.parametrize("mode", [0o644, 0o600])
def test_two_users_share_a_folder(mode: int, caplog: pytest.LogCaptureFixture) -> None:
    """A user reads entries of another one if permissions allow it; otherwise he works without them and
    removes nothing."""
    with TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        folder, store = write_model(Path(place, "model"), 1), Cache(Path(place, "cache"))
        made = system.load(str(folder), store)
        for entry in store.entries():
            for path in entry.path.iterdir():
                path.chmod(mode)
        before = [content_of(entry) for entry in store.entries()]
        os.seteuid(NOBODY)
        try:
            with caplog.at_level(logging.INFO):
                found = system.load(str(folder), store)
        finally:
            os.seteuid(0)
        assert same(found.table, made.table) and "damaged" not in caplog.text
        assert ("not kept in the cache" in caplog.text) == (mode == 0o600)
        assert [content_of(entry) for entry in store.entries()] == before


def test_the_least_recently_used_goes(tmp_path: Path) -> None:
    models = [write_model(tmp_path / f"model{seed}", seed, lms=0) for seed in range(4)]
    store = Cache(tmp_path / "cache")
    for model in models[:3]:
        system.load(str(model), store)
    sizes = [entry.size for entry in store.entries()]
    of = {entry.sources()[0].rpartition("/")[0].rpartition("/")[2]: entry.path for entry in store.entries()}
    for number, name in enumerate(["model1", "model2", "model0"]):
        os.utime(of[name], (number, number))
    system.load(str(models[1]), store)  # now 1 is the newest, 2 the oldest
    small = Cache(store.folder, sum(sizes) + max(sizes) // 2)
    system.load(str(models[3]), small)
    left = {entry.sources()[0].split("/")[-2] for entry in small.entries()}
    assert left == {"model0", "model1", "model3"}
    system.load(
        str(models[2]), Cache(tmp_path / "tiny", 100)
    )  # larger than all: not kept, and nothing else goes for it
    assert not Cache(tmp_path / "tiny").entries()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert system.load(
        str(write_model(tmp_path / "model", 1)), Cache(tmp_path / "file" / "cache")
    ).table.is_sound()


def test_where_and_how_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(files.CACHE_VARIABLE, "/a")
    monkeypatch.setenv("XDG_CACHE_HOME", "/b")
    assert files.cache_folder() == Path("/a")
    monkeypatch.delenv(files.CACHE_VARIABLE)
    assert files.cache_folder() == Path("/b/nmt-smt")
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert files.cache_folder() == Path.home() / ".cache" / "nmt-smt"
    monkeypatch.setenv(cache.LIMIT_VARIABLE, "0.5")
    assert cache.default_limit() == 500_000_000
    for text in ("nan", "many", "-1"):
        monkeypatch.setenv(cache.LIMIT_VARIABLE, text)
        with pytest.raises(ConfigError, match="NMT_CACHE_GB"):
            cache.default_limit()


# ---- test cache --------------------------------------------------------------------------------------------
# smt-cache: what is kept is listed, and goes.


def test_list_and_clear(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, place = write_model(tmp_path / "model", 1), str(tmp_path / "cache")
    system.load(str(folder), Cache(place))
    assert command.main(["list", "--cache", place]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert (
        any(f"{folder}/table {folder}/reordering" in line for line in lines)
        and f"{place}: 2 entries" in lines[2]
    )
    assert command.main(["clear", "--cache", place]) == 0
    assert "2 entries" in capsys.readouterr().out and not Cache(place).entries()
    assert command.main(["list", "--cache", place]) == 0
    assert "0 entries" in capsys.readouterr().out
