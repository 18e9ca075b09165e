"""One browser of each kind for all tests of pages."""

import pytest

from browser.browsers import browsers


@pytest.fixture(scope="session")
def found_by(tmp_path_factory):
    with browsers(tmp_path_factory.mktemp("home")) as found_by:
        yield found_by
