"""The server of the studio, on a local port and for one browser."""

from contextlib import suppress
from pathlib import Path
from secrets import token_urlsafe

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from leastnoise._studio._begin_page import form_page, read_columns, source_page
from leastnoise._studio._explore_page import exploring_page
from leastnoise._studio._pages import HOST, Page, RequestGuard, preferred_language
from leastnoise._studio._planning import planning_page


class Studio:
    """A server on a free local port that shows one page at a time.

    Args:
        path: a spec, the directory of a release, or data for a new spec. If None, the first page
            asks for the data.

    Guarantees: the server reads only the spec and the public files that it names, the release, and
        the names and types of columns. It never reads a value of the data.
    """

    def __init__(self, path: Path | None) -> None:
        if path is None:
            self._page = source_page(self.show)
        elif path.is_dir():
            self._page = exploring_page(path, self.show)
        elif path.suffix == ".toml" or not path.exists():
            self._page = planning_page(path)
        else:
            self._page = form_page(read_columns(path, {}), self.show)
        self._has_language = False
        token = token_urlsafe(32)
        self.app = Starlette()
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
        self._listening.listen()  # browsers that connect before the server is ready must wait
        port = self._listening.getsockname()[1]
        config.app = RequestGuard(self, port, token)
        self._server = uvicorn.Server(config)
        self.address = f"http://{HOST}:{port}/?token={token}"

    def show(self, page: Page) -> dict[str, str]:
        """Show a page, and close the previous one.

        Returns:
            An empty reply to the browser, which then requests the new page.
        """
        previous = self._page
        self._page = page
        self.app = Starlette(routes=page.routes)
        page.begin()
        if previous is not page:
            previous.close()
        return {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the shown page.

        The first request states the language of the browser.
        """
        if not self._has_language:
            self._has_language = True
            self._set_language(preferred_language(Headers(scope=scope).get("accept-language", "")))
        await self.app(scope, receive, send)

    def _set_language(self, language: str) -> None:
        """Show the page in the browser's language, unless its language is set."""
        if language and self._page.in_language is not None:
            page = self._page.in_language(language)
            if page is not self._page:
                self.show(page)

    def run(self) -> None:
        """Serve until the server is stopped."""
        self.show(self._page)
        try:
            with suppress(KeyboardInterrupt):
                self._server.run(sockets=[self._listening])
        finally:
            self._page.close()
            self._listening.close()

    def stop(self) -> None:
        """Stop the server."""
        self._server.should_exit = True
