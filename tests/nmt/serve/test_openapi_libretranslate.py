"""The description of LibreTranslate's interface; tests/fuzz asks a server whether it is true."""

from tests.nmt.serve.engines import Upper, client


def test_libretranslates_paths_have_the_languages_of_this_server() -> None:
    with client(Upper()) as api:
        paths = api.get("/api/openapi.json").json()["paths"]
    body = paths["/translate"]["post"]["requestBody"]["content"]
    for content in body.values():
        assert content["schema"]["properties"]["source"]["enum"] == ["auto", "en", "fr"]
    assert list(body) == ["application/json", "application/x-www-form-urlencoded"]
