"""Parts of descriptions."""

import jsonschema_rs
import pytest

from nmt.serve.openapi_schemas import COUNT, ERRORS, FLAG, WORDS, operation, optional, post, record


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [(COUNT, 3, -1), (FLAG, True, 1), (WORDS, ["a"], [1]), ({"type": "string", "enum": ["a"]}, "a", "b")],
)
def test_what_is_optional_may_be_null(schema: dict[str, object], good: object, bad: object) -> None:
    assert jsonschema_rs.is_valid(schema, good) and not jsonschema_rs.is_valid(schema, None)
    assert jsonschema_rs.is_valid(optional(schema), good) and jsonschema_rs.is_valid(optional(schema), None)
    assert not jsonschema_rs.is_valid(optional(schema), bad)


def test_operations_have_the_errors_that_are_named() -> None:
    answer = record(["a"], a=COUNT)
    assert list(operation("Count", answer, "400")["responses"]) == ["200", "400"]  # type: ignore[call-overload]
    described = post("Count", answer, answer, *ERRORS, form=True)["post"]
    assert len(described["requestBody"]["content"]) == 2  # type: ignore[index]
    assert not jsonschema_rs.is_valid(answer, {}) and jsonschema_rs.is_valid(answer, {"a": 1})
