"""A real studio on a free port, and an HTTP client that can forge its origin."""

import errno
import json
import os
import threading
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from operator import itemgetter
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from leastnoise._studio import BackgroundProcess, Studio, handle_request
from waiting import HANGS, wait_until

SPEC = """\
# a survey that does not exist
[source]
path = "people.csv"  # nowhere
[privacy]
epsilon = 1  # a year
[domain.sex]
categories = ["F", "M"]
[domain.region]
categories = ["north", "south", "<b>west</b>"]
[domain.kids]
integers = [0, 5]
# all small tables
[[workload]]
marginals = { upto = 2 }
# how many children
[[workload]]
queries = { region = "identity", kids = "prefix" }
weight = 2.0
margin = "60"
[plan]
strategy = "identity"
"""

SERIES = """\
[source]
path = "people.csv"
[privacy]
rho = "1/8"
[domain.month]
dates = { column = "day", from = "2024-01-01", to = "2024-04-30", by = "month" }  # four months
[domain.sex]
categories = ["F", "M"]
[measures.pay]
clip = [0, 100]
[[workload]]
queries = { month = "identity", sex = "identity" }
[[workload]]
queries = { month = "prefix" }
[[workload]]
means = { of = "pay", by = ["month"] }
[series]
along = "month"
"""


class Client:
    """Sends HTTP requests with the headers of the test."""

    def __init__(self, address):
        parts = urlsplit(address)
        self.host, self.first, self.cookie = parts.netloc, f"{parts.path}?{parts.query}", None
        self.version = None  # of the settings that it was shown last

    def ask(self, path, body=None, *, host=None, origin="", language=None):
        content = (
            b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        )
        own_origin = None if body is None else f"http://{self.host}"
        headers = {
            "Host": host or self.host,
            "Origin": own_origin if origin == "" else origin,
            "Cookie": self.cookie,
            "Accept-Language": language,
        }
        headers["Content-Length"] = str(len(content)) if content else None
        with closing(HTTPConnection(*self.host.split(":"), timeout=HANGS)) as connection:
            connection.putrequest(
                "GET" if body is None else "POST", path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in headers.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(content)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()

    def enter(self, language=None):
        status, headers, page = self.ask(self.first, language=language)
        assert status == 200
        self.cookie = headers["set-cookie"].split(";")[0]
        return page.decode()

    def json(self, path, body=None):
        status, _, content = self.ask(path, body)
        assert status == 200, content
        value = json.loads(content)
        self.version = value.get("version", self.version)
        return value

    def act(self, path, **body):
        """Post a request of a planning page with the version of the settings that it shows."""
        return self.json(path, {**body, "version": self.version})

    def another(self):
        """Return a second page of the same browser."""
        client = Client(f"http://{self.host}/")
        client.cookie = self.cookie
        client.json("/view")
        return client

    def until(self, fits):
        """Return the first view that fits."""
        wait_until(lambda: fits(self.json("/view")))
        return self.json("/view")

    def planned(self):
        """Return the first view with a plan."""
        return self.until(itemgetter("ready"))

    def idle(self):
        """Return the first view without planning at work."""
        return self.until(lambda view: not view["busy"])


@contextmanager
def serving(place):
    """Yield a client of a studio that has just started."""
    studio = Studio(place)
    thread = threading.Thread(target=studio.run)
    thread.start()
    try:
        yield Client(studio.address)
    finally:
        studio.stop()
        thread.join()


@pytest.fixture
def spec(tmp_path):
    place = tmp_path / "people.toml"
    place.write_text(SPEC)
    return place


def nobody_reads(pipe):
    """Put a pipe in place of the data, so that reading it would block."""
    try:
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        return error.errno == errno.ENXIO
    return False


@pytest.fixture
def planned_here(monkeypatch):
    """Plan in this process, because another one takes as long to load as to plan.

    Planning in a process of its own is tested in test_planning.py and in browsers.
    """
    running = []

    def run(self, number, request):
        running.append(threading.current_thread())
        with self._lock:
            if self._waiting is not threading.current_thread():
                return
            self._process = process = SimpleNamespace(kill=lambda: None)

        def tell(message):
            if self._process is process:
                self._receive(number, json.loads(json.dumps(message)))

        handle_request(json.loads(json.dumps(request())), tell)
        self._receive(number, None)

    monkeypatch.setattr(BackgroundProcess, "_run", run)
    yield
    for thread in running:
        thread.join()


@pytest.fixture
def client(spec, planned_here):
    """Yield a client of a studio that would block if it opened the data."""
    pipe = spec.with_name("people.csv")
    os.mkfifo(pipe)
    with serving(spec) as studio_client:
        yield studio_client
        assert nobody_reads(pipe)
