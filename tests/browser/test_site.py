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

ROOT = Path(__file__).parents[2]
# Pages of every kind: text, code, wide tables with pictures, a list. LEASTNOISE_SITE=whole, as in
# `make browsers`, opens all of them.
TYPICAL = ["index", "how-to", "results/sums", "decisions/index"]
EXAMINED = (
    [*TYPICAL, "python", "spec", "commands", "strategies", "contributing"] if WHOLE else TYPICAL
)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Log no requests."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Serve the site that `make docs` builds, and yield its address."""
    built = os.environ.get("LEASTNOISE_BUILT")
    folder = Path(built) if built else tmp_path_factory.mktemp("site")
    if not built:
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
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize("kind", BROWSERS)
def test_site_works_in_a_browser(site, kind, found_by):
    folder, address = site
    pages = sorted(str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.html"))
    assert set(EXAMINED) < set(pages)
    opened = [name for name in pages if name not in {"404", "search"}] if WHOLE else TYPICAL
    findings = found_by(kind, "site.mjs", address, ",".join(opened), ",".join(EXAMINED))
    assert (findings["visited"], findings["read"]) == (len(opened), len(opened))
    assert [
        text for text in findings["said"] if "earch" not in text
    ] == []  # the search says on the console that it is ready
    assert [
        request for request in findings["requests"] if not request.startswith((address, "data:"))
    ] == []
    assert [findings[fault] for fault in ("failed", "overflow", "axe")] == [[], {}, {}]
    assert findings["dark"] == (
        dict.fromkeys(EXAMINED, "rgb(23, 25, 28)") if kind == "chrome" else {}
    )
    assert findings["results"] > 3
    assert not list(folder.rglob("*.py"))
