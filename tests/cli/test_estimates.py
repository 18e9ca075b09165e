"""Every step that can take over a second says about how long it still takes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leastnoise._session import _finish

Run = Callable[..., Any]


def test_every_step_says_about_how_long_it_still_takes(folder: Path, run: Run, estimates: dict[str, str], monkeypatch: Any) -> None:
    people = folder / "people.csv"
    with people.open("a", encoding="utf-8") as file:  # more than one block, so that there is a share before the end
        file.write("F,30,500\n" * 2**18)

    def full(*_: object) -> None:
        raise OSError("the disk is full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_finish, "fill_draft", full)
        assert run("release", "people.toml", "--out", "out").code == 3
    monkeypatch.setenv("LEASTNOISE_CHARTS", "")  # pictures are not made here, and are what takes the time
    assert run("check", "people.toml").code == 0
    monkeypatch.setenv("LEASTNOISE_CHARTS", "never")
    for command in (("resume",), ("show", "out"), ("answer", "out", "--cells", "sex"), ("round", "out", "--to", "5", "--out", "rounded")):
        assert run(*command).code == 0, command
    for step in ("planning", "measuring, estimating and writing", "reading people.csv", "finishing release 1", "opening out", "rounding"):
        assert "more" in estimates[step], (step, estimates)
