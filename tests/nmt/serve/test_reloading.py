"""Loading engines anew over the network."""

from starlette.testclient import TestClient

from nmt.errors import ConfigError
from nmt.serve.access import Token
from nmt.serve.app import application
from nmt.serve.config import ServeConfig
from nmt.serve.served import ServedEngine, ServedEngines
from tests.nmt.serve.engines import Upper, client

SECRET = "correct horse battery"
BEARER = {"Authorization": f"Bearer {SECRET}"}


def test_one_engine_or_all() -> None:
    loaded = list[str]()

    def engine(name: str) -> ServedEngine:
        def load() -> Upper:
            loaded.append(name)
            if loaded.count("b") > 2:
                raise ConfigError("b is gone")
            return Upper()

        return ServedEngine(name, load, ServeConfig())

    app = application(ServedEngines([engine("a"), engine("b")]), ServeConfig(), Token(SECRET))
    api = TestClient(app, headers=BEARER)
    assert api.post("/api/reload", json={"engine": "a"}).json() == {"reloaded": ["a"]}
    assert api.post("/api/reload").json() == {"reloaded": ["a", "b"]}
    assert loaded == ["a", "b", "a", "a", "b"]
    failed = api.post("/api/reload", json={"engine": "b"})
    assert failed.status_code == 500 and failed.json() == {"error": "b: b is gone"}
    assert api.post("/api/translate", json={"text": "x", "engine": "b"}).status_code == 200
    assert api.post("/api/reload", json={"engine": "c"}).status_code == 400


def test_it_needs_a_token() -> None:
    with client(Upper()) as api:
        assert api.post("/api/reload").status_code == 403
    engines = ServedEngines([ServedEngine("a", Upper, ServeConfig())])
    guarded = TestClient(application(engines, ServeConfig(), Token(SECRET)))
    assert guarded.post("/api/reload").status_code == 401
