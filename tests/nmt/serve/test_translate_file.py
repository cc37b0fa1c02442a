"""Documents through LibreTranslate's interface."""

import asyncio
import json
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from nmt.serve.config import ServeConfig
from nmt.serve.server import application
from nmt.serve.translate_file import FileStore, KeptFile, safe_name, translated_name
from tests.nmt.documents.test_damaged import HOSTILE, docx
from tests.nmt.documents.test_samples import SAMPLES, docx_texts, parts
from tests.nmt.serve.engines import BEARER, SECRET, Batch, Upper, client, listening, serving

EN_FR = {"source": "en", "target": "fr"}


def sent(api: TestClient, name: str, data: bytes, **fields: str) -> tuple[int, dict[str, str]]:
    answer = api.post("/translate_file", data=EN_FR | fields, files={"file": (name, data)})
    return answer.status_code, answer.json()


def downloaded(api: TestClient, name: str, data: bytes, **fields: str) -> bytes:
    status, answer = sent(api, name, data, **fields)
    assert status == 200, answer
    found = api.get(answer["translatedFileUrl"])
    assert found.status_code == 200 and found.headers["content-disposition"].startswith("attachment;")
    return found.content


def test_documents_of_every_format() -> None:
    with client(Upper()) as api:
        assert downloaded(api, "a.txt", b"a b.\n\n- c\n") == b"A B.\n\n- C\n"
        assert downloaded(api, "a.html", b"<p>a <b>b</b>") == b"<p>A <b>B</b>"
        assert downloaded(api, "a.txt", b"a b", source="auto") == b"A B"
        assert docx_texts(parts(downloaded(api, "a.docx", docx()))["word/document.xml"]) == ["AMAN."]
        settings = api.get("/frontend/settings").json()
    assert settings["filesTranslation"] and ".docx" in settings["supportedFilesFormat"]


@pytest.mark.parametrize("path", SAMPLES[::7], ids=lambda path: path.name)
def test_samples(path: Path) -> None:
    with client(Batch()) as api:
        assert downloaded(api, path.name, path.read_bytes()) != path.read_bytes()


def test_names_are_safe() -> None:
    assert safe_name("../../etc/Räpport 1.DOCX") == "R_pport_1.DOCX"
    assert safe_name("C:\\x\\y.txt") == "y.txt" and safe_name("..") == "document"
    assert safe_name('a"\r\nb.txt') == "a_b.txt" and len(safe_name("a" * 999 + "." + "b" * 999)) < 200
    assert translated_name("report.docx", "fr") == "report.fr.docx"
    with client(Upper()) as api:
        _, answer = sent(api, "../../a b.txt", b"a")
        assert answer["translatedFileUrl"].endswith(".a_b.fr.txt")
        for name in ("%2e%2e%2fa", "%2e%2e%5ca", "a%2fb", "..%5ca", ".hidden"):
            assert api.get(f"/download_file/{name}").status_code in (400, 404)
        assert api.get("/download_file/x.txt").status_code == 404


def test_what_is_refused() -> None:
    with client(Upper()) as api:
        for name, data, fields, message in (
            ("a.exe", b"MZ", {}, "Invalid request: file format not supported"),
            ("a.txt", b"a", {"source": ""}, "Invalid request: missing source parameter"),
            ("a.txt", b"a", {"target": ""}, "Invalid request: missing target parameter"),
            ("a.txt", b"a", {"target": "zz"}, "zz is not supported"),
            ("a.txt", b"a", {"engine": "zz"}, "engine: zz is not one of"),
            ("a.txt", b"\xff", {}, "a.txt:1: byte 0xff"),
            ("a.docx", b"PK", {}, "a.docx:1: damaged ZIP file"),
            ("a.txt", b"a" * 6000, {}, "a sentence of 6000 characters"),
            ("a.txt", b"fail", {}, "cannot be translated"),
        ):
            status, answer = sent(api, name, data, **fields)
            assert status == 400 and message in answer["error"], answer
        assert api.post("/translate_file", data=EN_FR).json()["error"].endswith("missing file parameter")
        assert api.post("/translate_file", data=EN_FR, files={"x": ("a.txt", b"a")}).status_code == 400


@pytest.mark.ci
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_documents(name: str) -> None:
    ending, make = HOSTILE[name]
    with client(Upper(), max_file=20 << 20) as api:
        status, answer = sent(api, f"a{ending}", make())
    assert status == 400 and "\n" not in answer["error"]


def test_only_documents_may_be_large() -> None:
    with client(Upper(), max_file=3000, max_request=1000, max_line=9000) as api:
        assert sent(api, "a.txt", b"a " * 1000)[0] == 200
        assert sent(api, "a.txt", b"a " * 10_000)[0] == 413
        assert api.post("/translate", data={"q": "a " * 1000, **EN_FR}).status_code == 413


def test_a_key_is_needed_for_translating() -> None:
    """The name of the result cannot be guessed; who has it may download."""
    with client(Upper(), token=SECRET) as api:
        assert sent(api, "a.txt", b"a")[0] == 403
        assert downloaded(api, "a.txt", b"a", api_key=SECRET) == b"A"
        answer = api.post("/translate_file", data=EN_FR, files={"file": ("a.txt", b"a")}, headers=BEARER)
        assert answer.status_code == 200


async def keep_three() -> tuple[FileStore, list[str]]:
    store = FileStore(10, 60)
    return store, [store.keep(KeptFile(b"12345", "text/plain", f"{name}.txt")) for name in "abc"]


def test_the_oldest_files_make_room() -> None:
    store, keys = asyncio.run(keep_three())
    assert list(store.files) == keys[1:] and len({key.split(".")[0] for key in keys}) == 3


def post_form(url: str, text: str, parameters: str = "") -> str:
    """Send a.txt as browsers and curl -F do; returns the link of the answer. `parameters`: of the form's
    type, besides its boundary."""
    boundary = "xyz"
    fields = "".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in EN_FR.items()
    )
    file = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n'
    body = f"{fields}{file}Content-Type: text/plain\r\n\r\n{text}\r\n--{boundary}--\r\n"
    kind = {"Content-Type": f"multipart/form-data; boundary={boundary}{parameters}"}
    request = urllib.request.Request(f"{url}/translate_file", body.encode(), kind)
    with urllib.request.urlopen(request) as answer:
        return str(json.load(answer)["translatedFileUrl"])


def test_through_http_as_programs_send_it() -> None:
    with listening(application(serving(Upper()), ServeConfig())) as url:
        link = post_form(url, "a b")
        assert link.startswith(f"{url}/download_file/")
        with urllib.request.urlopen(link) as answer:
            assert answer.read() == b"A B" and answer.headers["Content-Type"].startswith("text/plain")
            assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_an_unknown_character_set_is_refused() -> None:
    with listening(application(serving(Upper()), ServeConfig())) as url:
        for name in ("undefined", "no-such"):
            with pytest.raises(urllib.error.HTTPError) as failed:
                post_form(url, "a", f"; charset={name}")
            with failed.value as error:
                assert error.code == 400 and f"charset is '{name}', expected utf-8" in error.read().decode()


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_files_are_deleted_in_time() -> None:
    with listening(application(serving(Upper()), ServeConfig(keep_files=0.5))) as url:
        link, end = post_form(url, "a"), time.monotonic() + 30
        while status(link) == 200 and time.monotonic() < end:
            time.sleep(0.05)
        assert status(link) == 404
