"""What all interfaces share."""

from tests.nmt.serve.engines import Upper, client


def test_the_page_is_there_and_nothing_beside_it() -> None:
    with client(Upper()) as api:
        page = api.get("/")
        assert page.status_code == 200 and page.text.startswith("<!doctype html>")
        for path in ("/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "//etc/passwd", "/index.html/x"):
            answer = api.get(path)
            assert answer.status_code == 404 and set(answer.json()) == {"error"}, path


def test_errors_are_json() -> None:
    with client(Upper()) as api:
        assert api.get("/api/nothing").json() == {"error": "Not Found"}
        wrong = api.get("/api/translate")
        assert wrong.status_code == 405 and wrong.json() == {"error": "Method Not Allowed"}
