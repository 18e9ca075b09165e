"""One browser of each kind for all tests of pages: Chromium and Firefox of Debian.

The driver is installed next to this file by npm.
"""

import fcntl
import json
import os
import select
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from waiting import HANGS

HERE = Path(__file__).parent
# Set by `make browsers`: test all pages of the site, and take pictures of the program's pages.
WHOLE = os.environ.get("LEASTNOISE_SITE") == "whole"
BROWSERS = {"chrome": ("chromium", "google-chrome"), "firefox": ("firefox-esr", "firefox")}


def _driver():
    """Return whether the browser driver is installed, and install it (20 MB) where it is not."""
    with (HERE / ".installing").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (HERE / "node_modules" / ".package-lock.json").exists():
            command = ["npm", "ci", "--no-audit", "--no-fund", "--silent"]
            subprocess.run(
                command,
                cwd=HERE,
                check=False,
                timeout=HANGS,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        return (HERE / "node_modules" / ".package-lock.json").exists()


def _started(kind, home):
    """Start a browser of this kind that waits for scripts, or skip the test without one."""
    program = next((path for name in BROWSERS[kind] if (path := shutil.which(name))), None)
    if program is None or shutil.which("npm") is None:
        pytest.skip(f"{kind} or npm is not installed (make machine, as root)")
    if not _driver():
        pytest.skip("npm could not install what drives a browser (cd tests/browser; npm ci)")
    command = ["node", "drive.mjs", kind, program]
    environment = {**os.environ, "HOME": str(home)}
    return subprocess.Popen(
        command, cwd=HERE, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


@pytest.fixture(scope="session")
def run_in_browser(tmp_path_factory):
    """Yield a function that runs a script in a browser and returns its findings."""
    running: dict[str, subprocess.Popen[str]] = {}
    home = tmp_path_factory.mktemp("home")

    def run_in_browser(kind, script, *arguments):
        if kind not in running:
            running[kind] = _started(kind, home)
        questions = running[kind].stdin
        answers = running[kind].stdout
        questions.write(json.dumps([script, *map(str, arguments)]) + "\n")
        questions.flush()
        assert select.select([answers], [], [], HANGS)[0], f"{script} hangs in {kind}"
        findings: dict[str, Any] = json.loads(answers.readline())
        assert "failed" not in findings, findings["failed"]
        return findings["found"]

    yield run_in_browser
    for process in running.values():
        process.communicate(timeout=HANGS)


def is_sound(findings, address):
    """Return whether a page fits its width; its console, requests and axe must be clean."""
    assert findings["said"] == []
    assert all(
        loaded_address.startswith((address, "data:")) for loaded_address in findings["loaded"]
    )
    assert findings["axe"] == []
    return all(over <= 0 for over in findings["overflow"].values())
