"""Hostile clients beside a well-behaved one. How long its answers take is measured by hand: hostile.py."""

import pytest

from nmt.serve.config import ServeConfig
from nmt.serve.monitoring import RequestRecord
from nmt.serve.server import application
from tests.fuzz import hostile
from tests.nmt.serve.engines import Batch, Upper, listening, serving


@pytest.mark.ci
@pytest.mark.parametrize("engine", [Upper, Batch])
def test_other_clients_get_their_texts(engine: type[Upper], caplog: pytest.LogCaptureFixture) -> None:
    config, records = ServeConfig(gather=0.0, read_timeout=5.0), list[RequestRecord]()
    app = application(serving(engine(), config=config), config, done=records.append)
    with listening(app, config) as url:
        host, port = url.removeprefix("http://").split(":")
        results, checker = hostile.siege((host, int(port)), cases=60, seconds=60, clients=3, rounds=1)
    assert results.total() and not checker.wrong
    assert not [record for record in records if record.status >= 500 or record.error]
    assert "Traceback" not in caplog.text
