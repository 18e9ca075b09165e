"""Helpers of tests of whole releases: stop them after payment, and read what they wrote."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import leastnoise as ln


def full(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


@contextmanager
def stopped(owner: object, function: str) -> Iterator[pytest.ExceptionInfo[ln.PaidError]]:
    """Let a function fail as on a full disk, and expect that a paid release stops there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, function, full)
        with pytest.raises(ln.PaidError) as error:
            yield error


def manifest(out: Path) -> dict[str, Any]:
    return json.loads((out / "manifest.json").read_text(encoding="utf-8"))


def report(out: Path) -> str:
    return (out / "report.html").read_text(encoding="utf-8")
