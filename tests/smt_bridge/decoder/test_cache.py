"""The cache: what is damaged is made again, what is half is never seen, what is too much goes."""

import logging
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from nmt.errors import ConfigError, UserError
from nmt.io import files, manifest
from nmt.io.locks import locked
from smt_bridge.cli import cache as command
from smt_bridge.decoder import cache, system
from smt_bridge.decoder.automaton import CachedNgramModel
from smt_bridge.decoder.cache import Cache, Cacheable, arrays, parts_of
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.model import AnyWordLM, AutomatonLM
from smt_bridge.decoder.table import PhraseTable
from tests.smt_bridge.decoder.models import sentence, write_model

# ---- test cache --------------------------------------------------------------------------------------------


NOBODY = 65534


def same(one: Cacheable, other: Cacheable) -> bool:
    mine, theirs = arrays(one), arrays(other)
    return list(mine) == list(theirs) and all(np.array_equal(mine[name], theirs[name]) for name in mine)


def model_of(lm: AnyWordLM) -> CachedNgramModel:
    assert isinstance(lm, AutomatonLM)
    return lm.model


def test_what_was_kept_is_what_was_made(tmp_path: Path) -> None:
    folder, store = write_model(tmp_path / "model", 1, lms=2), Cache(tmp_path / "cache")
    made, kept = (system.load(str(folder), store) for _ in range(2))
    assert len(store.entries()) == 3
    assert same(made.table, kept.table) and all(
        same(model_of(one), model_of(other)) for one, other in zip(made.lms, kept.lms, strict=True)
    )
    assert made.table.sources == kept.table.sources and made.table.vocabulary == kept.table.vocabulary
    os.utime(folder / "lm1", ns=(1, 1))  # changed: it is read again
    system.load(str(folder), store)
    assert len(store.entries()) == 4


