"""Marked input in the search: forced translations compete or decide, walls and zones hold, one search is the
other; real Moses line by line."""

import random
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nmt import files
from nmt.errors import DataError
from nmt.formats import nbest
from smt_bridge.decoder import sections, system
from smt_bridge.decoder.compiled import HAVE_NUMBA
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.translation import Derivation, PhraseTranslation
from smt_bridge.decoder.xml_input import Forced, Marked
from smt_bridge.moses import ini as moses_ini
from tests.smt_bridge.decoder.models import (
    TARGET,
    UNLIMITED,
    all_weights,
    decoder,
    edit,
    same_lists,
    sentence,
    write_model,
)

Command = Callable[..., subprocess.CompletedProcess[str]]


def marked(seed: int, words: int) -> str:
    """A random line with a few translations, zones and walls."""
    rng = random.Random(seed)
    line = sentence(seed, words).split(" ")
    for _ in range(rng.randint(1, 2)):
        begin = rng.randrange(words)
        last = rng.randint(begin, min(words - 1, begin + 3))
        texts = "||".join(
            " ".join(rng.choice([*TARGET, "new"]) for _ in range(rng.randint(0, 2)))
            for _ in range(rng.randint(1, 2))
        )
        kind = rng.choice(
            [f'x translation="{texts or "p"}"', f'x translation="{texts or "q"}"', "zone", "wall"]
        )
        line.append(f'<{kind} span="{begin}-{last}"/>')
    return " ".join(line)


def spans(made: PhraseTranslation, derivation: Derivation) -> Iterator[tuple[int, int, list[str]]]:
    """First and last source word and the target words of each phrase, in target order."""
    part, at = made.sentence, 0
    assert part
    for option in derivation.options:
        length = int(part.length[option])
        yield int(part.begin[option]), int(part.last[option]), derivation.text[at : at + length]
        at += length


@pytest.mark.parametrize("policy", ["exclusive", "inclusive", "constraint", "ignore"])
def test_compiled_is_plain(policy: str, tmp_path: Path) -> None:
    if not HAVE_NUMBA:
        pytest.skip("needs numba: pip install 'nmt-smt[smt]'")
    folder = write_model(tmp_path, 3)
    settings: dict[str, object] = {"stack": 6, "nbest": 5, "xml_input": policy}
    one, other = decoder(folder, **settings), decoder(folder, True, **settings)
    for number in range(40):
        line = marked(number, 3 + number % 6)
        same_lists(one.translate_line(line), other.translate_line(line), line)


def test_forced_translations(tmp_path: Path) -> None:
    """Exclusive: every derivation has it, at the price of its probability. Inclusive: more derivations.
    Constraint: between the two."""
    folder = write_model(tmp_path, 1)
    found = {}
    for policy in ("exclusive", "inclusive", "constraint", "ignore"):
        made = decoder(folder, nbest=100_000, distortion_limit=2, xml_input=policy, **UNLIMITED)
        translation = made.translate_line('a b <np translation="new||p" prob="0.5||0.125">c</np> d')
        found[policy] = {
            tuple((begin, last, tuple(words)) for begin, last, words in spans(translation, each))
            for each in translation.derivations
        }
        assert translation.sentence
        for derivation in translation.derivations:
            unknown = sum(
                extra.unknown
                for extra in (
                    translation.sentence.extras[-1 - row]
                    for row in translation.sentence.rows[derivation.options]
                    if row < 0
                )
            )
            assert np.isclose(
                derivation.features @ all_weights(made) - 100 * unknown, derivation.total, atol=1e-9
            )
    assert all(
        any(phrase in ((2, 2, ("new",)), (2, 2, ("p",))) for phrase in path) for path in found["exclusive"]
    )
    assert all(
        any(begin <= 2 <= last and ("new" in words or "p" in words) for begin, last, words in path)
        for path in found["constraint"]
    )
    assert found["exclusive"] <= found["inclusive"] and found["ignore"] < found["inclusive"]
    assert not any("new" in words for path in found["ignore"] for _, _, words in path)


