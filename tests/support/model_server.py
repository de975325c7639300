"""A local server of model packages that can simulate faults."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any


@contextmanager
def serving(folder: Path) -> Iterator[SimpleNamespace]:
    """Serve a folder.

    The server has an ``address``; ``requests``, the (path, Range) of each request so far; and ``faults``, a list to
    which faults can be added, one for each of the next requests of packages: ``("cut", n)`` closes the connection after
    n bytes, ``"whole"`` ignores Range, ``("status", code)`` answers with an error, ``("redirect", address)`` redirects.
    """
    server = SimpleNamespace(requests=[], faults=[])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            server.requests.append((self.path, asked))
            packaged = self.path.endswith(".zip")
            fault = server.faults.pop(0) if packaged and server.faults else None
            kind, value = fault if isinstance(fault, tuple) else (fault, None)
            if kind == "status":
                self.send_error(value)
            elif kind == "redirect":
                self.send_response(302)
                self.send_header("Location", value)
                self.end_headers()
            else:
                self.answer(asked if kind != "whole" else None, value)

        def answer(self, asked: str | None, cut: int | None) -> None:
            path = folder / self.path.lstrip("/")
            if not path.is_file():
                self.send_error(404)
                return
            content = path.read_bytes()
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
            if asked and start >= len(content):
                self.send_error(416)
                return
            self.send_response(206 if asked else 200)
            if asked:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            self.wfile.write(content[start:][:cut])

        def log_message(self, *_: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.address = f"http://127.0.0.1:{http.server_port}"
    thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