@pytest.mark.parametrize("kind", ["flip", "cut"])
def test_damage_anywhere_is_seen(kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A flipped byte or a missing end gives the same translations, after one line; the file is whole
    again."""
    folder, store = write_model(tmp_path / "model", 2), Cache(tmp_path / "cache")
    lines = [sentence(number, 5) for number in range(3)]

    def outputs() -> list[tuple[list[str], float]]:
        made = Decoder(system.load(str(folder), store), DecoderConfig(stack=5))
        return [(found.text, found.derivations[0].total) for found in map(made.translate_line, lines)]

    expected = outputs()
    for entry in store.entries():
        whole = entry.path.read_bytes()
        for place in np.linspace(0, len(whole) - 1, 12, dtype=int).tolist():
            damaged = (
                whole[:place]
                if kind == "cut"
                else whole[:place] + bytes([whole[place] ^ 0x40]) + whole[place + 1 :]
            )
            entry.path.write_bytes(damaged)
            caplog.clear()
            with caplog.at_level(logging.WARNING, logger="smt_bridge"):
                assert outputs() == expected
            assert [
                record.getMessage()
                for record in caplog.records
                if "damaged; created again from" in record.getMessage()
            ] != []
            assert len(caplog.records) == 1 and entry.path.read_bytes() == whole


def wrong(made: PhraseTable | CachedNgramModel, name: str, value: object) -> PhraseTable | CachedNgramModel:
    """With one array replaced."""
    return type(made)(**{part: getattr(made, part) for part in parts_of(type(made))} | {name: value})


@pytest.mark.parametrize(
    "name", ["starts", "target", "cut", "words", "alignment_cut", "reordering", "scores", "vocabulary"]
)
def test_no_index_leaves_a_table(name: str, tmp_path: Path) -> None:
    """Even where the checksum is right."""
    table = system.load(str(write_model(tmp_path, 1)), use_cache=False).table
    assert table.is_sound()
    value = getattr(table, name)
    if isinstance(value, np.ndarray) and value.ndim == 1:
        for other in (-1, 10**6):
            broken = value.copy()
            broken[len(value) // 2] = other
            assert not wrong(table, name, broken).is_sound()
    assert not wrong(table, name, value[:-1]).is_sound()


@pytest.mark.parametrize(
    "name", ["keys", "values", "shorter", "state", "log_prob", "backoff", "most", "vocabulary"]
)
def test_no_index_leaves_a_language_model(name: str, tmp_path: Path) -> None:
    (lm,) = system.load(str(write_model(tmp_path, 1)), use_cache=False).lms
    model = model_of(lm)
    assert model.is_sound()
    value = getattr(model, name)
    if name in ("values", "shorter", "state"):
        for other in (-1, 10**6):
            broken = value.copy()
            broken[0] = other
            assert not wrong(model, name, broken).is_sound()
    assert not wrong(model, name, value[:-1]).is_sound()
    full = np.zeros_like(model.keys)  # a search for a missing key would never end
    assert not wrong(model, "keys", full).is_sound() and not wrong(model, "start_state", 10**6).is_sound()


def test_wrong_indices_are_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another version wrote, say: the checksum is right, the indices are not."""
    folder, store = write_model(tmp_path / "model", 1, reordering=False, lms=0), Cache(tmp_path / "cache")
    system.load(str(folder), store)
    (entry,) = store.entries()
    with np.load(entry.path) as held:
        content = dict(held)
    content["target"][0] = 10**6
    with open(tmp_path / "made.npz", "wb") as stream:
        np.savez(stream, **content)
    entry.path.unlink()
    place = entry.path.with_name(
        f"{entry.path.name.split('.')[0]}.{manifest.digest(tmp_path / 'made.npz')}.npz"
    )
    (tmp_path / "made.npz").rename(place)
    assert system.load(str(folder), store).table.is_sound()
    assert not place.exists() and len(store.entries()) == 1


def test_one_writer_at_a_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Who finds another process writing goes on without the cache; what a killed one left is swept by the
    next."""
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
    (store.folder / "0123.part").write_bytes(b"half")
    system.load(str(folder), store)
    assert len(store.entries()) == 2 and not list(store.folder.glob("*.part"))


def test_two_versions_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has files of its own, and neither takes, or spoils, those of the other."""
    folder, store = write_model(tmp_path / "model", 1), Cache(tmp_path / "cache")
    made = system.load(str(folder), store)
    mine = {entry.path: entry.path.read_bytes() for entry in store.entries()}
    with monkeypatch.context() as other:
        other.setattr(cache, "FORMAT", cache.FORMAT + 1)
        for _ in range(2):
            assert same(system.load(str(folder), store).table, made.table)
            assert len(store.entries()) == 2 * len(mine)
    monkeypatch.setattr(CachedNgramModel, "make", None, raising=False)
    assert same(system.load(str(folder), store).table, made.table)
    assert {path: path.read_bytes() for path in mine} == mine and len(store.entries()) == 2 * len(mine)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user for a while")
@pytest.mark.parametrize("mode", [0o644, 0o600])
def test_two_users_share_a_folder(mode: int, caplog: pytest.LogCaptureFixture) -> None:
    """What one has stored the other reads, if he may; else he goes on without it, and does no harm."""
    with TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        folder, store = write_model(Path(place, "model"), 1), Cache(Path(place, "cache"))
        made = system.load(str(folder), store)
        for entry in store.entries():
            entry.path.chmod(mode)
        before = {path: path.read_bytes() for path in Path(place, "cache").iterdir()}
        os.seteuid(NOBODY)
        try:
            with caplog.at_level(logging.INFO):
                found = system.load(str(folder), store)
        finally:
            os.seteuid(0)
        assert same(found.table, made.table) and "damaged" not in caplog.text
        assert ("not kept in the cache" in caplog.text) == (mode == 0o600)
        assert {path: path.read_bytes() for path in Path(place, "cache").iterdir()} == before


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
        and f"{place}: 2 files" in lines[2]
    )
    assert command.main(["clear", "--cache", place]) == 0
    assert "2 files" in capsys.readouterr().out and not Cache(place).entries()
    assert command.main(["list", "--cache", place]) == 0
    assert "0 files" in capsys.readouterr().out
