"""What every page of the studio stands on: templates and files that are shipped, requests that change something, and their errors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from leastnoise._check import InputError, LeastNoiseError
from leastnoise._plan import read_json

ASSETS = Path(__file__).with_name("assets")
_TYPES = {".css": "text/css", ".js": "text/javascript"}
_MOST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Page:
    """One mode of the studio."""

    routes: Sequence[BaseRoute]
    begin: Callable[[], None] = lambda: None
    close: Callable[[], None] = lambda: None


def shown(template: str, **values: Any) -> str:
    """A page as HTML; every text is escaped."""
    return str(_templates().get_template(template).render(**values))


@cache
def _templates() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(loader=FileSystemLoader(ASSETS), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def html(path: str, make: Callable[[], str]) -> Route:
    """A page."""

    async def answer(_: Request) -> Response:
        return HTMLResponse(await run_in_threadpool(make))

    return Route(path, answer)


def asset(name: str) -> Route:
    """A file that is shipped."""
    content = (ASSETS / name).read_text(encoding="utf-8")
    return text(f"/{name}", lambda: content, _TYPES[Path(name).suffix])


def text(path: str, make: Callable[[], str], kind: str = "text/plain") -> Route:
    """A text."""

    async def answer(_: Request) -> Response:
        return Response(await run_in_threadpool(make), media_type=kind)

    return Route(path, answer)


def value(path: str, make: Callable[[], Any]) -> Route:
    """A JSON value."""

    async def answer(_: Request) -> Response:
        return JSONResponse(await run_in_threadpool(make))

    return Route(path, answer)


def action(path: str, do: Callable[[dict[str, Any]], Any]) -> Route:
    """What a person does: a JSON object comes, a JSON value goes; of what cannot be done, ``refused`` with the sentence that says why.

    That is an answer as others are: browsers write a request that fails into their consoles, and nothing failed.
    """

    async def answer(request: Request) -> Response:
        try:
            asked = await _asked(request)
        except InputError as error:
            return JSONResponse({"refused": str(error)}, status_code=400)
        try:
            return JSONResponse(await run_in_threadpool(do, asked))
        except LeastNoiseError as error:
            return JSONResponse({"refused": str(error)})

    return Route(path, answer, methods=["POST"])


async def _asked(request: Request) -> dict[str, Any]:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            raise InputError("A request must have at most a million bytes.")
    try:
        found = read_json(body.decode())
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError("A request must be a JSON object.")
    return found
