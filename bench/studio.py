"""Time the studio from a moved slider to new margins of 299 tables.

The tables are of up to three of 12 attributes, four of them with prefix sums.

    python bench/studio.py [--ways 3]

The program measures the real server over HTTP, from the request to the last byte of the answer; a
browser adds the time to show the texts.
"""

import argparse
import itertools
import json
import statistics
import tempfile
import threading
import time
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from leastnoise._studio import Studio

SHAPE = (101, 101, 101, 101, 3, 8, 36, 6, 51, 4, 5, 15)
RICH = 4
SIZES = ("0.9", "0.6", "2", "1/3", "5", "0.1", "7", "0.01")


def spec(max_ways: int) -> str:
    """Return the text of the spec, with an entry per table of up to ``max_ways`` attributes."""
    domain = "".join(f"[domain.a{i}]\nintegers = [0, {n - 1}]\n" for i, n in enumerate(SHAPE))
    sets = (
        chosen
        for ways in range(max_ways + 1)
        for chosen in itertools.combinations(range(len(SHAPE)), ways)
    )
    query_texts = (
        "".join(f'a{i} = "{"prefix" if i < RICH else "identity"}", ' for i in chosen).rstrip(", ")
        for chosen in sets
    )
    parts = "".join(f"[[workload]]\nqueries = {{ {text} }}\n" for text in query_texts)
    return f'[privacy]\nrho = "1/2"\n{domain}{parts}[plan]\nstrategy = "tilted"\n'


def main() -> None:
    """Run the studio and print the measurements."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ways", type=int, default=3, help="attributes of the largest tables")
    max_ways = parser.parse_args().ways
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "wide.toml")
        path.write_text(spec(max_ways), encoding="utf-8")
        studio = Studio(path)
        thread = threading.Thread(target=studio.run)
        thread.start()
        try:
            measured(studio.address)
        finally:
            studio.stop()
            thread.join()


def measured(address: str) -> None:
    """Wait for the first plan, then move the slider and print the seconds."""
    parts = urlsplit(address)
    headers = {"Host": parts.netloc, "Origin": f"http://{parts.netloc}"}

    def ask(path: str, body: object = None) -> dict[str, Any]:
        """Send a request to the studio and return its JSON answer."""
        with closing(HTTPConnection(parts.netloc)) as connection:
            connection.request(
                "GET" if body is None else "POST",
                path,
                None if body is None else json.dumps(body),
                headers,
            )
            answer = connection.getresponse()
            headers["Cookie"] = (
                answer.headers.get("Set-Cookie") or headers.get("Cookie", "")
            ).split(";")[0]
            content = answer.read()
        return json.loads(content) if path in {"/view", "/change"} else {}

    start = time.perf_counter()
    ask(f"/?{parts.query}")
    while (view := ask("/view"))["busy"]:
        time.sleep(0.5)
    rows = view["rows"]
    print(
        f"{len(rows)} tables; the first plan took {time.perf_counter() - start:.1f} s "
        f"{view['error']}"
    )
    times = []
    for size in SIZES:
        start = time.perf_counter()
        view = ask("/change", {"version": view["version"], "changes": {"size": size}})
        times.append(time.perf_counter() - start)
        assert view["rows"] != rows  # noqa: S101 - otherwise nothing was computed
    print(
        f"from a moved slider to new margins: median {statistics.median(times):.2f} s, longest "
        f"{max(times):.2f} s"
    )


if __name__ == "__main__":
    main()
