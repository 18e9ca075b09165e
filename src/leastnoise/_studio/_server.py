"""The server: on this machine alone, on a free port, for one browser, until the terminal ends it."""

from contextlib import suppress
from pathlib import Path
from secrets import token_urlsafe

import uvicorn
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from leastnoise._studio._begin_page import beginning_page, choosing_page, looked_at
from leastnoise._studio._explore_page import exploring_page
from leastnoise._studio._pages import HOST, Guard, Page
from leastnoise._studio._planning import planning_page


class Studio:
    """A server on a free port of 127.0.0.1 that shows one page at a time.

    Args:
        path: a spec, the directory of a release, or data for a new spec; None asks for the data.

    Guarantees: reads the spec and the public files that it names, the release, or names and types
        of columns; never a value of the data.
    """

    def __init__(self, path: Path | None) -> None:
        if path is None:
            self._page = choosing_page(self.show)
        elif path.is_dir():
            self._page = exploring_page(path)
        elif path.suffix == ".toml" or not path.exists():
            self._page = planning_page(path)
        else:
            self._page = beginning_page(looked_at(path, {}), self.show)
        token, self.app = token_urlsafe(32), Starlette()
        config = uvicorn.Config(
            self,
            HOST,
            0,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
        )
        config.timeout_graceful_shutdown = 1
        self._listening = config.bind_socket()
        self._listening.listen()  # a browser that is quicker than the server waits
        port = self._listening.getsockname()[1]
        config.app = Guard(self, port, token)
        self._server = uvicorn.Server(config)
        self.address = f"http://{HOST}:{port}/?token={token}"

    def show(self, page: Page) -> dict[str, str]:
        """Show a page in place of the one before, which is closed; return the empty reply to the browser, which then asks again."""
        before, self._page, self.app = self._page, page, Starlette(routes=page.routes)
        page.begin()
        if before is not page:
            before.close()
        return {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the page that is shown answer."""
        await self.app(scope, receive, send)

    def run(self) -> None:
        """Serve until it is stopped."""
        self.show(self._page)
        try:
            with suppress(KeyboardInterrupt):
                self._server.run(sockets=[self._listening])
        finally:
            self._page.close()
            self._listening.close()

    def stop(self) -> None:
        """Let the server end."""
        self._server.should_exit = True
