"""How hypothesis makes cases: the same ones each time, and nothing that it keeps."""

from hypothesis import HealthCheck, Phase, settings


def options(cases: int) -> settings:
    """For so many cases of a test."""
    return settings(
        max_examples=cases,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
