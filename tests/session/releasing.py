"""Helpers of tests of whole releases: stop them after payment, and read what they wrote."""

import json
from contextlib import contextmanager

import pytest

import leastnoise as ln


def full(*_, **__):
    raise OSError(28, "No space left on device")


@contextmanager
def stopped(owner, function):
    """Let a function fail as on a full disk, and expect that a paid release stops there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, function, full)
        with pytest.raises(ln.PaidError) as error:
            yield error


def manifest(out):
    return json.loads((out / "manifest.json").read_text(encoding="utf-8"))


def report(out):
    return (out / "report.html").read_text(encoding="utf-8")
