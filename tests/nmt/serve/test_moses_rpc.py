"""The interface of mosesserver."""

import xmlrpc.client
from typing import cast

import pytest
from starlette.testclient import TestClient

from nmt.serve import moses_rpc
from nmt.serve.engine import EngineInfo
from nmt.serve.moses_rpc import INTERNAL, NO_METHOD, PARSE, TYPE
from tests.nmt.serve.engines import Upper, client

Struct = dict[str, object]


def call(api: TestClient, body: bytes | str, path: str = "/RPC2") -> Struct:
    answer = api.post(path, content=body, headers={"Content-Type": "text/xml"})
    assert answer.status_code == 200 and answer.headers["Content-Type"].startswith("text/xml")
    ((found,), _) = xmlrpc.client.loads(answer.content)
    return cast(Struct, found)


def translate(api: TestClient, path: str = "/RPC2", **given: object) -> Struct:
    named = {name.replace("_", "-"): value for name, value in given.items()}
    return call(api, xmlrpc.client.dumps((named,), "translate"), path)


def test_tokenized_words_in_and_out() -> None:
    with client(Upper()) as api:
        assert translate(api, text=" a  b\n") == {"text": "A B"}
        assert translate(api, text="") == {"text": ""}
        assert translate(api, text="\r\n1\u00a0a\t\u2028b\n") == {"text": "1\u00a0A \u2028B"}


def test_the_fields_of_moses() -> None:
    with client(Upper()) as api:
        found = translate(api, text="a b", align="true", word_align=1, nbest=2, add_score_breakdown=True)
    align = [{"tgt-start": n, "src-start": n, "src-end": n} for n in range(2)]
    words = [{"source-word": n, "target-word": n} for n in range(2)]
    assert found == {
        "text": "A B",
        "align": align,
        "word-align": words,
        "nbest": [
            {"hyp": "A B", "align": align, "word-align": words, "fvals": "F0= 1 0", "totalScore": 0.0},
            {"hyp": "A B !", "align": align, "word-align": words, "fvals": "F0= 1 1", "totalScore": -1.0},
        ],
    }


def test_flags_that_say_no_are_not_set() -> None:
    with client(Upper()) as api:
        assert translate(api, text="a", align="false", word_align=0, nbest=0, sg=False) == {"text": "A"}


def test_another_engine_by_its_name() -> None:
    with client(Upper(), Upper(EngineInfo("fake", ""))) as api:
        assert translate(api, "/RPC2/other", text="a") == {"text": "A"}
        assert api.post("/RPC2/none", content="").status_code == 404


@pytest.mark.parametrize(
    ("method", "parameters", "code", "message"),
    [
        ("updater", ({},), NO_METHOD, "Method 'updater' not defined"),
        ("translate", (), TYPE, "expected one parameter"),
        ("translate", ("a",), TYPE, "expected one parameter"),
        ("translate", ({}, {}), TYPE, "expected one parameter"),
        ("translate", ({},), PARSE, "Missing source text"),
        ("translate", ({"text": 5},), TYPE, "text: expected a string"),
        ("translate", ({"text": "a", "nbest": "x"},), TYPE, "nbest: expected a whole number"),
        ("translate", ({"text": "a", "nbest": 101},), TYPE, "nbest: expected a whole number"),
        ("translate", ({"text": "a", "sg": "true"},), INTERNAL, "sg: this server cannot do that"),
        ("translate", ({"text": "fail"},), INTERNAL, "line 1: cannot be translated"),
        ("translate", ({"text": "a" * 6000},), INTERNAL, "line 1: 6000 characters"),
    ],
    ids=str,
)
def test_faults(method: str, parameters: tuple[object, ...], code: int, message: str) -> None:
    with client(Upper()) as api, pytest.raises(xmlrpc.client.Fault) as fault:
        call(api, xmlrpc.client.dumps(parameters, method))  # type: ignore[arg-type]
    assert fault.value.faultCode == code and fault.value.faultString.startswith(message)


LAUGHS = "<!DOCTYPE lolz [" + "".join(
    f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "lol"}">' for n in range(10)
)
END = "</member></struct></value></param></params></methodCall>"
CALL = "<methodCall><methodName>translate</methodName><params><param><value><struct><member><name>text</name>"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<a>",
        "<methodCall/>",
        "<methodResponse><fault><value><struct/></value></fault></methodResponse>",
        "<methodCall><params><param><value><int>x</int></value></param></params></methodCall>",
        "<methodCall><params><param><value><nil>x</nil></value></param></params></methodCall>",
        "<struct><member></member></struct></array>",
        "<array>" * 10_000,
        b"\xff\xfe\x00",
        '<?xml version="1.0" encoding="nonsense"?><methodCall/>',
        f'<?xml version="1.0"?>{LAUGHS}]>{CALL}<value>&l9;</value>{END}',
        f'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>{CALL}<value>&e;</value>{END}',
        '<!DOCTYPE x SYSTEM "http://127.0.0.1:1/x.dtd"><methodCall/>',
    ],
    ids=range(13),
)
def test_what_is_no_call(body: str | bytes) -> None:
    with client(Upper()) as api, pytest.raises(xmlrpc.client.Fault) as fault:
        call(api, body)
    assert fault.value.faultCode == PARSE and "lol" not in str(fault.value) and "root" not in str(fault.value)


@pytest.mark.parametrize("name", ["text", "sg", "nbest", "other"])
@pytest.mark.parametrize("depth", [60, 5000])
def test_values_that_are_nested_too_deep(name: str, depth: int) -> None:
    """Python's recursion would end inside of the answer."""
    deep = "<array><data><value>" * depth + "</value></data></array>" * depth
    body = f"{CALL}<value>a</value></member><member><name>{name}</name><value>{deep}</value>{END}"
    with client(Upper()) as api, pytest.raises(xmlrpc.client.Fault) as fault:
        call(api, body)
    assert fault.value.faultCode == PARSE


def test_values_that_are_nested_a_little() -> None:
    deep = "<array><data><value>" * 10 + "</value></data></array>" * 10
    body = f"{CALL}<value>a</value></member><member><name>other</name><value>{deep}</value>{END}"
    with client(Upper()) as api:
        assert call(api, body) == {"text": "A"}


def test_the_methods() -> None:
    with client(Upper()) as api:
        found = call(api, xmlrpc.client.dumps((), "system.listMethods"))
    assert list(found) == ["translate", "system.listMethods"]


def test_characters_that_xml_lacks_are_replaced() -> None:
    assert moses_rpc.clean_xml("a\x00b\x1b\ufffec\td") == "a\ufffdb\ufffd\ufffdc\td"
