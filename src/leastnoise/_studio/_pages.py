"""Code that all pages of the studio share.

The module contains the request guard, templates, shipped files, and actions with their errors.

The server answers only the browser that sent the one-time token, and only requests from its own
page:

- Host must be this address. Requests to another host name that resolves to this address (DNS
  rebinding) are refused.
- Origin must be this page if the browser sends it. Every request that changes something must send
  it.
- The token in the address is valid for one visit. On that visit, the browser gets a session in a
  cookie. Only this browser has the cookie, and sends the cookie only from this page (HttpOnly,
  SameSite=Strict).

All other requests are refused with status 403 and an empty body.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from leastnoise._texts import LANGUAGES, Catalogue, list_language_names, load_templates
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
_MOST_BYTES = 1_000_000  # of a request


class RequestGuard:
    """Middleware that passes on only requests from the studio's page."""

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self.app = app
        self.address = f"{HOST}:{port}"
        self.cookie = f"leastnoise-{port}"
        self.session = token_urlsafe(32)
        self._token: str | None = token
        self._lock = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request from the own page with the token or the session.

        Refuse all others.
        """
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        request = Request(scope)
        is_own_page = self._is_own_page(request)
        is_first_visit = is_own_page and self._accept_token(request)
        has_session = is_own_page and compare_digest(
            request.cookies.get(self.cookie, "").encode(), self.session.encode()
        )
        if not is_first_visit and not has_session:
            await Response(status_code=403)(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            """Send a message, with the security headers and a new session's cookie."""
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                if is_first_visit:
                    headers.append(
                        "Set-Cookie",
                        f"{self.cookie}={self.session}; HttpOnly; SameSite=Strict; Path=/",
                    )
            await send(message)

        await self.app(scope, receive, send_with_headers)

    def _is_own_page(self, request: Request) -> bool:
        """Return whether a request is for this server and comes from its page."""
        if request.headers.getlist("host") != [self.address]:
            return False
        origins = request.headers.getlist("origin")
        if not origins:
            return request.method in {"GET", "HEAD"}
        return origins == [f"http://{self.address}"]

    def _accept_token(self, request: Request) -> bool:
        """Return whether a request has the one-time token; the token is then invalid."""
        if request.url.path != "/" or request.method != "GET":
            return False
        token = request.query_params.get("token", "").encode()
        with self._lock:
            if self._token is None or not compare_digest(token, self._token.encode()):
                return False
            self._token = None
            return True


class Page(NamedTuple):
    """A page of the studio: its routes, and functions to open and close it.

    Attributes:
        routes: the HTTP routes of the page.
        begin: called when the page is shown.
        close: called when another page is shown.
        in_language: returns the page in the language of the browser; None if the page has a fixed
            language.
    """

    routes: Sequence[Route]
    begin: Callable[[], None] = lambda: None
    close: Callable[[], None] = lambda: None
    in_language: Callable[[str], "Page"] | None = None


ShowPage = Callable[[Page], Mapping[str, str]]
"""A function that shows another page.

It returns the reply to the browser, which then requests that page.
"""


def preferred_language(accepted: str) -> str:
    """Return the available language that a browser prefers, or "".

    Args:
        accepted: the header Accept-Language, such as ``de-AT, en;q=0.5``.
    """
    best_language = ""
    best_quality = 0.0
    for entry in accepted.split(","):
        tag, _, parameter = entry.partition(";")
        language = tag.strip().partition("-")[0].lower()
        try:
            quality = float(parameter.strip().removeprefix("q=") or 1)
        except ValueError:
            continue
        if language in LANGUAGES and quality > best_quality:
            best_language = language
            best_quality = quality
    return best_language


def render_page(template: str, **values: Any) -> str:
    """Render an HTML template; texts are escaped."""
    values["languages"] = list_language_names()
    return str(load_templates(ASSETS).get_template(template).render(**values))


def page_route(
    path: str, render: Callable[[], Any], response: Callable[[Any], Response] = HTMLResponse
) -> Route:
    """Return a GET route that responds with the result of ``render``."""

    async def respond(_: Request) -> Response:
        """Respond with the result of ``render``."""
        return response(await run_in_threadpool(render))

    return Route(path, respond)


def asset_routes(script: str, *, charts: bool = False) -> Iterator[Route]:
    """Yield the routes of a page's style sheets and scripts."""
    for name in ("tokens.css", "studio.css", "asking.js", script):
        content = (ASSETS / name).read_text(encoding="utf-8")
        yield page_route(
            f"/{name}",
            partial(str, content),
            partial(Response, media_type=_TYPES[Path(name).suffix]),
        )
    if charts:
        yield page_route("/vega.js", _vega_script, partial(Response, media_type=_TYPES[".js"]))


@cache
def _vega_script() -> str:
    """Return the JavaScript of Vega, Vega-Lite and Vega-Embed.

    This JavaScript is shipped with the package that draws the pictures of reports.
    """
    import vl_convert

    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    if not isinstance(script, str):
        raise InternalError("No script that draws charts was found.")
    return script


def chart_json(spec: dict[str, Any] | None, catalogue: Catalogue, alt: str) -> dict[str, Any]:
    """Return a Vega-Lite chart with its language and alternative text as JSON."""
    return {"chart": spec and set_locale(spec, catalogue.language), "alt": alt}


def action_route(
    path: str, handle: Callable[[dict[str, Any]], Any], translate: Callable[[Any], str]
) -> Route:
    """Return the POST route of an action, which takes and returns JSON.

    If the action fails, the response has the key ``refused`` with a sentence. Its status is 200,
    because browsers log other codes on their consoles.
    """

    async def respond(request: Request) -> Response:
        """Carry out the action on the JSON of the request, and respond with JSON."""
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MOST_BYTES:
                return JSONResponse(
                    {"refused": "A request must have at most a million bytes."}, status_code=400
                )
        try:
            arguments = read_json(body.decode())
        except ValueError:
            arguments = None
        if not isinstance(arguments, dict):
            return JSONResponse({"refused": "A request must be a JSON object."}, status_code=400)
        try:
            return JSONResponse(await run_in_threadpool(handle, arguments))
        except LeastNoiseError as error:
            return JSONResponse({"refused": translate(error.args[0])})

    return Route(path, respond, methods=["POST"])
