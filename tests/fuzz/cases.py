"""The number of damaged inputs to try, and their permitted results."""

import os
from contextlib import contextmanager

from hypothesis import HealthCheck, settings

import leastnoise as ln

CASES = int(os.environ.get("LEASTNOISE_FUZZ", "0"))
MOST_TRIALS = 120
"""The most cases of a test in `make test ALL=1`; tests whose cases take longer have fewer."""
MOST = 4200
SECRET = "s3cr3tvalue"  # noqa: S105 - what no message may show


def trials(most):
    """Return Hypothesis settings: ``most`` cases, or more of them with LEASTNOISE_FUZZ.

    That is the number of cases of a test whose cases are fast. Other tests have the same part of it
    as in `make test ALL=1`, so that all of them take similar time.
    """
    checks = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
    return settings(
        max_examples=max(1, CASES * most // MOST_TRIALS) if CASES else most,
        deadline=None,
        derandomize=not CASES,
        database=None,
        suppress_health_check=checks,
    )


@contextmanager
def or_refused():
    """Let the body succeed, or fail with a short error for users that shows no value."""
    message = ""
    try:
        yield
    except ln.InternalError:
        raise
    except ln.LeastNoiseError as error:
        message = str(error)
    assert len(message) <= MOST
    assert SECRET not in message
