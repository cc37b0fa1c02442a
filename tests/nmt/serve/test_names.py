"""Names of engines."""

import pytest

from nmt.serve import names


def test_a_name_may_say_the_languages() -> None:
    assert names.languages("en-fr") == ("en", "fr")
    assert names.languages("de-en.small") == ("de", "en")
    assert names.languages("en-french") == names.languages("xx-yy") == names.languages("best") == ("", "")


def test_name_and_path() -> None:
    assert names.parse_name("en-fr=runs/a,runs/b=c") == ("en-fr", "runs/a,runs/b=c")


@pytest.mark.parametrize(
    "text", ["path", "=path", "a b=path", "name=", "../x=path", "<b>=path", "n" * 65 + "=p"]
)
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        names.parse_name(text)
