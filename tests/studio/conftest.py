"""Start a real studio on a free port, with an HTTP client that can forge its origin."""

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
        self.host = parts.netloc
        self.first_path = f"{parts.path}?{parts.query}"
        self.cookie = None
        self.version = None  # of the settings that it was shown last

    def ask(self, path, body=None, *, host=None, origin="", language=None):
        """Send a request, and return the status, headers and content of the answer.

        An origin of "" stands for the origin of the studio, and None for no header.
        """
        method = "GET" if body is None else "POST"
        if body is None:
            content = b""
        elif isinstance(body, bytes):
            content = body
        else:
            content = json.dumps(body).encode()
        if origin == "":
            origin = None if body is None else f"http://{self.host}"
        headers = {
            "Host": host or self.host,
            "Origin": origin,
            "Cookie": self.cookie,
            "Accept-Language": language,
            "Content-Length": str(len(content)) if content else None,
        }
        with closing(HTTPConnection(*self.host.split(":"), timeout=HANGS)) as connection:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(content)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()

    def enter(self, language=None):
        """Log in with the token of the address, and return the first page."""
        status, headers, page = self.ask(self.first_path, language=language)
        assert status == 200
        self.cookie = headers["set-cookie"].split(";")[0]
        return page.decode()

    def json(self, path, body=None):
        """Return the JSON answer to a request, which must succeed."""
        status, _, content = self.ask(path, body)
        assert status == 200, content
        value = json.loads(content)
        self.version = value.get("version", self.version)
        return value

    def act(self, path, **body):
        """Post a request of a planning page with the version of the settings that it shows."""
        return self.json(path, {**body, "version": self.version})

    def second_page(self):
        """Return a second page of the same browser."""
        client = Client(f"http://{self.host}/")
        client.cookie = self.cookie
        client.json("/view")
        return client

    def view_when(self, fits):
        """Return the first view that fits."""
        wait_until(lambda: fits(self.json("/view")))
        return self.json("/view")

    def planned_view(self):
        """Return the first view with a plan."""
        return self.view_when(itemgetter("ready"))

    def idle_view(self):
        """Return the first view without planning at work."""
        return self.view_when(lambda view: not view["busy"])


@contextmanager
def serving(path):
    """Start a studio for a spec, a data file, a release or nothing, and yield a client of it."""
    studio = Studio(path)
    thread = threading.Thread(target=studio.run)
    thread.start()
    try:
        yield Client(studio.address)
    finally:
        studio.stop()
        thread.join()


@pytest.fixture
def spec(tmp_path):
    """Return the file of a spec whose data do not exist."""
    path = tmp_path / "people.toml"
    path.write_text(SPEC)
    return path


def is_unread(pipe):
    """Tell whether no process has opened a pipe for reading."""
    try:
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        return error.errno == errno.ENXIO
    return False


@pytest.fixture
def plan_in_process(monkeypatch):
    """Plan in this process: a new one would take as long to start as to plan.

    test_planning.py and the tests in browsers plan in a separate process.
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
def client(spec, plan_in_process):
    """Yield a client of a studio whose data file is a pipe, which nothing must open."""
    pipe = spec.with_name("people.csv")
    os.mkfifo(pipe)
    with serving(spec) as studio_client:
        yield studio_client
        assert is_unread(pipe)
