"""Here pictures are drawn; elsewhere tests go without them."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def with_pictures():
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LEASTNOISE_CHARTS")
        yield
