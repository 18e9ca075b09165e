"""Tests of access to the studio: only the authorised client gets an answer."""

import pytest

from studio.answers import is_empty_refusal

PATHS = ["/", "/view", "/spec", "/studio.css", "/asking.js", "/planning.js", "/nothing"]
ACTIONS = ["/change", "/price", "/keep", "/swap", "/save"]
CHANGE = {"changes": {"size": "5"}}


def test_studio_token_is_required_and_used_once(client):
    assert all(is_empty_refusal(client.ask(path)) for path in PATHS)
    assert all(is_empty_refusal(client.ask(path, {})) for path in ACTIONS)
    for path in (
        "/?token=",
        "/?token=wrong",
        "/?token=%F0%9F%98%80",
        client.first_path[:-1],
        client.first_path.replace("/?", "/view?"),
    ):
        assert is_empty_refusal(client.ask(path))
    assert is_empty_refusal(client.ask(client.first_path, {}))
    client.enter()
    assert client.ask("/view")[0] == 200
    assert client.ask("/nothing")[0] == 404
    cookie = client.cookie
    other_end = "a" if cookie[-1] != "a" else "b"
    for wrong_cookie in (None, cookie[:-1] + other_end):
        client.cookie = wrong_cookie
        assert is_empty_refusal(client.ask(client.first_path))
        assert is_empty_refusal(client.ask("/view"))


def test_foreign_host_or_origin_is_refused(client):
    port = client.host.split(":")[1]
    hosts = [
        "evil.example",
        f"evil.example:{port}",
        f"localhost:{port}",
        "127.0.0.1",
        f"127.0.0.1:{port}.evil.example",
        f"[::1]:{port}",
    ]
    origins = [
        "http://evil.example",
        "null",
        f"https://{client.host}",
        "http://127.0.0.1",
        f"http://127.0.0.1:{port}0",
    ]
    foreign = [{"host": host, "origin": f"http://{host}"} for host in hosts]
    foreign += [{"origin": origin} for origin in origins]
    foreign_hosts = [{"host": host} for host in hosts]
    for headers in foreign_hosts + foreign:
        assert is_empty_refusal(client.ask(client.first_path, **headers))
    client.enter()  # none of these requests used the token up
    for headers in foreign_hosts + foreign:
        assert is_empty_refusal(client.ask("/view", **headers))
    for headers in foreign:
        assert is_empty_refusal(client.ask("/change", CHANGE, **headers))
    # A request that changes something must state its origin.
    assert is_empty_refusal(client.ask("/change", CHANGE, origin=None))
    assert client.json("/view")["size"] == "1"


def test_studio_listens_on_localhost_only(client):
    port = int(client.host.split(":")[1])
    client.host = f"127.0.0.2:{port}"
    with pytest.raises(ConnectionRefusedError):
        client.ask("/", host=f"127.0.0.1:{port}")


def test_studio_pages_load_nothing_external(client):
    page = client.enter()
    _, headers, _ = client.ask("/")
    for rule in ("default-src 'none'", "script-src 'self';", "frame-ancestors 'none'"):
        assert rule in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"
    for text in ("http://", "https://", "<b>west</b>", client.first_path):
        assert text not in page


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b'{"a": NaN}',
        b"[" * 5000,
        b'{"changes": [], "version": 1}',
        b'{"a":"' + b"a" * 1_000_001,
    ],
)
def test_invalid_request_is_refused_in_a_sentence(client, body):
    client.enter()
    status, _, content = client.ask("/change", body)
    assert status == (200 if b"changes" in body else 400)
    assert b"must" in content
    assert b'"refused"' in content
