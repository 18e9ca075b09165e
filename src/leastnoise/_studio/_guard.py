"""Who is answered: the browser that brought the one-time token, asking this very server from its own page. Everybody else gets nothing.

- Host must be this address: another name that was made to lead here (DNS rebinding) gets nothing.
- Origin, where a browser says one, must be this page; and whatever changes something must say one.
- The token in the address is good for one visit. That visit gets a session in a cookie that only this browser has and that it sends from
  this page alone (HttpOnly, SameSite=Strict).

What is refused is refused with status 403 and not a byte more.
"""

import threading
from secrets import compare_digest, token_urlsafe

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"
_READS = {"GET", "HEAD"}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Guard:
    """Stands before an application."""

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self.app = app
        self.address = f"{HOST}:{port}"
        self.cookie = f"leastnoise-{port}"
        self.session = token_urlsafe(32)
        self._token: str | None = token
        self._lock = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        request = Request(scope)
        new = self._here(request) and self._visit(request)
        if not new and not (self._here(request) and self._known(request)):
            await Response(status_code=403)(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                if new:
                    headers.append("Set-Cookie", f"{self.cookie}={self.session}; HttpOnly; SameSite=Strict; Path=/")
            await send(message)

        await self.app(scope, receive, sent)

    def _here(self, request: Request) -> bool:
        """Whether it is meant for this server, and comes from its page."""
        origins = request.headers.getlist("origin")
        mine = origins == [f"http://{self.address}"] or (not origins and request.method in _READS)
        return request.headers.getlist("host") == [self.address] and mine

    def _visit(self, request: Request) -> bool:
        """Whether it brings the token, which is then used up."""
        given = request.query_params.get("token", "")
        with self._lock:
            if self._token is None or request.url.path != "/" or request.method != "GET" or not _equal(given, self._token):
                return False
            self._token = None
            return True

    def _known(self, request: Request) -> bool:
        return _equal(request.cookies.get(self.cookie, ""), self.session)


def _equal(given: str, wanted: str) -> bool:
    return compare_digest(given.encode(), wanted.encode())
