"""Run the server until it is told to stop, with limits on slow clients."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable

import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from mh4.data.errors import DataError
from mh4.machine import Terminated

from .metrics import JsonLog

HEADER_SECONDS = 15  # to receive the header of a request
IDLE_SECONDS = 15  # between two requests of a connection
DRAIN_SECONDS = 60  # for requests under way when the server is told to stop
MOST_CONNECTIONS = 1000


class _Protocol(H11Protocol):
    """HTTP/1.1; a connection that does not send the whole header of a request in time is closed."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch_header()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_header()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch_header()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)

    def _watch_header(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._forget_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _Server(uvicorn.Server):
    """Calls ``on_ready`` when it listens."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], object]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()


def listening(host: str, port: int) -> socket.socket:
    """A listening socket at an address; port 0 chooses a free port.

    DataError: The address is in use, or not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns off Nagle's algorithm, which delays answers by 40 ms, only for sockets created with IPPROTO_TCP.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(MOST_CONNECTIONS)
        return found
    except OSError as error:
        found.close()
        reason = (os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror) or str(error)
        raise DataError(f"cannot listen on {host}, port {port}: {reason} (see --host and --port)") from None


def serve(app: Starlette, at: socket.socket, on_ready: Callable[[], object]) -> None:
    """Answer requests until SIGTERM or SIGINT, then finish those under way. Logs JSON to stderr."""
    for name in ("mh4", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [JsonLog(logging.WARNING)], False
    try:
        new_server(app, on_ready).run(sockets=[at])
    except (KeyboardInterrupt, Terminated):  # uvicorn stops on a signal and then raises it again
        Terminated.asked = None


def new_server(app: Starlette, on_ready: Callable[[], object]) -> uvicorn.Server:
    """A server that calls ``on_ready`` when it listens; setting its `should_exit` stops it, as SIGTERM does."""
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        limit_concurrency=MOST_CONNECTIONS,
        backlog=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=1 << 16,
    )
    return _Server(config, on_ready)
