"""What Prometheus reads."""

from prometheus_client.parser import text_string_to_metric_families

from tests.nmt.serve.engines import Upper, client


def test_requests_are_counted_by_what_handled_them() -> None:
    with client(Upper()) as api:
        for text in ("a\nb", "c"):
            api.post("/api/translate", json={"text": text})
        api.post("/api/translate", json={})
        for path in ("/x", "/y"):
            api.request("BREW", path)
        answer = api.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain")
    found = {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    assert found["nmt_requests_total", "POST", "/api/translate", "200"] == 2
    assert found["nmt_requests_total", "POST", "/api/translate", "400"] == 1
    assert found["nmt_requests_total", "other", "other", "404"] == 2
    assert found["nmt_request_seconds_count", "/api/translate"] == 3
    assert found["nmt_lines_total", "upper"] == 3
    assert found["nmt_waiting_lines", "upper"] == found["nmt_live_lines", "upper"] == 0
    assert found[("nmt_active_requests",)] == 1
    assert found[("process_resident_memory_bytes",)] > 0
