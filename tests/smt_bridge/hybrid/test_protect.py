"""What is protected from tokenization."""

import pytest

from smt_bridge.hybrid import protect
from smt_bridge.hybrid.protect import Placeholders


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("see http://a.b/c(d), or (www.x.org).", ["http://a.b/c(d", "www.x.org"]),
        ("mail me@x.org. Or a.b+c@y-z.co.uk!", ["me@x.org", "a.b+c@y-z.co.uk"]),
        ("<b>x</b><br/> 3 < 5 and 7 > 2", ["<b>", "</b>", "<br/>"]),
        ("AT&amp;T &#65; & co;", ["&amp;", "&#65;"]),
        ("10:30 1/2/2024 1.5 1,000 3: a1:2", ["10:30", "1/2/2024"]),
        ("看http://a.b/c。", ["http://a.b/c"]),
        ("nothing @ all", []),
    ],
)
def test_what_is_protected(line: str, kept: list[str]) -> None:
    hidden, places = protect.hide(line)
    assert places.kept == kept
    assert not [one for one in kept if one in hidden]
    back = "".join(map(places.original, places.pattern.split(hidden)))
    assert back.replace(" ", "") == line.replace(" ", "")


def test_placeholders_are_not_in_the_line() -> None:
    places = Placeholders("zqq ZQ")
    words = [places.add(str(number)) for number in range(1000)]
    assert len(set(words)) == 1000 and words[0] == "ZQQQAAAA"
    assert [places.original(word) for word in words] == [str(number) for number in range(1000)]
    assert places.split([f"'{words[1]}.", "x"]) == ["'", words[1], ".", "x"]
    assert places.original("x") == "x"


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("<b> x </b>", [(0, 2)]),
        ("<b> <i> x </i> </b>", [(1, 3), (0, 4)]),
        ("<b> <br> x </b> </b> <hr/>", [(0, 3)]),
        ("<b> <i> </b> </i>", [(0, 2)]),
        ('<a\u00a0href="x"> y </A>', [(0, 2)]),
    ],
)
def test_pairs_of_tags(text: str, pairs: list[tuple[int, int]]) -> None:
    assert protect.tag_pairs(text.split(" ")) == pairs
