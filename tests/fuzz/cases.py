"""How many damaged inputs are tried, and what each of them may end in."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import HealthCheck, settings

import leastnoise as ln

CASES = int(os.environ.get("LEASTNOISE_FUZZ", "0"))
MOST = 4200
SECRET = "s3cr3tvalue"  # noqa: S105 - what no message may show


def trials(most: int) -> Any:
    """So many cases in the suite, or as many as are asked for."""
    checks = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
    return settings(
        max_examples=CASES or most,
        deadline=None,
        derandomize=not CASES,
        database=None,
        suppress_health_check=checks,
    )


@contextmanager
def or_refused() -> Iterator[None]:
    """What is within is done, or ends in one of our errors, for a user, and short."""
    said = ""
    try:
        yield
    except ln.InternalError:
        raise
    except ln.LeastNoiseError as error:
        said = str(error)
    assert len(said) <= MOST
    assert SECRET not in said
