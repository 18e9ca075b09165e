"""The documentation site in real browsers: requests, widths, accessibility and search."""

import os
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from browser.conftest import BROWSERS, WHOLE
from waiting import HANGS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
# Pages of every kind: text, code, wide tables with pictures, a list. LEASTNOISE_SITE=whole, as in
# `make browsers`, opens all of them.
TYPICAL = ["index", "how-to", "results/sums", "decisions/index"]
EXAMINED = (
    [*TYPICAL, "python", "spec", "commands", "strategies", "contributing"] if WHOLE else TYPICAL
)


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files, and writes nothing on the console."""

    def log_message(self, *_):
        """Log no requests."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Serve the site that `make docs` builds, and yield its address."""
    site_folder = os.environ.get("LEASTNOISE_BUILT")
    folder = Path(site_folder) if site_folder else tmp_path_factory.mktemp("site")
    if not site_folder:
        command = [
            sys.executable,
            "-m",
            "mkdocs",
            "build",
            "--strict",
            "--quiet",
            "--site-dir",
            str(folder),
        ]
        subprocess.run(command, cwd=ROOT, check=True, timeout=HANGS, capture_output=True)
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(QuietHandler, directory=str(folder))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize("kind", BROWSERS)
def test_site_works_in_a_browser(site, kind, run_in_browser):
    folder, address = site
    pages = sorted(str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.html"))
    assert set(EXAMINED) < set(pages)
    opened = [name for name in pages if name not in {"404", "search"}] if WHOLE else TYPICAL
    findings = run_in_browser(kind, "site.mjs", address, ",".join(opened), ",".join(EXAMINED))
    assert findings["visited"] == findings["read"] == len(opened)
    # The search writes on the console that it is ready.
    assert [text for text in findings["said"] if "earch" not in text] == []
    for request in findings["requests"]:
        assert request.startswith((address, "data:"))
    assert findings["failed"] == []
    assert findings["overflow"] == {}
    assert findings["axe"] == {}
    dark_pages = EXAMINED if kind == "chrome" else []
    assert findings["dark"] == dict.fromkeys(dark_pages, "rgb(23, 25, 28)")
    assert findings["results"] > 3
    assert not list(folder.rglob("*.py"))
