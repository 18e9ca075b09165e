"""The hook that `make env` sets refuses long subjects of commits."""

import subprocess
from pathlib import Path

import pytest

HOOK = Path(__file__).parents[2] / ".githooks" / "commit-msg"


@pytest.mark.parametrize(
    ("message", "is_refused"),
    [
        ("x" * 72, False),
        ("x" * 73, True),
        ("ü" * 72 + "\n\nA body with " + "x" * 100, False),
        ("# a comment of git\n\n" + "x" * 73, True),
        ("# " + "x" * 80 + "\nReject overlapping groups", False),
        ("Merge branch " + "x" * 80, False),
        ("", False),
    ],
)
def test_hook_refuses_long_subjects(message, is_refused, tmp_path):
    file = tmp_path / "message"
    file.write_text(message, encoding="utf-8")
    result = subprocess.run([HOOK, file], capture_output=True, text=True, check=False)
    assert result.returncode == int(is_refused)
    assert ("at most 72" in result.stderr) == is_refused


def test_hook_accepts_empty_file(tmp_path):
    file = tmp_path / "message"
    file.touch()
    subprocess.run([HOOK, file], check=True)