def test_price_of_a_forced_translation(tmp_path: Path) -> None:
    """The logarithm of its probability, shared by the table's scores; no unknown word, no alignment;
    reordering of the same pair."""
    made = decoder(write_model(tmp_path, 1, reordering=False), nbest=1, xml_input="exclusive")
    dear, cheap = (
        made.translate_line(f'<x translation="new" prob="{prob}">zz</x>').derivations[0]
        for prob in ("0.25", "1")
    )
    weights = made.weights["TranslationModel0"]
    assert (
        dear.text == ["new"]
        and np.isclose(dear.total - cheap.total, np.log(0.25) / 4 * sum(weights))
        and cheap.total > -50
    )
    translation = made.translate_line('<x translation="new thing">zz</x>')
    assert made.entry(0, translation, translation.derivations[0]).endswith(" ||| 0=0-1 ||| ")


def test_reordering_of_a_forced_pair(tmp_path: Path) -> None:
    """A translation that the table has too is scored with its row of the reordering table."""
    folder = write_model(tmp_path, 2)
    made = decoder(folder, nbest=1, xml_input="inclusive", **UNLIMITED)
    table = made.system.table
    row = table.of(b"a")[0]
    task = made.task(made.marked(f'<x translation="{" ".join(table.text(row))}">a</x> b'), made.listing)
    part = task.sentence
    known = next(option for option in range(len(part.rows)) if part.rows[option] == row)
    new = next(
        option for option in range(len(part.rows)) if part.rows[option] < 0 and part.begin[option] == 0
    )
    assert (task.options.backward[known] == task.options.backward[new]).all() and task.options.backward[
        known
    ].any()
    assert task.options.forward_id[known] == task.options.forward_id[new] >= 0


def test_walls_and_zones(tmp_path: Path) -> None:
    """Unlimited stacks: the derivations are those of the whole that keep to the wall, or to the zone."""
    made = decoder(
        write_model(tmp_path, 4, options=1),
        nbest=100_000,
        xml_input="ignore",
        distortion_limit=-1,
        **UNLIMITED,
    )

    def orders(line: str) -> set[tuple[tuple[int, int], ...]]:
        translation = made.translate_line(line)
        return {
            tuple((begin, last) for begin, last, _ in spans(translation, each))
            for each in translation.derivations
        }

    every = orders("a b c d")
    walled, zoned = orders("a b <wall/> c d"), orders("<zone> a b </zone> c d")
    assert walled < every and zoned < every
    for path in every - walled:  # begins a phrase behind the wall while a word in front of it is left
        assert any(
            last > 1 and sum(end - begin + 1 for begin, end in path[:place] if end <= 1) < 2 and begin > 0
            for place, (begin, last) in enumerate(path)
        )
    for path in zoned:
        inside = [place for place, (begin, _) in enumerate(path) if begin <= 1]
        assert inside == list(range(inside[0], inside[-1] + 1))


@pytest.mark.parametrize("policy", ["pass-through", "inclusive", "exclusive", "constraint", "ignore"])
def test_an_exclusive_translation_decides_under_every_policy(policy: str, tmp_path: Path) -> None:
    """No other option touches its words, not even that of an unknown word."""
    folder = edit(write_model(tmp_path, 1), ("[weight]\n", "[weight]\nUnknownWordPenalty0= -1\n"))
    made = decoder(folder, nbest=50, xml_input=policy, distortion_limit=-1)  # that would be the best
    for number in range(8):
        words = ["zz", *sentence(number, 6).split(" "), "yy"]
        for begin, last in ((0, 1), (3, 5), (7, 7)):
            term = Forced(begin, last, ["new", "term"], 0.0, True, ((0, 1),), "raw")
            found = made.translate_part(Marked(words, [term]))
            assert found.sentence
            for derivation in found.derivations:
                touching = [one for one in spans(found, derivation) if one[0] <= last and begin <= one[1]]
                assert touching == [(begin, last, ["new", "term"])]
            option = next(one for one in derivation.options if found.sentence.begin[one] == begin)
            extra = found.sentence.extra(option)
            assert extra and extra.raw == "raw" and extra.points == [(0, 1)]


