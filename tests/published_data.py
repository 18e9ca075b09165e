"""Published data sets, which are not part of the project: the folder LEASTNOISE_DATA."""

import os
from pathlib import Path

import pytest

FOLDER = os.environ.get("LEASTNOISE_DATA")


def published_data(needed):
    """Return the folder of the published data sets; skip the test if it lacks a path."""
    if not FOLDER:
        pytest.skip("set LEASTNOISE_DATA to the folder of the published data sets")
    folder = Path(FOLDER).resolve()
    if not (folder / needed).exists():
        pytest.skip(f"the folder LEASTNOISE_DATA, {folder}, has no {needed}")
    return folder
