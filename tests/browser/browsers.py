"""What tests of pages in real browsers share: Debian's Chromium or Firefox, driven by what npm installs beside this file."""

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from waiting import HANGS

HERE = Path(__file__).parent
BROWSERS = {"chrome": ("chromium", "google-chrome"), "firefox": ("firefox-esr", "firefox")}


def _driver() -> bool:
    """Whether what drives a browser is there; installed where it is not (20 MB), by one process at a time."""
    with (HERE / ".installing").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (HERE / "node_modules" / ".package-lock.json").exists():
            command = ["npm", "ci", "--no-audit", "--no-fund", "--silent"]
            subprocess.run(command, cwd=HERE, check=False, timeout=HANGS, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return (HERE / "node_modules" / ".package-lock.json").exists()


def found_by(kind: str, script: str, *arguments: object, home: Path) -> dict[str, Any]:
    """What a script found in a browser of this kind; the test is skipped where there is none."""
    program = next((path for name in BROWSERS[kind] if (path := shutil.which(name))), None)
    if program is None or shutil.which("npm") is None:
        pytest.skip(f"{kind} or npm is not installed (make machine, as root)")
    if not _driver():
        pytest.skip("npm could not install what drives a browser (cd tests/browser; npm ci)")
    command = ["node", script, kind, program, *map(str, arguments)]
    done = subprocess.run(
        command, cwd=HERE, env={**os.environ, "HOME": str(home)}, capture_output=True, text=True, timeout=HANGS, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
