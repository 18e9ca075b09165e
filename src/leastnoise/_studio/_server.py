"""The server: on this machine alone, on a free port, for one browser, until the terminal ends it."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_urlsafe

import uvicorn
from starlette.applications import Starlette

from leastnoise._studio._explore_page import exploring_page
from leastnoise._studio._pages import HOST, Guard
from leastnoise._studio._plan_page import planning_page


@dataclass(frozen=True, slots=True)
class Opened:
    """A studio that listens; `run` serves until it is stopped."""

    address: str
    run: Callable[[], None]
    stop: Callable[[], None]


def opened(path: Path) -> Opened:
    r"""Listen on a free port of 127.0.0.1.

    Guarantees: reads the spec and the public files that it names, or the release; never the data.
    """
    page = exploring_page(path) if path.is_dir() else planning_page(path)
    token = token_urlsafe(32)
    app = Starlette(routes=page.routes)
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
        page.begin()
        try:
            with suppress(KeyboardInterrupt):
                server.run(sockets=[listening])
        finally:
            page.close()
            listening.close()

    def stop() -> None:
        server.should_exit = True

    return Opened(f"http://{HOST}:{port}/?token={token}", run, stop)
