"""What all pages of the studio share: the guard of the server, templates and shipped files, actions, and their errors.

The server answers only the browser that brought the one-time token, and only requests from its own
page:

- Host must be this address, so that another name that was made to lead here (DNS rebinding) gets
  nothing.
- Origin must be this page where a browser sends it, and every request that changes something must
  send it.
- The token in the address is good for one visit. That visit gets a session in a cookie, which only
  this browser has and sends from this page alone (HttpOnly, SameSite=Strict).

Everything else is refused with status 403 and an empty body.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from secrets import compare_digest, token_urlsafe
from typing import Any, NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leastnoise._charts import set_locale
from leastnoise._plan import read_json
from leastnoise._release import Catalogue, load_templates
from leastnoise._trusted.check import InternalError, LeastNoiseError

HOST = "127.0.0.1"
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' "
    "'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
ASSETS = Path(__file__).with_name("assets")
_TYPES = {".css": "text/css", ".js": "text/javascript"}
_MOST_BYTES = 1_000_000


class Guard:
    """Stands before an application, and lets the requests of its own page through."""

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self.app = app
        self.address = f"{HOST}:{port}"
        self.cookie = f"leastnoise-{port}"
        self.session = token_urlsafe(32)
        self._token: str | None = token
        self._lock = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request that is meant for this server, comes from its page, and brings the token or the session; refuse others."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        request = Request(scope)
        origins = request.headers.getlist("origin")
        mine = origins == [f"http://{self.address}"] or (
            not origins and request.method in {"GET", "HEAD"}
        )
        here = mine and request.headers.getlist("host") == [self.address]
        new = here and self._visit(request)
        known = here and compare_digest(
            request.cookies.get(self.cookie, "").encode(), self.session.encode()
        )
        if not new and not known:
            await Response(status_code=403)(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                if new:
                    headers.append(
                        "Set-Cookie",
                        f"{self.cookie}={self.session}; HttpOnly; SameSite=Strict; Path=/",
                    )
            await send(message)

        await self.app(scope, receive, sent)

    def _visit(self, request: Request) -> bool:
        """Return whether a request brings the token, which is used up then."""
        given = request.query_params.get("token", "").encode()
        with self._lock:
            good = self._token is not None and request.url.path == "/" and request.method == "GET"
            good = good and compare_digest(given, str(self._token).encode())
            self._token = None if good else self._token
            return good


class Page(NamedTuple):
    """One page of the studio with its addresses, and what is done when it is opened and left."""

    routes: Sequence[Route]
    begin: Callable[[], None] = lambda: None
    close: Callable[[], None] = lambda: None


def shown(template: str, **values: Any) -> str:
    """Render a page as HTML; every text is escaped."""
    return str(load_templates(ASSETS).get_template(template).render(**values))


def get(
    path: str, make: Callable[[], Any], response: Callable[[Any], Response] = HTMLResponse
) -> Route:
    """Return the route of an address that shows a page, or responds in another form."""

    async def answer(_: Request) -> Response:
        return response(await run_in_threadpool(make))

    return Route(path, answer)


def assets(script: str, *, charts: bool = False) -> Iterator[Route]:
    """Yield the routes of the style sheet and the scripts that a page needs."""
    for name in ("studio.css", "asking.js", script):
        content = (ASSETS / name).read_text(encoding="utf-8")
        yield get(
            f"/{name}",
            partial(str, content),
            partial(Response, media_type=_TYPES[Path(name).suffix]),
        )
    if charts:
        yield get("/vega.js", _vega_script, partial(Response, media_type=_TYPES[".js"]))


@cache
def _vega_script() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script; it comes with the package that draws the report's pictures."""
    import vl_convert

    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    if not isinstance(script, str):
        raise InternalError("No script that draws charts was found.")
    return script


def chart(spec: dict[str, Any] | None, said: Catalogue, alt: str) -> dict[str, Any]:
    """Return a chart in the language of a page with its alternative text."""
    return {"chart": spec and set_locale(spec, said.language), "alt": alt}


def action(path: str, do: Callable[[dict[str, Any]], Any], said: Catalogue) -> Route:
    """Return the route of an action, which takes a JSON object and answers with a JSON value.

    If the action cannot be done, the answer is ``refused`` with a sentence, and its status is 200,
    because browsers report others on their consoles.
    """

    async def answer(request: Request) -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BYTES:
                return JSONResponse(
                    {"refused": "A request must have at most a million bytes."}, status_code=400
                )
        try:
            asked = read_json(body.decode())
        except ValueError:
            asked = None
        if not isinstance(asked, dict):
            return JSONResponse({"refused": "A request must be a JSON object."}, status_code=400)
        try:
            return JSONResponse(await run_in_threadpool(do, asked))
        except LeastNoiseError as error:
            return JSONResponse({"refused": said.translate(error.args[0])})

    return Route(path, answer, methods=["POST"])
