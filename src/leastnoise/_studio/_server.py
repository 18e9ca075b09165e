"""The server: on this machine alone, on a free port, for one browser, until the terminal ends it."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_urlsafe

import uvicorn
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from leastnoise._studio._begin_page import beginning_page, choosing_page, looked_at
from leastnoise._studio._explore_page import exploring_page
from leastnoise._studio._pages import HOST, Guard, Page
from leastnoise._studio._planning import planning_page


@dataclass(frozen=True, slots=True)
class Opened:
    """A studio that listens; `run` serves until it is stopped."""

    address: str
    run: Callable[[], None]
    stop: Callable[[], None]


class Shown:
    """The page that is shown now; a page may lead to another, which is there when the browser asks again."""

    def __init__(self) -> None:
        self._page = Page([])
        self.app = Starlette()

    def show(self, page: Page) -> dict[str, str]:
        """Show a page in the place of the one before, which ends."""
        before, self._page, self.app = self._page, page, Starlette(routes=page.routes)
        page.begin()
        before.close()
        return {}

    def close(self) -> None:
        """End the page that is shown."""
        self._page.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the page does that is shown."""
        await self.app(scope, receive, send)


def opened(path: Path | None) -> Opened:
    r"""Listen on a free port of 127.0.0.1.

    Guarantees: reads the spec and the public files that it names, the release, or names and types of columns; never a value of the data.
    """
    app = Shown()
    if path is None:
        page = choosing_page(app.show)
    elif path.is_dir():
        page = exploring_page(path)
    elif path.suffix == ".toml" or not path.exists():
        page = planning_page(path)
    else:
        page = beginning_page(looked_at(path, {}), app.show)
    token = token_urlsafe(32)
    config = uvicorn.Config(
        app, HOST, 0, log_level="error", access_log=False, server_header=False, proxy_headers=False, lifespan="off", ws="none"
    )
    config.timeout_graceful_shutdown = 1
    listening = config.bind_socket()
    listening.listen()  # who is quick waits until it is served
    port = listening.getsockname()[1]
    config.app = Guard(app, port, token)
    server = uvicorn.Server(config)

    def run() -> None:
        app.show(page)
        try:
            with suppress(KeyboardInterrupt):
                server.run(sockets=[listening])
        finally:
            app.close()
            listening.close()

    def stop() -> None:
        server.should_exit = True

    return Opened(f"http://{HOST}:{port}/?token={token}", run, stop)