def test_no_way_to_the_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Where zones that cross each other stop every hypothesis that was kept, the line is translated in order,
    and that is told."""
    folder = write_model(tmp_path, 1)
    made = decoder(folder, stack=1, xml_input="ignore", distortion_limit=-1)
    told = 0
    for number in range(200):
        line = sentence(number, 7) + ' <zone span="0-3"/> <zone span="2-5"/>'
        caplog.clear()
        with caplog.at_level("WARNING", logger="smt_bridge"):
            translation = made.translate_line(line)
        told += "translated in order" in caplog.text
        assert sorted(
            word
            for begin, last, _ in spans(translation, translation.derivations[0])
            for word in range(begin, last + 1)
        ) == list(range(7))
    assert told


def test_mistakes_are_named(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 1), xml_input="exclusive")
    with pytest.raises(DataError, match=r"^in\.en:2: tag 'np' is never closed$"):
        list(made.translate_all(iter(["a b", '<np translation="p"> a']), 1, "in.en"))


@pytest.mark.ci
def test_command(tmp_path: Path, command: Command, refused: Callable[..., str]) -> None:
    """Options win over the ini; a mistake is one line that names file and line, and nothing is written."""
    folder = write_model(tmp_path / "model", 1)
    (tmp_path / "in").write_text('a b\n{{x translation="new"}} c {{/x}}\n')
    asked = (
        folder,
        "-i",
        tmp_path / "in",
        "-o",
        tmp_path / "out",
        "--xml-brackets",
        "{{ }}",
        "--no-cache",
        "-q",
    )
    done = command("smt-decode", *asked, "--xml-input", "exclusive")
    assert done.returncode == 0 and (tmp_path / "out").read_text().split("\n")[1] == "new", done.stderr
    (tmp_path / "out").unlink()
    (folder / "moses.ini").write_text("[xml-input]\ninclusive\n" + (folder / "moses.ini").read_text())
    (tmp_path / "in").write_text('a b\n{{x translation="new"}} c\n')
    assert (
        f"{tmp_path}/in:2: tag 'x' is never closed" in refused(command("smt-decode", *asked))
        and not (tmp_path / "out").exists()
    )


# ---- the real system ---------------------------------------------------------------------------------------
@pytest.mark.slow
def test_real_moses(nmt_data: Path) -> None:
    """40 marked lines under each policy, and 40 with walls and zones: Moses' outputs, and its lists of five
    to the digits they are printed with."""
    folder = nmt_data / "moses-settings"
    loaded = system.load(str(folder / "baseline.ini"), use_cache=False)
    for name in ("exclusive", "inclusive", "constraint", "ignore", "pass-through", "walls"):
        ini = sections.read(moses_ini.read(str(folder / f"xml-{name}.ini")))
        made = Decoder(replace(loaded, search=ini), DecoderConfig(nbest=5))
        theirs: dict[int, list[nbest.Hypothesis]] = {}
        for hypothesis in nbest.read(folder / f"xml-{name}.nbest"):
            theirs.setdefault(hypothesis.sentence, []).append(hypothesis)
        outputs = [line.strip(" ") for line in files.read_lines(folder / f"xml-{name}.out")]
        lines = files.read_lines(folder / ("in.walls.en" if name == "walls" else "in.xml.en"))
        for number, translation in enumerate(made.translate_all(lines)):
            assert " ".join(translation.text) == outputs[number], (name, number)
            entries = [
                nbest.parse(made.entry(number, translation, derivation), "ours")
                for derivation in translation.derivations
            ]
            ours = {(tuple(entry.text), *entry.rest): entry for entry in entries}
            for other in theirs[number]:
                mine = ours[(tuple(other.text), *other.rest)]
                assert list(mine.features) == list(other.features) and abs(mine.total - other.total) < 1.1e-3
                for feature, values in other.features.items():
                    np.testing.assert_allclose(mine.features[feature], values, atol=1.1e-4)
